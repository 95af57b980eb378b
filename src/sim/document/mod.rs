//! The World document (`kind: World`): a fleet as somebody writes it down.
//!
//! ```text
//!   document/
//!     fleet       vCenter, datacenters, clusters, hosts, GPUs
//!     vm          VMs, and the DRS of their cluster
//!     shell       who may log in to a host, and what runs there
//!     guest       guest clusters: nodes and what runs on them
//!     behaviour   readings, boot, faults, actors: how the fleet behaves
//! ```
//!
//! Every value but names has a default, which `schema World` prints. Knows nothing of SOAP.

mod behaviour;
mod fleet;
mod guest;
mod shell;
mod vm;

pub use crate::document::Span;
pub use behaviour::{
    Actor, Boot, Deed, DeviceTypeReading, DryRuns, Face, Fault, FaultRule, HaInMaintenance, HostDefaultReading, Lie,
    MigVisible, Readings, RebindReading, SshPassword, Trigger, VmFaults, WhilePassthrough,
};
pub use fleet::{
    Alarm, Cluster, Connection, Datacenter, Driver, ExtraDevice, GpuGroup, GpuMode, Ha, HostGroup, StartPower, User,
    VcenterSpec, VgpuSize, WorldSpec,
};
pub use guest::{
    ContainerRule, DriverManager, Ending, ExtraPdb, Guest, GuestNode, MachineId, NodeBoot, Pdb, VmNode, Workload,
    WorkloadKind,
};
pub use shell::{Lockdown, Monitor, ServicePolicy, Shell, ShellUser, SshService};
pub use vm::{Drs, DrsLevel, DrsOverride, Firmware, Owner, Power, Tools, Vm, VmDevice};
