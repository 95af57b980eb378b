//! One session: logged in with a fresh jar, renewed once, closed at the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use poolwright::vim25::{Error, PropertySet, Scope};

use super::script::{PASSWORD, Reply, Seen, Server, host, object, says, service_content, text};

/// Names of hosts; everything else as usual.
fn hosts(seen: &Seen) -> Option<Reply> {
    (seen.asks() == "HostSystem" && seen.cookie.is_some()).then(|| {
        let host = object("HostSystem", "host-1", &[("name", &text("esx-1"))]);
        Reply::ok(&seen.call, &format!("<returnval>{host}</returnval>"))
    })
}

fn not_authenticated() -> Reply {
    Reply::fault("NotAuthenticated", "<privilegeId>System.View</privilegeId>", "")
}

#[tokio::test(start_paused = true)]
async fn connecting_reads_what_the_server_is() {
    let server = Server::new(|_| None);
    let client = server.connect().await.unwrap();
    assert_eq!(client.about().full_name, "VMware vCenter Server 8.0.3 build-1");
    assert_eq!(client.about().instance_uuid, "6f0e0000-0000-4000-8000-000000000001");
    assert_eq!(client.version().to_string(), "8.0.3.0");
    assert_eq!(client.session_user(), "VSPHERE.LOCAL\\pw");
    assert_eq!(client.root_folder().id, "group-d1");
    assert_eq!(client.clock_difference().as_millis(), 5250);
    assert_eq!(client.current_time().await.unwrap().to_string(), "2026-11-30T20:00:06Z");
    assert_eq!(server.calls(), ["versions", "RetrieveServiceContent", "Login", "CurrentTime"]);
}

#[tokio::test(start_paused = true)]
async fn the_cookie_goes_back_as_it_came_with_its_quotes() {
    let server = Server::new(|_| None);
    let client = server.connect().await.unwrap();
    client.current_time().await.unwrap();
    assert_eq!(server.seen("CurrentTime")[0].cookie.as_deref(), Some("vmware_soap_session=\"s0001\""));
}

#[tokio::test(start_paused = true)]
async fn a_host_is_no_vcenter_and_is_not_logged_in_to() {
    let server = Server::new(|seen| (seen.call == "RetrieveServiceContent").then(|| service_content("HostAgent")));
    let error = server.connect().await.unwrap_err();
    assert!(matches!(error, Error::NotVcenter { .. }), "{error:?}");
    assert_eq!(server.count("Login"), 0);
}

#[tokio::test(start_paused = true)]
async fn another_vcenter_than_the_pinned_one_gets_no_password() {
    let server = Server::new(|_| None);
    let error = server.connect_pinned(Some("6f0e0000-0000-4000-8000-00000000dead")).await.unwrap_err();
    assert!(matches!(error, Error::OtherVcenter { .. }), "{error:?}");
    let said = error.to_string();
    assert!(said.contains("8000-000000000001") && said.contains("dead"), "{said}");
    assert_eq!(server.count("Login"), 0);
    server.connect_pinned(Some("6F0E0000-0000-4000-8000-000000000001")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_speaks_no_version_of_ours_is_named() {
    let server = Server::new(|seen| {
        (seen.call == "versions").then(|| {
            Reply::page(
                200,
                "<namespaces><namespace><name>urn:vim25</name><version>6.5</version></namespace></namespaces>",
            )
        })
    });
    let error = server.connect().await.unwrap_err();
    assert!(says(&error).contains("6.5"), "{}", says(&error));
}

#[tokio::test(start_paused = true)]
async fn a_wrong_password_is_tried_once_and_shown_nowhere() {
    let server = Server::new(|seen| {
        (seen.call == "Login").then(|| {
            Reply::fault("InvalidLogin", "", "Cannot complete login due to an incorrect user name or password.")
                .header("set-cookie", "vmware_soap_session=\"failed\"; Path=/")
        })
    });
    let error = server.connect().await.unwrap_err();
    assert!(matches!(error, Error::LoginRefused { .. }), "{error:?}");
    assert!(!error.is_retriable() && !error.may_have_acted());
    assert_eq!(server.count("Login"), 1);
    let said = says(&error);
    assert!(said.contains("vc.test refuses the login of pw@vsphere.local"), "{said}");
    assert!(said.contains("incorrect user name or password"), "{said}");
    assert!(!said.contains(PASSWORD) && !format!("{error:?}").contains(PASSWORD));
}

/// The server refuses a login that carries any cookie.
#[tokio::test(start_paused = true)]
async fn c06_each_login_has_a_fresh_jar() {
    let server = Server::new(|seen| {
        (seen.call == "Login" && seen.cookie.is_some())
            .then(|| Reply::fault("InvalidLogin", "", "session is logged in"))
    });
    let client = server.connect().await.unwrap();
    server.forget_sessions();
    client.current_time().await.unwrap();
    let logins = server.seen("Login");
    assert_eq!(logins.iter().map(|login| login.cookie.as_deref()).collect::<Vec<_>>(), [None, None]);
}

#[tokio::test(start_paused = true)]
async fn c01_a_session_that_ends_is_renewed_once_and_unseen() {
    let server = Server::new(hosts);
    let client = server.connect().await.unwrap();
    server.forget_sessions();
    assert_eq!(client.current_time().await.unwrap().to_string(), "2026-11-30T20:00:06Z");
    assert_eq!(server.count("Login"), 2);
    assert_eq!(server.seen("CurrentTime")[1].cookie.as_deref(), Some("vmware_soap_session=\"s0002\""));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_refused_again_just_after_a_login_is_a_clear_stop() {
    let server = Server::new(|seen| (seen.call == "CurrentTime").then(not_authenticated));
    let client = server.connect().await.unwrap();
    let error = client.current_time().await.unwrap_err();
    assert!(matches!(error, Error::SessionRefused { .. }), "{error:?}");
    assert!(!error.is_retriable());
    assert_eq!(server.count("Login"), 2);
    assert!(error.to_string().contains("log in"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_password_that_was_changed_meanwhile_is_not_tried_again_and_again() {
    let server =
        Server::new(|seen| (seen.call == "Login" && seen.nth > 0).then(|| Reply::fault("InvalidLogin", "", "wrong")));
    let client = server.connect().await.unwrap();
    server.forget_sessions();
    let error = client.current_time().await.unwrap_err();
    assert!(matches!(error, Error::LoginRefused { .. }), "{error:?}");
    assert_eq!(server.count("Login"), 2);
}

/// The server answers 200 and says in place of the properties that nobody is logged in.
#[tokio::test(start_paused = true)]
async fn c14_a_session_lost_in_a_look_up_is_no_fact_about_the_inventory() {
    let lost = Arc::new(AtomicBool::new(true));
    let once = Arc::clone(&lost);
    let server = Server::new(move |seen| {
        if seen.asks() == "HostSystem" && once.swap(false, Ordering::Relaxed) {
            let missing = "<objects><obj type=\"HostSystem\">host-1</obj><missingSet><path>name</path><fault>\
                <fault xsi:type=\"NotAuthenticated\"><privilegeId>System.View</privilegeId></fault>\
                <localizedMessage/></fault></missingSet></objects>";
            return Some(Reply::ok(&seen.call, &format!("<returnval>{missing}</returnval>")));
        }
        hosts(seen)
    });
    let client = server.connect().await.unwrap();
    let read = client.properties(&host("host-1"), &["name"]).await.unwrap();
    assert_eq!(read.get("name").unwrap().text, "esx-1");
    assert_eq!(server.count("Login"), 2);
}

#[tokio::test(start_paused = true)]
async fn c14_if_it_stays_lost_the_class_is_log_in_and_not_not_found() {
    let server = Server::new(|seen| {
        (seen.asks() == "Datacenter").then(|| {
            let missing = "<objects><obj type=\"Datacenter\">dc-1</obj><missingSet><path>name</path><fault>\
                <fault xsi:type=\"NotAuthenticated\"/></fault></missingSet></objects>";
            Reply::ok(&seen.call, &format!("<returnval>{missing}</returnval>"))
        })
    });
    let client = server.connect().await.unwrap();
    let scope = Scope::Below(client.root_folder().clone());
    let mut found = Vec::new();
    let error = client
        .retrieve(&scope, &[PropertySet::new("Datacenter", &["name"])], |page| found.extend(page))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::SessionRefused { .. }), "{error:?}");
    assert!(error.to_string().contains("log in to vc.test"), "{error}");
    assert_eq!(found, []);
    assert_eq!(server.count("Login"), 2);
}

#[tokio::test(start_paused = true)]
async fn c04_health_is_a_round_trip_before_each_write() {
    let server = Server::new(|seen| (seen.call == "SetField").then(|| Reply::ok("SetField", "")));
    let client = server.connect().await.unwrap();
    // The client believes in its session; the server has forgotten it.
    server.forget_sessions();
    client.set_custom_field(&host("host-1"), 101, "x").await.unwrap();
    let calls = server.calls();
    let tail: Vec<&str> = calls.iter().skip(3).map(String::as_str).collect();
    assert_eq!(tail, ["RetrievePropertiesEx", "Login", "RetrievePropertiesEx", "SetField"]);
    assert_eq!(server.seen("SetField")[0].cookie.as_deref(), Some("vmware_soap_session=\"s0002\""));
}

#[tokio::test(start_paused = true)]
async fn a_write_on_a_session_that_ends_just_then_did_nothing_and_says_so() {
    let server = Server::new(|seen| (seen.call == "SetField").then(not_authenticated));
    let client = server.connect().await.unwrap();
    let error = client.set_custom_field(&host("host-1"), 101, "x").await.unwrap_err();
    assert!(matches!(error, Error::SessionRenewed { .. }), "{error:?}");
    assert!(error.is_retriable() && !error.may_have_acted());
    // Sent once: whoever asked reads again before it is sent once more.
    assert_eq!((server.count("SetField"), server.count("Login")), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn two_calls_that_find_the_session_gone_log_in_once() {
    let server = Server::new(hosts);
    let client = server.connect().await.unwrap();
    server.forget_sessions();
    let (one, two) = tokio::join!(client.current_time(), client.current_time());
    one.unwrap();
    two.unwrap();
    assert_eq!(server.count("Login"), 2);
}

#[tokio::test(start_paused = true)]
async fn logout_ends_the_session_and_nothing_is_sent_after_it() {
    let server = Server::new(|_| None);
    let client = server.connect().await.unwrap();
    client.logout().await.unwrap();
    client.logout().await.unwrap();
    assert_eq!(server.count("Logout"), 1);
    assert_eq!(server.seen("Logout")[0].cookie.as_deref(), Some("vmware_soap_session=\"s0001\""));
    let before = server.calls().len();
    let error = client.current_time().await.unwrap_err();
    assert!(matches!(error, Error::Closed { .. }), "{error:?}");
    assert_eq!((server.calls().len(), server.count("Login")), (before, 1));
}

#[tokio::test(start_paused = true)]
async fn logging_out_of_a_session_that_has_ended_is_no_error() {
    let server = Server::new(|_| None);
    let client = server.connect().await.unwrap();
    server.forget_sessions();
    client.logout().await.unwrap();
    assert_eq!(server.count("Login"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_a_logout_holds_nobody_up() {
    let server = Server::new(|seen| {
        (seen.call == "Logout").then(|| Reply::ok("Logout", "").after(std::time::Duration::from_secs(3600)))
    });
    let client = server.connect().await.unwrap();
    let start = tokio::time::Instant::now();
    assert!(client.logout().await.is_err());
    assert_eq!(start.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn the_client_shows_neither_password_nor_cookie() {
    let server = Server::new(|_| None);
    let client = server.connect().await.unwrap();
    let shown = format!("{client:?}");
    assert!(shown.contains("vc.test") && shown.contains("pw@vsphere.local"), "{shown}");
    assert!(!shown.contains(PASSWORD) && !shown.contains("s0001"), "{shown}");
}

/// Futures of the client can be moved between threads: what runs them decides.
#[test]
fn calls_are_send() {
    fn send<T: Send>(value: T) -> T {
        value
    }
    let server = Server::new(|_| None);
    drop(send(async move {
        let client = server.connect().await.unwrap();
        client.current_time().await.unwrap();
        client.properties(&host("host-1"), &["name"]).await.unwrap();
        client.wait_task(&super::script::task("t"), std::time::Duration::ZERO, |_| {}).await.unwrap();
        client.logout().await.unwrap();
    }));
}
