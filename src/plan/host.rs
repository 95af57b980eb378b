//! One host of a pool: converged, to be changed, or not to be decided; with all there is to say.

use super::around::Surroundings;
use super::bind::{DEVICE_RULES, bind};
use super::blocks::{busy, not_connected};
use super::device::{Devices, Gap, addresses, is_storage, named};
use super::driver::{OLDEST, gates, version};
use super::gate::unreadable_parity;
use super::node_steps::Nodes;
use super::seal::digest;
use super::sheet::Sheet;
use super::vms::Fates;
use super::work::{Vms, Work};
use super::{
    Bounds, GpuSetting, HostPlan, HostTarget, Impact, Memory, Reboots, SlowFacts, driver, node_check, node_findings,
    outline, shell_findings, vm_findings,
};
use crate::model::{
    DesiredPool, Fact, Finding, FoundInMaintenance, GraphicsType, HostFaultKind, HostPin, HostRecord, HostView, Marker,
    MarkerPhase, Mode, Pace, Rule, ShellWay, SiteIdentity, VgpuSize, are, counted,
};

/// What becomes of a host, as far as its findings allow.
pub(super) enum Outcome {
    /// It is as wished.
    Converged,
    /// It is changed so.
    Change(Box<HostPlan>),
    /// What it needs could not be told; the findings say why.
    Undecided,
}

/// The judgement on one host.
pub(super) struct Judged<'a> {
    /// The host, and the selector that chose it.
    pub pin: &'a HostPin,
    /// Findings on it.
    pub findings: Vec<Finding>,
    /// What becomes of it.
    pub outcome: Outcome,
}

/// What is the same for all hosts.
pub(super) struct Context<'a> {
    /// The vCenter.
    pub site: &'a SiteIdentity,
    /// Durations of the site.
    pub pace: Pace,
    /// How MIG is switched.
    pub shell: ShellWay,
    /// Whether another host has the name or the identity of this one.
    pub twins: &'a dyn Fn(&HostRecord) -> Option<String>,
    /// What was seen around hosts.
    pub around: &'a Surroundings<'a>,
}

/// The rules that need what a GPU is set to.
const STATE_RULES: &[&Rule] = &[
    &Rule::HOST_UNREADABLE,
    &Rule::HOST_PENDING,
    &Rule::HOST_REBOOTS,
    &Rule::HOST_DEFAULT_KEPT,
    &Rule::GPU_IN_USE,
    &Rule::GPU_OTHER_PENDING,
    &Rule::MIG_BESIDE,
];

/// Judges one host.
pub(super) fn judge<'a>(
    pool: &'a DesiredPool,
    pin: &'a HostPin,
    record: Option<&HostRecord>,
    context: &Context,
) -> Judged<'a> {
    let mut sheet = Sheet::new(pool, pin);
    let outcome = match record.map(|record| (record, &record.view)) {
        None => {
            let finding = sheet.here(&Rule::HOST_MISSING, "the host is not on this vCenter any more");
            sheet.add(finding.hint("plan again"));
            Outcome::Undecided
        }
        Some((_, Err(fault))) => {
            let rule = match fault.kind {
                HostFaultKind::Gone => &Rule::HOST_MISSING,
                HostFaultKind::NoPermission | HostFaultKind::Fault => &Rule::HOST_UNREADABLE,
            };
            sheet.add(sheet.here(rule, format!("the host could not be read: {}", fault.message)));
            Outcome::Undecided
        }
        Some((record, Ok(view))) => read(&mut sheet, record, view, context),
    };
    Judged { pin, findings: sheet.findings, outcome }
}

fn read(sheet: &mut Sheet, record: &HostRecord, view: &HostView, context: &Context) -> Outcome {
    if let Some(why) = not_connected(view) {
        let finding = sheet.here(&Rule::HOST_NOT_CONNECTED, why);
        sheet.add(finding.hint("see in vCenter why, and plan again when it is back"));
    }
    if let Some(twin) = (context.twins)(record) {
        sheet.add(sheet.here(&Rule::HOST_AMBIGUOUS, twin));
    }
    marker(sheet, view);
    driver::judge(sheet, view);
    let devices = sheet.take(DEVICE_RULES, Devices::of(view));
    if let Some(devices) = &devices {
        nvswitch(sheet, devices);
    }
    let target = devices.as_ref().and_then(|devices| bind(sheet, view, devices));
    let work = match (&target, &devices) {
        (Some(target), Some(devices)) => {
            sheet.take(STATE_RULES, Work::of(target, view, devices, &Memory::default(), context.shell))
        }
        _ => None,
    };
    if work.as_ref().is_some_and(Work::is_empty) {
        node_findings::out(sheet, view, &context.around.near(&record.host, view));
        return Outcome::Converged;
    }
    // What the host needs is not known: that counts as the most that it may need.
    let impact = work.as_ref().map_or(Impact::Reboot, |work| work.impact);
    let stays = reachable(sheet, view, context);
    gates(sheet, view, target.as_ref());
    if let Some(devices) = &devices {
        functions(sheet, view, devices, target.as_ref(), impact);
    }
    shell_findings::judge(sheet, view, target.as_ref(), work.as_ref(), impact, context.shell);
    let fates = if impact >= Impact::Maintenance {
        vm_findings::judge(sheet, view, target.as_ref(), context.around.near(&record.host, view))
    } else {
        Fates::default()
    };
    parity(sheet, view);
    if let Some(target) = &target {
        notes(sheet, view, target, work.as_ref());
    }
    match (work, target, devices) {
        (Some(work), Some(target), Some(devices)) => {
            let change = Judgement { target, work: &work, devices: &devices, fates, stays };
            draft(sheet, view, context, change).map_or(Outcome::Undecided, Outcome::Change)
        }
        _ => Outcome::Undecided,
    }
}

/// The marker of a run. Whatever its age, a host that carries one is not planned as fresh.
fn marker(sheet: &mut Sheet, view: &HostView) {
    let raw = match Gap::optional(&view.marker, "the marker") {
        Ok(None) => return,
        Ok(Some(raw)) => raw,
        Err(gap) => return sheet.unread(&[&Rule::HOST_MARKED], &gap),
    };
    let finding = match serde_json::from_str::<Marker>(raw) {
        Ok(marker) => {
            let run = &marker.run;
            let message = format!("run {run} has marked the host: {} at {:.0}", marker.phase, marker.at);
            let host = &sheet.pin.host.name;
            let ways = match marker.phase {
                MarkerPhase::Failed => format!(
                    "`poolwright resume {run} --retry {host}` visits it again once its cause is gone, `poolwright abort {run} --give-up {host}` leaves it to a person"
                ),
                _ => format!(
                    "`poolwright resume {run}` goes on with it, `poolwright abort {run}` gives back what is not changed"
                ),
            };
            sheet.here(&Rule::HOST_MARKED, message).hint(format!(
                "{ways}; where its state directory is lost, go on with the plan that was applied: `poolwright resume --from-live plan.json`"
            ))
        }
        Err(error) => {
            let message = "the host carries a marker that this program does not understand";
            sheet.here(&Rule::HOST_MARKED, message).seen(format!("{raw} ({error})")).hint(format!(
                "a newer version may have written it; clear the custom field {} only if no run works on the host",
                Marker::FIELD
            ))
        }
    };
    sheet.add(finding);
}

fn nvswitch(sheet: &mut Sheet, devices: &Devices) {
    let switches: Vec<String> = devices.nvswitches().map(named).collect();
    if !switches.is_empty() {
        let message =
            format!("{}: the GPUs of such a baseboard are one unit", counted(switches.len(), "NVSwitch function"));
        let mut finding = sheet.here(&Rule::GPU_NVSWITCH, message);
        finding.evidence = switches;
        sheet.add(finding.hint(format!("such hosts are not changed yet: take it out with {}", except(sheet.pin))));
    }
}

/// What a change needs of the host: versions, the hands of nobody else on it. Returns whether it was
/// found in maintenance and stays there.
fn reachable(sheet: &mut Sheet, view: &HostView, context: &Context) -> bool {
    let old = |text: &str| version(text).is_none_or(|version| version < OLDEST);
    let SiteIdentity { version: vcenter, api_version, .. } = context.site;
    let mut too_old = Vec::new();
    if old(vcenter) || old(api_version) {
        too_old.push(format!("vCenter {vcenter} (API {api_version})"));
    }
    match Gap::need(&view.product, "config.product") {
        Ok(product) if old(&product.version) => too_old.push(format!("ESXi {}", product.version)),
        Ok(_) => {}
        Err(gap) => sheet.unread(&[&Rule::HOST_VERSION, &Rule::CAT_GATE], &gap),
    }
    if !too_old.is_empty() {
        let message = format!("a change needs {OLDEST} or later, found {}", too_old.join(", "));
        let finding = sheet.here(&Rule::HOST_VERSION, message);
        sheet.add(finding.hint(format!("upgrade it, or take the host out with {}", except(sheet.pin))));
    }
    match busy(view, &Memory::default()) {
        Ok(None) => {}
        Ok(Some(why)) => sheet.add(sheet.here(&Rule::HOST_BUSY, why).hint("wait for it, then plan again")),
        Err(gap) => sheet.unread(&[&Rule::HOST_BUSY], &gap),
    }
    match Gap::need(&view.in_maintenance, "runtime.inMaintenanceMode") {
        Ok(false) => false,
        Ok(true) if sheet.pool.rollout.found_in_maintenance == FoundInMaintenance::Change => true,
        // The marker says whose it is, and holds the host.
        Ok(true) if matches!(view.marker, Fact::Known(_)) => false,
        Ok(true) => {
            let message = "the host is in maintenance mode, and not by Poolwright";
            let hint =
                "find out who works on it; `rollout.foundInMaintenance: change` works on it, too, and leaves it there";
            sheet.add(sheet.here(&Rule::HOST_IN_MAINTENANCE, message).hint(hint));
            false
        }
        Err(gap) => {
            sheet.unread(&[&Rule::HOST_IN_MAINTENANCE], &gap);
            false
        }
    }
}

/// Findings on single functions, for a change.
fn functions(sheet: &mut Sheet, view: &HostView, devices: &Devices, target: Option<&HostTarget>, impact: Impact) {
    let gpus = target.map(|target| target.gpus.as_slice()).unwrap_or_default();
    let incapable: Vec<String> = gpus
        .iter()
        .filter(|gpu| matches!(gpu.mode, Mode::Passthrough { .. }))
        .flat_map(|gpu| std::iter::once(gpu.address).chain(gpu.companions.iter().copied()))
        .filter(|address| devices.passthru(*address).is_some_and(|state| !state.capable && !state.enabled))
        .filter_map(|address| devices.at(address).map(named))
        .collect();
    if !incapable.is_empty() {
        let message = format!("the host says that {} cannot be passed through", counted(incapable.len(), "function"));
        let mut finding = sheet.here(&Rule::GPU_NOT_CAPABLE, message);
        finding.evidence = incapable;
        sheet.add(finding.hint("8.0.3 checks ACS more strictly than releases before it: Broadcom KB 391460"));
    }
    let console: Vec<String> = devices
        .gpus
        .iter()
        .filter(|gpu| gpus.iter().any(|target| target.address == gpu.address))
        .filter(|gpu| devices.is_console(gpu))
        .map(|gpu| named(gpu))
        .collect();
    if let Some(gpu) = console.first() {
        let message = format!("{gpu} is the only display adapter of the host, so it is its console");
        sheet.add(
            sheet.here(&Rule::GPU_CONSOLE, message).hint("make the onboard video the primary display in the firmware"),
        );
    }
    if impact >= Impact::Maintenance {
        let (storage, strangers): (Vec<_>, Vec<_>) = devices.strangers().partition(|device| is_storage(device));
        for (rule, list) in [(&Rule::GPU_STORAGE, storage), (&Rule::GPU_STRANGER, strangers)] {
            if !list.is_empty() {
                let message = {
                    let (devices, are) = (counted(list.len(), "device"), are(list.len()));
                    format!("{devices} that {are} no NVIDIA GPU {are} configured for passthrough")
                };
                let mut finding = sheet.here(rule, message);
                finding.evidence = list.into_iter().map(named).collect();
                sheet.add(finding.hint(
                    "passthrough is kept by address, and addresses shift when cards are added or removed: see that it is meant for this device",
                ));
            }
        }
    }
    if impact >= Impact::Reboot {
        others(sheet, view, devices, target);
    }
}

/// What a reboot would do to devices outside the pool.
fn others(sheet: &mut Sheet, view: &HostView, devices: &Devices, target: Option<&HostTarget>) {
    let Some(target) = target else { return };
    let mine = |address| target.gpus.iter().any(|gpu| gpu.address == address || gpu.companions.contains(&address));
    let mut pending: Vec<String> = devices
        .all
        .iter()
        .filter(|device| !mine(device.address))
        .filter(|device| devices.passthru(device.address).is_some_and(|state| state.enabled != state.active))
        .map(|device| named(device))
        .collect();
    let driver = driver::installed(view);
    for address in &target.others {
        match GpuSetting::of(view, *address) {
            // Listed above, with the devices.
            Ok(setting) if setting.passthru_enabled != setting.passthru_active => {}
            // A GPU that nobody drives is claimed at the next boot.
            Ok(setting)
                if setting.is_pending() || driver && setting.active_type == Fact::Known(GraphicsType::Basic) =>
            {
                pending.push(format!("{address}: {setting}"));
            }
            Ok(_) => {}
            Err(gap) => sheet.unread(&[&Rule::GPU_OTHER_PENDING], &gap),
        }
    }
    if !pending.is_empty() {
        let message = format!(
            "the reboot would activate what is pending on {} outside the pool",
            counted(pending.len(), "device")
        );
        let mut finding = sheet.here(&Rule::GPU_OTHER_PENDING, message);
        finding.evidence = pending;
        sheet.add(finding.hint("reboot the host by hand, or put their configuration back, then plan again"));
    }
}

/// The line of the profile that leaves the host out.
fn except(pin: &HostPin) -> String {
    format!("`except: [{}]`", pin.host.name)
}

/// What the host gate will compare must be readable before.
fn parity(sheet: &mut Sheet, view: &HostView) {
    let unread = unreadable_parity(&view.parity);
    if !unread.is_empty() {
        let names: Vec<&str> = unread.iter().map(|(name, _)| *name).collect();
        let message = format!("the host gate could not compare {}", names.join(", "));
        let mut finding = sheet.here(&Rule::HOST_PARITY, message);
        finding.evidence = unread.into_iter().map(|(name, why)| format!("{name}: {why}")).collect();
        sheet.add(
            finding.hint("accept PW-HOST-15 to change the host without it; the report then says what was not checked"),
        );
    }
}

/// What is good to know of a change.
fn notes(sheet: &mut Sheet, view: &HostView, target: &HostTarget, work: Option<&Work>) {
    let pool = sheet.pool;
    let stuck = work.map(|work| work.stuck.as_slice()).unwrap_or_default();
    if !stuck.is_empty() {
        let mut finding = sheet.here(&Rule::HOST_PENDING, "what is configured waits for a reboot".to_owned());
        finding.evidence = stuck.to_vec();
        sheet.add(finding);
    } else {
        match &view.reboot_required {
            Fact::Known(true) => {
                let message = "vCenter says that the host needs a reboot, and not for its GPUs";
                sheet.add(sheet.here(&Rule::HOST_PENDING, message).hint("a reboot of this plan activates that, too"));
            }
            Fact::Known(false) | Fact::Absent => {}
            Fact::Unknown { why } => {
                let gap = Gap { what: "summary.rebootRequired".to_owned(), why: why.clone() };
                sheet.unread(&[&Rule::HOST_PENDING], &gap);
            }
        }
    }
    if !target.others.is_empty() {
        let message = format!("no group of the pool selects {}: they are kept as they are", addresses(&target.others));
        sheet.add(sheet.here(&Rule::GPU_UNCOVERED, message));
        let default = view.graphics_config.known().map(|config| &config.default_type);
        if work.is_some_and(Work::writes_graphics) && default.is_some_and(|kind| *kind != GraphicsType::SharedDirect) {
            let message = "the host default graphics type is left alone: not every GPU is in the pool";
            sheet.add(sheet.here(&Rule::HOST_DEFAULT_KEPT, message));
        }
    }
    let companions: Vec<String> = target.gpus.iter().flat_map(|gpu| &gpu.companions).map(ToString::to_string).collect();
    if !companions.is_empty() {
        let message = format!("other functions of the GPUs go with them: {}", companions.join(", "));
        sheet.add(sheet.here(&Rule::GPU_COMPANION, message));
    }
    if let Some(placement) = &pool.host.placement
        && !target.gpus.iter().any(|gpu| gpu.mode == Mode::Vgpu { size: VgpuSize::Same })
    {
        let message = format!("the assignment policy {placement} has an effect in same-size mode only");
        let finding = sheet.at(&Rule::HOST_POLICY_NO_EFFECT, Some(&placement.place), message);
        sheet.add(finding);
    }
}

/// What a host that changes was found to need.
struct Judgement<'a> {
    target: HostTarget,
    work: &'a Work,
    devices: &'a Devices<'a>,
    fates: Fates,
    /// Found in maintenance, and left there.
    stays: bool,
}

/// The host's part of the plan.
fn draft(sheet: &mut Sheet, view: &HostView, context: &Context, change: Judgement) -> Option<Box<HostPlan>> {
    let Judgement { target, work, devices, fates: made, stays } = change;
    let pool = sheet.pool;
    if !devices.virtual_functions.is_empty() {
        let list: Vec<String> =
            devices.virtual_functions.iter().map(|(gpu, count)| format!("{count} of {gpu}")).collect();
        let message = format!("virtual functions are neither counted nor written: {}", list.join(", "));
        sheet.add(sheet.here(&Rule::GPU_VF, message));
    }
    if work.writes_label() && view.capabilities.hardware_label != Fact::Known(true) {
        let finding =
            sheet.here(&Rule::GPU_LABEL, "a label is to be written, and the host does not say that it supports labels");
        sheet.add(finding.seen("capability.assignHwPciConfigSupported"));
    }
    if work.expected > pool.rollout.max_reboots.value {
        let message =
            format!("it needs {}, the pool approves {}", counted(work.expected, "reboot"), pool.rollout.max_reboots);
        let finding = sheet.at(&Rule::HOST_REBOOTS, Some(&pool.rollout.max_reboots.place), message);
        sheet.add(finding);
    }
    let rules: &[&Rule] = &[&Rule::HOST_UNREADABLE];
    let uuid = sheet.take(rules, Gap::need(&view.uuid, "hardware.systemInfo.uuid"));
    if work.writes_graphics() {
        sheet.take(rules, Gap::need(&view.graphics_manager, "configManager.graphicsManager"));
    }
    if work.writes_passthru() {
        sheet.take(rules, Gap::need(&view.passthru_system, "configManager.pciPassthruSystem"));
    }
    let slow = sheet.take(rules, SlowFacts::of(view, devices));
    let ours = work.impact >= Impact::Maintenance && !stays;
    let closed = view.in_maintenance == Fact::Known(true);
    let mut vms = Vms::of(&made.fates, &made.starts, |_| false);
    let nodes = Nodes { rules: &pool.guests, ours: &[] };
    nodes.close(&made.fates, |_| true, &mut vms);
    nodes.open(&made.fates, &Memory::default(), view, &mut vms);
    let steps = sheet.take(rules, work.steps(view, closed, ours, &vms));
    let (uuid, slow, steps) = (uuid?, slow?, steps?);
    let most = work.most.min(pool.rollout.max_reboots.value).max(work.expected);
    let reboots = Reboots { expected: work.expected, most, why: outline::why(work, view, most) };
    Some(Box::new(HostPlan {
        host: sheet.pin.host.clone(),
        uuid: uuid.clone(),
        pool: pool.name.value.clone(),
        digest: digest(&slow),
        slow,
        target,
        impact: work.impact,
        bounds: if ours { Bounds::of(&made.fates) } else { Bounds::default() },
        fates: made.fates,
        vms: pool.vms.clone(),
        guests: pool.guests.clone(),
        guest_uids: node_check::uids(&pool.guests, context.around.near(&sheet.pin.host, view).guests),
        accepted_nodes: node_check::acceptable(view),
        on_validation_failure: pool.rollout.on_validation_failure,
        steps: outline::steps(&steps, work, &reboots),
        minutes: outline::minutes(&steps, work, &reboots, &context.pace),
        reboots,
        shell: context.shell,
        stays_in_maintenance: stays,
        not_checked: unreadable_parity(&view.parity).into_iter().map(|(name, _)| name.to_owned()).collect(),
    }))
}
