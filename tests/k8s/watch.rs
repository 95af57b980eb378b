//! A watch only wakes: it is never an error, and never a busy loop.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::script::{End, Reply, Seen, Server, pod, status};

const MOST: Duration = Duration::from_secs(60);

/// How long a watch waited whose answers for pods and budgets are these.
async fn waited(pods: impl Fn() -> Reply + Send + 'static, budgets: impl Fn() -> Reply + Send + 'static) -> f64 {
    let server = Server::new(move |seen: &Seen| {
        assert!(seen.query.contains("watch=true") && seen.query.contains("resourceVersion=900"), "{}", seen.query);
        // An API server from 1.37 on packs each event by itself, which no client unpacks.
        assert_eq!(seen.headers["accept-encoding"], "identity");
        match seen.what.as_str() {
            "GET /api/v1/pods" => {
                assert!(seen.query.contains("fieldSelector=spec.nodeName%3Dnode-1"), "{}", seen.query);
                pods()
            }
            "GET /apis/policy/v1/poddisruptionbudgets" => budgets(),
            other => panic!("{other}"),
        }
    });
    let client = server.client().await;
    let start = Instant::now();
    client.changed("node-1", "900", MOST).await;
    start.elapsed().as_secs_f64()
}

fn event(kind: &str, object: Value) -> Value {
    json!({ "type": kind, "object": object })
}

fn bookmark() -> Value {
    event("BOOKMARK", json!({ "kind": "Pod", "apiVersion": "v1", "metadata": { "resourceVersion": "950" } }))
}

fn quiet() -> Reply {
    Reply::stream(&[], End::Stays)
}

#[tokio::test(start_paused = true)]
async fn the_first_event_wakes() {
    for kind in ["ADDED", "MODIFIED", "DELETED"] {
        let event = move || Reply::stream(&[(7, event(kind, pod("web")))], End::Stays);
        assert_eq!(waited(event, quiet).await, 7.0, "{kind}");
    }
    let budget = || {
        let pdb = json!({ "metadata": { "name": "web-pdb", "namespace": "ml" } });
        Reply::stream(&[(3, bookmark()), (9, event("MODIFIED", pdb))], End::Stays)
    };
    assert_eq!(waited(quiet, budget).await, 12.0);
    // A burst makes one round.
    assert_eq!(waited(|| Reply::stream(&[(0, event("ADDED", pod("web")))], End::Stays), quiet).await, 1.0);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_event_wakes_nobody() {
    let gone = || {
        let status =
            json!({ "kind": "Status", "status": "Failure", "reason": "Expired", "code": 410, "message": "too old" });
        Reply::stream(&[(1, event("ERROR", status))], End::Ends)
    };
    assert_eq!(waited(gone, quiet).await, 60.0);
    assert_eq!(waited(|| Reply::stream(&[(1, bookmark()), (1, bookmark())], End::Stays), quiet).await, 60.0);
    assert_eq!(waited(|| Reply::stream(&[(2, bookmark())], End::Ends), quiet).await, 60.0);
    assert_eq!(waited(|| Reply::stream(&[(2, bookmark())], End::Breaks), quiet).await, 60.0);
    assert_eq!(waited(Reply::broken, Reply::broken).await, 60.0);
    assert_eq!(waited(Reply::hangs, Reply::hangs).await, 60.0);
    assert_eq!(waited(|| status(410, "Expired", "too old", json!({})), quiet).await, 60.0);
    assert_eq!(waited(quiet, || status(403, "Forbidden", "no", json!({}))).await, 60.0);
    assert_eq!(waited(|| Reply::new(200, "not json\n"), quiet).await, 60.0);
    // One watch that has ended does not keep the other from waking.
    let event = || Reply::stream(&[(5, event("DELETED", pod("web")))], End::Stays);
    assert_eq!(waited(event, || status(403, "Forbidden", "no", json!({}))).await, 5.0);
}
