//! One request, one answer, one deadline; and what each kind of failure is called.

use std::time::Duration;

use poolwright::base::net::NetError;
use poolwright::k8s::Error;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::says;
use super::script::{End, Reply, Seen, Server, TOKEN, list, node, status};

#[tokio::test]
async fn a_cluster_is_described() {
    let server = Server::new(|seen| match seen.what.as_str() {
        "GET /version" => Reply::ok(json!({ "major": "1", "minor": "37", "gitVersion": "v1.37.2" })),
        "GET /api/v1/namespaces/kube-system" => {
            Reply::ok(json!({ "metadata": { "name": "kube-system", "uid": "uid-of-serve" } }))
        }
        other => panic!("{other}"),
    });
    let view = server.client().await.describe().await.unwrap();
    assert_eq!((view.version.as_str(), view.uid.as_str(), view.nodes), ("v1.37.2", "uid-of-serve", 0));
    for seen in server.seen() {
        assert_eq!(seen.headers["authorization"], format!("Bearer {TOKEN}"));
        assert!(seen.headers["authorization"].is_sensitive());
        assert!(seen.headers["user-agent"].to_str().unwrap().starts_with("poolwright/"));
    }
}

async fn describes(reply: impl Fn(&Seen) -> Reply + Send + 'static) -> Error {
    Server::new(move |seen| reply(seen)).client().await.describe().await.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_has_a_deadline() {
    let start = Instant::now();
    let error = describes(|_| Reply::hangs()).await;
    assert_eq!(
        says(&error),
        "cannot ask for the version on guest cluster serve: k8s-serve.lab:6443 did not answer within 15 s"
    );
    // A body that never ends is no answer either.
    let error = describes(|_| Reply::stream(&[(1, json!({}))], End::Stays)).await;
    assert!(matches!(error, Error::Net { source: NetError::Deadline { .. }, .. }), "{error:?}");
    assert!(start.elapsed() < Duration::from_secs(40), "{:?}", start.elapsed());

    let start = Instant::now();
    let server = Server::new(|_| Reply::hangs());
    let error = server.client().await.nodes().await.unwrap_err();
    assert!(error.is_retriable() && error.may_have_acted(), "{error:?}");
    assert!(start.elapsed() < Duration::from_secs(200), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_read_is_repeated_while_the_server_starts() {
    let server = Server::new(|seen| match seen.nth {
        0 => Reply::broken(),
        1 => Reply::new(502, "<html>bad gateway</html>"),
        2 => status(500, "InternalError", "etcdserver: leader changed", json!({})),
        3 => status(429, "TooManyRequests", "too many", json!({ "retryAfterSeconds": 1 })),
        _ => Reply::ok(list(vec![node("node-1")])),
    });
    assert_eq!(server.client().await.nodes().await.unwrap().len(), 1);
    assert_eq!(server.seen().len(), 5);
    let server = Server::new(|_| status(403, "Forbidden", "nodes is forbidden", json!({})));
    let error = server.client().await.nodes().await.unwrap_err();
    assert_eq!(server.seen().len(), 1);
    assert_eq!(says(&error), "cannot list the nodes on guest cluster serve: nodes is forbidden (HTTP 403)");
}

fn by_role() -> Reply {
    let said = "nodes is forbidden: User \"us\" cannot list resource \"nodes\" in API group \"\" at the cluster scope";
    status(403, "Forbidden", said, json!({ "kind": "nodes" }))
}

#[tokio::test(start_paused = true)]
async fn a_server_that_starts_forbids_everything_and_is_waited_for() {
    let server = Server::new(|seen| match (seen.what.as_str(), seen.nth) {
        ("GET /readyz", 0) => Reply::new(500, "[-]poststarthook/rbac/bootstrap-roles failed"),
        ("GET /readyz", 1) => by_role(),
        ("GET /readyz", _) => Reply::new(200, "ok"),
        // It became ready in between.
        (_, 0..3) => by_role(),
        _ => Reply::ok(list(vec![])),
    });
    assert_eq!(server.client().await.nodes().await.unwrap(), []);
    assert_eq!((server.count("GET /readyz"), server.count("GET /api/v1/nodes")), (3, 4));
    // A ready one means it.
    let server = Server::new(|seen| if seen.what == "GET /readyz" { Reply::new(200, "ok") } else { by_role() });
    let error = server.client().await.nodes().await.unwrap_err();
    assert!(matches!(&error, Error::Refused { refusal, .. } if refusal.code == 403), "{error:?}");
    assert_eq!(server.count("GET /api/v1/nodes"), 2);
}

#[tokio::test]
async fn a_token_that_has_expired_is_told_with_the_name_of_the_cluster() {
    let error = describes(|_| status(401, "Unauthorized", "Unauthorized", json!({}))).await;
    let text = says(&error);
    assert_eq!(
        text,
        "cannot ask for the version: guest cluster serve does not accept our credential (HTTP 401); it is wrong or \
         has expired"
    );
    assert!(!error.is_retriable() && !error.may_have_acted());
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let server = Server::new(|_| Reply::new(302, "").header("location", "https://elsewhere.example.net/login"));
    let error = server.client().await.describe().await.unwrap_err();
    assert!(says(&error).contains("redirects to https://elsewhere.example.net/login"), "{}", says(&error));
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_answer_of_an_api_server_is_told_in_one_short_line() {
    for (code, body) in [
        (200, "<html>welcome</html>".to_owned()),
        (200, String::new()),
        (200, "{\"gitVersion\":".to_owned()),
        (200, json!({ "major": "1" }).to_string()),
        (200, json!({ "gitVersion": 1 }).to_string()),
        (404, format!("<html>\n\u{1b}[31m{}</html>", "long ".repeat(10_000))),
        (418, "\u{7}".to_owned()),
    ] {
        let page = body.clone();
        let error = describes(move |_| Reply::new(code, page.clone())).await;
        let text = says(&error);
        assert!(text.chars().count() < 600 && !text.contains(['\n', '\u{1b}', '\u{7}']), "{text}");
        assert!(text.contains("guest cluster serve"), "{text}");
    }
    let no_uid = |seen: &Seen| match seen.what.as_str() {
        "GET /version" => Reply::ok(json!({ "gitVersion": "v1.37.2" })),
        _ => Reply::ok(json!({ "metadata": { "name": "kube-system" } })),
    };
    assert!(says(&describes(no_uid).await).contains("it has no uid"));
}

#[tokio::test]
async fn a_server_behind_a_path_gets_the_path() {
    let text = super::script::kubeconfig(json!({ "token": TOKEN }));
    let text = text.replace(":6443\"", ":6443/k8s/clusters/c-1/\"");
    let access = poolwright::k8s::Access::parse(&text, None, None).unwrap();
    let server = Server::new(|_| Reply::ok(list(vec![])));
    server.client_with(&access).await.nodes().await.unwrap();
    let seen = server.only("GET /k8s/clusters/c-1/api/v1/nodes");
    assert!(seen.query.contains("limit=500"), "{}", seen.query);
}

#[tokio::test]
async fn a_name_that_would_be_a_path_is_not_sent() {
    let server = Server::new(|_| Reply::ok(Value::Null));
    let error = server.client().await.node("../pods").await.unwrap_err();
    assert!(matches!(error, Error::Unsendable { .. }) && !error.may_have_acted(), "{error:?}");
    assert!(server.seen().is_empty());
}
