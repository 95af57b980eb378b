//! Which host a VM may start on or move to, and what DRS makes of it (vsphere-gpu §1.6, §1.8, §1.15,
//! §1.16, §3.4; DESIGN §3, honesty rules 1 to 3). It looks, and changes nothing.

use super::document::{Connection, DrsLevel, Firmware, VmDevice};
use super::gpus;
use super::seats::{self, Misfit};
use super::world::state::{Cluster, State};
use super::world::task::Failure;
use super::world::vm::{Seats, Vm};

/// Plugin parameters of a vGPU that keep a VM from vMotion (§1.15, F26).
const BLOCKING_PARAMETERS: [&str; 3] = ["enable_uvm", "enable_debugging", "enable_profiling"];

/// GPUs of so much memory have BARs beyond 32 bits (§1.15).
const LARGE_BAR_GB: u32 = 16;

/// What DRS does with a VM of a host that closes.
#[derive(Debug, Clone)]
pub(in crate::sim) enum Outlook {
    /// It moves it to the host that it chose.
    Moves { to: u32, seats: Seats },
    /// It powers it off, as the VM's own setting asks.
    PowersOff,
    /// It recommends a move, which somebody would have to apply.
    Recommends { to: u32 },
    /// It can do nothing: why, and why each other host will not do.
    Stays { why: Failure, hosts: Vec<(u32, Failure)> },
    /// DRS is off: nobody does anything.
    Nothing,
}

/// Fails if a host takes no VM: it must answer, and be neither closed nor closing (honesty rule 1).
pub(in crate::sim) fn takes_vms(state: &State, host: u32) -> Result<(), Failure> {
    let Some(known) = state.hosts.get(&host) else { return Err(Failure::of("ManagedObjectNotFound")) };
    match known.connection {
        Connection::NotResponding => return Err(Failure::of("HostNotReachable")),
        Connection::Disconnected => return Err(Failure::of("HostNotConnected")),
        Connection::Connected => {}
    }
    if known.maintenance {
        return Err(Failure::of("InvalidState").saying(format!("The host {} is in maintenance mode.", known.name)));
    }
    if state.entering(host) {
        let what = format!("The host {} is entering maintenance mode.", known.name);
        return Err(Failure::of("InvalidState").saying(what));
    }
    Ok(())
}

fn misfit(misfit: Misfit) -> Failure {
    match misfit {
        Misfit::Graphics => Failure::of("InsufficientGraphicsResourcesFault"), // F16
        Misfit::Memory { free, wanted } => Failure::of("InsufficientMemoryResourcesFault")
            .with("unreserved", bytes(free))
            .with("requested", bytes(wanted)),
        Misfit::Device(why) => device_power_on(&why),
    }
}

/// F1, F2: what a VM says whose device does not start.
fn device_power_on(why: &str) -> Failure {
    refused(format!("Module 'DevicePowerOn' power on failed. {why}"))
}

fn refused(reason: impl Into<String>) -> Failure {
    let reason = reason.into();
    Failure::of("GenericVmConfigFault").with("reason", &reason).saying(reason)
}

fn bytes(gib: u32) -> u64 {
    u64::from(gib) << 30
}

/// Seats for a VM that is to be powered on on a host.
pub(in crate::sim) fn can_start(state: &State, vm: &Vm, host: u32) -> Result<Seats, Failure> {
    takes_vms(state, host)?;
    let found = seats::find(state, host, vm).map_err(misfit)?;
    if found.iter().any(Option::is_some) && vm.reserved_gib < vm.memory_gib {
        let what = "Invalid memory setting: memory reservation (sched.mem.min) should be equal to memsize.";
        return Err(refused(what)); // §1.15
    }
    large_bars(state, vm, host, &found)?;
    Ok(found)
}

/// F1, case A30: passed-through GPUs with large BARs need EFI and room for 64-bit MMIO.
fn large_bars(state: &State, vm: &Vm, host: u32, found: &Seats) -> Result<(), Failure> {
    let functions = state.hosts.get(&host).map(|host| host.functions.as_slice()).unwrap_or_default();
    let passed = found.iter().flatten().filter(|seat| seat.vgpu.is_none());
    let models = passed
        .filter_map(|seat| functions.iter().find(|function| function.address == seat.gpu)?.gpu.as_ref())
        .filter_map(|gpu| gpus::model(&gpu.model))
        .filter(|model| model.memory.gb >= LARGE_BAR_GB);
    let (mut count, mut needed) = (0_u32, 0_u32);
    for model in models {
        count += 1;
        needed = needed.saturating_add(model.mmio_gb.as_ref().map_or(0, |mmio| mmio.gb));
    }
    if count == 0 {
        return Ok(());
    }
    if vm.firmware == Firmware::Bios || !vm.is_set("pciPassthru.use64bitMMIO") {
        return Err(device_power_on("The device's memory is beyond 32 bits."));
    }
    // Without a size the host's own default holds, which nobody published.
    match vm.setting("pciPassthru.64bitMMIOSizeGB").and_then(|size| size.parse::<u32>().ok()) {
        Some(size) if size < needed => Err(device_power_on("The total number of pages needed exceeds the limit.")),
        _ => Ok(()),
    }
}

/// The host on which a power-on lands, with its seats. Without a host that the caller names DRS
/// chooses, if it is at least partially automated; a named host that does not fit is dropped for the
/// one that the VM is on (documentation of `PowerOnVM_Task`).
pub(in crate::sim) fn start_place(state: &State, number: u32, pinned: Option<u32>) -> Result<(u32, Seats), Failure> {
    let Some(vm) = state.vms.get(&number) else { return Err(Failure::of("ManagedObjectNotFound")) };
    let here = || can_start(state, vm, vm.host).map(|seats| (vm.host, seats));
    if let Some(host) = pinned {
        return can_start(state, vm, host).map(|seats| (host, seats)).or_else(|_| here());
    }
    match level(state, number, vm) {
        Ok(Some(DrsLevel::PartiallyAutomated | DrsLevel::FullyAutomated)) => {}
        Ok(Some(DrsLevel::Manual) | None) | Err(_) => return here(),
    }
    let fitting = siblings(state, vm.host).filter_map(|host| Some((host, can_start(state, vm, host).ok()?)));
    // F44: a closing host's own answer would be InvalidState, that of DRS is this one.
    roomiest(state, fitting).ok_or_else(|| match here() {
        Err(failure) if failure.kind != "InvalidState" => failure,
        _ => Failure::of("NoCompatibleHost"),
    })
}

/// All hosts of the cluster of a host.
fn siblings(state: &State, host: u32) -> impl Iterator<Item = u32> {
    let cluster = state.hosts.get(&host).map(|host| host.cluster);
    state.hosts.iter().filter(move |(_, other)| Some(other.cluster) == cluster).map(|(number, _)| *number)
}

fn cluster_of<'a>(state: &'a State, vm: &Vm) -> Option<&'a Cluster> {
    state.clusters.get(&state.hosts.get(&vm.host)?.cluster)
}

/// The host with most memory left to reserve, then the first.
fn roomiest(state: &State, fitting: impl Iterator<Item = (u32, Seats)>) -> Option<(u32, Seats)> {
    fitting.max_by_key(|(host, _)| {
        let memory = state.hosts.get(host).map_or(0, |host| host.memory_gib);
        (memory.saturating_sub(seats::reserved(state, *host)), std::cmp::Reverse(*host))
    })
}

/// The level of DRS that holds for a VM, none if DRS is off; an error if it may not touch the VM.
fn level(state: &State, number: u32, vm: &Vm) -> Result<Option<DrsLevel>, Failure> {
    let Some(drs) = cluster_of(state, vm).map(|cluster| &cluster.drs) else { return Ok(None) };
    let name = state.vms.get(&number).map(|vm| vm.name.as_str()).unwrap_or_default();
    match drs.overrides.iter().find(|one| one.vm == name) {
        Some(one) if !one.enabled && drs.level.is_some() => Err(Failure::of("DrsDisabledOnVm")),
        Some(one) => Ok(drs.level.map(|level| one.level.unwrap_or(level))),
        None => Ok(drs.level),
    }
}

/// Why a running VM can move to no host at all (§1.6, §3.4).
pub(in crate::sim) fn pinned_down(state: &State, vm: &Vm) -> Option<Failure> {
    let passed = |device: &VmDevice| matches!(device, VmDevice::DirectPath(_) | VmDevice::DynamicDirectPath(_));
    if vm.devices.iter().any(passed) {
        let what = "A PCI passthrough device is attached, which does not support migration.";
        return Some(Failure::of("DeviceNotSupported").with("device", "PCI device 0").saying(what));
    }
    if !has_vgpu(vm) {
        return None;
    }
    let host = state.hosts.get(&vm.host).map(|host| host.name.as_str()).unwrap_or_default();
    let failure = |what: &str| {
        let failure = Failure::of("MigrationFeatureNotSupported").with("atSourceHost", true);
        Some(failure.with("failedHostName", host).saying(what))
    };
    if state.options.get("vgpu.hotmigrate.enabled").is_none_or(|on| !on.eq_ignore_ascii_case("true")) {
        return failure("Migration of VMs with a vGPU is not enabled (vgpu.hotmigrate.enabled).");
    }
    if !vm.migrate {
        return failure("A vGPU is attached that does not support migration.");
    }
    let blocks = |key: &str| key.starts_with("pciPassthru") && BLOCKING_PARAMETERS.iter().any(|end| key.ends_with(end));
    if let Some(key) = vm.extra.keys().find(|key| blocks(key) && vm.is_set(key)) {
        return failure(&format!("{key} does not allow migration."));
    }
    None
}

fn has_vgpu(vm: &Vm) -> bool {
    vm.devices.iter().any(|device| matches!(device, VmDevice::Vgpu(_)))
}

/// Seats for a running VM on another host.
pub(in crate::sim) fn can_move_to(state: &State, vm: &Vm, to: u32) -> Result<Seats, Failure> {
    takes_vms(state, to)?;
    let branch = |host: u32| {
        let driver = state.hosts.get(&host)?.driver.as_ref()?;
        driver.version.split('.').next().map(str::to_owned)
    };
    if has_vgpu(vm) && branch(vm.host) != branch(to) {
        // F22: host drivers of two branches.
        return Err(Failure::of("DrsVmotionIncompatibleFault").saying("The host drivers of the vGPU differ."));
    }
    seats::find(state, to, vm).map_err(misfit)
}

/// What DRS does with a running VM of a host that closes.
pub(in crate::sim) fn outlook(state: &State, number: u32) -> Outlook {
    let stays = |why: Failure| Outlook::Stays { why, hosts: Vec::new() };
    let (Some(vm), Some(cluster)) =
        (state.vms.get(&number), state.vms.get(&number).and_then(|vm| cluster_of(state, vm)))
    else {
        return Outlook::Nothing;
    };
    let level = match level(state, number, vm) {
        Ok(None) => return Outlook::Nothing,
        Ok(Some(level)) => level,
        Err(why) => return stays(why),
    };
    if vm.power_off_policy || vm.is_set("maintenance.vm.evacuation.poweroff") {
        return Outlook::PowersOff; // §1.15
    }
    if let Some(why) = pinned_down(state, vm) {
        return stays(why);
    }
    if has_vgpu(vm) && cluster.drs.options.get("VgpuMMAutomationTimeoutSecs").is_none_or(|value| value.trim() != "-1") {
        // F37, KB 88271: then DRS gives no target at all.
        return stays(Failure::of("GenericDrsFault").saying("DRS does not move VMs with a vGPU automatically."));
    }
    let others: Vec<u32> = siblings(state, vm.host).filter(|host| *host != vm.host).collect();
    let usable = others.iter().filter(|host| takes_vms(state, **host).is_ok()).count();
    if cluster.admission.is_some_and(|kept| usable <= kept as usize) {
        return stays(Failure::of("InsufficientFailoverResourcesFault")); // F35, KB 311316
    }
    let asked: Vec<(u32, Result<Seats, Failure>)> =
        others.into_iter().map(|host| (host, can_move_to(state, vm, host))).collect();
    let fitting = asked.iter().filter_map(|(host, seats)| Some((*host, seats.as_ref().ok()?.clone())));
    match (roomiest(state, fitting), level) {
        (Some((to, seats)), DrsLevel::FullyAutomated) => Outlook::Moves { to, seats },
        (Some((to, _)), DrsLevel::PartiallyAutomated | DrsLevel::Manual) => Outlook::Recommends { to },
        (None, _) => {
            let hosts = asked.into_iter().filter_map(|(host, seats)| Some((host, seats.err()?))).collect();
            Outlook::Stays { why: Failure::of("NoCompatibleHost"), hosts }
        }
    }
}

/// Running VMs of the hosts of a cluster that are closing, with what DRS makes of each.
pub(in crate::sim) fn evacuations(state: &State, cluster: u32) -> Vec<(u32, Outlook)> {
    let closing = |host: u32| {
        state.hosts.get(&host).is_some_and(|known| known.cluster == cluster && !known.maintenance)
            && state.entering(host)
    };
    let leaving = state.vms.iter().filter(|(_, vm)| vm.runs_on(vm.host) && vm.bound.is_none() && closing(vm.host));
    leaving.map(|(number, _)| (*number, outlook(state, *number))).collect()
}
