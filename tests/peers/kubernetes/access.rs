//! How a client shows who it is, and whom it trusts.

use poolwright::base::net::{NetError, RealNetwork};
use poolwright::k8s::{Access, Client, Error};
use serde_json::{Value, json};

use super::lab::{Lab, connect};
use super::plane::{ADMIN, ApiServer, POOLWRIGHT, SERVER_NAME, base64};

/// What a client with this kubeconfig comes to.
async fn nodes(kubeconfig: &str) -> Result<usize, Error> {
    let access = Access::parse(kubeconfig, None, None).unwrap();
    let client = Client::connect("serve", &access, &RealNetwork).await?;
    assert!(!client.describe().await?.uid.is_empty());
    Ok(client.nodes().await?.len())
}

/// A kubeconfig with something merged into its cluster.
fn with_cluster(server: &ApiServer, more: &Value) -> String {
    let mut config: Value = serde_json::from_str(&server.kubeconfig(POOLWRIGHT)).unwrap();
    json_patch::merge(&mut config["clusters"][0]["cluster"], more);
    config.to_string()
}

#[tokio::test]
async fn a_token_and_a_certificate_log_in_and_what_has_expired_does_not() {
    let Some(lab) = Lab::start("access").await else { return };
    lab.node("a").await;
    let server = lab.server;
    let identity = |until| {
        let (certificate, key) = server.store().client_certificate(until);
        json!({"client-certificate-data": base64(&certificate), "client-key-data": base64(&key)})
    };
    assert!(nodes(&server.kubeconfig(POOLWRIGHT)).await.unwrap() > 0);
    assert!(nodes(&server.kubeconfig(ADMIN)).await.unwrap() > 0);
    assert!(nodes(&server.kubeconfig_of(&identity(2999))).await.unwrap() > 0);
    let secret = "marked-k8s-wrong";
    for user in [json!({ "token": secret }), identity(2021)] {
        let error = nodes(&server.kubeconfig_of(&user)).await.unwrap_err();
        assert!(matches!(error, Error::Unauthorized { .. }), "{error:?}");
        assert!(!error.is_retriable() && !error.may_have_acted(), "{error:?}");
        assert!(!format!("{error} {error:?}").contains(secret));
    }
}

#[tokio::test]
async fn a_server_is_trusted_by_its_authority_and_its_name() {
    let Some(lab) = Lab::start("trust").await else { return };
    lab.node("a").await;
    let untrusted = |error: &Error| matches!(error, Error::Net { source: NetError::Untrusted { .. }, .. });
    let named = with_cluster(lab.server, &json!({ "tls-server-name": SERVER_NAME }));
    assert!(nodes(&named).await.unwrap() > 0);
    let misnamed = with_cluster(lab.server, &json!({"tls-server-name": "another.lab"}));
    let error = nodes(&misnamed).await.unwrap_err();
    assert!(untrusted(&error), "{error:?}");
    let stranger = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap().cert.pem();
    let strange = with_cluster(lab.server, &json!({"certificate-authority-data": base64(&stranger)}));
    let error = nodes(&strange).await.unwrap_err();
    assert!(untrusted(&error), "{error:?}");
}

/// A server that is killed answers nobody; the client waits for it, and goes on by itself.
#[tokio::test]
async fn a_server_that_is_away_is_waited_for() {
    let Some(lab) = Lab::start("away").await else { return };
    let name = lab.node("a").await;
    let mut server = ApiServer::start(lab.server.store(), "shared").await;
    let client = connect(&server, POOLWRIGHT).await;
    assert!(client.node(&name).await.unwrap().is_some());
    server.kill();
    let (read, ()) = tokio::join!(client.node(&name), server.restart());
    assert_eq!(read.unwrap().unwrap().node.name, name);
}
