//! What goes on in a guest cluster: watches, Jobs, volumes, finalizers, other people and programs, faults.

use http_body_util::BodyExt;
use poolwright::base::net::Body;
use poolwright::sim::World;
use serde_json::{Value, json};

use super::guests::{Kube, WEB, condition, document, world};
use super::raw::{Raw, pass, world_of};

/// The stream of a watch, line by line.
struct Watch {
    body: Body,
    rest: String,
}

impl Watch {
    async fn open(kube: &Kube, path: &str) -> Self {
        let response = kube.send("GET", path, "", "").await.unwrap();
        assert_eq!(response.status(), 200);
        Self { body: response.into_body(), rest: String::new() }
    }

    /// The next event; none: the stream has ended. Broken off: an error.
    async fn next(&mut self) -> Result<Option<Value>, ()> {
        loop {
            if let Some((line, rest)) = self.rest.split_once('\n') {
                let event = serde_json::from_str(line).unwrap();
                self.rest = rest.to_owned();
                return Ok(Some(event));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => self.rest.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap()),
                Some(Err(_)) => return Err(()),
                None => return Ok(None),
            }
        }
    }

    /// Type and name of the next event.
    async fn event(&mut self) -> (String, String) {
        let event = self.next().await.unwrap().expect("an event");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&event["type"]), text(&event["object"]["metadata"]["name"]))
    }
}

fn version(list: &Value) -> String {
    list["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_watch_tells_what_changes_for_its_selector() {
    let kube = Kube::new(&world(WEB, "", ""));
    let pods = kube.get("/api/v1/pods").await;
    let pod = kube.pods_on("serve-1", "web").await.remove(0);
    let path = format!("/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dserve-1&resourceVersion={}", version(&pods));
    let mut watch = Watch::open(&kube, &path).await;
    kube.cordon("serve-1").await;
    kube.evict(&pod, json!({})).await;
    let mut kinds = Vec::new();
    while kinds.last() != Some(&"DELETED".to_owned()) {
        let (kind, name) = watch.event().await;
        assert_eq!(name, pod, "no pod of another node");
        kinds.push(kind);
    }
    assert!(kinds.len() > 2 && kinds[..kinds.len() - 1].iter().all(|kind| kind == "MODIFIED"), "{kinds:?}");
    // Without a revision it begins with what there is.
    let mut watch = Watch::open(&kube, "/api/v1/nodes?watch=true").await;
    for name in ["other-1", "serve-1", "serve-2"] {
        assert_eq!(watch.event().await, ("ADDED".to_owned(), name.to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_has_bookmarks_and_an_end() {
    let kube = Kube::new(&world(WEB, "", ""));
    let from = version(&kube.get("/api/v1/pods").await);
    let path = format!("/api/v1/pods?watch=1&allowWatchBookmarks=true&timeoutSeconds=150&resourceVersion={from}");
    let mut watch = Watch::open(&kube, &path).await;
    let began = tokio::time::Instant::now();
    for _ in 0..2 {
        let event = watch.next().await.unwrap().unwrap();
        assert_eq!((&event["type"], &event["object"]["kind"]), (&json!("BOOKMARK"), &json!("Pod")));
    }
    assert_eq!(watch.next().await, Ok(None));
    assert_eq!(began.elapsed().as_secs(), 150);
}

#[tokio::test(start_paused = true)]
async fn what_is_too_old_is_410() {
    let kube = Kube::new(&world(WEB, "", ""));
    let first = kube.get("/api/v1/pods?limit=2").await;
    assert_eq!((first["items"].as_array().unwrap().len(), &first["metadata"]["remainingItemCount"]), (2, &json!(1)));
    let next = first["metadata"]["continue"].as_str().unwrap();
    // What comes later is not in the later pages of a list.
    kube.post(
        "/api/v1/namespaces/default/pods",
        &json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "zz"}, "spec": {"containers": [{"name": "a", "image": "a"}]}}),
    )
    .await;
    let second = kube.get(&format!("/api/v1/pods?limit=2&continue={next}")).await;
    assert_eq!(second["items"].as_array().unwrap().len(), 1);
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    pass(700).await;
    kube.cordon("serve-2").await;
    let (code, body) = kube.call("GET", &format!("/api/v1/pods?limit=2&continue={next}"), "", "").await;
    assert_eq!((code, &body["reason"]), (410, &json!("Expired")));
    let mut watch = Watch::open(&kube, &format!("/api/v1/pods?watch=1&resourceVersion={}", version(&first))).await;
    let event = watch.next().await.unwrap().unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(watch.next().await, Ok(None));
    let (code, body) = kube.call("GET", "/api/v1/pods?resourceVersion=999999", "", "").await;
    assert_eq!((code, &body["details"]["causes"][0]["reason"]), (504, &json!("ResourceVersionTooLarge")));
}

fn job(name: &str, node: &str, image: &str, gpus: u32) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {
            "backoffLimit": 0, "activeDeadlineSeconds": 300,
            "template": {"spec": {
                "nodeName": node, "restartPolicy": "Never", "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "check", "image": image, "resources": {"limits": {"nvidia.com/gpu": gpus}}}],
            }},
        },
    })
}

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

/// The pod of a Job.
async fn pod_of(kube: &Kube, job: &str) -> Value {
    let path = format!("/api/v1/namespaces/default/pods?labelSelector=batch.kubernetes.io%2Fjob-name%3D{job}");
    kube.get(&path).await["items"][0].clone()
}

#[tokio::test(start_paused = true)]
async fn a_job_on_a_pinned_node_runs_although_it_is_cordoned() {
    let guest = "      containers: [{image: \"*broken*\", ends: {fails: 3}, log: \"no device\"}, {image: \"lost:*\", ends: notPulled}, \
                 {image: \"*\", takes: 40s, log: \"one\\ntwo\\nTest PASSED\"}]";
    let kube = Kube::new(&world(guest, "", ""));
    kube.cordon("serve-2").await;
    let (code, body) = kube.post(JOBS, &job("good", "serve-2", "cuda:1", 1)).await;
    assert_eq!((code, &body["spec"]["completions"]), (201, &json!(1)), "{body}");
    assert_eq!(kube.post(JOBS, &job("good", "serve-2", "cuda:1", 1)).await.0, 409);
    pass(30).await;
    let running = pod_of(&kube, "good").await;
    assert_eq!((&running["status"]["phase"], &running["spec"]["nodeName"]), (&json!("Running"), &json!("serve-2")));
    pass(15).await;
    let done = kube.get(&format!("{JOBS}/good")).await;
    assert_eq!(condition(&done, "Complete")["status"], "True");
    let log = format!("/api/v1/namespaces/default/pods/{}/log", running["metadata"]["name"].as_str().unwrap());
    assert_eq!(kube.call("GET", &format!("{log}?tailLines=2"), "", "").await, (200, json!("two\nTest PASSED\n")));

    kube.post(JOBS, &job("bad", "serve-1", "broken:1", 1)).await;
    kube.post(JOBS, &job("much", "serve-1", "cuda:1", 3)).await;
    kube.post(JOBS, &job("lost", "serve-1", "lost:1", 0)).await;
    pass(60).await;
    assert_eq!(condition(&kube.get(&format!("{JOBS}/bad")).await, "Failed")["reason"], "BackoffLimitExceeded");
    let state = &pod_of(&kube, "bad").await["status"]["containerStatuses"][0]["state"];
    assert_eq!(state["terminated"]["exitCode"], 3);
    assert_eq!(condition(&kube.get(&format!("{JOBS}/much")).await, "Failed")["reason"], "BackoffLimitExceeded");
    assert_eq!(pod_of(&kube, "much").await["status"]["reason"], "UnexpectedAdmissionError");
    let lost = pod_of(&kube, "lost").await;
    assert_eq!(lost["status"]["containerStatuses"][0]["state"]["waiting"]["reason"], "ImagePullBackOff");
    pass(300).await;
    assert_eq!(condition(&kube.get(&format!("{JOBS}/lost")).await, "Failed")["reason"], "DeadlineExceeded");
    // What a Job owns goes with it.
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}).to_string();
    assert_eq!(kube.call("DELETE", &format!("{JOBS}/good"), "application/json", &options).await.0, 200);
    assert!(pod_of(&kube, "good").await.is_null());
}

#[tokio::test(start_paused = true)]
async fn a_rule_for_so_many_pods_is_used_up_by_the_first_that_start() {
    let guest = "      containers: [{image: \"cuda:*\", ends: {fails: 3}, log: \"bad\", times: 2}, {image: \"cuda:*\", log: \"good\"}]";
    let kube = Kube::new(&world(guest, "", ""));
    for (name, word) in [("first", "Failed"), ("second", "Failed"), ("third", "Complete"), ("fourth", "Complete")] {
        kube.post(JOBS, &job(name, "serve-1", "cuda:1", 1)).await;
        // A pod of another image uses up nothing.
        kube.post(JOBS, &job(&format!("other-{name}"), "serve-1", "other:1", 0)).await;
        pass(60).await;
        let job = kube.get(&format!("{JOBS}/{name}")).await;
        assert_eq!(condition(&job, word)["status"], "True", "{name}");
        assert_eq!(kube.get(&format!("{JOBS}/other-{name}")).await["status"]["succeeded"], 1);
        let pod = pod_of(&kube, name).await;
        let log = format!("/api/v1/namespaces/default/pods/{}/log", pod["metadata"]["name"].as_str().unwrap());
        let said = if word == "Failed" { "bad\n" } else { "good\n" };
        assert_eq!(kube.call("GET", &log, "", "").await, (200, json!(said)));
    }
}

/// A Job that is tried again so often, in new pods or in the same one.
fn retried(name: &str, restart: &str, limit: u32) -> Value {
    let mut job = job(name, "serve-1", "cuda:1", 1);
    job["spec"]["backoffLimit"] = json!(limit);
    job["spec"]["activeDeadlineSeconds"] = json!(900);
    job["spec"]["template"]["spec"]["restartPolicy"] = json!(restart);
    job
}

/// Kubernetes, "Jobs", "Pod backoff failure policy": 10 s, 20 s, 40 s between the pods.
#[tokio::test(start_paused = true)]
async fn a_job_waits_longer_with_each_pod_after_one_that_failed() {
    let kube = Kube::new(&world("      containers: [{image: \"*\", takes: 1s, ends: {fails: 3}}]", "", ""));
    kube.post(JOBS, &retried("bad", "Never", 3)).await;
    let path = "/api/v1/namespaces/default/pods?labelSelector=batch.kubernetes.io%2Fjob-name%3Dbad";
    let mut seen = Vec::new();
    for second in 0..120 {
        let count = kube.get(path).await["items"].as_array().unwrap().len();
        if count > seen.len() {
            seen.push(second);
        }
        pass(1).await;
    }
    let waits: Vec<i32> = seen.windows(2).map(|two| two[1] - two[0]).collect();
    // Each pod takes 2 s to start, and runs for one.
    assert_eq!(waits, [13, 23, 43], "{seen:?}");
    let failed = kube.get(&format!("{JOBS}/bad")).await;
    assert_eq!(condition(&failed, "Failed")["reason"], "BackoffLimitExceeded");
    assert_eq!(failed["status"]["failed"], 4);
}

/// Kubernetes, "Pod Lifecycle": restarted in its pod at once, then after 10 s, 20 s; and the Job controller
/// counts restarts against `backoffLimit` (`pastBackoffLimitOnFailure`).
#[tokio::test(start_paused = true)]
async fn a_container_that_fails_is_started_anew_in_its_pod_where_its_policy_is_on_failure() {
    let guest = |times: u32| {
        format!(
            "      containers: [{{image: \"*\", takes: 1s, ends: {{fails: 3}}, log: bad, times: {times}}}, \
             {{image: \"*\", takes: 1s, log: good}}]"
        )
    };
    let status = async |kube: &Kube| pod_of(kube, "check").await["status"]["containerStatuses"][0].clone();
    // It succeeds at once.
    let kube = Kube::new(&world(&guest(0), "", ""));
    kube.post(JOBS, &retried("check", "OnFailure", 0)).await;
    pass(5).await;
    assert_eq!(condition(&kube.get(&format!("{JOBS}/check")).await, "Complete")["status"], "True");
    assert_eq!(pod_of(&kube, "check").await["status"]["phase"], "Succeeded");

    // At the third try: the second comes at once, and then there is a back-off.
    let kube = Kube::new(&world(&guest(2), "", ""));
    kube.post(JOBS, &retried("check", "OnFailure", 3)).await;
    pass(8).await;
    let waits = status(&kube).await;
    let state = &waits["state"]["waiting"];
    assert_eq!((&state["reason"], &waits["restartCount"]), (&json!("CrashLoopBackOff"), &json!(1)), "{waits}");
    assert!(state["message"].as_str().unwrap().starts_with("back-off 10s"), "{waits}");
    assert_eq!(waits["lastState"]["terminated"]["exitCode"], 3);
    assert_eq!(pod_of(&kube, "check").await["status"]["phase"], "Running");
    pass(10).await;
    let done = status(&kube).await;
    assert_eq!((&done["state"]["terminated"]["exitCode"], &done["restartCount"]), (&json!(0), &json!(2)), "{done}");
    let job = kube.get(&format!("{JOBS}/check")).await;
    assert_eq!((&condition(&job, "Complete")["status"], &job["status"]["failed"]), (&json!("True"), &json!(0)));
    let pod = pod_of(&kube, "check").await["metadata"]["name"].as_str().unwrap().to_owned();
    let log = format!("/api/v1/namespaces/default/pods/{pod}/log");
    assert_eq!(kube.call("GET", &log, "", "").await, (200, json!("good\n")));

    // The limit is reached with the restart of that number, and what runs then is killed.
    for (limit, seconds) in [(0, 5), (1, 5), (2, 16)] {
        let kube = Kube::new(&world(&guest(9), "", ""));
        kube.post(JOBS, &retried("check", "OnFailure", limit)).await;
        pass(seconds - 2).await;
        assert!(kube.get(&format!("{JOBS}/check")).await["status"]["conditions"].is_null(), "{limit}");
        pass(2).await;
        let failed = kube.get(&format!("{JOBS}/check")).await;
        assert_eq!(condition(&failed, "Failed")["reason"], "BackoffLimitExceeded", "{limit}");
        pass(31).await;
        assert!(pod_of(&kube, "check").await.is_null(), "{limit}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_refuses_as_the_write_would_and_keeps_nothing() {
    let world = world("", "", "");
    let kube = Kube::new(&world);
    let dry = format!("{JOBS}?dryRun=All&fieldValidation=Strict");
    let good = job("good", "serve-1", "cuda:1", 1);
    let (code, body) = kube.post(&dry, &good).await;
    assert_eq!((code, &body["spec"]["completions"]), (201, &json!(1)), "{body}");
    assert!(body["metadata"]["uid"].is_string() && body["metadata"]["resourceVersion"].is_null(), "{body}");
    assert_eq!(kube.call("GET", &format!("{JOBS}/good"), "", "").await.0, 404);
    assert!(world.log().is_empty(), "a dry run is no write");
    // Numbers are quantities too, and an unknown field is refused, or passed over.
    let mut odd = good.clone();
    odd["spec"]["template"]["spec"]["containers"][0]["volumeMount"] = json!([]);
    let (code, body) = kube.post(&dry, &odd).await;
    assert_eq!(code, 400);
    let said = "Job in version \"v1\" cannot be handled as a Job: strict decoding error: unknown field \
                \"spec.template.spec.containers[0].volumeMount\"";
    assert_eq!(body["message"], said);
    let (code, body) = kube.post(JOBS, &odd).await;
    let kept = &body["spec"]["template"]["spec"]["containers"][0];
    assert_eq!((code, &kept["volumeMount"], &kept["image"]), (201, &Value::Null, &json!("cuda:1")), "{body}");
    // The name is looked for, and the namespace.
    assert_eq!(kube.post(&dry, &good).await.0, 409);
    let nowhere = "/apis/batch/v1/namespaces/nowhere/jobs?dryRun=All";
    assert_eq!(kube.post(nowhere, &good).await.1["message"], "namespaces \"nowhere\" not found");
    let mut wrong = good.clone();
    wrong["spec"]["parallelism"] = json!("two");
    assert_eq!(kube.post(&dry, &wrong).await.0, 400);
    wrong["spec"]["parallelism"] = json!(-1);
    assert_eq!(kube.post(&dry, &wrong).await.0, 422);
}

#[tokio::test(start_paused = true)]
async fn volumes_are_detached_some_time_after_their_pod_is_gone() {
    let guest = "      detach: 20s\n      workloads: [{name: db, kind: statefulSet, volume: true, grace: 10s, nodes: [serve-1, serve-2]}]";
    let world = world(guest, "", "");
    let kube = Kube::new(&world);
    let pod = kube.get("/api/v1/namespaces/default/pods/db-0").await;
    let node = pod["spec"]["nodeName"].as_str().unwrap();
    assert_eq!(kube.node(node).await["status"]["volumesAttached"].as_array().unwrap().len(), 1);
    kube.cordon(node).await;
    kube.evict("db-0", json!({})).await;
    pass(15).await;
    let attachments = "/apis/storage.k8s.io/v1/volumeattachments";
    assert_eq!(kube.get(attachments).await["items"][0]["spec"]["nodeName"], node, "gone, and not detached");
    let waits = kube.get("/api/v1/namespaces/default/pods/db-0").await;
    assert_eq!(waits["status"]["phase"], "Pending", "the other node cannot have it yet");
    pass(40).await;
    assert_ne!(kube.get(attachments).await["items"][0]["spec"]["nodeName"], node);
    assert!(kube.node(node).await["status"]["volumesAttached"].is_null());
    assert_eq!(kube.get("/api/v1/namespaces/default/pods/db-0").await["status"]["phase"], "Running");
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_is_powered_off_with_volumes_leaves_them_attached() {
    let guest = "      workloads: [{name: db, kind: bare, volume: true, grace: 1s, nodes: [serve-1]}]";
    let world = world(guest, "", "");
    let (raw, kube) = (Raw::login(&world).await, Kube::new(&world));
    kube.evict("db", json!({})).await;
    pass(2).await;
    raw.vm("PowerOffVM_Task", "vm-1", "").await.ok();
    let left = async || kube.get("/apis/storage.k8s.io/v1/volumeattachments").await["items"].as_array().unwrap().len();
    pass(300).await;
    assert_eq!(left().await, 1, "no kubelet says that it is not mounted any more");
    pass(500).await;
    assert_eq!(left().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_keeps_a_pod_until_it_is_taken_off() {
    let guest = "      workloads: [{name: held, kind: bare, grace: 5s, nodes: [serve-1], finalizer: example.com/hold, finalizerFor: 60s}]";
    let kube = Kube::new(&world(guest, "", ""));
    kube.evict("held", json!({})).await;
    pass(30).await;
    let pod = kube.get("/api/v1/namespaces/default/pods/held").await;
    assert_eq!(pod["metadata"]["finalizers"], json!(["example.com/hold"]));
    assert_eq!(pod["status"]["phase"], "Succeeded");
    pass(40).await;
    assert_eq!(kube.call("GET", "/api/v1/namespaces/default/pods/held", "", "").await.0, 404);
}

/// DESIGN §3, honesty rule 10; gpu-catalog, the check `product name`: a driver in a guest names the board that is
/// passed through to it, and the type of a vGPU.
#[tokio::test(start_paused = true)]
async fn the_product_label_of_a_node_changes_with_the_mode_of_its_gpus() {
    let label =
        async |kube: &Kube, node: &str| kube.node(node).await["metadata"]["labels"]["nvidia.com/gpu.product"].clone();
    let passed = document("", "", "");
    let kube = Kube::new(&world_of(&passed));
    assert_eq!(label(&kube, "serve-1").await, "NVIDIA-H100-NVL");
    assert!(label(&kube, "other-1").await.is_null(), "nobody says what it has");
    let named = passed.replace("name: serve-1", "name: serve-1, labels: {nvidia.com/gpu.product: mine}");
    assert_eq!(label(&Kube::new(&world_of(&named)), "serve-1").await, "mine");

    let sliced = passed.replace("mode: {passthrough: {}}", "mode: {vgpu: {size: mixed}}");
    let sliced = sliced
        .replace("[{directPath: \"0000:17:00.0\"}, {directPath: \"0000:65:00.0\"}]", "[{vgpu: nvidia_h100l-23c}]");
    let sliced = sliced.replace("[{directPath: \"0000:17:00.0\"}]", "[{vgpu: nvidia_h100l-94c}]");
    let world = world_of(&sliced);
    let (raw, kube) = (Raw::login(&world).await, Kube::new(&world));
    assert_eq!(label(&kube, "serve-1").await, "NVIDIA-H100L-23C");
    assert_eq!(label(&kube, "serve-2").await, "NVIDIA-H100L-94C");
    assert_eq!(raw.vm_task("PowerOffVM_Task", "vm-1", "").await, "success");
    let change = "<spec><deviceChange><operation>remove</operation><device xsi:type=\"VirtualPCIPassthrough\"><key>13000</key></device></deviceChange>\
        <deviceChange><operation>add</operation><device xsi:type=\"VirtualPCIPassthrough\"><key>-1</key>\
        <backing xsi:type=\"VirtualPCIPassthroughVmiopBackingInfo\"><vgpu>nvidia_h100l-47c</vgpu></backing></device></deviceChange></spec>";
    assert_eq!(raw.vm_task("ReconfigVM_Task", "vm-1", change).await, "success");
    raw.vm("PowerOnVM_Task", "vm-1", "").await.ok();
    pass(70).await;
    assert_eq!(label(&kube, "serve-1").await, "NVIDIA-H100L-23C", "nobody has looked since the boot");
    pass(90).await;
    assert_eq!(label(&kube, "serve-1").await, "NVIDIA-H100L-47C");
}

async fn reboot(world: &World, vm: &str) {
    let raw = Raw::login(world).await;
    raw.vm_task("PowerOffVM_Task", vm, "").await;
    raw.vm_task("PowerOnVM_Task", vm, "").await;
}

/// Containers begin anew with a boot: what they were about to do before it does not come at its old time.
#[tokio::test(start_paused = true)]
async fn what_a_pod_was_about_to_do_before_a_reboot_does_not_come_after_it() {
    let guest = "      workloads: [{name: slow, kind: bare, start: 5m, nodes: [serve-1]}]";
    let world = world(guest, ", boot: {ready: 10s}", "");
    let (raw, kube) = (Raw::login(&world).await, Kube::new(&world));
    let started = async || {
        let pod = kube.get("/api/v1/namespaces/default/pods/slow").await;
        pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"].as_str().unwrap().to_owned()
    };
    for _ in 0..2 {
        raw.vm("PowerOffVM_Task", "vm-1", "").await.ok();
        pass(10).await;
        raw.vm("PowerOnVM_Task", "vm-1", "").await.ok();
        pass(230).await;
    }
    pass(60).await;
    assert_eq!(started().await, "2026-11-30T20:00:00Z", "the second boot began to start it less than 5 minutes ago");
    pass(60).await;
    assert!(started().await.as_str() > "2026-11-30T20:09", "{}", started().await);
}

#[tokio::test(start_paused = true)]
async fn somebody_writes_an_annotation_of_a_node_and_takes_it_off() {
    let once = "who: kim, once: {method: patch nodes, object: k8s/nodes/serve-1}";
    let does = "annotate: {cluster: k8s, node: serve-1, key: lab/mark";
    let rest = format!(
        "  actors: [{{{once}, after: 10s, does: {{{does}, value: hers}}}}}}, {{{once}, after: 20s, does: {{{does}}}}}}}]"
    );
    let world = world("", "", &rest);
    let kube = Kube::new(&world);
    kube.cordon("serve-1").await;
    let mark = async || kube.node("serve-1").await["metadata"]["annotations"]["lab/mark"].clone();
    pass(11).await;
    assert_eq!(mark().await, "hers");
    pass(10).await;
    assert!(mark().await.is_null());
    let log = world.log().into_iter().filter(|write| write.who == "kim").map(|write| (write.id, write.arguments));
    let node = || "k8s/nodes/serve-1".to_owned();
    assert_eq!(log.collect::<Vec<_>>(), [(node(), "lab/mark=hers".to_owned()), (node(), "lab/mark-".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn the_driver_manager_uncordons_at_boot_and_a_person_when_it_pleases() {
    let rest = "  actors: [{who: kim, once: {method: patch nodes, object: k8s/nodes/serve-2}, after: 10s, does: {uncordon: {cluster: k8s, node: serve-2}}}]";
    let world = world("      driverManager: {after: 15s}", "", rest);
    let kube = Kube::new(&world);
    kube.cordon("serve-1").await;
    kube.cordon("serve-2").await;
    pass(11).await;
    assert!(kube.node("serve-2").await["spec"]["unschedulable"].is_null());
    assert_eq!(kube.node("serve-1").await["spec"]["unschedulable"], true);
    reboot(&world, "vm-1").await;
    pass(80).await;
    let node = kube.node("serve-1").await;
    assert!(node["spec"]["unschedulable"].is_null() && node["spec"]["taints"].is_null());
    let who: Vec<(String, String)> = world
        .log()
        .into_iter()
        .filter(|write| write.arguments == "unschedulable=false" && write.effect)
        .map(|write| (write.who, write.object))
        .collect();
    assert_eq!(
        who,
        [
            ("kim".to_owned(), "serve-2".to_owned()),
            ("system:serviceaccount:gpu-operator:nvidia-driver".to_owned(), "serve-1".to_owned()),
        ]
    );
    assert_eq!(world.tally().nodes["k8s/serve-1"].boots, 1);
}

#[tokio::test(start_paused = true)]
async fn the_driver_manager_leaves_a_node_that_its_operator_upgrades() {
    let node = ", annotations: {nvidia.com/gpu-driver-upgrade-enabled: \"true\"}";
    let world = world("      driverManager: {}", node, "");
    let kube = Kube::new(&world);
    kube.cordon("serve-1").await;
    reboot(&world, "vm-1").await;
    pass(120).await;
    assert_eq!(kube.node("serve-1").await["spec"]["unschedulable"], true);
}

#[tokio::test(start_paused = true)]
async fn faults_strike_calls_of_the_api() {
    let rest = "  faults:
    - {face: k8s, method: patch nodes, object: serve-1, onCall: 1, then: dropBefore}
    - {face: k8s, method: patch nodes, object: serve-1, onCall: 2, then: dropAfter}
    - {face: k8s, method: patch nodes, object: k8s/nodes/serve-2, onCall: 1, then: {lie: noEffect}}
    - {face: k8s, method: get nodes, object: serve-1, onCall: 2, then: {lie: stale}}
    - {face: k8s, method: list pods, object: k8s, onCall: 1, then: {fault: Forbidden}}
    - {face: k8s, method: list pods, object: k8s, onCall: 2, then: {status: 503}}
    - {face: k8s, method: get version, onCall: 1, then: {delay: 30s}}";
    let world = world(WEB, "", rest);
    let kube = Kube::new(&world);
    let patch = async || {
        kube.send(
            "PATCH",
            "/api/v1/nodes/serve-1",
            "application/merge-patch+json",
            r#"{"spec":{"unschedulable":true}}"#,
        )
        .await
    };
    assert!(patch().await.is_err());
    assert!(kube.node("serve-1").await["spec"]["unschedulable"].is_null());
    assert!(patch().await.is_err());
    assert!(kube.node("serve-1").await["spec"]["taints"].is_null(), "the state before the taint came");
    assert_eq!(kube.node("serve-1").await["spec"]["unschedulable"], true);
    assert_eq!(kube.cordon("serve-2").await.1["spec"]["unschedulable"], true);
    assert!(kube.node("serve-2").await["spec"]["unschedulable"].is_null());
    assert_eq!(kube.call("GET", "/api/v1/pods", "", "").await.1["reason"], "Forbidden");
    assert_eq!(kube.call("GET", "/api/v1/pods", "", "").await, (503, json!("upstream connect error")));
    let began = tokio::time::Instant::now();
    kube.get("/version").await;
    assert_eq!(began.elapsed().as_secs(), 30);
    let effects: Vec<bool> = world.log().iter().map(|write| write.effect).collect();
    assert_eq!(effects, [false, true, false]);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_is_another_call_than_the_write_for_the_rules_of_faults() {
    let rest = "  faults:
    - {face: k8s, method: create jobs, onCall: 1, then: {fault: Forbidden}}
    - {face: k8s, method: create jobs, dryRun: only, onCall: 2, then: {fault: TooManyRequests}}
    - {face: k8s, method: delete pods, object: default/one, dryRun: also, onCall: 2, then: {fault: InternalError}}
    - {face: k8s, method: create pods/eviction, then: {fault: TooManyRequests}}";
    let guest = "      workloads: [{name: one, kind: bare}, {name: two, kind: bare}]";
    let world = world(guest, "", rest);
    let kube = Kube::new(&world);
    let dry = format!("{JOBS}?dryRun=All");
    let create = async |path: &str| kube.post(path, &job("check", "serve-1", "cuda:1", 0)).await.0;
    assert_eq!((create(&dry).await, create(&dry).await, create(&dry).await), (201, 429, 201));
    assert_eq!((create(JOBS).await, create(JOBS).await), (403, 201), "the first one");
    // Their options come in the body, as kubectl sends them.
    let delete = async |options: &str| kube.call("DELETE", "/api/v1/namespaces/default/pods/one", "", options).await.0;
    let options = r#"{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}"#;
    assert_eq!((delete(options).await, delete(options).await, delete(options).await), (200, 500, 200));
    assert_eq!(kube.evict("two", json!({"dryRun": ["All"]})).await.0, 201);
    assert_eq!(kube.evict("two", json!({})).await.0, 429);
    let calls: Vec<(String, bool)> = world.log().into_iter().map(|write| (write.call, write.effect)).collect();
    let made = [("create jobs", false), ("create jobs", true), ("create pods/eviction", false)];
    assert_eq!(calls, made.map(|(call, effect)| (call.to_owned(), effect)), "a dry run is no write");
    let soap = document("", "", "  faults: [{method: RebootHost_Task, dryRun: only, then: dropBefore}]");
    let error = World::parse("lab.world.yaml", soap.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("faults[0].dryRun"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_can_break_off() {
    let kube = Kube::new(&world(WEB, "", "  faults: [{face: k8s, method: watch nodes, then: dropAfter}]"));
    let mut watch = Watch::open(&kube, "/api/v1/nodes?watch=1").await;
    for _ in 0..3 {
        watch.event().await;
    }
    assert_eq!(watch.next().await, Err(()));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_possible_is_refused_with_its_reason() {
    let kube = Kube::new(&world(WEB, "", ""));
    let of = |kind: &str, version: &str| json!({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}});
    let (code, body) = kube.post(JOBS, &of("Pod", "v1")).await;
    assert_eq!((code, &body["reason"]), (400, &json!("BadRequest")));
    assert_eq!(kube.post(JOBS, &of("Job", "batch/v1")).await.0, 422);
    assert_eq!(kube.post("/apis/batch/v1/namespaces/none/jobs", &job("x", "serve-1", "a", 0)).await.0, 404);
    let mut wrong = job("x", "serve-1", "a", 0);
    wrong["spec"]["template"]["spec"]["restartPolicy"] = json!("Always");
    assert_eq!(kube.post(JOBS, &wrong).await.0, 422);
    let pod = kube.pods_on("serve-1", "web").await.remove(0);
    let moved = r#"{"spec":{"nodeName":"serve-2"}}"#;
    let path = format!("/api/v1/namespaces/default/pods/{pod}");
    assert_eq!(kube.call("PATCH", &path, "application/merge-patch+json", moved).await.0, 422);
    let strategic = "application/strategic-merge-patch+json";
    let keyless = r#"{"status":{"conditions":[{"status":"True"}]}}"#;
    assert_eq!(kube.call("PATCH", "/api/v1/nodes/serve-1/status", strategic, keyless).await.0, 400);
    assert_eq!(
        kube.call("PATCH", "/api/v1/nodes/serve-1", strategic, r#"{"spec":{"unschedulable":true}}"#).await.0,
        200
    );
    assert_eq!(kube.call("GET", "/api/v1/nodes?fieldSelector=spec.x%3Da", "", "").await.0, 400);
    assert_eq!(kube.call("GET", "/apis/none/v1/things", "", "").await.0, 404);
    assert_eq!(kube.call("DELETE", "/api/v1/nodes", "", "").await.0, 405);
}
