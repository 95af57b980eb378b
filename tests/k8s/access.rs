//! A kubeconfig: what is followed, and every mistake in words.

use std::path::Path;

use k8s_openapi::ByteString;
use poolwright::k8s::{Access, AccessError};
use serde_json::{Value, json};

use super::says;
use super::script::kubeconfig;

type Change = fn(&mut Value);

fn parse(change: impl FnOnce(&mut Value)) -> Result<Access, AccessError> {
    let mut file: Value = serde_json::from_str(&kubeconfig(json!({ "token": "marked-t0ken" }))).unwrap();
    change(&mut file);
    Access::parse(&file.to_string(), None, None)
}

/// What is said of it, the secrets looked for in every form.
fn mistake(change: impl FnOnce(&mut Value)) -> String {
    let error = parse(change).unwrap_err();
    let text = says(&error);
    for text in [&text, &format!("{error:?}")] {
        assert!(!text.to_lowercase().contains("marked"), "{text}");
    }
    text
}

fn add(list: &mut Value, item: Value) {
    list.as_array_mut().unwrap().push(item);
}

fn base64(text: &str) -> Value {
    json!(ByteString(text.as_bytes().to_vec()))
}

fn pem(kind: &str) -> String {
    format!("-----BEGIN {kind}-----\nbWFya2Vk\n-----END {kind}-----\n")
}

#[test]
fn the_current_context_or_the_named_one_is_taken() {
    assert_eq!(parse(|_| {}).unwrap().authority(), "k8s-serve.lab:6443");
    let mut file: Value = serde_json::from_str(&kubeconfig(json!({ "token": "t0ken" }))).unwrap();
    add(&mut file["contexts"], json!({ "name": "train", "context": { "cluster": "two", "user": "us" } }));
    add(&mut file["clusters"], json!({ "name": "two", "cluster": { "server": "https://k8s-train.lab" } }));
    let named = |name| Access::parse(&file.to_string(), Some(name), None);
    assert_eq!(named("train").unwrap().authority(), "k8s-train.lab");
    let error = named("tran").unwrap_err().to_string();
    assert_eq!(error, "the kubeconfig has no context `tran`; nearest: train");
    assert_eq!(named("elsewhere").unwrap_err().to_string(), "the kubeconfig has no context `elsewhere`");
    // As people write it.
    let yaml = "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n\
                clusters:\n- name: c\n  cluster:\n    server: https://[2001:db8::1]:6443/path/\nusers:\n- name: u\n  \
                user: {token: abc}\n";
    assert_eq!(Access::parse(yaml, None, None).unwrap().authority(), "[2001:db8::1]:6443");
}

#[test]
fn what_is_missing_is_named() {
    let cases: [(&str, Change); 12] = [
        ("the kubeconfig has no current-context; it has serve", |file| file["current-context"] = json!("")),
        ("the kubeconfig has no current-context; it has serve", |file| file["current-context"] = json!(null)),
        ("the kubeconfig has no current-context, and no context at all", |file| *file = json!({})),
        ("the kubeconfig has no cluster `lub`; nearest: lab", |file| {
            file["contexts"][0]["context"]["cluster"] = json!("lub")
        }),
        ("the kubeconfig has no user `uss`; nearest: us", |file| file["contexts"][0]["context"]["user"] = json!("uss")),
        ("context `serve` has no user", |file| file["contexts"][0]["context"]["user"] = json!(null)),
        ("context `serve` has no content", |file| file["contexts"][0]["context"] = json!(null)),
        ("user `us` has no content", |file| file["users"][0]["user"] = json!(null)),
        ("user `us` has no token, client certificate or exec plugin", |file| file["users"][0]["user"] = json!({})),
        ("user `us` has no token, client certificate or exec plugin", |file| {
            file["users"][0]["user"] = json!({ "token": "" });
        }),
        ("cluster `lab` has no server", |file| file["clusters"][0]["cluster"] = json!({})),
        ("the kubeconfig has two of cluster `lab`", |file| {
            let twin = file["clusters"][0].clone();
            add(&mut file["clusters"], twin);
        }),
    ];
    for (expected, change) in cases {
        assert_eq!(mistake(change), expected);
    }
}

#[test]
fn an_address_that_is_none_or_is_not_safe_is_refused() {
    for (server, expected) in [
        ("http://k8s.lab", "server of cluster `lab` asks for http, and credentials are sent over HTTPS only"),
        ("k8s.lab:6443", "server of cluster `lab` does not begin with https://"),
        ("ftp://k8s.lab", "server of cluster `lab` does not begin with https://"),
        ("https://me:marked@k8s.lab", "server of cluster `lab` holds a user, which is not followed"),
        ("https://k8s.lab?token=marked", "server of cluster `lab` has a query, which is not followed"),
        ("https://", "server of cluster `lab` is no address"),
        ("https://a b", "server of cluster `lab` is no address"),
    ] {
        assert_eq!(mistake(|file| file["clusters"][0]["cluster"]["server"] = json!(server)), expected);
    }
}

#[test]
fn what_is_not_followed_is_not_passed_over() {
    for (key, value, expected) in [
        ("insecure-skip-tls-verify", json!(true), "cluster `lab` has insecure-skip-tls-verify: "),
        ("proxy-url", json!("http://proxy"), "cluster `lab` has proxy-url: "),
    ] {
        assert!(mistake(|file| file["clusters"][0]["cluster"][key] = value).starts_with(expected));
    }
    for (user, expected) in [
        (json!({ "username": "me", "password": "marked" }), "user `us` has username and password: "),
        (
            json!({ "auth-provider": { "name": "oidc", "config": { "id-token": "marked" } } }),
            "user `us` has auth-provider: ",
        ),
        (json!({ "token": "marked", "as": "root" }), "user `us` has as: "),
        (json!({ "token": "marked", "as-groups": ["system:masters"] }), "user `us` has as: "),
        (json!({ "token": "marked\nX-Evil: 1" }), "token of user `us` holds characters that no token has"),
    ] {
        let text = mistake(|file| file["users"][0]["user"] = user);
        assert!(text.starts_with(expected), "{text}");
    }
    let off = parse(|file| file["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = json!(false));
    assert!(off.is_ok());
}

#[test]
fn certificates_and_keys_are_told_apart_from_what_is_none() {
    let mut user = json!({ "client-certificate-data": base64(&pem("CERTIFICATE")), "client-key-data": base64(&pem("PRIVATE KEY")) });
    let access = parse(|file| file["users"][0]["user"] = user.clone()).unwrap();
    assert!(!format!("{access:?}").contains("bWFya2Vk"), "{access:?}");
    user["client-key-data"] = json!("!");
    assert_eq!(mistake(|file| file["users"][0]["user"] = user.clone()), "client-key-data of user `us` is not base64");
    user["client-key-data"] = base64("marked");
    assert_eq!(mistake(|file| file["users"][0]["user"] = user.clone()), "client-key-data of user `us` is not PEM");
    user.as_object_mut().unwrap().remove("client-key-data");
    let text = mistake(|file| file["users"][0]["user"] = user.clone());
    assert_eq!(text, "user `us` has no client-key for its client-certificate");
    let text = mistake(|file| file["users"][0]["user"] = json!({ "client-key-data": base64(&pem("PRIVATE KEY")) }));
    assert_eq!(text, "user `us` has no client-certificate for its client-key");
    let ca =
        |value: Value| move |file: &mut Value| file["clusters"][0]["cluster"]["certificate-authority-data"] = value;
    assert!(parse(ca(base64(&pem("CERTIFICATE")))).is_ok());
    assert_eq!(mistake(ca(base64("text"))), "certificate-authority-data of cluster `lab` is not PEM");
    assert_eq!(mistake(ca(json!("%%"))), "certificate-authority-data of cluster `lab` is not base64");
}

#[test]
fn paths_are_relative_to_the_file() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("ca.pem"), pem("CERTIFICATE")).unwrap();
    let with = |path: &str, dir: Option<&Path>| {
        let mut file: Value = serde_json::from_str(&kubeconfig(json!({ "token": "t0ken" }))).unwrap();
        file["clusters"][0]["cluster"]["certificate-authority"] = json!(path);
        Access::parse(&file.to_string(), None, dir)
    };
    assert!(with("ca.pem", Some(dir.path())).is_ok());
    assert!(with(dir.path().join("ca.pem").to_str().unwrap(), None).is_ok());
    let text = says(&with("ca.pem", None).unwrap_err());
    assert!(text.starts_with("certificate-authority of cluster `lab` is a relative path"), "{text}");
    let text = says(&with("gone.pem", Some(dir.path())).unwrap_err());
    assert!(
        text.starts_with("cannot read certificate-authority of cluster `lab`: ") && text.contains("gone.pem"),
        "{text}"
    );
}

#[test]
fn what_is_no_kubeconfig_is_told_by_its_place_and_not_quoted() {
    for text in [
        "users: [{name: u, user: {token: [marked]}}]",
        "users:\n- name: u\n  user:\n    token: \"marked",
        "token: marked: marked: {",
        "- marked",
        "marked",
        "users: marked",
        "\u{0}marked",
    ] {
        let error = Access::parse(text, None, None).unwrap_err();
        let shown = format!("{} {error:?}", says(&error));
        assert!(matches!(error, AccessError::Unreadable { .. }), "{text}: {shown}");
        assert!(!shown.contains("marked"), "{shown}");
    }
    let error = Access::parse("users:\n- name: u\n  user:\n    token: [marked]\n", None, None).unwrap_err();
    assert_eq!(error.to_string(), "the kubeconfig cannot be read: see line 4, column 12");
    assert!(matches!(Access::parse("", None, None), Err(AccessError::NoContext { .. })));
}

#[test]
fn an_exec_plugin_is_checked_before_it_is_run() {
    let exec = |change: fn(&mut Value)| {
        move |file: &mut Value| {
            let mut exec = json!({ "apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-helper" });
            change(&mut exec);
            file["users"][0]["user"] = json!({ "exec": exec });
        }
    };
    assert!(parse(exec(|_| {})).is_ok(), "nothing is run yet");
    assert!(parse(exec(|exec| exec["interactiveMode"] = json!("IfAvailable"))).is_ok());
    let cases: [(&str, Change); 5] = [
        ("user `us` has no command of its exec plugin", |exec| exec["command"] = json!("")),
        ("apiVersion of the exec plugin of user `us` is not client.authentication.k8s.io/v1 or v1beta1", |exec| {
            exec["apiVersion"] = json!("client.authentication.k8s.io/v1alpha1");
        }),
        ("user `us` has an exec plugin with interactiveMode Always: nobody is there to answer it", |exec| {
            exec["interactiveMode"] = json!("Always");
        }),
        ("env of the exec plugin of user `us` has an entry without name or value", |exec| {
            exec["env"] = json!([{ "name": "MARKED" }]);
        }),
        (
            "command of the exec plugin of user `us` is a relative path, and the kubeconfig is no file that it could be relative to",
            |exec| {
                exec["command"] = json!("bin/helper");
            },
        ),
    ];
    for (expected, change) in cases {
        assert_eq!(mistake(exec(change)), expected);
    }
}
