//! The World document (`kind: World`): a fleet as somebody writes it down.
//!
//! ```text
//!   document/
//!     fleet       vCenter, datacenters, clusters, hosts, GPUs, VMs
//!     behaviour   readings, boot, faults, actors: how the fleet behaves
//! ```
//!
//! Every value but names has a default, which `schema World` prints. Knows nothing of SOAP.

mod behaviour;
mod fleet;

pub use crate::document::Span;
pub use behaviour::{
    Actor, Boot, Deed, DeviceTypeReading, Face, Fault, FaultRule, HaInMaintenance, HostDefaultReading, Lie, Readings,
    RebindReading, Trigger, WhilePassthrough,
};
pub use fleet::{
    Alarm, Cluster, Connection, Datacenter, Driver, ExtraDevice, GpuGroup, GpuMode, Ha, HostGroup, Power, StartPower,
    User, VcenterSpec, VgpuSize, Vm, VmDevice, WorldSpec,
};
