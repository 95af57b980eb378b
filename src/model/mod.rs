//! The nouns: what a GPU, a host, a wish and an observation are.
//!
//! ```text
//!   ids, pci ──► gpu ──► observed (what was seen, with its gaps)
//!                  └───► desired  (what git says, each value with its place)
//!   at, fact: a value with its place in a document; a value that may be absent or unknown
//!   name:     names of inventory objects: the escapes of vim25 undone, our own in paths
//!   finding:  what a check has to say, with id, severity, place, evidence and hint
//!   marker:   what is written on the live host object while a visit is under way
//! ```
//!
//! Knows nothing else of ours: no YAML, no XML, no clock, no I/O.

mod at;
mod desired;
mod fact;
mod finding;
mod gpu;
mod ids;
mod marker;
mod name;
mod observed;
mod pattern;
mod pci;
mod roster;
mod words;

pub use at::{At, Place};
pub use desired::{
    Accept, Desired, DesiredPool, DriverPin, FoundInMaintenance, GpuGroup, GpuSelect, HostPin, HostSettings, Pace,
    RolloutRules,
};
pub use fact::Fact;
pub use finding::{Acceptance, Finding, FindingId, RULES, Rule, Severity, Subject};
pub use gpu::{AssignmentPolicy, GraphicsType, Mode, VgpuMode, VgpuSize};
pub use ids::{HostName, MoRef, PlanId, RunId};
pub use marker::{Baseline, Marker, MarkerPhase};
pub use name::{path_part, unescape};
pub use observed::{
    Capabilities, Connection, GraphicsConfig, GraphicsDeviceConfig, GraphicsState, HostFault, HostFaultKind,
    HostRecord, HostView, NumaNode, Observed, Package, Parity, PassthruState, PciDevice, PowerState, Product,
    RunningTask, SiteIdentity, Tally, VmGpuDevice, VmView,
};
pub use pattern::{HostGlob, HostPattern, HostPatternError};
pub use pci::{PciAddress, PciAddressError, PciId};
pub use roster::{ClusterRef, HostRef, Roster};
pub use words::{are, counted};
