//! The World document (`kind: World`): a fleet as somebody writes it down.
//!
//! ```text
//!   document/
//!     fleet       vCenter, datacenters, clusters, hosts, GPUs, VMs
//!     shell       who may log in to a host, and what runs there
//!     behaviour   readings, boot, faults, actors: how the fleet behaves
//! ```
//!
//! Every value but names has a default, which `schema World` prints. Knows nothing of SOAP.

mod behaviour;
mod fleet;
mod shell;

pub use crate::document::Span;
pub use behaviour::{
    Actor, Boot, Deed, DeviceTypeReading, Face, Fault, FaultRule, HaInMaintenance, HostDefaultReading, Lie, MigVisible,
    Readings, RebindReading, SshPassword, Trigger, WhilePassthrough,
};
pub use fleet::{
    Alarm, Cluster, Connection, Datacenter, Driver, ExtraDevice, GpuGroup, GpuMode, Ha, HostGroup, Power, StartPower,
    User, VcenterSpec, VgpuSize, Vm, VmDevice, WorldSpec,
};
pub use shell::{Lockdown, Monitor, ServicePolicy, Shell, ShellUser, SshService};
