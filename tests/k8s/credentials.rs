//! Tokens: from a file that is kept fresh, from an exec plugin; and that none is ever shown.

use std::io::Write;
use std::sync::{Arc, Mutex};

use poolwright::k8s::{Access, Error};
use serde_json::{Value, json};

use super::says;
use super::script::{Reply, Server, TOKEN, access, kubeconfig, list, node, status};

fn access_by(user: Value) -> Access {
    Access::parse(&kubeconfig(user), None, None).unwrap()
}

fn plugin(script: &str) -> Value {
    json!({ "exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/sh", "args": ["-c", script],
        "env": [{ "name": "HELPER_SECRET", "value": "marked-environment" }], "provideClusterInfo": true,
    } })
}

/// A server that takes these tokens, and the tokens that it was shown.
fn taking(tokens: &'static [&'static str]) -> Server {
    Server::new(move |seen| {
        let shown = seen.headers["authorization"].to_str().unwrap();
        match tokens.iter().any(|token| shown == format!("Bearer {token}")) {
            true => Reply::ok(list(vec![])),
            false => status(401, "Unauthorized", "Unauthorized", json!({})),
        }
    })
}

#[tokio::test]
async fn a_token_file_is_read_for_each_call() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    std::fs::write(&path, "first\n").unwrap();
    let server = taking(&["first", "second"]);
    let client = server.client_with(&access_by(json!({ "tokenFile": path, "token": "older" }))).await;
    client.nodes().await.unwrap();
    std::fs::write(&path, "second\n").unwrap();
    client.nodes().await.unwrap();
    let shown: Vec<_> = server.seen().iter().map(|seen| seen.headers["authorization"].clone()).collect();
    assert_eq!(shown, ["Bearer first", "Bearer second"]);
    // The same one is not tried twice.
    std::fs::write(&path, "expired").unwrap();
    assert!(matches!(client.nodes().await, Err(Error::Unauthorized { .. })));
    assert_eq!(server.seen().len(), 3);
    for (content, expected) in
        [("", "it is empty"), (" \n", "it is empty"), ("marked two", "characters that no token has")]
    {
        std::fs::write(&path, content).unwrap();
        let error = client.nodes().await.unwrap_err();
        let text = says(&error);
        assert!(text.contains(expected) && text.contains("guest cluster serve"), "{text}");
        assert!(!text.contains("marked") && !format!("{error:?}").contains("marked"), "{text}");
        assert!(!error.may_have_acted());
    }
    std::fs::remove_file(&path).unwrap();
    assert!(says(&client.nodes().await.unwrap_err()).contains("cannot read the token"));
    assert_eq!(server.seen().len(), 3, "without a token nothing is sent");
}

#[tokio::test]
async fn a_plugin_is_run_once_and_again_when_its_token_has_expired() {
    let dir = tempfile::tempdir().unwrap();
    let count = dir.path().join("count");
    let script = format!(
        "echo x >> {0}; n=$(wc -l < {0}); printf '{{\"kind\":\"ExecCredential\",\"status\":{{\"token\":\"t%d\",\
         \"expirationTimestamp\":\"2000-01-01T00:00:00Z\"}}}}' $n",
        count.display()
    );
    let runs = || std::fs::read_to_string(&count).unwrap_or_default().lines().count();
    let refused = Arc::new(Mutex::new(String::new()));
    let shared = Arc::clone(&refused);
    let server = Server::new(move |seen| match seen.headers["authorization"] == shared.lock().unwrap().as_str() {
        true => status(401, "Unauthorized", "Unauthorized", json!({})),
        false => Reply::ok(list(vec![])),
    });
    let client = server.client_with(&access_by(plugin(&script))).await;
    assert_eq!(runs(), 0, "not before it is needed");
    client.nodes().await.unwrap();
    client.nodes().await.unwrap();
    // By its own clock it has expired long ago; the server is the judge.
    assert_eq!(runs(), 1);
    *refused.lock().unwrap() = "Bearer t1".to_owned();
    client.nodes().await.unwrap();
    client.nodes().await.unwrap();
    assert_eq!((runs(), server.seen().len()), (2, 5));
    assert_eq!(server.seen()[4].headers["authorization"], "Bearer t2");
}

#[tokio::test]
async fn a_write_whose_token_had_expired_is_sent_again_since_nobody_looked_at_it() {
    let dir = tempfile::tempdir().unwrap();
    let count = dir.path().join("count");
    let script =
        format!("echo x >> {0}; printf '{{\"status\":{{\"token\":\"t%d\"}}}}' $(wc -l < {0})", count.display());
    let server = Server::new(|seen| match seen.headers["authorization"] == "Bearer t1" {
        true => status(401, "Unauthorized", "Unauthorized", json!({})),
        false => Reply::new(201, json!({ "status": "Success", "seen": seen.body }).to_string()),
    });
    let client = server.client_with(&access_by(plugin(&script))).await;
    let pod = poolwright::k8s::PodRef { namespace: "ml".into(), name: "web".into(), uid: "u".into() };
    client.evict(&pod).await.unwrap();
    let seen = server.seen();
    assert_eq!((seen.len(), &seen[0].body), (2, &seen[1].body));
}

#[tokio::test]
async fn what_a_plugin_prints_is_never_shown() {
    let server = Server::new(|_| panic!("without a token nothing is sent"));
    for (script, expected) in [
        (
            "echo marked-output; echo marked-error >&2; exit 3",
            "`/bin/sh`, which gives the credential, failed (exit status: 3)",
        ),
        ("echo '{\"status\":{\"token\":[\"marked\"]}}'", "what it printed is no ExecCredential"),
        ("echo marked", "what it printed is no ExecCredential"),
        ("printf '\\377marked'", "what it printed is no ExecCredential"),
        ("", "what it printed is no ExecCredential"),
        ("echo '{\"kind\":\"ExecCredential\"}'", "its ExecCredential has no status"),
        ("echo '{\"status\":{\"other\":\"marked\"}}'", "its ExecCredential has none"),
        ("echo '{\"status\":{\"token\":\"\"}}'", "it is empty"),
        ("echo '{\"status\":{\"token\":\"marked \\u00e9\"}}'", "characters that no token has"),
        (
            "echo '{\"status\":{\"clientCertificateData\":\"marked\",\"clientKeyData\":\"marked\"}}'",
            "client certificate",
        ),
        ("kill -9 $$", "failed (signal: 9"),
    ] {
        let access = access_by(plugin(script));
        let client = server.client_with(&access).await;
        let error = client.nodes().await.unwrap_err();
        let text = says(&error);
        assert!(text.contains(expected) && text.contains("guest cluster serve"), "{script}: {text}");
        for shown in [text, format!("{error:?} {access:?} {client:?}")] {
            assert!(!shown.contains("marked"), "{script}: {shown}");
        }
        assert!(!error.may_have_acted() && !error.is_retriable());
    }
}

#[tokio::test]
async fn of_a_plugin_that_is_not_there_the_kubeconfig_may_say_how_to_get_it() {
    let server = Server::new(|_| panic!("without a token nothing is sent"));
    for (hint, expected) in [
        (json!("Run this:\n\n  brew install \u{1b}[31mhelper\n"), "(Run this: brew install [31mhelper)"),
        (json!(" \n"), "(it is not installed here, or not in PATH)"),
        (Value::Null, "(it is not installed here, or not in PATH)"),
    ] {
        let missing = access_by(json!({ "exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "command": "/no/such/helper", "installHint": hint,
        } }));
        let text = says(&server.client_with(&missing).await.nodes().await.unwrap_err());
        assert!(text.contains(expected) && text.contains("cannot run `/no/such/helper`"), "{text}");
    }
}

/// The clock is paused, and runs on whenever everybody waits: whose time is over first, is told.
#[tokio::test(start_paused = true)]
async fn a_plugin_that_does_not_end_is_named_and_the_server_is_not_blamed() {
    let server = Server::new(|_| panic!("without a token nothing is sent"));
    for script in ["exec sleep infinity", "trap '' TERM; exec sleep infinity", "exec 1>&-; exec sleep infinity"] {
        let client = server.client_with(&access_by(plugin(script))).await;
        // Somebody waits for the first contact, and gives it less time than the plugin has.
        for error in [client.describe().await.unwrap_err(), client.nodes().await.unwrap_err()] {
            let text = says(&error);
            assert!(text.contains("the exec plugin `/bin/sh` did not end within 60 s"), "{text}");
            assert!(matches!(error, Error::Credential { .. }) && !error.is_retriable(), "{error:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_hangs_when_its_token_has_expired_is_named_too() {
    let dir = tempfile::tempdir().unwrap();
    let once = dir.path().join("once");
    std::fs::write(&once, "{\"status\":{\"token\":\"t1\"}}").unwrap();
    let script = format!("mv {0} {0}.taken && exec cat {0}.taken; exec sleep infinity", once.display());
    let server = taking(&[]);
    let client = server.client_with(&access_by(plugin(&script))).await;
    // Its first run is awaited by the true clock.
    tokio::time::resume();
    let first = client.nodes();
    let mut first = std::pin::pin!(first);
    while server.seen().is_empty() {
        assert!(futures::poll!(&mut first).is_pending());
        tokio::task::yield_now().await;
    }
    tokio::time::pause();
    let text = says(&first.await.unwrap_err());
    assert!(text.contains("the exec plugin `/bin/sh` did not end within 60 s"), "{text}");
}

#[tokio::test]
async fn a_plugin_that_has_ended_has_given_its_token_whoever_keeps_its_output_open() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // A child that ends when this test lets it.
    let script = format!("read line < {} & printf '{{\"status\":{{\"token\":\"kept\"}}}}'", fifo.display());
    let server = taking(&["kept"]);
    let client = server.client_with(&access_by(plugin(&script))).await;
    let nodes = client.nodes().await;
    std::fs::write(&fifo, "\n").unwrap();
    nodes.unwrap();
}

#[tokio::test]
async fn a_plugin_is_told_which_cluster_and_that_nobody_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let told = dir.path().join("told");
    let script = format!(
        "printf '%s' \"$KUBERNETES_EXEC_INFO\" > {}; read line && exit 9; printf '{{\"status\":{{\"token\":\"%s\"}}}}' $HELPER_SECRET",
        told.display()
    );
    let server = taking(&["marked-environment"]);
    server.client_with(&access_by(plugin(&script))).await.nodes().await.unwrap();
    let told: Value = serde_json::from_str(&std::fs::read_to_string(told).unwrap()).unwrap();
    assert_eq!(
        told,
        json!({
            "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
            "spec": { "interactive": false, "cluster": { "server": "https://k8s-serve.lab:6443" } },
        })
    );
}

/// Everything that is logged on this thread, at every level, by everybody.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn no_token_is_logged_at_any_level() {
    let logged = Logged::default();
    let writer = logged.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    // With a single subscriber, tracing asks the thread on which an event is first met whether anybody
    // listens; other tests' threads would say no for all. With two it asks the subscribers.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let _guard = tracing::subscriber::set_default(subscriber);
    let server = Server::new(|seen| match seen.nth {
        0 => Reply::ok(list(vec![node("node-1")])),
        1 => status(401, "Unauthorized", "Unauthorized", json!({})),
        _ => Reply::new(200, "broken"),
    });
    for access in [access(), access_by(plugin("echo '{\"status\":{\"token\":\"marked-of-the-plugin\"}}'"))] {
        let client = server.client_with(&access).await;
        for _ in 0..3 {
            drop(client.nodes().await);
        }
        client.changed("node-1", "1", std::time::Duration::from_millis(1)).await;
        assert!(!format!("{access:?} {client:?}").contains("marked"), "{access:?} {client:?}");
    }
    let text = String::from_utf8(logged.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("list the nodes"), "{text}");
    assert!(!text.contains("marked"), "{text}");
    // And what is logged elsewhere from now on has it cut out.
    for token in [TOKEN, "marked-of-the-plugin"] {
        assert!(!poolwright::base::logging::redact(&format!("a {token} b")).contains(token));
    }
}
