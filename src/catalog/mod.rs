//! What is known of NVIDIA GPUs on vSphere: models, vGPU types, MIG geometry, gates; and the proof
//! that a combination of vGPUs fits one GPU.
//!
//! ```text
//!   data/*.yaml ──document──► load ──► Catalog ──► identify   PCI id -> model
//!   (facts with their sources)            │   ├──► names      vGPU type by any of its spellings
//!                                         │   ├──► gate       what a mode or type needs
//!                                         │   └──► fit        {type: count} on one GPU -> fits? why? nearest
//!                                         └──► digest         of the embedded files
//! ```
//!
//! The data is embedded and parsed at first use. `null` in it means that no source was found: such a
//! value is `None` here, and a check that needs it answers *unknown*, never yes.
//!
//! Knows nothing of hosts, of what was observed, nor of what a profile asks for. Where a host lists
//! a type that is not here, the host is right: callers accept it and say so (rule NAME-1).

mod fit;
mod gate;
mod identify;
mod load;
mod names;
mod types;
mod version;

pub use fit::{Beside, BesideError, Combination, Fit, FitMode, FitModeError};
pub use gate::{Gate, Need};
pub use identify::Identity;
pub use load::{Catalog, catalog, digest};
pub use names::{Standing, nearest_types, same_type};
pub use types::{
    Board, Branches, Can, DriverFamily, Engines, EsxiFloor, Memory, MigGeometry, MigProfile, MmioGb, Model, Nvlink,
    PciEntry, Region, RegionSize, Rule, Series, Source, SourceMap, Sources, TypeKind, VgpuBranch, VgpuBranches,
    VgpuType,
};
pub use version::{EsxiVersion, EsxiVersionError};
