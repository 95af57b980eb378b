//! One validation Job: what is made of the template, and how it is followed to its end.

use poolwright::k8s::{Client, Error, JobLook, JobRun};
use poolwright::model::RunId;
use serde_json::{Value, json};

use super::nodes::node_ref;
use super::says;
use super::script::{Reply, Seen, Server, list, not_found, status};

const JOBS: &str = "/apis/batch/v1/namespaces/gpu-check/jobs";

type Change = fn(&mut Value);

fn template() -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": { "generateName": "check-", "namespace": "gpu-check", "labels": { "team": "ml" } },
        "spec": {
            "ttlSecondsAfterFinished": 5,
            "template": { "spec": {
                "tolerations": [{ "key": "nvidia.com/gpu", "operator": "Exists" }],
                "containers": [{ "name": "nccl", "image": "x", "resources": { "limits": { "nvidia.com/gpu": 8 } } }],
            } },
        },
    })
}

/// The boot that the node is on.
const BOOT: &str = "boot-1";

fn run() -> RunId {
    RunId::from("01JDZ0000000000000ABCDEFGH")
}

fn job_of(client: &Client, template: &Value) -> Result<JobRun, Error> {
    JobRun::new(client.clone(), node_ref(), BOOT, &run(), 2, template)
}

/// What was sent, as a server shows it, with this status.
fn shown(mut sent: Value, status: Value) -> Value {
    sent["metadata"]["uid"] = json!("uid-job");
    sent["status"] = status;
    sent
}

async fn sent() -> Value {
    let server = Server::new(|seen| Reply::new(201, shown(seen.body.clone(), json!({})).to_string()));
    job_of(&server.client().await, &template()).unwrap().start().await.unwrap();
    server.only(&format!("POST {JOBS}")).body
}

#[tokio::test]
async fn the_template_is_pinned_to_the_node_and_says_whose_it_is() {
    let sent = sent().await;
    let name = sent["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("poolwright-abcdefgh-") && name.ends_with("-2") && name.len() < 63, "{name}");
    let labels = json!({
        "team": "ml", "poolwright.io/run": "01JDZ0000000000000ABCDEFGH", "app.kubernetes.io/managed-by": "poolwright"
    });
    let annotations = json!({ "poolwright.io/node-uid": "uid-node-1", "poolwright.io/boot": BOOT });
    assert_eq!(
        sent,
        json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": { "name": name, "namespace": "gpu-check", "labels": labels, "annotations": annotations },
            "spec": {
                "backoffLimit": 0, "activeDeadlineSeconds": 1800,
                "template": {
                    "metadata": {
                        "labels": {
                            "poolwright.io/run": "01JDZ0000000000000ABCDEFGH", "app.kubernetes.io/managed-by": "poolwright"
                        },
                        "annotations": annotations,
                    },
                    "spec": {
                        "nodeName": "node-1", "restartPolicy": "Never",
                        "tolerations": [{ "key": "nvidia.com/gpu", "operator": "Exists" }, { "operator": "Exists" }],
                        "containers": [{ "name": "nccl", "image": "x", "resources": { "limits": { "nvidia.com/gpu": 8 } } }],
                    },
                },
            },
        })
    );
    // What the template says of its end is kept.
    let server = Server::new(|seen| Reply::new(201, shown(seen.body.clone(), json!({})).to_string()));
    let mut own = template();
    own["spec"]["backoffLimit"] = json!(2);
    own["spec"]["activeDeadlineSeconds"] = json!(60);
    job_of(&server.client().await, &own).unwrap().start().await.unwrap();
    let spec = &server.only(&format!("POST {JOBS}")).body["spec"];
    assert_eq!((&spec["backoffLimit"], &spec["activeDeadlineSeconds"]), (&json!(2), &json!(60)));
}

#[tokio::test]
async fn what_is_no_job_is_not_sent() {
    let server = Server::new(|_| not_found());
    let client = server.client().await;
    let changes: [fn(&mut Value); 8] = [
        |job| *job = json!(null),
        |job| *job = json!([1]),
        |job| job["kind"] = json!("Pod"),
        |job| job["apiVersion"] = json!("batch/v2"),
        |job| job["spec"] = json!("x"),
        |job| job["spec"]["template"]["spec"] = json!({}),
        |job| job["metadata"]["namespace"] = json!("../kube-system"),
        |job| job["metadata"]["namespace"] = json!(""),
    ];
    for change in changes {
        let mut job = template();
        change(&mut job);
        assert!(matches!(job_of(&client, &job), Err(Error::Unsendable { .. })), "{job}");
    }
    // Odd, and harmless.
    let changes: [fn(&mut Value); 3] = [
        |job| job["metadata"] = json!("x"),
        |job| job["metadata"]["labels"] = json!([]),
        |job| job["spec"]["template"]["spec"]["tolerations"] = json!("all"),
    ];
    for change in changes {
        let mut job = template();
        change(&mut job);
        assert!(job_of(&client, &job).is_ok(), "{job}");
    }
}

#[tokio::test]
async fn a_job_that_this_run_has_made_is_followed_and_another_is_not() {
    let sent = sent().await;
    let start = |change: fn(&mut Value), answer: fn() -> Reply| {
        let mut there = shown(sent.clone(), json!({}));
        change(&mut there);
        let server = Server::new(move |seen| match seen.what.starts_with("POST") {
            true => answer(),
            false if there.is_null() => not_found(),
            false => Reply::ok(there.clone()),
        });
        async move {
            let started = job_of(&server.client().await, &template()).unwrap().start().await;
            assert_eq!(server.count(&format!("POST {JOBS}")), 1, "it is created once");
            started
        }
    };
    let exists = || status(409, "AlreadyExists", "jobs.batch already exists", json!({}));
    start(|_| {}, exists).await.unwrap();
    for other in [
        (|job| job["metadata"]["labels"]["poolwright.io/run"] = json!("01OTHER")) as fn(&mut Value),
        |job| job["metadata"]["labels"] = json!({}),
        |job| job["metadata"]["annotations"]["poolwright.io/node-uid"] = json!("uid-2"),
        |job| job["metadata"]["annotations"]["poolwright.io/boot"] = json!("boot-0"),
        |job| drop(job["metadata"]["annotations"].as_object_mut().unwrap().remove("poolwright.io/boot")),
    ] {
        let error = start(other, exists).await.unwrap_err();
        assert!(matches!(error, Error::NotTaken { .. }), "{error:?}");
    }
    // An answer that was lost: it is there, or it is not.
    start(|_| {}, Reply::broken).await.unwrap();
    let error = start(|job| *job = json!(null), Reply::broken).await.unwrap_err();
    assert!(error.may_have_acted(), "{error:?}");
    let refused = || status(403, "Forbidden", "exceeded quota", json!({}));
    let error = start(|_| {}, refused).await.unwrap_err();
    assert!(!error.may_have_acted(), "{error:?}");
}

/// How a Job of this status, with these pods, looks; the log of each is the same.
async fn look(status: Value, pods: Vec<Value>) -> JobLook {
    look_at(status, pods, |_| {}).await
}

async fn look_at(status: Value, pods: Vec<Value>, change: fn(&mut Value)) -> JobLook {
    let mut job = shown(sent().await, status);
    change(&mut job);
    let server = Server::new(move |seen| match seen.what.as_str() {
        "GET /api/v1/namespaces/gpu-check/pods" => {
            assert!(
                seen.query.contains("labelSelector=batch.kubernetes.io%2Fjob-name%3Dpoolwright-"),
                "{}",
                seen.query
            );
            Reply::ok(list(pods.clone()))
        }
        events if events.ends_with("/events") => Reply::ok(list(vec![])),
        log if log.ends_with("/log") => {
            assert!(seen.query.contains("tailLines=20") && seen.query.contains("container=nccl"), "{}", seen.query);
            Reply::new(200, "line\n".repeat(30) + "busbw \u{1b}[31m12 GB/s\n")
        }
        _ if job.is_null() => not_found(),
        _ => Reply::ok(job.clone()),
    });
    job_of(&server.client().await, &template()).unwrap().look().await.unwrap()
}

fn pod(status: Value) -> Value {
    json!({
        "metadata": {
            "name": "check-abc", "namespace": "gpu-check", "uid": "uid-pod",
            "ownerReferences": [{ "apiVersion": "batch/v1", "kind": "Job", "name": "x", "uid": "uid-job", "controller": true }],
        },
        "spec": {
            "nodeName": "node-1",
            "containers": [{ "name": "nccl", "image": "x", "resources": { "limits": { "nvidia.com/gpu": "8" } } }],
        },
        "status": status,
    })
}

fn condition(kind: &str, reason: &str) -> Value {
    json!([{ "type": kind, "status": "True", "reason": reason, "message": "so it is" }])
}

#[tokio::test]
async fn a_job_that_completes_has_passed() {
    let status = json!({ "succeeded": 1, "conditions": condition("Complete", "CompletionsReached") });
    let JobLook::Passed { evidence, tries } = look(status, vec![pod(json!({ "phase": "Succeeded" }))]).await else {
        panic!()
    };
    assert!(evidence[0].ends_with("has completed"), "{evidence:?}");
    assert_eq!((evidence.len(), evidence[20].as_str()), (21, "log: busbw [31m12 GB/s"), "{evidence:?}");
    assert_eq!(tries, [""; 0]);
}

#[tokio::test]
async fn a_job_that_fails_says_why() {
    let failed = json!({ "failed": 1, "conditions": condition("Failed", "BackoffLimitExceeded") });
    let code = json!({
        "phase": "Failed",
        "containerStatuses": [{ "name": "nccl", "state": { "terminated": { "exitCode": 3, "reason": "Error" } } }],
    });
    let JobLook::Failed { evidence } = look(failed.clone(), vec![pod(code)]).await else { panic!() };
    assert!(evidence[0].ends_with("has failed: BackoffLimitExceeded: so it is"), "{evidence:?}");
    assert_eq!(evidence[1], "pod check-abc: container nccl ended with exit code 3 (Error)");
    assert!(evidence.len() < 25, "{evidence:?}");
    let admission = json!({ "phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "Allocate failed" });
    let JobLook::Failed { evidence } = look(failed, vec![pod(admission)]).await else { panic!() };
    assert_eq!(evidence[1], "pod check-abc: UnexpectedAdmissionError Allocate failed");
}

#[tokio::test]
async fn a_job_that_has_not_ended_says_what_it_waits_for() {
    let waits = |status: Value, pods: Vec<Value>, change: fn(&mut Value)| async move {
        match look_at(status, pods, change).await {
            JobLook::Waiting { why } => why,
            other => panic!("{other:?}"),
        }
    };
    let image = json!({
        "phase": "Pending",
        "containerStatuses": [{ "name": "nccl", "state": { "waiting": { "reason": "ImagePullBackOff", "message": "no such image" } } }],
    });
    let why = waits(json!({ "active": 1 }), vec![pod(image)], |_| {}).await;
    assert_eq!(why, "pod check-abc waits: ImagePullBackOff (no such image)");
    assert_eq!(waits(json!({}), vec![pod(json!({ "phase": "Running" }))], |_| {}).await, "pod check-abc is Running");
    assert!(waits(json!({}), vec![], |_| {}).await.ends_with("has no pod yet"));
    let why = waits(json!({}), vec![], |job| job["spec"]["suspend"] = json!(true)).await;
    assert!(why.ends_with("is suspended: no queue has admitted it"), "{why}");
    // Conditions that are not true, or not yet the end.
    let early = json!({ "succeeded": 1, "conditions": [
        { "type": "Complete", "status": "False" }, { "type": "SuccessCriteriaMet", "status": "True" },
    ] });
    waits(early, vec![], |_| {}).await;
}

/// What a Job without a pod says, of a server that answers this to who asks for its events.
async fn without_a_pod(status: Value, events: impl Fn() -> Reply + Send + 'static) -> (JobLook, Server) {
    let there = shown(sent().await, status);
    let server = Server::new(move |seen| match seen.what.as_str() {
        what if what.ends_with("/pods") => Reply::ok(list(vec![])),
        what if what.ends_with("/events") => events(),
        _ => Reply::ok(there.clone()),
    });
    let looked = job_of(&server.client().await, &template()).unwrap().look().await.unwrap();
    (looked, server)
}

fn event(uid: &str, kind: &str, at: &str, message: &str) -> Value {
    json!({
        "metadata": { "name": format!("check.{at}"), "namespace": "gpu-check" },
        "involvedObject": { "kind": "Job", "uid": uid }, "type": kind, "reason": "FailedCreate",
        "message": message, "lastTimestamp": at, "count": 3,
    })
}

/// Quotas, Pod Security and webhooks refuse pods, not Jobs: an event of the Job says so, and nothing else does.
#[tokio::test]
async fn a_job_without_a_pod_says_why_as_its_controller_said_it_last() {
    let quota = "Error creating: pods \"check-x\" is forbidden: exceeded quota: gpus";
    let events = move || {
        let of = |uid, kind, at: &str, said| event(uid, kind, &format!("2026-11-30T{at}Z"), said);
        Reply::ok(list(vec![
            of("uid-job", "Warning", "20:00:10", "no priority class"),
            of("uid-job", "Warning", "20:01:10", quota),
            of("uid-job", "Normal", "20:02:10", "suspended"),
            of("uid-of-another", "Warning", "20:03:10", "not of this one"),
        ]))
    };
    let (looked, server) = without_a_pod(json!({}), events).await;
    let JobLook::Waiting { why } = looked else { panic!("{looked:?}") };
    assert!(why.ends_with(&format!("has no pod: FailedCreate: {quota}")), "{why}");
    let asked = server.only("GET /api/v1/namespaces/gpu-check/events");
    assert!(asked.query.contains("fieldSelector=involvedObject.uid%3Duid-job"), "{}", asked.query);
    let (looked, _) = without_a_pod(json!({ "conditions": condition("Failed", "DeadlineExceeded") }), events).await;
    let JobLook::Failed { evidence } = looked else { panic!("{looked:?}") };
    assert!(evidence[0].contains("DeadlineExceeded") && evidence[1].contains(quota), "{evidence:?}");
    // Nobody says anything yet.
    let (looked, _) = without_a_pod(json!({}), || Reply::ok(list(vec![]))).await;
    assert!(matches!(&looked, JobLook::Waiting { why } if why.ends_with("has no pod yet")), "{looked:?}");
}

#[tokio::test(start_paused = true)]
async fn who_may_not_read_events_is_told_what_says_why() {
    type Says = fn() -> Reply;
    let cases: [(Says, &str); 3] = [
        (|| status(403, "Forbidden", "events is forbidden", json!({})), "may not be read"),
        (|| Reply::ok(json!({ "kind": "EventList" })), "list the events"),
        (Reply::broken, "list the events"),
    ];
    for (says, word) in cases {
        let (looked, _) = without_a_pod(json!({}), says).await;
        let JobLook::Waiting { why } = looked else { panic!("{looked:?}") };
        assert!(why.contains("has no pod yet; `kubectl -n gpu-check describe job poolwright-"), "{why}");
        assert!(why.contains(word), "{why}");
    }
}

#[tokio::test]
async fn what_does_not_prove_this_node_is_no_success() {
    let complete = || json!({ "succeeded": 1, "conditions": condition("Complete", "") });
    let both = json!({ "succeeded": 1, "conditions": [
        { "type": "Complete", "status": "True" }, { "type": "Failed", "status": "True", "reason": "DeadlineExceeded" },
    ] });
    let none = json!({ "conditions": condition("Complete", "") });
    let cases: [(Value, Change); 7] = [
        (complete(), |job| *job = json!(null)),
        (complete(), |job| job["spec"]["template"]["spec"]["nodeName"] = json!("node-2")),
        (complete(), |job| drop(job["spec"]["template"]["spec"].as_object_mut().unwrap().remove("nodeName"))),
        (complete(), |job| job["metadata"]["labels"] = json!({})),
        (complete(), |job| job["metadata"]["annotations"]["poolwright.io/boot"] = json!("boot-0")),
        (both, |_| {}),
        (none, |_| {}),
    ];
    for (status, change) in cases {
        let look = look_at(status.clone(), vec![], change).await;
        assert!(matches!(look, JobLook::Failed { .. }), "{status}: {look:?}");
    }
}

/// What the log of a try that failed says is no evidence of the one that passed; that there was one is told.
#[tokio::test]
async fn a_job_that_passes_at_a_later_try_says_so() {
    let complete = json!({ "succeeded": 1, "failed": 1, "conditions": condition("Complete", "CompletionsReached") });
    let mut first = pod(json!({
        "phase": "Failed",
        "containerStatuses": [{ "name": "nccl", "state": { "terminated": { "exitCode": 3, "reason": "Error" } } }],
    }));
    first["metadata"]["name"] = json!("check-first");
    let second = pod(json!({
        "phase": "Succeeded",
        "containerStatuses": [{ "name": "nccl", "restartCount": 2, "state": { "terminated": { "exitCode": 0 } },
            "lastState": { "terminated": { "exitCode": 7 } } }],
    }));
    let JobLook::Passed { tries, .. } = look(complete, vec![first, second]).await else { panic!() };
    assert_eq!(
        tries,
        [
            "pod check-first: container nccl ended with exit code 3 (Error)",
            "pod check-abc: container nccl was started again 2 times, the last time after exit code 7"
        ]
    );
}

/// A Job that has completed shows nothing by itself: policies and webhooks change pods, and the Job counts them all.
#[tokio::test]
async fn a_pod_that_ran_elsewhere_or_without_its_gpus_proves_nothing() {
    let complete = || json!({ "succeeded": 1, "conditions": condition("Complete", "CompletionsReached") });
    let good = || pod(json!({ "phase": "Succeeded" }));
    let with = |change: Change| {
        let mut pod = good();
        change(&mut pod);
        pod
    };
    let elsewhere = || with(|pod| pod["spec"]["nodeName"] = json!("node-2"));
    let failed = || with(|pod| pod["status"]["phase"] = json!("Failed"));
    let cases = [
        (vec![], "no pod of it is there that has succeeded"),
        (vec![failed()], "no pod of it is there that has succeeded"),
        (vec![with(|pod| pod["metadata"]["ownerReferences"] = json!([]))], "no pod of it is there"),
        (vec![elsewhere()], "ran on node-2, not on node-1"),
        (vec![with(|pod| drop(pod["spec"].as_object_mut().unwrap().remove("nodeName")))], "ran on no node"),
        (
            vec![with(|pod| pod["spec"]["containers"][0]["resources"] = json!({}))],
            "ran with 0 nvidia.com/gpu, not with 8",
        ),
        (
            vec![with(|pod| pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = json!("7"))],
            "with 7",
        ),
        (
            vec![with(|pod| pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = json!("8k"))],
            "with 0",
        ),
    ];
    for (pods, why) in cases {
        let JobLook::Failed { evidence } = look(complete(), pods).await else { panic!("{why}: passed") };
        assert!(evidence[0].contains(why), "{why}: {evidence:?}");
    }
    // GPUs of an init container or a sidecar are asked for, too.
    let mut sidecar = template();
    let spec = &mut sidecar["spec"]["template"]["spec"];
    spec["initContainers"] = json!([spec["containers"][0].clone()]);
    spec["containers"][0]["resources"] = json!({});
    let (there, bare) =
        (shown(sent().await, complete()), with(|pod| pod["spec"]["containers"][0]["resources"] = json!({})));
    let server = Server::new(move |seen| match seen.what.contains("/pods") {
        true => Reply::ok(list(vec![bare.clone()])),
        false => Reply::ok(there.clone()),
    });
    let seen = job_of(&server.client().await, &sidecar).unwrap().look().await.unwrap();
    assert!(matches!(&seen, JobLook::Failed { evidence } if evidence[0].contains("with 0 nvidia.com/gpu")), "{seen:?}");
    // One that did is enough; what a webhook adds is its own affair.
    let more = with(|pod| {
        let sidecar = json!({ "name": "mesh", "image": "y", "resources": { "limits": { "rdma/hca": "1" } } });
        pod["spec"]["containers"].as_array_mut().unwrap().push(sidecar);
    });
    for pods in [vec![good()], vec![failed(), good()], vec![elsewhere(), good()], vec![more]] {
        assert!(matches!(look(complete(), pods).await, JobLook::Passed { .. }));
    }
}

#[tokio::test]
async fn only_our_own_job_is_deleted() {
    let sent = sent().await;
    let tidy = |change: fn(&mut Value), answer: fn() -> Reply| {
        let mut there = shown(sent.clone(), json!({}));
        change(&mut there);
        let server = Server::new(move |seen| match seen.what.starts_with("DELETE") {
            true => answer(),
            false if there.is_null() => not_found(),
            false => Reply::ok(there.clone()),
        });
        async move {
            let tidied = job_of(&server.client().await, &template()).unwrap().tidy().await;
            let deleted: Vec<_> = server.seen().into_iter().filter(|seen| seen.what.starts_with("DELETE")).collect();
            (tidied, deleted)
        }
    };
    let (tidied, deleted) = tidy(|_| {}, || Reply::ok(json!({ "kind": "Status" }))).await;
    tidied.unwrap();
    assert_eq!(deleted[0].body, json!({ "propagationPolicy": "Background", "preconditions": { "uid": "uid-job" } }));
    for answer in [not_found as fn() -> Reply, || status(409, "Conflict", "UID in precondition", json!({}))] {
        tidy(|_| {}, answer).await.0.unwrap();
    }
    let others: [fn(&mut Value); 2] = [|job| *job = json!(null), |job| job["metadata"]["labels"] = json!({})];
    for change in others {
        let (tidied, deleted) = tidy(change, || panic!("deleted")).await;
        tidied.unwrap();
        assert!(deleted.is_empty());
    }
    let (tidied, deleted) = tidy(|_| {}, Reply::broken).await;
    assert!(tidied.is_err() && deleted.len() == 1);
}

/// What a server says to the dry run of a Job, and what is made of it.
async fn rehearsed(script: impl Fn(&Seen) -> Reply + Send + 'static) -> (Result<(), Error>, Server) {
    let server = Server::new(move |seen| script(seen));
    let result = job_of(&server.client().await, &template()).unwrap().rehearse().await;
    (result, server)
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_sends_what_will_be_sent_and_is_asked_again_while_that_can_help() {
    let (result, server) = rehearsed(|seen| match seen.nth {
        0 => Reply::broken(),
        1 => Reply::new(503, ""),
        2 => status(429, "TooManyRequests", "too many", json!({ "retryAfterSeconds": 1 })),
        _ => Reply::new(201, shown(seen.body.clone(), json!({})).to_string()),
    })
    .await;
    result.unwrap();
    let tried = server.seen();
    assert_eq!(tried.len(), 4);
    let real = Server::new(|seen| Reply::new(201, shown(seen.body.clone(), json!({})).to_string()));
    job_of(&real.client().await, &template()).unwrap().start().await.unwrap();
    let made = real.only(&format!("POST {JOBS}"));
    for seen in &tried {
        assert_eq!((&seen.what, &seen.body), (&made.what, &made.body));
        assert!(seen.query.contains("dryRun=All") && seen.query.contains("fieldValidation=Strict"), "{}", seen.query);
    }
    assert!(!made.query.contains("dryRun") && made.query.contains("fieldValidation=Strict"), "{}", made.query);
}

#[tokio::test(start_paused = true)]
async fn what_a_dry_run_does_not_clearly_take_is_refused() {
    type Says = fn(&Seen) -> Reply;
    let cases: [(Says, &str); 8] = [
        (
            |_| status(404, "NotFound", "namespaces \"gpu-check\" not found", json!({})),
            "namespaces \"gpu-check\" not found",
        ),
        (|_| status(403, "Forbidden", "exceeded quota: jobs", json!({})), "exceeded quota"),
        (|_| status(400, "BadRequest", "strict decoding error: unknown field \"a\"", json!({})), "unknown field"),
        (|_| status(500, "InternalError", "failed calling webhook", json!({})), "failed calling webhook"),
        (|_| Reply::hangs(), "did not answer"),
        (|_| Reply::new(201, "{}"), "not understood"),
        // What is not kept is not ours: another program makes something else of it.
        (
            |seen| {
                let mut job = shown(seen.body.clone(), json!({}));
                job["spec"]["template"]["spec"]["nodeName"] = json!("node-2");
                Reply::new(201, job.to_string())
            },
            "not of this run and node",
        ),
        (
            |seen| match seen.what.starts_with("POST") {
                true => status(409, "AlreadyExists", "already exists", json!({})),
                false => not_found(),
            },
            "already exists",
        ),
    ];
    for (script, word) in cases {
        let (result, _) = rehearsed(script).await;
        let text = says(&result.unwrap_err());
        assert!(text.contains(word) && text.contains("gpu-check/poolwright-") && text.contains("serve"), "{text}");
    }
    // One of this run is there already, and another one: what stands in the way is known from what is there.
    for (run, is_ours) in [("01JDZ0000000000000ABCDEFGH", true), ("01JDZ0000000000000ANOTHERS", false)] {
        let (result, server) = rehearsed(move |seen| match seen.what.starts_with("POST") {
            true => status(409, "AlreadyExists", "already exists", json!({})),
            false => Reply::ok(json!({
                "metadata": {
                    "name": "x", "namespace": "gpu-check", "uid": "u", "labels": { "poolwright.io/run": run },
                    "annotations": { "poolwright.io/node-uid": "uid-node-1" },
                },
                "spec": { "template": { "spec": { "nodeName": "node-1" } } },
            })),
        })
        .await;
        assert_eq!((result.is_ok(), server.seen().len()), (is_ours, 2), "{result:?}");
    }
}
