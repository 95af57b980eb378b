//! A validation Job on one pinned node, which the lab's kubelet runs.

use std::collections::BTreeMap;

use poolwright::document::fill;
use poolwright::k8s::{Error, JobLook, JobRun, Patched};
use poolwright::model::RunId;
use serde_json::{Value, json};

use super::lab::{Lab, RUN, connect, mark};
use super::plane::NOBODY;

/// What a kubelet would tell: the nodes are played.
const BOOT: &str = "11f78e1b-3800-bfa7-0799-644e87ade766";

/// A template whose pod the kubelet plays as these annotations say.
fn template(namespace: &str, plays: Value) -> Value {
    let limits = json!({"limits": {"nvidia.com/gpu": "4"}});
    let container = json!({"name": "check", "image": "lab", "resources": limits});
    let pod = json!({"metadata": {"annotations": plays}, "spec": {"containers": [container]}});
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": namespace}, "spec": {"template": pod}})
}

/// A cordoned node, and a way to run templates on it.
struct Validating {
    lab: Lab,
    node: String,
}

impl Validating {
    async fn start(name: &'static str) -> Option<Self> {
        let lab = Lab::start(name).await?;
        let node = lab.node("a").await;
        lab.node("b").await;
        let client = lab.client().await;
        let view = client.node(&node).await.unwrap().unwrap();
        let patched = client.cordon(&view.node, &view.version, &mark(&node)).await.unwrap();
        assert!(matches!(patched, Patched::Done(_)), "{patched:?}");
        Some(Self { lab, node })
    }

    async fn job(&self, number: usize, template: &Value) -> JobRun {
        let client = self.lab.client().await;
        let node = client.node(&self.node).await.unwrap().unwrap().node;
        JobRun::new(client, node, BOOT, &RunId::from(RUN), number, template).unwrap()
    }

    /// The Job as it is once it is so.
    async fn until(&self, job: &JobRun, is_so: impl Fn(&Value) -> bool) -> Value {
        let name = job.title().split_once('/').unwrap().1.to_owned();
        self.lab.api.until(&self.lab.list("jobs"), &name, is_so).await
    }

    async fn until_ended(&self, job: &JobRun) -> Value {
        let ends = |condition: &Value| {
            matches!(condition["type"].as_str(), Some("Complete" | "Failed")) && condition["status"] == "True"
        };
        self.until(job, |job| job["status"]["conditions"].as_array().is_some_and(|all| all.iter().any(ends))).await
    }
}

fn assert_says(evidence: &[String], words: &str) {
    assert!(evidence.iter().any(|line| line.contains(words)), "{words:?} is not in {evidence:#?}");
}

#[tokio::test]
async fn a_job_passes_on_a_cordoned_node_and_leaves_nothing_behind() {
    let Some(validating) = Validating::start("passes").await else { return };
    let lab = &validating.lab;
    let job = validating.job(1, &template("passes", json!({"lab/exit": "0", "lab/log": "4 GPUs are well\n"}))).await;
    job.start().await.unwrap();
    let raw = validating.until_ended(&job).await;
    assert_eq!(
        (&raw["spec"]["backoffLimit"], &raw["spec"]["template"]["spec"]["restartPolicy"]),
        (&json!(0), &json!("Never"))
    );
    assert!(raw["spec"]["activeDeadlineSeconds"].as_u64().is_some_and(|seconds| seconds > 0), "{raw:#}");
    let pods = lab.pods().await;
    assert_eq!(pods.len(), 1);
    assert_eq!(pods[0]["spec"]["nodeName"], validating.node);
    let JobLook::Passed { evidence, .. } = job.look().await.unwrap() else { panic!("{:?}", job.look().await) };
    assert_says(&evidence, "4 GPUs are well");
    // As after a crash: it is followed, not made again.
    validating.job(1, &template("passes", json!({"lab/exit": "1"}))).await.start().await.unwrap();
    assert!(matches!(job.look().await.unwrap(), JobLook::Passed { .. }));

    job.tidy().await.unwrap();
    let (name, uid) = (raw["metadata"]["name"].as_str().unwrap(), raw["metadata"]["uid"].as_str().unwrap());
    lab.api.until_gone(&lab.list("jobs"), name, uid).await;
    let (name, uid) = (pods[0]["metadata"]["name"].as_str().unwrap(), pods[0]["metadata"]["uid"].as_str().unwrap());
    lab.api.until_gone(&lab.list("pods"), name, uid).await;
    assert!(matches!(job.look().await.unwrap(), JobLook::Failed { evidence } if evidence[0].ends_with("is gone")));
}

#[tokio::test]
async fn a_job_that_fails_tells_its_exit_code_and_last_words() {
    let Some(validating) = Validating::start("fails").await else { return };
    let plays = json!({"lab/exit": "7", "lab/log": "testing\nGPU 2: row remap failed\n"});
    let job = validating.job(1, &template("fails", plays)).await;
    job.start().await.unwrap();
    validating.until_ended(&job).await;
    let JobLook::Failed { evidence } = job.look().await.unwrap() else { panic!("{:?}", job.look().await) };
    assert_says(&evidence, "exit code 7");
    assert_says(&evidence, "GPU 2: row remap failed");
}

#[tokio::test]
async fn a_job_that_never_ends_is_ended() {
    let Some(validating) = Validating::start("hangs").await else { return };
    let mut hangs = template("hangs", json!({}));
    hangs["spec"]["activeDeadlineSeconds"] = json!(3);
    let job = validating.job(1, &hangs).await;
    job.start().await.unwrap();
    validating.until(&job, |job| job["status"]["active"] == 1).await;
    assert!(matches!(job.look().await.unwrap(), JobLook::Waiting { .. }));
    validating.until_ended(&job).await;
    let JobLook::Failed { evidence } = job.look().await.unwrap() else { panic!("{:?}", job.look().await) };
    assert_says(&evidence, "DeadlineExceeded");
}

#[tokio::test]
async fn a_job_that_does_not_start_says_what_it_waits_for() {
    let Some(validating) = Validating::start("waits").await else { return };
    let job = validating.job(1, &template("waits", json!({"lab/waits": "ImagePullBackOff"}))).await;
    job.start().await.unwrap();
    validating.until(&job, |job| job["status"]["active"] == 1).await;
    let pod = validating.lab.pods().await.remove(0);
    let name = pod["metadata"]["name"].as_str().unwrap();
    let is_known = |pod: &Value| !pod["status"]["containerStatuses"].is_null();
    validating.lab.api.until(&validating.lab.list("pods"), name, is_known).await;
    let JobLook::Waiting { why } = job.look().await.unwrap() else { panic!("{:?}", job.look().await) };
    assert!(why.contains("ImagePullBackOff"), "{why}");

    let mut queued = template("waits", json!({"lab/exit": "0"}));
    queued["spec"]["suspend"] = json!(true);
    let job = validating.job(2, &queued).await;
    job.start().await.unwrap();
    let JobLook::Waiting { why } = job.look().await.unwrap() else { panic!("{:?}", job.look().await) };
    assert!(why.contains("suspended"), "{why}");
}

/// The dry run takes the Job: what admits pods is asked by its controller alone.
#[tokio::test]
async fn a_job_whose_pods_are_refused_says_why() {
    let Some(validating) = Validating::start("refused").await else { return };
    let mut template = template("refused", json!({"lab/exit": "0"}));
    template["spec"]["template"]["spec"]["priorityClassName"] = json!("nobody-made-it");
    let job = validating.job(1, &template).await;
    job.rehearse().await.unwrap();
    job.start().await.unwrap();
    let query = "fieldSelector=involvedObject.kind=Job,reason=FailedCreate";
    let mut feed = validating.lab.api.follow("/api/v1/namespaces/refused/events", query).await;
    feed.next().await.expect("the controller of Jobs says that it may not");
    let JobLook::Waiting { why } = job.look().await.unwrap() else { panic!("{:?}", job.look().await) };
    assert!(why.contains("has no pod: FailedCreate: ") && why.contains("nobody-made-it"), "{why}");
}

#[tokio::test]
async fn a_job_of_another_is_neither_followed_nor_deleted() {
    let Some(validating) = Validating::start("theirs").await else { return };
    let job = validating.job(1, &template("theirs", json!({"lab/exit": "0"}))).await;
    let name = job.title().split_once('/').unwrap().1.to_owned();
    let mut theirs = template("theirs", json!({"lab/exit": "0"}));
    theirs["metadata"]["name"] = json!(name);
    theirs["spec"]["template"]["spec"]["restartPolicy"] = json!("Never");
    validating.lab.api.create(&validating.lab.list("jobs"), &theirs).await;
    let error = job.start().await.unwrap_err();
    assert!(matches!(error, Error::NotTaken { .. }), "{error:?}");
    assert!(matches!(job.look().await.unwrap(), JobLook::Failed { .. }));
    job.tidy().await.unwrap();
    let path = format!("{}/{name}", validating.lab.list("jobs"));
    assert!(validating.lab.api.find(&path).await.is_some());
}

#[tokio::test]
async fn a_dry_run_is_refused_as_the_job_would_be_with_no_right_but_to_create_it() {
    let Some(validating) = Validating::start("tried").await else { return };
    let lab = &validating.lab;
    let good = template("tried", json!({"lab/exit": "0"}));
    let job = validating.job(1, &good).await;
    job.rehearse().await.unwrap();
    assert!(lab.api.get(&lab.list("jobs")).await["items"].as_array().unwrap().is_empty(), "nothing is kept");
    let refused = async |template: &Value| {
        let error = validating.job(2, template).await.rehearse().await.unwrap_err();
        assert!(!error.is_retriable(), "{error:?}");
        error.refusal().expect("the server refuses").clone()
    };
    let mut unknown = good.clone();
    unknown["spec"]["template"]["spec"]["containers"][0]["resource"] = json!({});
    let refusal = refused(&unknown).await;
    assert_eq!(refusal.code, 400);
    assert!(refusal.message.contains("unknown field \"spec.template.spec.containers[0].resource\""), "{refusal}");
    let refusal = refused(&template("nowhere", json!({}))).await;
    assert_eq!((refusal.code, refusal.message.as_str()), (404, "namespaces \"nowhere\" not found"));
    let mut impossible = good.clone();
    impossible["spec"]["template"]["spec"]["restartPolicy"] = json!("Always");
    assert_eq!(refused(&impossible).await.code, 422);
    // Without the right.
    let client = connect(lab.server, NOBODY).await;
    let node = lab.client().await.node(&validating.node).await.unwrap().unwrap().node;
    let error = JobRun::new(client, node, BOOT, &RunId::from(RUN), 1, &good).unwrap().rehearse().await.unwrap_err();
    let refusal = error.refusal().expect("the server refuses");
    assert!(refusal.code == 403 && refusal.message.contains("cannot create resource \"jobs\""), "{refusal}");
    // It is there: what is there decides.
    job.start().await.unwrap();
    job.rehearse().await.unwrap();
}

/// A field that a server does not know would be passed over, and a Job pass that asks for no GPU.
#[tokio::test]
async fn the_templates_that_we_ship_are_understood_to_the_last_field() {
    let Some(lab) = Lab::start("shipped").await else { return };
    let given: BTreeMap<&str, String> = [("image", "lab"), ("resource", "nvidia.com/gpu"), ("perNode", "4")]
        .map(|(name, value)| (name, value.to_owned()))
        .into();
    let mut templates = 0;
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/templates")).unwrap() {
        let path = entry.unwrap().path();
        let shown = path.display().to_string();
        let (filled, _) = fill(&shown, &std::fs::read(&path).unwrap(), &given).unwrap();
        let mut job = filled.value;
        job["metadata"]["name"] = json!(path.file_stem().unwrap().to_str().unwrap());
        job["metadata"]["namespace"] = json!(lab.name);
        let made = lab.api.create(&format!("{}?fieldValidation=Strict&dryRun=All", lab.list("jobs")), &job).await;
        let limits = &made["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"];
        assert_eq!(limits["nvidia.com/gpu"], "4", "{shown}");
        templates += 1;
    }
    assert!(templates > 0);
}
