//! The nouns: what a GPU, a host, a wish and an observation are.
//!
//! ```text
//!   ids, pci ──► gpu ──► observed, vm, cluster (what was seen, with its gaps)
//!                  └───► desired  (what git says, each value with its place)
//!   host_key, shell: by what key a host is known; how its shell is reached, and what it shows
//!   at, fact: a value with its place in a document; a value that may be absent or unknown
//!   nearest:  the one of some names that a wrong one was meant to be
//!   name:     names of inventory objects: the escapes of vim25 undone, our own in paths
//!   finding:  what a check has to say, with id, severity, place, evidence and hint
//!   node:     a node of a guest cluster, and which VM it is
//!   marker:   what is written on the live host object while a visit is under way
//! ```
//!
//! Knows nothing else of ours: no YAML, no XML, no clock, no I/O.

mod at;
mod cluster;
mod desired;
mod fact;
mod finding;
mod gpu;
mod hint;
mod host_key;
mod ids;
mod marker;
mod name;
mod nearest;
mod node;
mod observed;
mod pattern;
mod pci;
mod roster;
mod shell;
mod vm;
mod vm_rules;
mod words;

pub use at::{At, Place};
pub use cluster::{ClusterView, Drs, DrsFault, DrsLevel, DrsOverride, DrsReason, HaAdmission};
pub use desired::{
    Accept, Desired, DesiredPool, DriverPin, Expect, FoundInMaintenance, GpuGroup, GpuSelect, GuestRules, HostPin,
    HostSettings, JobTemplate, OnValidationFailure, Pace, RolloutRules,
};
pub use fact::Fact;
pub use finding::{Acceptance, Finding, FindingId, RULES, Rule, Severity, Subject};
pub use gpu::{AssignmentPolicy, GraphicsType, MigKind, Mode, VgpuMode, VgpuSize};
pub use host_key::{HostKeyPin, HostKeyPinError};
pub use ids::{HostName, MoRef, PlanId, RunId};
pub use marker::{Baseline, LastReboot, Marker, MarkerPhase};
pub use name::{path_part, unescape};
pub use nearest::{nearest, nearest_few};
pub use node::{GuestView, NodeMark, NodePhase, NodeRef, NodeView, is_same_machine, machine_key};
pub use observed::{
    Capabilities, Connection, GraphicsConfig, GraphicsDeviceConfig, GraphicsState, HostFault, HostFaultKind,
    HostRecord, HostService, HostView, Lockdown, NumaNode, Observed, Package, Parity, PassthruState, PciDevice,
    PowerState, Product, RunningTask, SiteIdentity, Tally,
};
pub use pattern::{FolderPattern, HostGlob, HostPattern, HostPatternError, NamePattern, PatternError};
pub use pci::{PciAddress, PciAddressError, PciId};
pub use roster::{ClusterRef, HostRef, Roster};
pub use shell::{GpuShellView, ShellLogin, ShellView, ShellWay, Switch};
pub use vm::{Firmware, ManagedBy, ToolsStatus, VmGpuDevice, VmRecord, VmView};
pub use vm_rules::{MayMove, OnMismatch, VmRules, VmSelector};
pub use words::{are, counted};
