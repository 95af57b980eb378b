//! One eviction: what is sent, and what each answer means.

use std::time::Duration;

use poolwright::k8s::{Blocked, Error, Evicted, PodRef};
use serde_json::{Value, json};

use super::script::{Reply, Server, list, not_found, pod, status};

const EVICTION: &str = "POST /api/v1/namespaces/ml/pods/web/eviction";

fn web() -> PodRef {
    PodRef { namespace: "ml".into(), name: "web".into(), uid: "uid-web".into() }
}

async fn evict(reply: impl Fn() -> Reply + Send + 'static) -> Result<Evicted, Error> {
    let server = Server::new(move |seen| {
        assert_eq!(seen.what, EVICTION);
        reply()
    });
    let evicted = server.client().await.evict(&web()).await;
    // Nothing is repeated behind our back, whatever was answered.
    assert_eq!(server.count(EVICTION), 1);
    evicted
}

/// How an API server refuses for a disruption budget.
pub fn budget(words: &str, after: Option<u32>) -> Reply {
    let mut details = json!({ "causes": [{ "reason": "DisruptionBudget", "message": words }] });
    if let Some(after) = after {
        details["retryAfterSeconds"] = json!(after);
    }
    let said = "Cannot evict pod as it would violate the pod's disruption budget.";
    let reply = status(429, "TooManyRequests", said, details);
    match after {
        Some(after) => reply.header("retry-after", after.to_string()),
        None => reply,
    }
}

#[tokio::test]
async fn the_body_is_an_eviction_of_this_very_pod() {
    let server = Server::new(|_| Reply::new(201, json!({ "kind": "Status", "status": "Success" }).to_string()));
    assert_eq!(server.client().await.evict(&web()).await.unwrap(), Evicted::Accepted);
    let sent = server.only(EVICTION);
    assert_eq!(sent.headers["content-type"], "application/json");
    assert_eq!(
        sent.body,
        json!({
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": { "namespace": "ml", "name": "web" },
            "deleteOptions": { "preconditions": { "uid": "uid-web" } },
        })
    );
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_refuses_is_named_with_what_it_needs() {
    let start = tokio::time::Instant::now();
    let evicted =
        evict(|| budget("The disruption budget web-pdb needs 2 healthy pods and has 2 currently", None)).await.unwrap();
    let blocked = Blocked {
        budget: Some("ml/web-pdb".into()),
        said: "The disruption budget web-pdb needs 2 healthy pods and has 2 currently".into(),
        needs: Some(2),
        has: Some(2),
    };
    assert_eq!(evicted, Evicted::Blocked(blocked));
    assert_eq!(start.elapsed(), Duration::ZERO, "a 429 is answered at once, and not tried again");
    // Words of another version still block.
    for words in ["", "no", "The disruption budget", "needs many healthy pods and has none"] {
        let evicted = evict(move || budget(words, None)).await.unwrap();
        assert!(matches!(&evicted, Evicted::Blocked(Blocked { needs: None, has: None, .. })), "{evicted:?}");
    }
}

#[tokio::test]
async fn a_server_that_asks_to_wait_is_waited_for() {
    let words = "The disruption budget web-pdb is still being processed by the server.";
    let evicted = evict(|| budget(words, Some(10))).await.unwrap();
    assert_eq!(evicted, Evicted::Later { after: Some(Duration::from_secs(10)), said: words.into() });
    // Priority and fairness throttle with the header, old servers with the body, some with neither.
    let busy = || status(429, "TooManyRequests", "too many requests", json!({}));
    let later =
        |after: Option<u64>| Evicted::Later { after: after.map(Duration::from_secs), said: "too many requests".into() };
    assert_eq!(evict(move || busy().header("retry-after", "3")).await.unwrap(), later(Some(3)));
    assert_eq!(evict(busy).await.unwrap(), later(None));
    assert_eq!(
        evict(move || busy().header("retry-after", "Mon, 30 Nov 2026 20:00:00 GMT")).await.unwrap(),
        later(None)
    );
    let body = || status(429, "TooManyRequests", "too many requests", json!({ "retryAfterSeconds": 4 }));
    assert_eq!(evict(body).await.unwrap(), later(Some(4)));
    let ending = || {
        let causes = json!({ "causes": [{ "reason": "NamespaceTerminating", "message": "it is being terminated" }] });
        status(403, "Forbidden", "namespace ml is being terminated", causes)
    };
    assert!(matches!(evict(ending).await.unwrap(), Evicted::Later { after: None, .. }));
}

#[tokio::test]
async fn a_pod_that_is_gone_or_another_is_gone() {
    assert_eq!(evict(not_found).await.unwrap(), Evicted::Gone);
    let said = "Operation cannot be fulfilled on pods \"web\": Precondition failed: UID in precondition: uid-web, \
                UID in object meta: uid-new";
    assert_eq!(evict(move || status(409, "Conflict", said, json!({}))).await.unwrap(), Evicted::Gone);
    let other = evict(|| status(409, "Conflict", "the object has been modified", json!({}))).await.unwrap();
    assert!(matches!(other, Evicted::Later { .. }), "{other:?}");
}

const SEVERAL: &str =
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";

fn pdb(name: &str, selector: Value) -> Value {
    json!({ "metadata": { "name": name, "namespace": "ml" }, "spec": { "selector": selector } })
}

#[tokio::test]
async fn several_budgets_never_let_go_and_are_named() {
    let server = Server::new(|seen| match seen.what.as_str() {
        EVICTION => status(500, "InternalError", SEVERAL, json!({})),
        "GET /api/v1/namespaces/ml/pods/web" => Reply::ok(pod("web")),
        "GET /apis/policy/v1/namespaces/ml/poddisruptionbudgets" => Reply::ok(list(vec![
            pdb("by-label", json!({ "matchLabels": { "app": "web" } })),
            pdb("of-others", json!({ "matchLabels": { "app": "db" } })),
            pdb("all", json!({})),
            pdb("none", json!(null)),
            pdb("not-web", json!({ "matchExpressions": [{ "key": "app", "operator": "NotIn", "values": ["web"] }] })),
        ])),
        other => panic!("{other}"),
    });
    let evicted = server.client().await.evict(&web()).await.unwrap();
    assert_eq!(evicted, Evicted::Never { said: format!("{SEVERAL}: all and by-label") });
    assert_eq!(server.count(EVICTION), 1);
    // Without the right to read them they are not named, and it is said why.
    let server = Server::new(|seen| match seen.what.as_str() {
        EVICTION => status(500, "InternalError", SEVERAL, json!({})),
        _ => status(403, "Forbidden", "no", json!({})),
    });
    let Evicted::Never { said } = server.client().await.evict(&web()).await.unwrap() else { panic!() };
    assert!(said.contains("could not be read"), "{said}");
}

#[tokio::test]
async fn what_asking_again_does_not_help_is_not_asked_again() {
    for (code, said) in [
        (403, "admission webhook \"guard.example.net\" denied the request"),
        (400, "bad request"),
        (422, "invalid"),
        (405, "the server does not allow this method"),
    ] {
        let evicted = evict(move || status(code, "", said, json!({}))).await.unwrap();
        assert_eq!(evicted, Evicted::Never { said: format!("{said} (HTTP {code})") });
    }
}

#[tokio::test]
async fn a_failure_of_the_server_says_nothing_of_the_pod() {
    for code in [408, 500, 502, 503, 504] {
        let error = evict(move || status(code, "", "etcdserver: request timed out", json!({}))).await.unwrap_err();
        assert!(error.is_retriable() && error.may_have_acted(), "{error:?}");
    }
    let error = evict(Reply::broken).await.unwrap_err();
    assert!(error.is_retriable() && error.may_have_acted(), "{error:?}");
    // A page of something in between is no acceptance.
    let error = evict(|| Reply::new(200, "<html>ok</html>")).await.unwrap_err();
    assert!(matches!(error, Error::Decode { .. }), "{error:?}");
    assert!(matches!(evict(|| status(401, "Unauthorized", "", json!({}))).await, Err(Error::Unauthorized { .. })));
}
