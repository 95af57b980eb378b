//! The host driver that vGPU needs, and what releases have which feature.

use super::HostTarget;
use super::device::Gap;
use super::sheet::Sheet;
use crate::catalog::{DriverFamily, EsxiVersion, FitMode, Need, VgpuType, catalog};
use crate::model::{DriverPin, Fact, GraphicsType, HostView, Package, Product, Rule};

/// The oldest vCenter and ESXi that are changed: the size mode can be set since then (vsphere-gpu
/// §1.2), and older ones were never compared with the facts that this program rests on.
pub(super) const OLDEST: EsxiVersion = EsxiVersion { major: 8, minor: 0, update: 3 };

/// The version of ESXi, or of vCenter, from its text; the fourth number of an API version is left
/// out. None if it is no version: such a one is not trusted to be new enough.
pub(super) fn version(text: &str) -> Option<EsxiVersion> {
    let three: Vec<&str> = text.split('.').take(3).collect();
    three.join(".").parse().ok()
}

/// Findings on the driver, whether anything is changed or not.
pub(super) fn judge(sheet: &mut Sheet, view: &HostView) {
    let pool = sheet.pool;
    let needs_driver = pool.gpus.iter().any(|group| group.mode.value.needs_driver());
    let pin = pool.host.driver.as_ref();
    if !needs_driver && pin.is_none() {
        return;
    }
    let place = pin.map(|pin| &pin.component.place);
    let packages = match Gap::need(&view.packages, "the installed packages") {
        Ok(packages) => packages,
        Err(gap) => {
            sheet.unread(&[&Rule::DRV_UNKNOWN], &gap);
            if pool.gpus.iter().any(|group| !group.offers.is_empty()) {
                sheet.unread(&[&Rule::DRV_FAMILY], &gap);
            }
            return;
        }
    };
    let drivers: Vec<&Package> = packages.iter().filter(|package| is_driver(package)).collect();
    let found = list(&drivers);
    match pin {
        Some(pin) if !drivers.iter().any(|package| matches(pin, package)) => {
            let rule = if drivers.is_empty() { &Rule::DRV_MISSING } else { &Rule::DRV_DIFFERS };
            let message = format!("the profile says {} {}, the host has {found}", pin.component, pin.version);
            let finding = sheet.at(rule, place, message);
            sheet
                .add(finding.hint(
                    "install it through the cluster's image; Poolwright checks the driver and never installs it",
                ));
        }
        None if drivers.is_empty() && !drives(view) => {
            let message = "vGPU needs the NVIDIA host driver, and no package of it is installed";
            let finding = sheet.here(&Rule::DRV_MISSING, message);
            sheet.add(finding.hint("install NVD-AIE (compute) or NVD-VGPU (graphics) through the cluster's image"));
        }
        _ => {}
    }
    families(sheet, view, &drivers);
}

/// Rule HOST-2: the types that the pool offers must come with the driver that is installed. What the
/// host itself lists is proven by that.
fn families(sheet: &mut Sheet, view: &HostView, drivers: &[&Package]) {
    let pool = sheet.pool;
    let installed: Option<Vec<DriverFamily>> =
        drivers.iter().map(|driver| DriverFamily::of_component(&driver.name)).collect();
    let listed = view.vgpu_types.known().map(Vec::as_slice).unwrap_or_default();
    let offers = pool.gpus.iter().filter(|group| group.mode.value.needs_driver());
    for offer in offers.flat_map(|group| &group.offers) {
        for name in offer.value.keys().filter(|name| !listed.contains(name)) {
            let Some((_, vgpu)) = catalog().vgpu_type(name) else { continue };
            let needs = vgpu.series.driver();
            let seen = format!("the host has {}", list(drivers));
            match &installed {
                // Said by the rules on a driver that is missing.
                Some(families) if families.is_empty() || families.contains(&needs) => {}
                Some(_) => {
                    let message = format!("{name} comes with the driver {}*, and the host has another", needs.prefix());
                    let finding = sheet.at(&Rule::DRV_FAMILY, Some(&offer.place), message);
                    sheet.add(finding.seen(seen));
                }
                None => {
                    let message = format!(
                        "whether {name} comes with the installed driver cannot be told: it needs {}*",
                        needs.prefix()
                    );
                    let finding = sheet.at(&Rule::DRV_FAMILY, Some(&offer.place), message);
                    sheet.add(finding.seen(seen).hint("accept the finding if the driver has the type"));
                }
            }
        }
    }
}

/// Findings on what the releases of the host do not have, for the modes that the pool asks for.
pub(super) fn gates(sheet: &mut Sheet, view: &HostView, target: Option<&HostTarget>) {
    let pool = sheet.pool;
    let Some(model) = catalog().model(&pool.gpu_model.value) else { return };
    let product = view.product.known().and_then(|Product { version: text, .. }| version(text));
    let branch = view.packages.known().and_then(|packages| branch(packages));
    for group in &pool.gpus {
        let used = target.is_none_or(|target| target.gpus.iter().any(|gpu| gpu.mode == group.mode.value));
        let Some(mode) = FitMode::of(&group.mode.value).filter(|_| used) else { continue };
        let types: Vec<&VgpuType> = group
            .offers
            .iter()
            .flat_map(|offer| offer.value.keys())
            .filter_map(|name| catalog().vgpu_type(name))
            .map(|(_, vgpu)| vgpu)
            .collect();
        for need in catalog().needs(model, mode, &types) {
            let (rule, word) = match need.met(product, branch) {
                Some(true) => continue,
                Some(false) => (&Rule::CAT_GATE, "does not work on the host"),
                None => (&Rule::CAT_GATE_UNKNOWN, "may not work on the host"),
            };
            let message = format!("{} {word}: it needs {}", feature(&need), requirement(&need));
            let esxi = view.product.known().map_or("?", |product| product.version.as_str());
            let driver = branch.map_or_else(|| "?".to_owned(), |branch| branch.to_string());
            let finding = sheet.at(rule, Some(&group.mode.place), message);
            sheet.add(finding.seen(format!("ESXi {esxi}, vGPU branch {driver}")));
        }
    }
}

fn feature(need: &Need) -> String {
    match need {
        Need::Esxi(gate) => gate.feature.clone(),
        Need::Branch { what, .. } => (*what).to_owned(),
    }
}

fn requirement(need: &Need) -> String {
    match need {
        Need::Esxi(gate) => gate.requirement(),
        Need::Branch { min, max, .. } => {
            let bound = |word: &str, branch: &Option<u16>| branch.map(|branch| format!("{word} {branch}"));
            let bounds: Vec<String> = [bound("from", min), bound("up to", max)].into_iter().flatten().collect();
            format!("a host driver of vGPU {}", bounds.join(" "))
        }
    }
}

/// Whether the package is the host driver, by the names that NVIDIA gives it; its monitoring daemon
/// is another package.
fn is_driver(package: &Package) -> bool {
    let name = package.name.to_ascii_uppercase();
    ["NVD-AIE", "NVD-VGPU", "NVIDIA-VMWARE", "NVIDIA-AIE"].iter().any(|start| name.starts_with(start))
}

/// Whether a package of the host driver is installed; if that could not be read, it counts as so.
pub(super) fn installed(view: &HostView) -> bool {
    view.packages.known().is_none_or(|packages| packages.iter().any(is_driver))
}

/// Whether both hosts have the same host driver: a vGPU moves between equal ones only for certain
/// (vsphere-gpu F22). Not if one could not be read.
pub(super) fn same(one: &HostView, other: &HostView) -> bool {
    let drivers = |view: &HostView| -> Option<Vec<(String, String)>> {
        let packages = view.packages.known()?.iter().filter(|package| is_driver(package));
        let mut drivers: Vec<_> = packages.map(|package| (package.name.clone(), package.version.clone())).collect();
        drivers.sort();
        Some(drivers)
    };
    drivers(one).is_some_and(|one| drivers(other).is_some_and(|other| one == other))
}

/// Whether some GPU is owned by the driver, which proves it whatever its package is called.
fn drives(view: &HostView) -> bool {
    let owned = |kind: &GraphicsType| matches!(kind, GraphicsType::Shared | GraphicsType::SharedDirect);
    matches!(&view.graphics_active, Fact::Known(states) if states.iter().any(|state| owned(&state.graphics_type)))
}

/// The host prints the version with a suffix (`580.95.02-1OEM.800.1.0.20613240`): it matches up to a
/// `.` or `-`.
fn matches(pin: &DriverPin, package: &Package) -> bool {
    let rest = package.version.strip_prefix(pin.version.value.as_str());
    package.name == pin.component.value && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']))
}

/// The vGPU branch of the installed driver: its first number names the driver branch.
fn branch(packages: &[Package]) -> Option<u16> {
    let driver = packages.iter().find(|package| is_driver(package))?;
    let number = driver.version.split('.').next()?;
    let name = format!("R{number}");
    catalog().branches().table.iter().find(|branch| branch.driver == name)?.vgpu
}

fn list(drivers: &[&Package]) -> String {
    if drivers.is_empty() {
        return "none".to_owned();
    }
    drivers.iter().map(|package| format!("{} {}", package.name, package.version)).collect::<Vec<_>>().join(", ")
}
