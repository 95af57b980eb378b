//! Room for VMs on the other hosts of a cluster: memory, and vGPUs beside what runs there.
//!
//! ```text
//!   neighbours ──of()──► Room   hosts that may take VMs, and why the others may not
//!   Room + guests ──place()──► a host for each guest, all at once; or who finds none, and why
//! ```
//!
//! A placement proves that there is one. DRS makes its own, VM by VM, so it may still end in a corner;
//! the visit then fails and says so.

use std::collections::BTreeMap;

use super::around::Near;
use super::blocks::{TaskKind, not_connected, own_vms, powered_on_vms, running, vm_name};
use super::device::{Devices, Gap};
use super::driver;
use crate::catalog::{Beside, Combination, FitMode, Model, catalog, same_type};
use crate::model::{
    ClusterView, Fact, GraphicsType, HostName, HostRecord, HostView, MoRef, PciAddress, VgpuMode, VmGpuDevice,
};

/// Placements that are tried for one answer: far more than the VMs of one host ask for, and a bound on
/// what a strange fleet may cost.
const TRIES: u32 = 20_000;

/// A VM that looks for a place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Guest {
    /// Types of its vGPUs.
    pub vgpus: Vec<String>,
    /// Memory that its host must have free, MiB.
    pub reserved_mib: u64,
    /// Name.
    pub name: String,
    /// The VM.
    pub vm: MoRef,
}

/// Who finds no place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NoRoom {
    /// Index of the guest.
    pub guest: usize,
    /// Each host and why it does not take the guest.
    pub why: Vec<String>,
}

/// Room on some hosts.
#[derive(Debug, Clone)]
pub(super) struct Room {
    berths: Vec<Berth>,
    closed: Vec<(HostName, String)>,
}

/// Room on one host.
#[derive(Debug, Clone)]
pub(super) struct Berth {
    /// The host.
    pub host: HostName,
    /// Memory that is not reserved, MiB.
    pub free_mib: u64,
    /// GPUs that take vGPUs.
    pub gpus: Vec<Bay>,
    /// Types that the host lists as startable; none where it is not asked.
    pub listed: Option<Vec<String>>,
    /// Why it takes no vGPU at all, if so.
    pub no_vgpu: Option<String>,
}

/// A GPU that takes vGPUs.
#[derive(Debug, Clone)]
pub(super) struct Bay {
    /// Model.
    pub model: &'static Model,
    /// Mode.
    pub mode: FitMode,
    /// What runs on it.
    pub running: Combination,
}

impl Room {
    /// Room on the hosts beside `leaving`, which are of one cluster.
    pub fn of(leaving: &HostView, near: &Near) -> Self {
        let mut room = Self { berths: Vec::new(), closed: Vec::new() };
        for record in &near.neighbours {
            match berth(leaving, &near.cluster, record) {
                Ok(berth) => room.berths.push(berth),
                Err(why) => room.closed.push((record.host.name.clone(), why)),
            }
        }
        room.berths.sort_by(|a, b| a.host.cmp(&b.host));
        room.closed.sort();
        room
    }

    /// Room on one host alone.
    pub fn alone(berth: Berth) -> Self {
        Self { berths: vec![berth], closed: Vec::new() }
    }

    /// Takes a host out, if it takes VMs.
    pub fn take(&mut self, host: &HostName) -> Option<Berth> {
        let at = self.berths.iter().position(|berth| berth.host == *host)?;
        Some(self.berths.remove(at))
    }

    /// Puts a host in.
    pub fn put(&mut self, berth: Berth) {
        self.berths.push(berth);
        self.berths.sort_by(|a, b| a.host.cmp(&b.host));
    }

    /// A host for each guest, all at once, and the room that is left; in the order of the guests.
    pub fn place(&mut self, guests: &[Guest]) -> Result<Vec<HostName>, NoRoom> {
        let mut order: Vec<usize> = (0..guests.len()).collect();
        order.sort_by_key(|index| std::cmp::Reverse(size(&guests[*index])));
        let mut search = Search { guests, order, tries: TRIES, deepest: 0, fits: BTreeMap::new() };
        let mut chosen = vec![0; guests.len()];
        if search.go(0, &mut self.berths, &mut chosen) {
            return Ok(chosen.into_iter().map(|index| self.berths[index].host.clone()).collect());
        }
        let (spent, guest) = (search.tries == 0, search.order[search.deepest]);
        let mut why: Vec<String> = self.closed.iter().map(|(host, why)| format!("{host}: {why}")).collect();
        for berth in &self.berths {
            let alone = search.alone(berth, &guests[guest]);
            why.push(format!("{}: {}", berth.host, alone.err().unwrap_or_else(|| "full with the others".to_owned())));
        }
        if spent {
            why.push("too many ways to place them, and not all were tried".to_owned());
        }
        Err(NoRoom { guest, why })
    }
}

/// What is hard to place comes first.
fn size(guest: &Guest) -> (u32, usize, u64) {
    let memory = |name: &String| catalog().vgpu_type(name).map_or(0, |(_, vgpu)| vgpu.memory_gb);
    (guest.vgpus.iter().map(memory).max().unwrap_or(0), guest.vgpus.len(), guest.reserved_mib)
}

struct Search<'a> {
    guests: &'a [Guest],
    order: Vec<usize>,
    tries: u32,
    /// The first of the order that found no place.
    deepest: usize,
    fits: BTreeMap<(String, FitMode, Combination, String), bool>,
}

impl Search<'_> {
    /// Places the guests from `at` of the order on; undone where it fails.
    fn go(&mut self, at: usize, berths: &mut [Berth], chosen: &mut [usize]) -> bool {
        let Some(&index) = self.order.get(at) else { return true };
        self.deepest = self.deepest.max(at);
        let guest = &self.guests[index];
        // Guests that are alike are placed in the order of the hosts: another order is the same again.
        let before = at.checked_sub(1).map(|before| self.order[before]);
        let first = before.filter(|before| alike(&self.guests[*before], guest)).map_or(0, |before| chosen[before]);
        for host in first..berths.len() {
            let Some(free) = berths[host].free_mib.checked_sub(guest.reserved_mib) else { continue };
            let mut ways = Vec::new();
            self.ways(&berths[host], &guest.vgpus, &mut Vec::new(), &mut ways);
            for way in ways {
                let Some(tries) = self.tries.checked_sub(1) else { return false };
                self.tries = tries;
                let before = berths[host].clone();
                berths[host].free_mib = free;
                for (vgpu, gpu) in guest.vgpus.iter().zip(way) {
                    *berths[host].gpus[gpu].running.entry(vgpu.clone()).or_default() += 1;
                }
                chosen[index] = host;
                if self.go(at + 1, berths, chosen) {
                    return true;
                }
                berths[host] = before;
            }
        }
        false
    }

    /// All ways to lay the vGPUs on the GPUs of a host, each a GPU of its own: one GPU never serves
    /// one VM twice as far as anybody knows (docs/assumptions.md).
    fn ways(&mut self, berth: &Berth, vgpus: &[String], way: &mut Vec<usize>, found: &mut Vec<Vec<usize>>) {
        let Some(vgpu) = vgpus.get(way.len()) else { return found.push(way.clone()) };
        if !lists(berth, vgpu) {
            return;
        }
        for gpu in 0..berth.gpus.len() {
            // Of GPUs that are alike the first that is left stands for all.
            let twin = |other: usize| !way.contains(&other) && berth.gpus[other].is_like(&berth.gpus[gpu]);
            if way.contains(&gpu) || (0..gpu).any(twin) || !self.fits(&berth.gpus[gpu], vgpu) {
                continue;
            }
            way.push(gpu);
            self.ways(berth, vgpus, way, found);
            way.pop();
        }
    }

    /// Whether a vGPU fits beside what runs, wherever that sits.
    fn fits(&mut self, bay: &Bay, vgpu: &str) -> bool {
        let key = (bay.model.id.clone(), bay.mode, bay.running.clone(), vgpu.to_owned());
        *self.fits.entry(key).or_insert_with(|| bay.fits(vgpu))
    }

    /// Why the host does not take the guest, were it the only one.
    fn alone(&mut self, berth: &Berth, guest: &Guest) -> Result<(), String> {
        if berth.free_mib < guest.reserved_mib {
            let gib = |mib: u64| mib / 1024;
            return Err(format!("{} GiB of memory free, {} reserved", gib(berth.free_mib), gib(guest.reserved_mib)));
        }
        if let Some(why) = berth.no_vgpu.as_ref().filter(|_| !guest.vgpus.is_empty()) {
            return Err(why.clone());
        }
        if let Some(vgpu) = guest.vgpus.iter().find(|vgpu| !lists(berth, vgpu)) {
            return Err(format!("does not offer vGPU {vgpu} now"));
        }
        let mut ways = Vec::new();
        self.ways(berth, &guest.vgpus, &mut Vec::new(), &mut ways);
        if ways.is_empty() { Err(format!("no GPU has room for {}", guest.vgpus.join(" and "))) } else { Ok(()) }
    }
}

fn alike(one: &Guest, other: &Guest) -> bool {
    (&one.vgpus, one.reserved_mib) == (&other.vgpus, other.reserved_mib)
}

fn lists(berth: &Berth, vgpu: &str) -> bool {
    berth.listed.as_ref().is_none_or(|listed| listed.iter().any(|name| same_type(name, vgpu)))
}

impl Bay {
    fn is_like(&self, other: &Self) -> bool {
        (&self.model.id, self.mode, &self.running) == (&other.model.id, other.mode, &other.running)
    }

    fn fits(&self, vgpu: &str) -> bool {
        let want = Combination::from([(vgpu.to_owned(), 1)]);
        let beside: Vec<Beside> =
            self.running.iter().map(|(vgpu, count)| Beside::Running { vgpu: vgpu.clone(), count: *count }).collect();
        catalog().fit(self.model, self.mode, &want, &beside).fits == Some(true)
    }
}

/// Room on a host, or why it takes no VMs.
fn berth(leaving: &HostView, cluster: &Fact<&ClusterView>, record: &HostRecord) -> Result<Berth, String> {
    let view = record.view.as_ref().map_err(|fault| fault.message.clone())?;
    if let Some(why) = not_connected(view) {
        return Err(why);
    }
    match &view.in_maintenance {
        Fact::Known(false) => {}
        Fact::Known(true) => return Err("it is in maintenance mode".to_owned()),
        Fact::Absent | Fact::Unknown { .. } => return Err("whether it is in maintenance mode is not known".to_owned()),
    }
    if running(view, TaskKind::Enter).is_some() {
        return Err("it enters maintenance mode".to_owned());
    }
    if view.marker != Fact::Absent {
        return Err("a run has marked it".to_owned());
    }
    let kept_free = |cluster: &&ClusterView| {
        cluster.ha_admission.known().is_some_and(|ha| ha.failover_hosts.contains(&record.host.moref))
    };
    if cluster.known().is_some_and(kept_free) {
        return Err("it is kept free for failover".to_owned());
    }
    stocked(&record.host.name, leaving, view).map_err(|gap| gap.to_string())
}

/// The room on a host that takes VMs.
fn stocked(host: &HostName, leaving: &HostView, view: &HostView) -> Result<Berth, Gap> {
    let mut free_mib = *Gap::need(&view.memory_mib, "hardware.memorySize")?;
    for vm in powered_on_vms(view)? {
        free_mib = free_mib.saturating_sub(*Gap::need(&vm.reserved_mib, "config.memoryAllocation")?);
    }
    let listed = Gap::optional(&view.vgpu_types, "config.sharedPassthruGpuTypes");
    let (gpus, listed, no_vgpu) = match (bays(view), listed) {
        _ if !driver::same(leaving, view) => {
            (Vec::new(), None, Some("its host driver is another one, or could not be read".to_owned()))
        }
        (Ok(bays), Ok(listed)) => (bays.into_values().collect(), Some(listed.cloned().unwrap_or_default()), None),
        (Err(gap), _) | (_, Err(gap)) => (Vec::new(), None, Some(gap.to_string())),
    };
    Ok(Berth { host: host.clone(), free_mib, gpus, listed, no_vgpu })
}

/// The GPUs that take vGPUs now, with what runs on them.
fn bays(view: &HostView) -> Result<BTreeMap<PciAddress, Bay>, Gap> {
    let devices = Devices::of(view)?;
    let mut bays = BTreeMap::new();
    for state in Gap::optional(&view.graphics_active, "config.graphicsInfo")?.into_iter().flatten() {
        let mode = match &state.vgpu_mode {
            _ if state.graphics_type != GraphicsType::SharedDirect => continue,
            Fact::Known(VgpuMode::SameSize) => FitMode::Same,
            Fact::Known(VgpuMode::MixedSize) => FitMode::Mixed,
            Fact::Known(VgpuMode::MultiInstanceGpu) => FitMode::MigVgpu,
            Fact::Known(VgpuMode::None | VgpuMode::Other(_)) | Fact::Absent | Fact::Unknown { .. } => continue,
        };
        let Some(model) = devices.at(state.address).and_then(|device| catalog().identify(device.id).model()) else {
            continue;
        };
        bays.insert(state.address, Bay { model, mode, running: Combination::new() });
    }
    if bays.is_empty() {
        return Ok(bays);
    }
    for vm in own_vms(view)? {
        let vgpus: Vec<&String> = match &vm.gpus {
            Fact::Known(devices) => devices.iter().filter_map(vgpu).collect(),
            Fact::Absent => Vec::new(),
            Fact::Unknown { why } => return Err(Gap { what: format!("devices of {}", vm_name(vm)), why: why.clone() }),
        };
        let used: Vec<PciAddress> =
            bays_of(view).filter(|(_, vms)| vms.contains(&vm.moref)).map(|(address, _)| address).collect();
        let runs = powered_on_vms(view)?.iter().any(|on| on.moref == vm.moref);
        // Where each of different vGPUs sits is not said, nor what a VM uses that shows none.
        let clear = used.len() == vgpus.len() && vgpus.windows(2).all(|pair| pair[0] == pair[1]);
        match vgpus.first() {
            _ if !runs && used.is_empty() => {}
            None if used.is_empty() => {}
            Some(vgpu) if clear => {
                for address in used {
                    if let Some(bay) = bays.get_mut(&address) {
                        *bay.running.entry((*vgpu).clone()).or_default() += 1;
                    }
                }
            }
            _ => {
                let what = format!("which GPUs {} uses", vm_name(vm));
                return Err(Gap { what, why: "the host does not tell its vGPUs apart".to_owned() });
            }
        }
    }
    Ok(bays)
}

fn bays_of(view: &HostView) -> impl Iterator<Item = (PciAddress, &Vec<MoRef>)> {
    view.graphics_active.known().into_iter().flatten().map(|state| (state.address, &state.vms))
}

/// The type of a vGPU.
pub(super) fn vgpu(device: &VmGpuDevice) -> Option<&String> {
    match device {
        VmGpuDevice::Vgpu { name, .. } => Some(name),
        VmGpuDevice::DirectPath { .. } | VmGpuDevice::DynamicDirectPath { .. } | VmGpuDevice::Other(_) => None,
    }
}
