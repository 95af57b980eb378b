//! What the catalogue says of a simulated GPU.

use crate::catalog::{Model, TypeKind, catalog};
use crate::sim::world::device::Gpu;

/// The model of this id.
pub(in crate::sim) fn model(id: &str) -> Option<&'static Model> {
    catalog().model(id)
}

/// Whether it can run time-sliced vGPUs of different sizes.
pub(in crate::sim) fn mixed_size(id: &str) -> bool {
    model(id).is_some_and(|model| model.can.mixed_size == Some(true))
}

/// Whether MIG is a bit of the board (Ampere) that survives a boot; of later ones it is not
/// (vsphere-gpu §2.1).
pub(in crate::sim) fn mig_survives_boot(id: &str) -> bool {
    model(id).is_some_and(|model| model.board.architecture == "ampere")
}

/// Whether it knows MIG: then it has types that are backed by MIG.
pub(in crate::sim) fn knows_mig(id: &str) -> bool {
    model(id).is_some_and(|model| model.types.iter().any(|kind| matches!(kind.kind, TypeKind::Mig { .. })))
}

/// The size mode that the driver runs the GPU in: MIG that was switched in the shell counts from then
/// on, whatever vCenter shows (§2.1).
pub(in crate::sim) fn active_mode(gpu: &Gpu) -> &str {
    match (gpu.mig, gpu.vgpu_mode.as_str()) {
        (true, "none") => "none",
        (true, _) => "multiInstanceGpu",
        (false, "multiInstanceGpu") => "sameSize",
        (false, mode) => mode,
    }
}

/// Names of the vGPU types that a GPU can start in this size mode.
pub(in crate::sim) fn types(gpu: &Gpu, mode: &str) -> Vec<&'static str> {
    let wanted = |kind: &TypeKind| match mode {
        "sameSize" => matches!(kind, TypeKind::TimeSliced { .. }),
        "mixedSize" => matches!(kind, TypeKind::TimeSliced { mixed: Some(_), .. }),
        "multiInstanceGpu" => matches!(kind, TypeKind::Mig { .. }),
        _ => false,
    };
    if gpu.graphics_type != "sharedDirect" {
        return Vec::new();
    }
    model(&gpu.model)
        .map(|model| model.types.iter().filter(|kind| wanted(&kind.kind)).map(|kind| kind.name.as_str()).collect())
        .unwrap_or_default()
}
