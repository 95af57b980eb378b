//! Answers with anything in them: nothing panics, and nothing that is not understood is a success.

use poolwright::k8s::{Drain, Evicted, JobLook, JobRun, Patched, PodRef, Release, Round};
use poolwright::model::RunId;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::nodes::{mark, marked, node_ref};
use super::script::{Reply, Server, list, pod};

/// Any value that JSON has, small.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|bool| json!(bool)),
        any::<i64>().prop_map(|number| json!(number)),
        "[ -~\u{1b}é]{0,12}".prop_map(|text| json!(text)),
        Just(json!("")),
        Just(json!("True")),
        Just(json!("2026-11-30T20:00:00Z")),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::btree_map("[a-z]{1,6}", inner, 0..3).prop_map(|map| json!(map)),
        ]
    })
}

/// The places of a value, each as a pointer.
fn places(value: &Value, at: &str, all: &mut Vec<String>) {
    all.push(at.to_owned());
    let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| places(value, &format!("{at}/{}", escaped(key)), all)),
        Value::Array(list) => list.iter().enumerate().for_each(|(n, value)| places(value, &format!("{at}/{n}"), all)),
        _ => {}
    }
}

/// The value with one place of it put out of order.
fn garbled(mut value: Value, place: &prop::sample::Index, with: Option<Value>) -> Value {
    let mut all = Vec::new();
    places(&value, "", &mut all);
    let place = place.get(&all);
    match (with, place.rsplit_once('/')) {
        (None, Some((parent, key))) => match value.pointer_mut(parent).unwrap() {
            Value::Object(map) => drop(map.remove(&key.replace("~1", "/").replace("~0", "~"))),
            Value::Array(list) => drop(list.remove(key.parse().unwrap())),
            _ => unreachable!(),
        },
        (with, _) => *value.pointer_mut(place).unwrap() = with.unwrap_or_default(),
    }
    value
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_garbled_pod_never_makes_a_node_empty(place: prop::sample::Index, with in prop::option::of(anything())) {
        let found = garbled(list(vec![pod("web")]), &place, with);
        let pods = found.clone();
        let server = Server::new(move |seen| match seen.what.as_str() {
            "GET /api/v1/nodes/node-1" => Reply::ok(marked()),
            "GET /api/v1/pods" => Reply::ok(pods.clone()),
            what if what.starts_with("POST") => Reply::ok(json!({})),
            _ => Reply::ok(list(vec![])),
        });
        let round = run(async {
            Drain::new(server.client().await, node_ref(), mark()).round("2026-11-30T20:00:00Z".parse().unwrap()).await
        });
        // A list that says it is empty is one; and a pod may say that it has finished.
        let items = &found["items"];
        let none = items.as_array().is_some_and(Vec::is_empty) || (items.is_null() && found.get("items").is_some());
        if !none {
            prop_assert!(!matches!(round, Ok(Round::Empty { .. })), "{found}: {round:?}");
        }
    }

    #[test]
    fn a_garbled_node_is_never_opened_or_closed_by_guess(place: prop::sample::Index, with in prop::option::of(anything())) {
        let answer = garbled(marked(), &place, with);
        let server = Server::new(move |seen| match seen.what.starts_with("PATCH") {
            true => Reply::ok(answer.clone()),
            false => Reply::ok(marked()),
        });
        let (cordoned, released) = run(async {
            let client = server.client().await;
            let cordoned = client.cordon(&node_ref(), "41", &mark()).await;
            (cordoned, client.release(&node_ref(), "41", &mark().run, Release::Uncordon).await)
        });
        if let Ok(Patched::Done(view)) = cordoned {
            prop_assert!(view.unschedulable && view.marked().known() == Some(&mark()));
        }
        if let Ok(Patched::Done(view)) = released {
            prop_assert!(!view.unschedulable && view.mark.is_absent());
        }
    }

    #[test]
    fn a_garbled_refusal_is_no_acceptance(code in 300u16..600, body in anything(), reason in "[A-Za-z]{0,12}", with in anything()) {
        let body = json!({ "kind": "Status", "reason": reason, "message": body, "details": with, "code": 200 });
        let server = Server::new(move |_| Reply::new(code, body.to_string()));
        let pod = PodRef { namespace: "ml".into(), name: "web".into(), uid: "u".into() };
        let evicted = run(async { server.client().await.evict(&pod).await });
        prop_assert!(!matches!(evicted, Ok(Evicted::Accepted)), "{evicted:?}");
    }

    #[test]
    fn a_garbled_job_never_passes(place: prop::sample::Index, with in prop::option::of(anything()), ended in any::<bool>()) {
        let conditions = if ended { json!([{ "type": "Failed", "status": "True", "reason": "x" }]) } else { json!([]) };
        let mut there = Value::Null;
        let server = Server::new(move |seen| match seen.what.as_str() {
            what if what.starts_with("POST") => {
                let mut job = seen.body.clone();
                job["metadata"]["uid"] = json!("uid-job");
                job["status"] = json!({ "active": 1, "conditions": conditions.clone() });
                there = garbled(job.clone(), &place, with.clone());
                Reply::new(201, job.to_string())
            }
            what if what.contains("/jobs/") => Reply::ok(there.clone()),
            _ => Reply::ok(list(vec![])),
        });
        let template = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "spec": { "template": { "spec": { "containers": [{ "name": "a", "image": "b" }] } } },
        });
        let look = run(async {
            let client = server.client().await;
            let job = JobRun::new(client.clone(), node_ref(), "boot-1", &RunId::from("01J"), 1, &template).unwrap();
            drop(job.start().await);
            job.look().await
        });
        prop_assert!(!matches!(look, Ok(JobLook::Passed { .. })), "{look:?}");
    }
}
