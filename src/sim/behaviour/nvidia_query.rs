//! What `nvidia-smi` prints of GPUs: tables of fields, and the short list.

use super::shell::Printed;
use crate::model::PciAddress;
use crate::sim::gpus;
use crate::sim::world::device::{Function, Gpu};
use crate::sim::world::uuid;

/// `00000000:3B:00.0`: eight digits of the segment, upper case (vsphere-gpu §2.1).
pub(super) fn bus_id(address: &PciAddress) -> String {
    format!("0000{address}").to_uppercase()
}

/// `--query-…=FIELDS --format=csv[,noheader]`.
pub(super) fn answer(fields: &str, format: &str, shown: &[(&Function, &Gpu)], driver: &str) -> Printed {
    let mut options = format.split(',');
    if options.next() != Some("csv") {
        return Printed::out("\"--format=\" is required and must be csv.\n", 2);
    }
    let no_header = options.any(|option| option == "noheader");
    let fields: Vec<&str> = fields.split(',').map(str::trim).collect();
    let mut lines = Vec::new();
    if !no_header {
        lines.push(fields.join(", "));
    }
    for (index, (function, gpu)) in shown.iter().enumerate() {
        let mut values = Vec::new();
        for name in &fields {
            match field(name, index, function, gpu, driver) {
                Some(value) => values.push(value),
                None => return Printed::out(format!("Field \"{name}\" is not a valid field to query.\n\n"), 2),
            }
        }
        lines.push(values.join(", "));
    }
    Printed::out(lines.iter().map(|line| format!("{line}\n")).collect::<String>(), 0)
}

fn field(name: &str, index: usize, function: &Function, gpu: &Gpu, driver: &str) -> Option<String> {
    let on = |on: bool| if on { "Enabled" } else { "Disabled" }.to_owned();
    let mig = |state: bool| if gpus::knows_mig(&gpu.model) { on(state) } else { "[N/A]".to_owned() };
    // The last two generations have PCIe 5, Ampere and Ada 4.
    let generation = || if gpus::mig_survives_boot(&gpu.model) { "4" } else { "5" }.to_owned();
    Some(match name {
        "index" => index.to_string(),
        "name" => function.name.clone(),
        "uuid" | "gpu_uuid" => gpu_uuid(function),
        "driver_version" => driver.to_owned(),
        "pci.bus_id" | "gpu_bus_id" => bus_id(&function.address),
        "mig.mode.current" => mig(gpu.mig),
        "mig.mode.pending" => mig(gpu.mig_pending),
        "ecc.mode.current" | "ecc.mode.pending" => on(true),
        "pcie.link.gen.current" | "pcie.link.gen.max" => generation(),
        "pcie.link.width.current" => gpu.lanes.to_string(),
        "pcie.link.width.max" => FULL_WIDTH.to_string(),
        "remapped_rows.correctable" | "remapped_rows.uncorrectable" => "0".to_owned(),
        "remapped_rows.pending" | "remapped_rows.failure" => "0".to_owned(),
        _ => return None,
    })
}

/// Lanes of a GPU's slot.
pub(in crate::sim) const FULL_WIDTH: u32 = 16;

fn gpu_uuid(function: &Function) -> String {
    format!("GPU-{}", uuid(&format!("gpu {}", function.address)))
}

/// `nvidia-smi -L`, and what stands for its picture of a table.
pub(super) fn list(shown: &[(&Function, &Gpu)], short: bool, driver: &str) -> Printed {
    let mut text = if short { String::new() } else { format!("NVIDIA-SMI {driver}  Driver Version: {driver}\n") };
    for (index, (function, _)) in shown.iter().enumerate() {
        text.push_str(&format!("GPU {index}: {} (UUID: {})\n", function.name, gpu_uuid(function)));
    }
    Printed::out(text, 0)
}
