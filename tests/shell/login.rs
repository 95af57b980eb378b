//! The host key, and the one login.

use poolwright::model::HostKeyPin;
use poolwright::shell::{Command, Credential, Query, Shell, ShellError, read_gpus};
use poolwright::sim::SimNetwork;
use russh::keys::ssh_key::HashAlg;
use secrecy::SecretString;

use super::{PASSWORD, access, host, open, pins, shell, told, world, world_with, wrong_logins};

const H100: &str = "{model: h100-nvl-94, count: 2, mode: {vgpu: {size: same}}}";

fn one_host() -> poolwright::sim::World {
    world(&host("esx-01", H100, &shell("")))
}

#[tokio::test(start_paused = true)]
async fn a_pinned_host_is_logged_in_to_and_answers() {
    for asks in ["keyboardInteractive", "password"] {
        let readings = format!("  readings: {{sshPassword: {asks}}}\n");
        let world = world_with(&readings, &host("esx-01", H100, &shell("")));
        let shell = open(&world, "esx-01").await.unwrap();
        let seen = read_gpus(&shell).await.unwrap();
        assert_eq!(seen.gpus.len(), 2, "{seen:?}");
        assert!(seen.unread.is_empty() && seen.gpus.values().all(|gpu| gpu.mig.settled() == Some(false)));
        assert!(seen.gpus.values().all(|gpu| gpu.link_width.known() == Some(&16)));
        shell.close().await;
        assert!(world.log().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_fingerprint_pins_as_the_key_does() {
    let world = one_host();
    let HostKeyPin::Key(key) = &pins(&world, "esx-01")[0] else { panic!() };
    let print = key.fingerprint(HashAlg::Sha256).to_string();
    let mut access = access(&world, "esx-01", PASSWORD);
    access.pins = vec![print.parse().unwrap()];
    let shell = Shell::open(&SimNetwork::new(world.clone()), &access).await.unwrap();
    assert!(shell.run(Command::Query(Query::Modes)).await.is_ok());
}

/// A host that was installed again, or somebody in between: no password leaves us.
#[tokio::test(start_paused = true)]
async fn a_wrong_host_key_gets_no_login() {
    let old = one_host();
    let new = world(&host("esx-01", H100, &shell(", hostKey: again")));
    let shown = told(&Shell::open(&SimNetwork::new(new.clone()), &access(&old, "esx-01", "wrong")).await.unwrap_err());
    let HostKeyPin::Key(key) = &pins(&new, "esx-01")[0] else { panic!() };
    let print = key.fingerprint(HashAlg::Sha256);
    assert_eq!(shown, format!("esx-01 does not have the host key that is pinned, but {print}"));
    assert_eq!(wrong_logins(&new), 0);
    // A fingerprint does not tell the kind of its key: all kinds are tried, and none fits.
    let mut access = access(&old, "esx-01", "wrong");
    access.pins = vec![HostKeyPin::Fingerprint([7; 32])];
    let error = Shell::open(&SimNetwork::new(new.clone()), &access).await.unwrap_err();
    assert!(matches!(&error, ShellError::HostKey { shown, .. } if *shown == [print.to_string()]), "{error:?}");
    assert!(!error.ends_shell_use() && error.not_run());
    assert_eq!(wrong_logins(&new), 0);
}

#[tokio::test(start_paused = true)]
async fn without_a_pin_nobody_is_even_called() {
    let world = one_host();
    let mut access = access(&world, "esx-01", PASSWORD);
    access.pins.clear();
    access.host = "no-such-host".to_owned();
    let error = Shell::open(&SimNetwork::new(world), &access).await.unwrap_err();
    assert!(matches!(error, ShellError::NoPin { .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_wrong_password_is_tried_once() {
    for asks in ["keyboardInteractive", "password"] {
        let readings = format!("  readings: {{sshPassword: {asks}}}\n");
        let world = world_with(&readings, &host("esx-01", H100, &shell("")));
        let wrong = access(&world, "esx-01", "marked-wrong");
        let error = Shell::open(&SimNetwork::new(world.clone()), &wrong).await.unwrap_err();
        assert!(matches!(error, ShellError::LoginRefused { .. }) && error.ends_shell_use(), "{error:?}");
        assert_eq!(told(&error), "esx-01 refuses the login of root: it did not accept the credential");
        assert!(!format!("{error:?} {wrong:?}").contains("marked"));
        assert_eq!(wrong_logins(&world), 1);
    }
}

/// Three wrong ones lock the account for 15 minutes: then the right password does not help.
#[tokio::test(start_paused = true)]
async fn a_locked_account_refuses_the_right_password() {
    let world = one_host();
    let network = SimNetwork::new(world.clone());
    for _ in 0..3 {
        Shell::open(&network, &access(&world, "esx-01", "wrong")).await.unwrap_err();
    }
    let error = open(&world, "esx-01").await.unwrap_err();
    assert!(error.ends_shell_use());
    let last = world.log().pop().unwrap();
    assert_eq!((last.call.as_str(), last.arguments.as_str(), last.effect), ("SshLogin", "locked", false));
    tokio::time::sleep(std::time::Duration::from_secs(15 * 60)).await;
    open(&world, "esx-01").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_key_opens_the_account_and_another_does_not() {
    let private = |seed: u8| {
        let pair = russh::keys::ssh_key::private::Ed25519Keypair::from_seed(&[seed; 32]);
        let data = russh::keys::ssh_key::private::KeypairData::Ed25519(pair);
        russh::keys::PrivateKey::new(data, "somebody").unwrap()
    };
    let public = private(1).public_key().to_openssh().unwrap();
    let users =
        format!(", shell: {{ssh: {{running: true}}, users: [{{name: root, password: x, keys: [\"{public}\"]}}]}}");
    let world = world(&host("esx-01", H100, &users));
    let network = SimNetwork::new(world.clone());
    let with = |seed| {
        let text = private(seed).to_openssh(Default::default()).unwrap().to_string();
        poolwright::shell::Access {
            credential: Credential::Key(SecretString::from(text)),
            ..access(&world, "esx-01", "")
        }
    };
    let shell = Shell::open(&network, &with(1)).await.unwrap();
    assert_eq!(read_gpus(&shell).await.unwrap().gpus.len(), 2);
    let error = Shell::open(&network, &with(2)).await.unwrap_err();
    assert!(matches!(error, ShellError::LoginRefused { .. }), "{error:?}");
    let mut access = with(1);
    access.credential = Credential::Key(SecretString::from("marked-not-a-key"));
    let error = Shell::open(&network, &access).await.unwrap_err();
    assert_eq!(told(&error), "the private key for esx-01 is no private key in OpenSSH's format");
    assert!(!error.ends_shell_use());
}

/// Lockdown is not a wrong password, but the host does not say so.
#[tokio::test(start_paused = true)]
async fn lockdown_refuses_everybody() {
    for mode in ["normal", "strict"] {
        let world = world(&host("esx-01", H100, &shell(&format!(", lockdown: {mode}"))));
        let error = open(&world, "esx-01").await.unwrap_err();
        assert!(error.ends_shell_use(), "{error:?}");
    }
}

/// A login that was sent and not answered may count as a wrong one: it is the last, too.
#[tokio::test(start_paused = true)]
async fn a_login_without_an_answer_ends_it() {
    for asks in ["keyboardInteractive", "password"] {
        for fault in ["dropBefore", "dropAfter", "hangs"] {
            let spec = format!(
                "  readings: {{sshPassword: {asks}}}\n  faults: [{{face: ssh, method: login, then: {fault}}}]\n"
            );
            let world = world_with(&spec, &host("esx-01", H100, &shell("")));
            let error = open(&world, "esx-01").await.unwrap_err();
            assert!(matches!(error, ShellError::LoginUnanswered { .. }), "{asks} {fault}: {error:?}");
            assert!(error.ends_shell_use() && error.not_run());
        }
    }
}
