//! What the server leaves out on the wire, property by property: never a bolder plan, and nothing is
//! sent to a host on the strength of what could not be read.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use poolwright::base::net::{Body, Dial, DialError, Duplex, Endpoint, Exchange, NetError, Network};
use poolwright::model::Rule;
use poolwright::observe::Fleet;
use poolwright::plan::{Plan, Reason};
use poolwright::rollout::{self, Exit, RunState, interrupt};
use poolwright::sim::{SimNetwork, World};
use secrecy::SecretString;

use super::scene::{Scene, closed};
use crate::support::lab::{Lab, PASSWORD, Silent, USER};
use crate::support::look;
use crate::support::tap::Tap;

const READ: &str = "RetrievePropertiesEx";
const HOST_CALLS: [&str; 5] = [
    "EnterMaintenanceMode_Task",
    "UpdatePassthruConfig",
    "UpdateGraphicsConfig",
    "RebootHost_Task",
    "ExitMaintenanceMode_Task",
];

/// A read of properties.
#[derive(Debug, Clone)]
struct Read {
    /// Which one since the world began, from 1.
    nth: u32,
    /// Properties that it asks for, with the type of their object.
    paths: BTreeSet<(String, String)>,
    /// Calls that had changed a host before it.
    calls: usize,
}

/// A network on which reads are listened to.
struct Listening<'a> {
    lab: &'a Lab,
    reads: Arc<Mutex<Vec<Read>>>,
}

impl Dial for Listening<'_> {
    fn dial(&self, host: &str, port: u16) -> BoxFuture<'static, Result<Box<dyn Duplex>, DialError>> {
        self.lab.network.dial(host, port)
    }
}

impl Network for Listening<'_> {
    fn open(&self, endpoint: &Endpoint) -> Result<Arc<dyn Exchange>, NetError> {
        let inner = self.lab.network.open(endpoint)?;
        let (tap, world) = (self.lab.network.clone(), self.lab.world.clone());
        Ok(Arc::new(Wire { inner, tap, world, reads: Arc::clone(&self.reads) }))
    }
}

struct Wire {
    inner: Arc<dyn Exchange>,
    tap: Tap<SimNetwork>,
    world: World,
    reads: Arc<Mutex<Vec<Read>>>,
}

impl Exchange for Wire {
    fn exchange(&self, request: Request<Bytes>) -> BoxFuture<'static, Result<Response<Body>, NetError>> {
        let text = String::from_utf8_lossy(request.body()).into_owned();
        if text.contains(&format!("<{READ} ")) {
            let nth = reads_so_far(&self.tap) + 1;
            let read = Read { nth, paths: paths(&text), calls: host_calls(&self.world) };
            self.reads.lock().unwrap().push(read);
        }
        self.inner.exchange(request)
    }
}

fn reads_so_far(tap: &Tap<SimNetwork>) -> u32 {
    tap.heard().calls.get(READ).copied().unwrap_or_default()
}

/// The properties that a request asks for.
fn paths(text: &str) -> BTreeSet<(String, String)> {
    let until = |text: &str, end: &str| text.split(end).next().unwrap_or_default().to_owned();
    let mut found = BTreeSet::new();
    for set in text.split("<propSet>").skip(1) {
        let set = until(set, "</propSet>");
        let kind = until(set.split("<type>").nth(1).unwrap_or_default(), "<");
        found.extend(set.split("<pathSet>").skip(1).map(|path| (kind.clone(), until(path, "<"))));
    }
    found
}

fn host_calls(world: &World) -> usize {
    world.log().iter().filter(|write| HOST_CALLS.contains(&write.call.as_str())).count()
}

/// Applies a plan; says what was read.
async fn apply(lab: &Lab, plan: &Plan) -> (RunState, Vec<Read>) {
    let network = Listening { lab, reads: Arc::default() };
    let password = SecretString::from(PASSWORD);
    let fleet =
        Fleet::connect(&lab.site.name, &lab.site.spec, USER, password, &network, lab.world.clock()).await.unwrap();
    let (_raise, signals) = interrupt();
    let mut silent = Silent;
    let state = rollout::apply(lab.engine(&fleet, &mut silent, signals), plan).await.unwrap();
    fleet.close().await.unwrap();
    let reads = network.reads.lock().unwrap().clone();
    (state, reads)
}

/// The scene, with a property that cannot be read from some read on.
fn blank_from(scene: &Scene, path: &str, nth: u32) -> Scene {
    let rule = format!("faults: [{{method: {READ}, onCall: {nth}, times: 99999, then: {{missing: [{path}]}}}}]");
    Scene { world: rule.leak(), ..*scene }
}

/// What is read of hosts and what is on them. Without its way through the inventory there is no plan at all.
async fn properties(scene: &Scene) -> BTreeSet<(String, String)> {
    let (lab, plan) = scene.planned().await;
    let (state, reads) = apply(&lab, &plan).await;
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    let about = |kind: &str| ["HostSystem", "VirtualMachine", "Datastore"].contains(&kind);
    reads
        .into_iter()
        .flat_map(|read| read.paths)
        .filter(|(kind, path)| about(kind) && !["name", "parent"].contains(&path.as_str()))
        .collect()
}

fn scenes() -> Vec<(&'static str, Scene)> {
    let vms = "[{name: web, host: esx-01, power: on}, {name: old, host: esx-01, \
               power: off, devices: [{vgpu: nvidia_h100l-47c}]}]";
    vec![
        ("to passthrough", Scene { hosts: 2, ..Scene::default() }),
        (
            "to vGPU",
            Scene { from: "{passthrough: {label: train}}", to: "[{mode: {vgpu: {size: mixed}}}]", ..Scene::default() },
        ),
        ("size", Scene { to: "[{mode: {vgpu: {size: mixed}}}]", ..Scene::default() }),
        ("as wished", Scene { to: "[{mode: {vgpu: {size: same}}}]", ..Scene::default() }),
        ("with VMs", Scene { vms, ..Scene::default() }),
        ("in maintenance", Scene { host: "maintenance: true", ..Scene::default() }),
        ("marked", Scene { host: "fields: {poolwright.run: mine}", ..Scene::default() }),
    ]
}

#[tokio::test(start_paused = true)]
async fn what_is_left_out_on_the_wire_never_makes_a_plan_bolder() {
    let mut blanks = 0;
    let properties = properties(&Scene::default()).await;
    for (name, scene) in scenes() {
        let whole = scene.lab().plan().await;
        for (kind, path) in &properties {
            // In two ways: it may not be read, and it is not there at all.
            let unreadable = blank_from(&scene, path, 1);
            let host = format!("absent: [{path}]\n              {}", scene.host);
            let absent = (kind == "HostSystem").then(|| Scene { host: host.leak(), ..scene });
            for (way, blanked) in [("unreadable", Some(unreadable)), ("absent", absent)] {
                // No value at all says that nobody marked the host, and that no VM is on it.
                let Some(blanked) =
                    blanked.filter(|_| way == "unreadable" || !["customValue", "vm"].contains(&&**path))
                else {
                    continue;
                };
                let plan = blanked.lab().plan().await;
                let case = format!("{name}: {path} {way}\n{:#?}\n{:#?}", whole.findings, plan.findings);
                // A server that says of a GPU as wished that it has no value says that it is not as wished.
                let refused = |plan: &Plan| {
                    let counts = |reason| way == "unreadable" || reason != Reason::Converged;
                    plan.not_acted.iter().filter(|host| counts(host.reason)).count()
                };
                assert!(refused(&plan) >= refused(&whole), "{case}");
                // What is said once of all hosts that are changed has nothing to say where none is.
                let said = |plan: &Plan| {
                    plan.findings.iter().filter(|finding| finding.id.0 != Rule::SHELL_NOT_CHECKED.id).count()
                };
                assert!(said(&plan) >= said(&whole), "{case}");
                for host in &plan.hosts {
                    let before = whole.not_acted.iter().find(|other| other.host == host.host.name);
                    let was_wished = before.is_none_or(|host| way == "absent" && host.reason == Reason::Converged);
                    assert!(was_wished, "{case}: a host more is changed");
                }
                blanks += 1;
            }
        }
    }
    assert!(blanks > 300, "{blanks}");
}

/// What every step that disturbs a host rests on: from the read on that leaves it out, no call goes to
/// the host.
#[tokio::test(start_paused = true)]
async fn nothing_is_sent_on_facts_that_cannot_be_read() {
    let decisive = [
        "hardware.systemInfo.uuid",
        "runtime.connectionState",
        "runtime.powerState",
        "runtime.inMaintenanceMode",
        "hardware.pciDevice",
        "config.pciPassthruInfo",
        "customValue",
        "recentTask",
        "vm",
    ];
    let scene = Scene::default();
    let (lab, plan) = scene.planned().await;
    let (state, reads) = apply(&lab, &plan).await;
    assert_eq!(state.exit(), Exit::Done, "{state:#?}");
    let mut blanks = 0;
    for path in decisive {
        let of_host = ("HostSystem".to_owned(), path.to_owned());
        let looks: Vec<&Read> = reads.iter().filter(|read| read.paths.contains(&of_host)).collect();
        for (at, read) in looks.iter().enumerate() {
            // The first and the last look between two calls. After the very last one nothing is left to do.
            let first = at == 0 || looks[at - 1].calls < read.calls;
            let last = looks.get(at + 1).is_some_and(|next| next.calls > read.calls);
            // Leaving maintenance, the fourth call, does no VM harm, and the server starts no second task.
            let decides = read.calls < 3 || !["vm", "recentTask"].contains(&path);
            if !(decides && (first || last)) {
                continue;
            }
            let (lab, plan) = blank_from(&scene, path, read.nth).planned().await;
            let (state, _) = apply(&lab, &plan).await;
            let case = format!("{path} from read {} on, after {} calls", read.nth, read.calls);
            assert_eq!(host_calls(&lab.world), read.calls, "{case}: {state:#?}");
            assert_ne!(state.exit(), Exit::Done, "{case}");
            blanks += 1;
        }
    }
    assert!(blanks > 30, "{blanks}");
}

/// Whatever is left out from whenever on, a run that says it is done is done, and any other leaves the
/// host as it was, closed, or as wished.
#[tokio::test(start_paused = true)]
async fn a_run_that_could_not_read_everything_never_leaves_an_open_host_half_changed() {
    let scene = Scene::default();
    let properties = properties(&scene).await;
    let (lab, plan) = scene.planned().await;
    let from = reads_so_far(&lab.network);
    let (_, reads) = apply(&lab, &plan).await;
    let wished = look::gpus(&lab.world.snapshot(), "esx-01");
    let mut done = 0;
    let mut not = 0;
    for (kind, path) in &properties {
        for part in 0..2 {
            let nth = from + 1 + u32::try_from(reads.len() * part / 2).unwrap();
            let (lab, plan) = blank_from(&scene, path, nth).planned().await;
            let (state, _) = apply(&lab, &plan).await;
            let case = format!("{kind} {path} from read {nth} on");
            let is_wished = look::gpus(&lab.world.snapshot(), "esx-01") == wished;
            if state.exit() == Exit::Done {
                done += 1;
                assert!(is_wished, "{case}: {state:#?}");
                look::assert_released(&case, &lab.world.snapshot(), &plan);
            } else {
                not += 1;
                assert!(is_wished || closed(&lab, 1) || host_calls(&lab.world) == 0, "{case}: {state:#?}");
            }
        }
    }
    assert!(done > 10 && not > 20, "{done} done, {not} not");
}
