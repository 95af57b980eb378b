//! The placement of several VMs on several hosts against a slow search that shares no code with it:
//! every way is tried, with the rule of same-size mode written out.

use poolwright::model::{Fact, VgpuSize};
use proptest::prelude::*;

use super::findings::make;
use super::vms::{HALF, QUARTER, Scene, find, runs};
use crate::support::seen::{H100, Set, cluster, desired, fleet, host, pool, vgpu, vgpu_device};

/// The types, and how many of each one GPU takes in same-size mode.
const TYPES: [(&str, usize); 3] = [("nvidia_h100l-94c", 1), (HALF, 2), (QUARTER, 4)];
const BUSES: [u8; 2] = [0x3b, 0xd8];

/// VMs as numbers of types, each with its memory in GiB.
type Vms = Vec<(Vec<usize>, u64)>;

/// A host: memory in GiB, and what runs on each of its GPUs.
type Other = (u64, Vec<Vec<usize>>);

/// Whether one GPU takes these.
fn takes(gpu: &[usize]) -> bool {
    gpu.iter().all(|kind| kind == &gpu[0]) && gpu.first().is_none_or(|kind| gpu.len() <= TYPES[*kind].1)
}

/// Every way to lay the vGPUs of a VM, from the first on, on different GPUs.
fn lay(gpus: &[Vec<usize>], used: &[usize], vgpus: &[usize], rest: &mut dyn FnMut(&[Vec<usize>]) -> bool) -> bool {
    let Some((first, others)) = vgpus.split_first() else { return rest(gpus) };
    (0..gpus.len()).filter(|gpu| !used.contains(gpu)).any(|gpu| {
        let mut next = gpus.to_vec();
        next[gpu].push(*first);
        let used: Vec<usize> = used.iter().copied().chain([gpu]).collect();
        takes(&next[gpu]) && lay(&next, &used, others, rest)
    })
}

/// Whether there is a way for all VMs.
fn any_way(hosts: &[Other], vms: &[(Vec<usize>, u64)]) -> bool {
    let Some(((vgpus, memory), others)) = vms.split_first() else { return true };
    (0..hosts.len()).any(|host| {
        let (free, gpus) = &hosts[host];
        free >= memory
            && lay(gpus, &[], vgpus, &mut |gpus| {
                let mut next = hosts.to_vec();
                next[host] = (free - memory, gpus.to_vec());
                any_way(&next, others)
            })
    })
}

fn planned(others: &[Other], vms: &Vms) -> bool {
    let names = TYPES.map(|(name, _)| name.to_owned()).to_vec();
    let mut leaving = host(H100, &BUSES.map(|bus| (bus, Set::Same)));
    for (index, (vgpus, memory)) in vms.iter().enumerate() {
        let name = format!("vm-{index}");
        let devices = vgpus.iter().map(|kind| vgpu_device(TYPES[*kind].0)).collect();
        runs(&mut leaving, &name, devices, &BUSES[..vgpus.len()]);
        find(&mut leaving, &name).reserved_mib = Fact::Known(memory << 10);
    }
    let mut hosts = vec![("esx-01".to_owned(), leaving)];
    for (index, (memory, gpus)) in others.iter().enumerate() {
        let mut view = host(H100, &BUSES.map(|bus| (bus, Set::Same)));
        view.vgpu_types = Fact::Known(names.clone());
        view.memory_mib = Fact::Known(memory << 10);
        for (gpu, kinds) in gpus.iter().enumerate() {
            for (number, kind) in kinds.iter().enumerate() {
                let name = format!("there-{index}-{gpu}-{number}");
                runs(&mut view, &name, vec![vgpu_device(TYPES[*kind].0)], &[BUSES[gpu]]);
                find(&mut view, &name).reserved_mib = Fact::Known(0);
            }
        }
        hosts.push((format!("esx-0{}", index + 2), view));
    }
    let mut seen = fleet(hosts.iter().map(|(name, view)| (name.as_str(), view.clone())).collect());
    seen.clusters.values_mut().for_each(|found| *found = Fact::Known(cluster()));
    let plan = make(&desired(vec![pool(H100, 2, vgpu(VgpuSize::Mixed), &["esx-01"])]), &seen);
    assert!(plan.hosts.len() == 1 || plan.findings.iter().any(|finding| finding.id.0 == "PW-VM-03"));
    for fate in plan.hosts.iter().flat_map(|host| &host.fates) {
        assert!(matches!(&fate.fate, poolwright::plan::Fate::Moves { to, .. } if to.as_str() != "esx-01"));
    }
    plan.hosts.len() == 1
}

fn gpu() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![2 => Just(vec![]), 1 => (0..3usize).prop_map(|kind| vec![kind]), 1 => Just(vec![2, 2]), 1 => Just(vec![2, 2, 2])]
}

proptest! {
    #[test]
    fn vms_find_room_exactly_where_there_is_some(
        others in proptest::collection::vec((0..5u64, proptest::collection::vec(gpu(), 2)), 1..=3),
        vms in proptest::collection::vec((proptest::collection::vec(0..3usize, 0..=2), 0..3u64), 1..=4),
    ) {
        prop_assert_eq!(planned(&others, &vms), any_way(&others, &vms));
    }
}

#[test]
fn what_is_placed_is_not_placed_by_taking_the_first_that_fits() {
    // The half fits both hosts, the whole GPU only the first: whoever takes the half first is stuck.
    let others = [(9, vec![vec![], vec![0]]), (9, vec![vec![1], vec![0]])];
    assert!(planned(&others, &vec![(vec![1], 1), (vec![0], 1)]));
    assert!(!planned(&others, &vec![(vec![0], 1), (vec![0], 1)]));
    assert_eq!(Scene::new().plan().hosts.len(), 1);
}
