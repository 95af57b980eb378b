//! Tasks: awaited to their end whatever happens on the way; the server's answer decides.

use std::num::NonZeroU32;
use std::sync::Mutex;
use std::time::Duration;

use poolwright::vim25::{Cancel, TaskEnd, TaskProgress, TaskState, Waited};
use tokio::time::Instant;

use super::script::{Reply, Seen, Server, host, object, says, task, text};

const HOUR: Duration = Duration::from_secs(3600);

/// A task on the server: when it ends, and how.
#[derive(Clone, Copy)]
struct Job {
    start: Instant,
    takes: Duration,
    /// `success` or `error`.
    ends: &'static str,
    /// Inside of `TaskInfo.error`.
    error: &'static str,
    cancelable: bool,
}

impl Job {
    fn new(takes: Duration) -> Self {
        Self { start: Instant::now(), takes, ends: "success", error: "", cancelable: true }
    }

    fn left(&self) -> Duration {
        self.takes.saturating_sub(self.start.elapsed())
    }

    fn state(&self, passed: Duration) -> &'static str {
        if self.start.elapsed() + passed >= self.takes { self.ends } else { "running" }
    }

    fn error(&self) -> String {
        if self.ends == "error" && self.left().is_zero() {
            format!("<error>{}</error>", self.error)
        } else {
            String::new()
        }
    }

    fn info(&self) -> String {
        format!(
            "<val xsi:type=\"TaskInfo\"><key>task-1</key><task type=\"Task\">task-1</task>\
             <descriptionId>HostSystem.enterMaintenanceMode</descriptionId><entity type=\"HostSystem\">host-1</entity>\
             <state>{}</state><cancelled>false</cancelled><cancelable>{}</cancelable>{}\
             <reason xsi:type=\"TaskReasonUser\"><userName>VSPHERE.LOCAL\\pw</userName></reason>\
             <queueTime>2026-11-30T20:00:00Z</queueTime></val>",
            self.state(Duration::ZERO),
            self.cancelable,
            self.error(),
        )
    }

    /// The server's side: one wait takes until something changes, or its time is over.
    fn answer(&self, seen: &Seen) -> Option<Reply> {
        match seen.call.as_str() {
            "EnterMaintenanceMode_Task" => Some(Reply::ok(&seen.call, "<returnval type=\"Task\">task-1</returnval>")),
            "CancelTask" => Some(Reply::ok(&seen.call, "")),
            "RetrievePropertiesEx" if seen.asks() == "Task" => {
                let object = object("Task", "task-1", &[("info", &self.info())]);
                Some(Reply::ok(&seen.call, &format!("<returnval>{object}</returnval>")))
            }
            "WaitForUpdatesEx" => {
                let first = seen.body.text_of("version") == Some("");
                let wait = seen.body.get("options").unwrap().text_of("maxWaitSeconds").unwrap().parse().unwrap();
                let wait = Duration::from_secs(wait);
                if first || (self.left() <= wait && !self.left().is_zero()) {
                    let after = if first { Duration::ZERO } else { self.left() };
                    return Some(updates(&[("info.state", self.state(after))]).after(after));
                }
                Some(Reply::ok(&seen.call, "").after(wait))
            }
            _ => None,
        }
    }
}

/// An update of the task, version `v`.
fn updates(changes: &[(&str, &str)]) -> Reply {
    let changes: String = changes
        .iter()
        .map(|(name, value)| format!("<changeSet><name>{name}</name><op>assign</op>{}</changeSet>", text(value)))
        .collect();
    Reply::ok(
        "WaitForUpdatesEx",
        &format!(
            "<returnval><version>v</version><filterSet><filter type=\"PropertyFilter\">session[x]filter-0</filter>\
             <objectSet><kind>modify</kind><obj type=\"Task\">task-1</obj>{changes}</objectSet></filterSet></returnval>"
        ),
    )
}

fn timeout() -> NonZeroU32 {
    NonZeroU32::new(1800).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_task_is_awaited_and_its_end_read_afresh() {
    let job = Job::new(Duration::from_secs(100));
    let server = Server::new(move |seen| job.answer(seen));
    let client = server.connect().await.unwrap();
    let started = client.enter_maintenance(&host("host-1"), timeout()).await.unwrap();
    let mut told = Vec::new();
    let end = client.wait_task(&started, HOUR, |progress| told.push(progress)).await.unwrap();
    let TaskEnd::Success(info) = end else { panic!("{end:?}") };
    assert_eq!(info.what, "HostSystem.enterMaintenanceMode");
    assert_eq!(info.user.as_deref(), Some("VSPHERE.LOCAL\\pw"));
    assert_eq!(info.entity, Some(host("host-1")));
    assert_eq!(job.start.elapsed().as_secs(), 100);
    let states: Vec<TaskState> = told.into_iter().map(|progress| progress.state).collect();
    assert_eq!(states, [TaskState::Running, TaskState::Success]);
    // 30 + 30 + 30 + 10 seconds, and the first state.
    assert_eq!(server.count("WaitForUpdatesEx"), 5);
    assert_eq!((server.count("CreateFilter"), server.count("DestroyPropertyFilter")), (1, 1));
    assert_eq!(server.seen("CreateFilter")[0].paths(), ["info.state", "info.progress", "info.error", "info.result"]);
    assert_eq!(server.calls().last().map(String::as_str), Some("RetrievePropertiesEx"));
}

/// Entering takes 24 h; every 8 h the connection dies, in each way.
#[tokio::test(start_paused = true)]
async fn b07_a_dead_connection_attaches_again_to_the_one_task() {
    type Answer = fn() -> Reply;
    let deaths: [Answer; 4] = [
        || Reply::page(408, ""),
        Reply::broken,
        || Reply::page(503, "no healthy upstream"),
        || Reply::fault("InvalidCollectorVersion", "", ""),
    ];
    for (index, death) in deaths.into_iter().enumerate() {
        let job = Job::new(24 * HOUR);
        let died = Mutex::new(0);
        let server = Server::new(move |seen| {
            let mut died = died.lock().unwrap();
            let period = job.start.elapsed().as_secs() / (8 * 3600);
            if seen.call == "WaitForUpdatesEx" && period > *died {
                *died = period;
                return Some(death());
            }
            job.answer(seen)
        });
        let client = server.connect().await.unwrap();
        let started = client.enter_maintenance(&host("host-1"), timeout()).await.unwrap();
        let end = client.wait_task(&started, 30 * HOUR, |_| {}).await.unwrap();
        assert!(matches!(end, TaskEnd::Success(_)), "{index}: {end:?}");
        assert_eq!(job.start.elapsed().as_secs(), 24 * 3600, "{index}");
        assert_eq!(server.count("EnterMaintenanceMode_Task"), 1, "{index}");
        assert_eq!(server.count("CreateFilter"), 3, "{index}");
        assert_eq!(server.count("Login"), 1, "{index}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_no_wait_is_noticed_and_left_for_a_new_one() {
    let job = Job::new(Duration::from_secs(300));
    let server = Server::new(move |seen| {
        if seen.call == "WaitForUpdatesEx" && seen.nth == 1 {
            return Some(Reply::ok(&seen.call, "").after(24 * HOUR));
        }
        job.answer(seen)
    });
    let client = server.connect().await.unwrap();
    let end = client.wait_task(&task("task-1"), HOUR, |_| {}).await.unwrap();
    assert!(matches!(end, TaskEnd::Success(_)), "{end:?}");
    assert_eq!(job.start.elapsed().as_secs(), 300);
}

#[tokio::test(start_paused = true)]
async fn b10_our_deadline_is_no_failure_and_the_state_is_read_after_it() {
    let job = Job::new(24 * HOUR);
    let server = Server::new(move |seen| job.answer(seen));
    let client = server.connect().await.unwrap();
    let end = client.wait_task(&task("task-1"), Duration::from_millis(90_500), |_| {}).await.unwrap();
    let TaskEnd::Deadline(info) = end else { panic!("{end:?}") };
    assert_eq!(info.state, TaskState::Running);
    let passed = job.start.elapsed();
    assert!(passed >= Duration::from_millis(90_500) && passed < Duration::from_secs(93), "{passed:?}");
    assert_eq!(server.calls().last().map(String::as_str), Some("RetrievePropertiesEx"));
    // Nothing is left on the server.
    assert_eq!((server.count("CreateFilter"), server.count("DestroyPropertyFilter")), (1, 1));
}

/// The task ends between the last news and the deadline, and the news are lost.
#[tokio::test(start_paused = true)]
async fn b10_what_ended_at_the_deadline_is_an_end() {
    let job = Job { ends: "error", ..Job::new(Duration::from_secs(60)) };
    let server = Server::new(move |seen| match seen.call.as_str() {
        "WaitForUpdatesEx" if seen.nth > 0 => Some(Reply::page(503, "")),
        _ => job.answer(seen),
    });
    let client = server.connect().await.unwrap();
    let end = client.wait_task(&task("task-1"), Duration::from_secs(90), |_| {}).await.unwrap();
    assert!(matches!(end, TaskEnd::Failed(_)), "{end:?}");
}

#[tokio::test(start_paused = true)]
async fn b13_a_session_that_ends_in_a_wait_is_renewed_and_the_task_read() {
    let watched = Server::new({
        let job = Job::new(HOUR);
        let ended = Mutex::new(false);
        move |seen| {
            let mut ended = ended.lock().unwrap();
            if seen.call == "WaitForUpdatesEx" && job.start.elapsed() > HOUR / 2 && !*ended {
                *ended = true;
                return Some(Reply::fault("NotAuthenticated", "", "The session is not authenticated."));
            }
            job.answer(seen)
        }
    });
    let client = watched.connect().await.unwrap();
    let end = client.wait_task(&task("task-1"), 2 * HOUR, |_| {}).await.unwrap();
    assert!(matches!(end, TaskEnd::Success(_)), "{end:?}");
    assert_eq!((watched.count("Login"), watched.count("CreateFilter")), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_wait_whose_session_is_refused_again_and_again_stops() {
    let job = Job::new(24 * HOUR);
    let server = Server::new(move |seen| match seen.call.as_str() {
        "WaitForUpdatesEx" if seen.nth > 0 => Some(Reply::fault("NotAuthenticated", "", "")),
        _ => job.answer(seen),
    });
    let client = server.connect().await.unwrap();
    let error = client.wait_task(&task("task-1"), 30 * HOUR, |_| {}).await.unwrap_err();
    assert!(matches!(error, poolwright::vim25::Error::SessionRefused { .. }), "{error:?}");
    assert_eq!(server.count("Login"), 3);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_the_server_has_forgotten_is_gone_and_not_done() {
    let gone = || Reply::fault("ManagedObjectNotFound", "<obj type=\"Task\">task-1</obj>", "");
    let at_once = Server::new(move |seen| (seen.call == "CreateFilter").then(gone));
    let client = at_once.connect().await.unwrap();
    assert_eq!(client.wait_task(&task("task-1"), HOUR, |_| {}).await.unwrap(), TaskEnd::Gone);

    let leave = "<returnval><version>2</version><filterSet><filter type=\"PropertyFilter\">f</filter><objectSet>\
        <kind>leave</kind><obj type=\"Task\">task-1</obj></objectSet></filterSet></returnval>";
    let later = Server::new(move |seen| match (seen.call.as_str(), seen.nth) {
        ("WaitForUpdatesEx", 0) => Some(updates(&[("info.state", "running")])),
        ("WaitForUpdatesEx", _) => Some(Reply::ok("WaitForUpdatesEx", leave)),
        _ => None,
    });
    let client = later.connect().await.unwrap();
    assert_eq!(client.wait_task(&task("task-1"), HOUR, |_| {}).await.unwrap(), TaskEnd::Gone);

    // It succeeds by the news, and is gone before it can be read: not proven.
    let lost = Server::new(move |seen| match seen.call.as_str() {
        "WaitForUpdatesEx" => Some(updates(&[("info.state", "success")])),
        "RetrievePropertiesEx" if seen.asks() == "Task" => Some(gone()),
        _ => None,
    });
    let client = lost.connect().await.unwrap();
    assert_eq!(client.wait_task(&task("task-1"), HOUR, |_| {}).await.unwrap(), TaskEnd::Gone);
}

#[tokio::test(start_paused = true)]
async fn a_truncated_set_is_only_a_part_of_the_state() {
    let job = Job::new(Duration::ZERO);
    let server = Server::new(move |seen| match (seen.call.as_str(), seen.nth) {
        ("WaitForUpdatesEx", 0) => {
            let set = "<returnval><version>1</version><truncated>true</truncated><filterSet>\
                <filter type=\"PropertyFilter\">f</filter><objectSet><kind>enter</kind><obj type=\"Task\">task-1</obj>\
                <changeSet><name>info.state</name><op>assign</op><val xsi:type=\"TaskInfoState\">running</val>\
                </changeSet></objectSet></filterSet></returnval>";
            Some(Reply::ok("WaitForUpdatesEx", set))
        }
        ("WaitForUpdatesEx", 1) => {
            assert_eq!(seen.body.text_of("version"), Some("1"));
            Some(updates(&[("info.progress", "40"), ("info.state", "success")]))
        }
        _ => job.answer(seen),
    });
    let client = server.connect().await.unwrap();
    let mut told = Vec::new();
    let end = client.wait_task(&task("task-1"), HOUR, |progress| told.push(progress)).await.unwrap();
    assert!(matches!(end, TaskEnd::Success(_)), "{end:?}");
    assert_eq!(told, [TaskProgress { state: TaskState::Success, percent: Some(40) }]);
}

#[tokio::test(start_paused = true)]
async fn a_state_that_we_do_not_know_is_no_end() {
    let job = Job { ends: "suspended", ..Job::new(Duration::from_secs(5)) };
    let server = Server::new(move |seen| job.answer(seen));
    let client = server.connect().await.unwrap();
    let end = client.wait_task(&task("task-1"), Duration::from_secs(60), |_| {}).await.unwrap();
    let TaskEnd::Deadline(info) = end else { panic!("{end:?}") };
    assert_eq!(info.state, TaskState::Other("suspended".into()));
}

#[tokio::test(start_paused = true)]
async fn the_error_of_a_task_is_told_to_the_deepest_cause() {
    let error = "<fault xsi:type=\"GenericDrsFault\"><faultCause><fault xsi:type=\"NoCompatibleHost\"><error>\
        <fault xsi:type=\"DeviceNotSupported\"><faultMessage><key>com.vmware.vgpu.x</key></faultMessage>\
        <device>vGPU</device></fault><localizedMessage>Device vGPU is not supported.</localizedMessage></error></fault>\
        <localizedMessage>No host is compatible with the virtual machine.</localizedMessage></faultCause></fault>\
        <localizedMessage>Unable to apply DRS resource settings.</localizedMessage>";
    let job = Job { ends: "error", error, ..Job::new(Duration::from_secs(10)) };
    let server = Server::new(move |seen| job.answer(seen));
    let client = server.connect().await.unwrap();
    let end = client.wait_task(&task("task-1"), HOUR, |_| {}).await.unwrap();
    let TaskEnd::Failed(info) = end else { panic!("{end:?}") };
    let fault = info.error.unwrap();
    assert_eq!(fault.deepest().kind, "DeviceNotSupported");
    assert!(fault.involves("NoCompatibleHost"));
    let kinds = "GenericDrsFault > NoCompatibleHost > DeviceNotSupported";
    assert_eq!(
        fault.to_string(),
        format!(
            "Unable to apply DRS resource settings: No host is compatible with the virtual machine: Device vGPU is \
             not supported: com.vmware.vgpu.x ({kinds})"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_task_without_words_has_ours() {
    let job = Job { ends: "error", error: "<fault xsi:type=\"Timedout\"></fault>", ..Job::new(Duration::ZERO) };
    let server = Server::new(move |seen| job.answer(seen));
    let client = server.connect().await.unwrap();
    let info = client.task_info(&task("task-1")).await.unwrap();
    assert_eq!(info.error.unwrap().to_string(), "the operation timed out on the server (Timedout)");
}

#[tokio::test(start_paused = true)]
async fn b13_only_a_task_that_can_be_cancelled_is_cancelled() {
    let running = Job::new(HOUR);
    let cases = [
        (running, 1),
        (Job { cancelable: false, ..running }, 0),
        (Job { takes: Duration::ZERO, ..running }, 0),
        (Job { takes: Duration::ZERO, ends: "error", ..running }, 0),
    ];
    for (job, sent) in cases {
        let server = Server::new(move |seen| job.answer(seen));
        let client = server.connect().await.unwrap();
        let cancel = client.cancel_task(&task("task-1")).await.unwrap();
        assert_eq!(server.count("CancelTask"), sent, "{cancel:?}");
        match cancel {
            Cancel::Asked => assert_eq!(sent, 1),
            Cancel::NotCancelable(info) => assert!(!info.cancelable && !info.state.ended()),
            Cancel::Ended(info) => assert!(info.state.ended()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn b12_past_tasks_are_found_page_by_page() {
    fn history(from: usize, count: usize) -> String {
        (from..from + count)
            .map(|n| {
                format!(
                    "<returnval><key>task-{n}</key><task type=\"Task\">task-{n}</task>\
                     <descriptionId>HostSystem.reboot</descriptionId><state>success</state></returnval>"
                )
            })
            .collect()
    }
    let broken = Mutex::new(false);
    let server = Server::new(move |seen| match (seen.call.as_str(), seen.nth) {
        ("CreateCollectorForTasks", n) => {
            let made = format!("<returnval type=\"TaskHistoryCollector\">session[x]c-{n}</returnval>");
            Some(Reply::ok(&seen.call, &made))
        }
        // The first attempt loses its second page: reading on would skip it, so it starts again.
        ("ReadNextTasks", 1) if !std::mem::replace(&mut *broken.lock().unwrap(), true) => Some(Reply::broken()),
        ("ReadNextTasks", 0 | 2) => Some(Reply::ok(&seen.call, &history(0, 100))),
        ("ReadNextTasks", 3) => Some(Reply::ok(&seen.call, &history(100, 20))),
        ("ReadNextTasks", _) => Some(Reply::ok(&seen.call, "")),
        _ => None,
    });
    let client = server.connect().await.unwrap();
    let since = "2026-11-30T20:00:00Z".parse().unwrap();
    let tasks = client.tasks_since(&host("host-1"), since, Some(&client.session_user())).await.unwrap();
    assert_eq!(tasks.len(), 120);
    assert_eq!((tasks[0].task.id.as_str(), tasks[119].task.id.as_str()), ("task-0", "task-119"));
    let filter = server.seen("CreateCollectorForTasks")[0].body.get("filter").unwrap().clone();
    assert_eq!(filter.get("entity").unwrap().text_of("entity"), Some("host-1"));
    assert_eq!(filter.get("time").unwrap().text_of("beginTime"), Some("2026-11-30T20:00:00Z"));
    assert_eq!(filter.get("userName").unwrap().text_of("userList"), Some("VSPHERE.LOCAL\\pw"));
    assert_eq!((server.count("CreateCollectorForTasks"), server.count("DestroyCollector")), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_should_start_a_task_and_gives_none_may_have_acted() {
    let server = Server::new(|seen| {
        (seen.call == "RebootHost_Task").then(|| Reply::ok(&seen.call, "<returnval type=\"HostSystem\">h</returnval>"))
    });
    let client = server.connect().await.unwrap();
    let error = client.reboot_host(&host("host-1")).await.unwrap_err();
    assert!(error.may_have_acted());
    assert!(says(&error).contains("cannot reboot: the answer was not understood"), "{}", says(&error));
}

#[tokio::test(start_paused = true)]
async fn a_host_is_watched_until_it_is_as_one_waits_for() {
    let server = Server::new(|seen| match (seen.call.as_str(), seen.nth) {
        ("WaitForUpdatesEx", n) => {
            let state = ["connected", "notResponding", "connected"][n.min(2)];
            let set = format!(
                "<returnval><version>{n}</version><filterSet><filter type=\"PropertyFilter\">f</filter><objectSet>\
                 <kind>modify</kind><obj type=\"HostSystem\">host-1</obj><changeSet><name>runtime.connectionState</name>\
                 <op>assign</op>{}</changeSet></objectSet></filterSet></returnval>",
                text(state)
            );
            Some(Reply::ok(&seen.call, &set).after(Duration::from_secs(5)))
        }
        _ => None,
    });
    let client = server.connect().await.unwrap();
    let mut states = Vec::new();
    let waited = client
        .wait_for_change(&host("host-1"), &["runtime.connectionState"], HOUR, |content| {
            states.push(content.get("runtime.connectionState").unwrap().text.clone());
            states.len() == 3
        })
        .await
        .unwrap();
    assert!(matches!(waited, Waited::Done(_)), "{waited:?}");
    assert_eq!(states, ["connected", "notResponding", "connected"]);
}

/// The collector of a session is one: two waits on it would take each other's news.
#[tokio::test(start_paused = true)]
async fn two_waits_do_not_take_each_others_news() {
    let job = Job::new(Duration::from_secs(100));
    let server = Server::new(move |seen| job.answer(seen));
    let client = server.connect().await.unwrap();
    let one_task = task("task-1");
    let wait = || client.wait_task(&one_task, HOUR, |_| {});
    let (one, two) = tokio::join!(wait(), wait());
    assert!(matches!((one.unwrap(), two.unwrap()), (TaskEnd::Success(_), TaskEnd::Success(_))));
    let calls: Vec<String> =
        server.calls().into_iter().filter(|call| call.ends_with("Filter") && call != "WaitForUpdatesEx").collect();
    assert_eq!(calls, ["CreateFilter", "DestroyPropertyFilter", "CreateFilter", "DestroyPropertyFilter"]);
}
