//! Everything that is true of a world, as data. All of it is saved and loaded.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::device::{Function, GraphicsEntry};
use super::guest::Guest;
use super::shell::Shell;
use super::task::Task;
use super::vm::Vm;
use crate::sim::behaviour::Due;
use crate::sim::document::{Alarm, Boot, Connection, Driver, Drs, StartPower};

/// The whole state. Ids are numbers that never change: `host-21` is entry 21 of `hosts`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::sim) struct State {
    /// The world's time up to which everything that was due has happened.
    pub time: Timestamp,
    /// The next number for tasks, events and queue entries.
    pub next: u64,
    pub folders: BTreeMap<u32, Folder>,
    pub datacenters: BTreeMap<u32, Datacenter>,
    /// Clusters, and the compute resources of hosts outside of clusters.
    pub clusters: BTreeMap<u32, Cluster>,
    pub hosts: BTreeMap<u32, Host>,
    pub vms: BTreeMap<u32, Vm>,
    pub datastores: BTreeMap<u32, Datastore>,
    /// Definitions of custom fields by key.
    pub fields: BTreeMap<i32, FieldDef>,
    pub options: BTreeMap<String, String>,
    pub tasks: BTreeMap<u64, Task>,
    pub events: Vec<Event>,
    /// What will happen, by number; the earliest time first, then the lowest number.
    pub queue: BTreeMap<u64, Due>,
    /// Guest clusters by name.
    pub guests: BTreeMap<String, Guest>,
    /// Every write, with or without effect.
    pub log: Vec<Write>,
    /// Matching calls so far, by the fault rule's place in the document.
    pub struck: BTreeMap<usize, u32>,
    /// Calls so far by method and host, for actors.
    pub calls: BTreeMap<String, u32>,
}

impl State {
    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Whether a host is on its way into maintenance mode.
    pub fn entering(&self, host: u32) -> bool {
        self.tasks.values().any(|task| task.host == host && task.what == Task::ENTER && task.state.is_open())
    }
}

/// What a folder holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sim) enum FolderKind {
    /// Datacenters.
    Root,
    Host,
    Vm,
    Datastore,
    Network,
}

/// The parent of an inventory object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sim) enum Parent {
    None,
    Folder(u32),
    Datacenter(u32),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::sim) struct Folder {
    pub name: String,
    pub kind: FolderKind,
    pub parent: Parent,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::sim) struct Datacenter {
    pub name: String,
    /// Its folder.
    pub parent: u32,
    pub host_folder: u32,
    pub vm_folder: u32,
    pub datastore_folder: u32,
    pub network_folder: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::sim) struct Cluster {
    pub name: String,
    /// Its folder.
    pub parent: u32,
    pub datacenter: u32,
    /// False for the compute resource of a host outside of clusters.
    pub is_cluster: bool,
    pub ha: bool,
    /// Hosts that admission control of HA keeps for failures; none: it is off.
    pub admission: Option<u32>,
    pub drs: Drs,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::sim) struct Datastore {
    pub name: String,
    pub datacenter: u32,
    pub folder: u32,
}

/// A host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::sim) struct Host {
    pub name: String,
    pub cluster: u32,
    pub uuid: String,
    pub version: String,
    pub memory_gib: u32,
    pub driver: Option<Driver>,
    pub connection: Connection,
    pub power: StartPower,
    pub maintenance: bool,
    /// Whether its own kernel runs: the network of the host, whatever vCenter says.
    pub up: bool,
    pub shell: Shell,
    pub boot_time: Timestamp,
    /// The boot time that vCenter knows of.
    pub boot_seen: Timestamp,
    /// How often it booted in this world.
    pub boots: u32,
    /// Stored graphics configuration: takes effect as the behaviour says.
    pub graphics: Graphics,
    /// PCI functions in address order.
    pub functions: Vec<Function>,
    /// What vCenter shows of graphics and PCI while it is behind the host.
    pub shown: Option<Box<Shown>>,
    /// The state before the last change, for reads that lie.
    pub before: Option<Box<Shown>>,
    pub ha_agent: Option<String>,
    /// Whether its datastores are there.
    pub storage: bool,
    pub datastores: Vec<u32>,
    pub uplinks: u32,
    pub uplinks_up: u32,
    pub crypto: String,
    pub alarms: Vec<Alarm>,
    /// Custom values by key of the field.
    pub values: BTreeMap<i32, FieldValue>,
    pub rebind_supported: bool,
    pub label_supported: bool,
    pub enter_s: u64,
    pub exit_s: u64,
    pub boot: Boot,
    pub unreadable: Vec<String>,
    pub absent: Vec<String>,
}

/// `HostGraphicsConfig` as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sim) struct Graphics {
    pub default_type: String,
    pub policy: String,
    pub devices: Vec<GraphicsEntry>,
}

/// What reads of a host are made from beside its live state.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::sim) struct Shown {
    pub maintenance: bool,
    pub graphics: Graphics,
    pub functions: Vec<Function>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::sim) struct FieldDef {
    pub name: String,
    /// Managed type it is for; none: all.
    pub kind: Option<String>,
}

/// A custom value; for a while after it was set, reads give the old one (`readings.fieldLag`).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::sim) struct FieldValue {
    pub value: String,
    pub old: Option<String>,
    pub readable_at: Timestamp,
}

/// An event as `QueryEvents` lists it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::sim) struct Event {
    pub key: u64,
    /// Wire type, `EnteringMaintenanceModeEvent`.
    pub kind: String,
    pub at: Timestamp,
    pub user: String,
    pub host: Option<u32>,
    pub vm: Option<u32>,
    pub message: String,
}

/// A write: what somebody asked for that changes something, and whether it did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Write {
    /// Its number, from 1 without gaps.
    pub n: u64,
    /// When, by the world's clock.
    pub at: Timestamp,
    /// Who: the user of the session, or an actor.
    pub who: String,
    /// Name of the object; its id where it has none.
    pub object: String,
    /// Its id, `host-21`.
    pub id: String,
    /// Name of the method on the wire.
    pub call: String,
    /// Its arguments, as one line.
    pub arguments: String,
    /// Whether the world took it. A call that a fault kept from its effect is listed with false.
    pub effect: bool,
}
