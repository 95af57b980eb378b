//! A simulated site with documents, and the main job on it step by step, in virtual time.
//!
//! ```text
//!   World (YAML) ──► SimNetwork ◄── Fleet        documents (YAML) ──load, check──► pools, site
//!   roster ─resolve─► Desired ─┐
//!   facts ─────────────────────┴─plan─► Plan ─apply─► RunState        looks at the world, never at
//!                                                                     the engine's own view
//! ```
//!
//! To be used under `#[tokio::test(start_paused = true)]`.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use poolwright::base::net::Network;
use poolwright::document::Document;
use poolwright::inventory::Site;
use poolwright::k8s::{Access, Client};
use poolwright::model::{Finding, HostRef, Observed, Severity};
use poolwright::observe::{ConnectError, Fleet, Guests, Shells};
use poolwright::plan::{self, Plan};
use poolwright::profile::{self, GpuPool, Resolved};
use poolwright::rollout::{
    self, Engine, Entry, Interrupt, Raise, RunError, RunState, Sink, StateDir, Waiting, interrupt,
};
use poolwright::sim::{SimNetwork, World, kubeconfig};
use secrecy::SecretString;
use serde_json::Value;
use tempfile::TempDir;

use super::tap::Tap;

/// The user that every world here knows, and its password.
pub const USER: &str = "pw@vsphere.local";
pub const PASSWORD: &str = "marked-l4b-pa55<word>";

/// Of a Site: `root` logs in by SSH to every host whose password is `lab`.
pub const DIRECT: &str =
    "{way: direct, users: [{user: root, password: \"file:ESX_PASSWORD\"}], hostKeys: {file: KNOWN_HOSTS}}";

/// Who holds locks and made plans.
const TOOL: &str = "tests";

/// A site under test.
pub struct Lab {
    pub world: World,
    pub network: Tap<SimNetwork>,
    pub state: StateDir,
    pub site: Document<Site>,
    pub pools: Vec<Document<GpuPool>>,
    /// What was read of the world before anything was done.
    pub before: Value,
    folder: TempDir,
}

impl Lab {
    /// A world and the documents for it, both as YAML. The documents must be right.
    pub fn new(world: &str, documents: &str) -> Self {
        Self::of(World::parse("world.yaml", world.as_bytes()).unwrap(), documents)
    }

    pub fn of(world: World, documents: &str) -> Self {
        let folder = in_memory();
        let documents = with_files(&world, documents, folder.path());
        let mut loaded = profile::load(&[("lab.yaml".to_owned(), documents.into_bytes())]);
        let read = |path: &str| std::fs::read(path).map_err(|error| error.to_string());
        let templates: Vec<_> = loaded.templates().into_iter().map(|path| (path.to_owned(), read(path))).collect();
        loaded.fill(&templates);
        assert!(loaded.problems.is_empty(), "{}", all(&loaded.problems));
        let errors: Vec<Finding> =
            profile::check(&loaded, None).into_iter().filter(|finding| finding.severity == Severity::Error).collect();
        assert!(errors.is_empty(), "{errors:#?}");
        Self {
            network: Tap::new(SimNetwork::new(world.clone())),
            state: StateDir::open(&folder.path().join("state")).unwrap(),
            before: world.snapshot(),
            site: loaded.sites.into_iter().next().unwrap(),
            pools: loaded.pools,
            world,
            folder,
        }
    }

    /// The same world under other documents, as after a change in git.
    pub fn wishing(self, documents: &str) -> Self {
        Self::of(self.world, documents)
    }

    pub async fn try_connect(&self) -> Result<Fleet, ConnectError> {
        self.connect_over(self.network.clone()).await
    }

    /// Connects over a network that is not the lab's own: vCenter and the shells of hosts.
    pub async fn connect_over(&self, network: impl Network + 'static) -> Result<Fleet, ConnectError> {
        let password = SecretString::from(PASSWORD);
        let (site, clock) = (&self.site.spec, self.world.clock());
        let fleet = Fleet::connect(&self.site.name, site, USER, password, &network, clock).await?;
        let mut guests = Guests::new();
        for guest in &site.guests {
            let path = guest.kubeconfig.as_str().strip_prefix("file:").unwrap();
            let context = guest.context.as_ref().map(|context| context.value.as_str());
            let access = Access::parse(&std::fs::read_to_string(path).unwrap(), context, None);
            let client = match access {
                Ok(access) => Client::connect(&guest.name, &access, &network).await.map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            guests.add(&guest.name, client);
        }
        let fleet = fleet.with_guests(guests);
        Ok(match site.shell.as_ref().and_then(|shell| Shells::of(shell).unwrap()) {
            Some(shells) => fleet.with_shells(shells.with_credentials().await.unwrap(), Arc::new(network)),
            None => fleet,
        })
    }

    pub async fn connect(&self) -> Fleet {
        self.try_connect().await.unwrap()
    }

    /// The wish, resolved against the live roster.
    pub async fn resolve(&self, fleet: &Fleet) -> Resolved {
        let roster = fleet.roster().await.unwrap();
        profile::resolve(&self.pools, &self.site, &roster).unwrap()
    }

    /// What is seen of the pools' hosts.
    pub async fn facts(&self, fleet: &Fleet) -> Observed {
        let resolved = self.resolve(fleet).await;
        fleet.facts_and_nodes(&hosts(&resolved)).await
    }

    /// Everything up to the plan, on a session of its own.
    pub async fn plan(&self) -> Plan {
        let fleet = self.connect().await;
        let resolved = self.resolve(&fleet).await;
        // The other hosts of the clusters, too, as the commands do: they may have to take VMs.
        let roster = fleet.roster().await.unwrap();
        let of_a_pool = |host: &HostRef| resolved.desired.pools.iter().any(|pool| *pool.cluster == host.cluster);
        let around: Vec<HostRef> = roster.hosts.into_iter().filter(of_a_pool).collect();
        let observed = fleet.facts_and_nodes(&around).await;
        let plan = plan::plan(&resolved.desired, &observed, &[], TOOL, fleet.now());
        fleet.close().await.unwrap();
        plan
    }

    /// Applies a plan, on a session of its own.
    pub async fn apply(&self, plan: &Plan) -> Result<RunState, RunError> {
        self.run(async |engine| rollout::apply(engine, plan).await).await
    }

    /// Does something with an engine, on a session of its own that is closed afterwards.
    pub async fn run<T>(&self, work: impl AsyncFnOnce(Engine<'_>) -> T) -> T {
        let fleet = self.connect().await;
        let (_raise, signals) = interrupt();
        let mut silent = Silent;
        let result = work(self.engine(&fleet, &mut silent, signals)).await;
        fleet.close().await.unwrap();
        result
    }

    pub fn engine<'a>(&'a self, fleet: &'a Fleet, sink: &'a mut dyn Sink, interrupt: Interrupt) -> Engine<'a> {
        let clock = self.world.clock();
        Engine {
            fleet,
            clock,
            state: &self.state,
            sink,
            interrupt,
            handoff: rollout::handoff(std::time::Duration::ZERO).1,
            tool: TOOL,
            holder: TOOL,
        }
    }

    /// The state directory, as a path.
    pub fn state_path(&self) -> &std::path::Path {
        self.state.path()
    }
}

/// In these documents the words KNOWN_HOSTS, ESX_PASSWORD and KUBECONFIG become the names of files: with the
/// host keys of the world, with the password `lab`, and with the ways to its guest clusters.
fn with_files(world: &World, documents: &str, folder: &Path) -> String {
    let mut documents = documents.to_owned();
    let files = [
        ("KNOWN_HOSTS", world.known_hosts()),
        ("ESX_PASSWORD", "lab".to_owned()),
        ("KUBECONFIG", kubeconfig(world, &[])),
    ];
    for (word, content) in files {
        if !documents.contains(word) {
            continue;
        }
        let file = folder.join(word);
        std::fs::write(&file, content).unwrap();
        documents = documents.replace(word, &file.display().to_string());
    }
    documents
}

/// A folder in memory where the machine has one: every journal line is synced, and a disk takes
/// its time for that.
pub fn in_memory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// The hosts of all pools.
pub fn hosts(resolved: &Resolved) -> Vec<HostRef> {
    let pins = resolved.desired.pools.iter().flat_map(|pool| &pool.hosts);
    pins.map(|pin| pin.host.clone()).collect::<BTreeSet<_>>().into_iter().collect()
}

/// A sink that keeps nothing.
pub struct Silent;

impl Sink for Silent {
    fn entry(&mut self, _: &Entry, _: &RunState) {}
    fn waiting(&mut self, _: &Waiting<'_>) {}
}

pub fn all<T: std::fmt::Display>(things: &[T]) -> String {
    things.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
