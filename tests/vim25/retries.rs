//! Reads are repeated; writes never are, and their errors say whether they may have acted.

use std::num::NonZeroU32;
use std::time::Duration;

use poolwright::base::net::NetError;
use poolwright::model::{AssignmentPolicy, Fact, GraphicsConfig, GraphicsDeviceConfig, GraphicsType, VgpuMode};
use poolwright::vim25::{Error, PassthruEntry};
use tokio::time::Instant;

use super::script::{Reply, Server, host, says, versions};

const ENVOY_503: &str = "<html><body><h1>503 Service Unavailable</h1>\n<p>Failed to connect to endpoint: \
    [N7Vmacore4Http20NamedPipeServiceSpecE:0x00007f] _serverNamespace = /sdk</p></body></html>";

#[tokio::test(start_paused = true)]
async fn a_read_outlives_a_restart_of_the_server() {
    let server = Server::new(|seen| {
        (seen.call == "CurrentTime" && seen.nth < 6).then(|| match seen.nth % 3 {
            0 => Reply::page(503, ENVOY_503),
            1 => Reply::broken(),
            _ => Reply::page(502, ""),
        })
    });
    let client = server.connect().await.unwrap();
    let start = Instant::now();
    client.current_time().await.unwrap();
    assert_eq!(server.count("CurrentTime"), 7);
    // 1 + 2 + 4 + 8 + 16 + 30
    assert_eq!(start.elapsed().as_secs(), 61);
}

#[tokio::test(start_paused = true)]
async fn a_read_that_nobody_answers_ends() {
    let server = Server::new(|seen| (seen.call == "CurrentTime").then(|| Reply::page(503, ENVOY_503)));
    let client = server.connect().await.unwrap();
    let start = Instant::now();
    let error = client.current_time().await.unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(360), "{:?}", start.elapsed());
    let said = says(&error);
    assert!(said.contains("vc.test answered with HTTP status 503"), "{said}");
    assert!(said.contains("Failed to connect to endpoint"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_read_without_an_answer_has_a_deadline_of_its_own() {
    let server = Server::new(|seen| {
        let slow = seen.call == "CurrentTime" && seen.nth == 0;
        slow.then(|| Reply::page(200, "").after(Duration::from_secs(86_400)))
    });
    let client = server.connect().await.unwrap();
    let start = Instant::now();
    client.current_time().await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 121);
}

#[tokio::test(start_paused = true)]
async fn what_will_not_get_better_is_not_repeated() {
    for status in [400, 401, 403, 404, 500] {
        let server = Server::new(move |seen| (seen.call == "CurrentTime").then(|| Reply::page(status, "no")));
        let client = server.connect().await.unwrap();
        let error = client.current_time().await.unwrap_err();
        assert!(matches!(error, Error::Http { status: got, .. } if got == status), "{error:?}");
        assert_eq!(server.count("CurrentTime"), 1, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_contact_is_given_up_soon() {
    let server = Server::new(|_| Some(Reply::page(503, ENVOY_503)));
    let start = Instant::now();
    assert!(server.connect().await.is_err());
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    assert_eq!(server.count("Login"), 0);
}

#[tokio::test(start_paused = true)]
async fn c11_a_redirect_is_not_followed_and_said() {
    let server = Server::new(|seen| {
        (seen.call == "versions").then(|| Reply::page(302, "").header("location", "https://other.test/sdk"))
    });
    let error = server.connect().await.unwrap_err();
    assert!(matches!(error, Error::Redirected { .. }), "{error:?}");
    assert!(error.to_string().contains("https://other.test/sdk"), "{error}");
    assert_eq!(server.calls(), ["versions"]);
}

/// Every call that changes something, under every way to lose its answer.
#[tokio::test(start_paused = true)]
async fn a_write_is_sent_once_and_its_error_says_whether_it_may_have_acted() {
    type Answer = fn() -> Reply;
    let answers: [(Answer, bool); 9] = [
        (Reply::broken, true),
        (|| Reply::page(503, ENVOY_503), true),
        (|| Reply::page(408, ""), true),
        (|| Reply::page(404, ""), false),
        (|| Reply::ok("SomethingElse", ""), true),
        (|| Reply::page(200, "<html>"), true),
        (|| Reply::fault("InvalidState", "", ""), false),
        (|| Reply::fault("HostCommunication", "", ""), true),
        (|| Reply::page(200, "").after(Duration::from_secs(86_400)), true),
    ];
    for (index, (answer, may_have_acted)) in answers.into_iter().enumerate() {
        let server = Server::new(move |seen| (seen.asks() != "SessionManager" && seen.nth_write()).then(answer));
        let client = server.connect().await.unwrap();
        let timeout = NonZeroU32::new(600).unwrap();
        let entry =
            PassthruEntry { address: "0000:3b:00.0".parse().unwrap(), enabled: true, apply_now: None, label: None };
        let config = GraphicsConfig {
            default_type: GraphicsType::Shared,
            policy: AssignmentPolicy::Performance,
            devices: Vec::new(),
        };
        let object = host("host-1");
        let errors = [
            client.enter_maintenance(&object, timeout).await.unwrap_err(),
            client.exit_maintenance(&object, timeout).await.unwrap_err(),
            client.reboot_host(&object).await.unwrap_err(),
            client.update_passthru(&object, &[entry]).await.unwrap_err(),
            client.update_graphics(&object, &config).await.unwrap_err(),
            client.add_custom_field("poolwright.run", "HostSystem").await.unwrap_err(),
            client.set_custom_field(&object, 101, "x").await.unwrap_err(),
            client.log_user_event(&object, "x").await.unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.may_have_acted(), may_have_acted, "{index}: {error:?}");
        }
        for call in WRITES {
            assert_eq!(server.count(call), 1, "{index}: {call}");
        }
    }
}

const WRITES: [&str; 8] = [
    "EnterMaintenanceMode_Task",
    "ExitMaintenanceMode_Task",
    "RebootHost_Task",
    "UpdatePassthruConfig",
    "UpdateGraphicsConfig",
    "AddCustomFieldDef",
    "SetField",
    "LogUserEvent",
];

impl super::script::Seen {
    fn nth_write(&self) -> bool {
        WRITES.contains(&self.call.as_str())
    }
}

#[test]
fn what_was_never_sent_did_not_act() {
    let source = || std::io::Error::from(std::io::ErrorKind::ConnectionRefused).into();
    let connect = NetError::Connect { authority: "vc".into(), source: source() };
    let untrusted = NetError::Untrusted { authority: "vc".into(), reason: "r".into(), thumbprint: "AB".into() };
    for (net, retriable) in [(connect, true), (untrusted, false)] {
        let error = Error::Net { call: "SetField", source: net };
        assert!(!error.may_have_acted());
        assert_eq!(error.is_retriable(), retriable, "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_size_mode_is_never_sent_to_a_server_that_has_none() {
    let server = Server::new(|seen| (seen.call == "versions").then(|| versions("8.0.2.0")));
    let client = server.connect().await.unwrap();
    let device = GraphicsDeviceConfig {
        address: "0000:3b:00.0".parse().unwrap(),
        graphics_type: GraphicsType::SharedDirect,
        vgpu_mode: Fact::Known(VgpuMode::MixedSize),
    };
    let config = GraphicsConfig {
        default_type: GraphicsType::Shared,
        policy: AssignmentPolicy::Performance,
        devices: vec![device],
    };
    let error = client.update_graphics(&host("gm"), &config).await.unwrap_err();
    let said = "the size mode of a vGPU device needs vim25 8.0.3.0, vc.test speaks 8.0.2.0";
    assert_eq!(error.to_string(), said);
    assert_eq!(server.count("UpdateGraphicsConfig"), 0);
}
