//! Benches: `cargo bench` runs them all, `cargo bench -- plan` some. Figures and method are in
//! docs/performance.md.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::process::{Command, Stdio};

use divan::{Bencher, black_box};
use poolwright::catalog::{Beside, Combination, FitMode, catalog};
use poolwright::model::{At, VgpuSize};
use poolwright::{plan, profile};

/// The hosts that tests of the planner are given.
#[path = "../tests/support/seen.rs"]
#[allow(dead_code)]
mod seen;

fn main() {
    // Parsed once for all, as in the product; `first_use_of_the_catalogue` measures that.
    black_box(catalog());
    divan::main();
}

/// Hosts of a pool: a fleet has many pools, and a large one is a few hundred hosts.
const POOL: usize = 250;

/// The plan of a fleet, each host with four GPUs to be taken from passthrough to vGPU. Per host it
/// should cost the same, whatever the size of the fleet.
#[divan::bench(args = [1_000, 10_000], sample_count = 10)]
fn plan(bencher: Bencher, hosts: usize) {
    let names: Vec<String> = (0..hosts).map(|n| format!("esx-{n:05}")).collect();
    let gpus = [0x3b, 0x5e, 0xd8, 0xaf].map(|bus| (bus, seen::Set::Passthrough(None)));
    let observed = seen::fleet(names.iter().map(|name| (name.as_str(), seen::host(seen::H100, &gpus))).collect());
    let pools = names.chunks(POOL).enumerate().map(|(n, names)| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut pool = seen::pool(seen::H100, 4, seen::vgpu(VgpuSize::Same), &names);
        pool.name = At::new(format!("pool-{n:03}"), seen::place(3));
        pool.rollout.max_unavailable = At::new(u32::MAX, seen::place(20));
        pool
    });
    let desired = seen::desired(pools.collect());
    let now = "2026-11-30T20:00:00Z".parse().unwrap();
    let made = plan::plan(&desired, &observed, &[], "bench", now);
    assert_eq!(made.hosts.len(), hosts, "every host is to be changed: {:?}", made.findings.first());
    bencher.counter(hosts).bench(|| plan::plan(black_box(&desired), black_box(&observed), &[], "bench", now));
}

/// Reading and checking of profiles, each in a file of its own, with one inventory: what `validate`
/// does after the files are in memory.
#[divan::bench(args = [100, 1_000], sample_count = 10)]
fn validate(bencher: Bencher, profiles: usize) {
    let site = "apiVersion: poolwright/v1\nkind: Site\nmetadata: {name: lab}\nspec:\n  vcenter:\n    address: vc.lab\n    \
                credentials: {user: pw, password: \"env:PW\"}\n";
    let mut files = vec![("inventories/lab.yaml".to_owned(), site.as_bytes().to_vec())];
    for n in 0..profiles {
        let text = format!(
            "apiVersion: poolwright/v1\nkind: GpuPool\nmetadata: {{name: pool-{n:04}}}\nspec:\n  \
             hosts: {{site: lab, cluster: gpu-{n:04}, names: [\"esx-{n:04}-*\"]}}\n  gpuModel: l40s\n  gpuCount: 4\n  \
             gpus:\n    - select: {{count: 2}}\n      mode: {{vgpu: {{size: mixed}}}}\n      \
             offers: [{{nvidia_l40s-24q: 1, nvidia_l40s-12q: 2}}, {{nvidia_l40s-6q: 8}}]\n    \
             - select: {{count: 2}}\n      mode: {{vgpu: {{size: same}}}}\n      offers: [{{nvidia_l40s-12q: 4}}]\n  \
             rollout: {{maxUnavailable: 1, maxReboots: 2}}\n"
        );
        files.push((format!("profiles/pool-{n:04}.yaml"), text.into_bytes()));
    }
    let check = || {
        let loaded = profile::load(&files);
        let findings = profile::check(&loaded, None);
        (loaded, findings)
    };
    let (loaded, _) = check();
    assert_eq!((loaded.pools.len(), loaded.problems.len()), (profiles, 0), "{:?}", loaded.problems.first());
    bencher.counter(profiles).bench(check);
}

/// Questions to the solver, from easy to hard.
#[divan::bench(args = ["mig fits", "mig does not fit", "mig beside unplaced", "mixed fits", "mixed far too much"])]
fn fit(bencher: Bencher, question: &str) {
    let (model, mode, want, beside) = match question {
        "mig fits" => ("h100-nvl-94", FitMode::MigVgpu, "nvidia_h100l-3-47c=1 nvidia_h100l-1-12c=4", ""),
        "mig does not fit" => ("h100-nvl-94", FitMode::MigVgpu, "nvidia_h100l-1-24c=3 nvidia_h100l-3-47c=1", ""),
        "mig beside unplaced" => ("h100-nvl-94", FitMode::MigVgpu, "nvidia_h100l-2-24c=1", "nvidia_h100l-1-12c=3"),
        "mixed fits" => ("l40s", FitMode::Mixed, "nvidia_l40s-24q=1 nvidia_l40s-6q=2 nvidia_l40s-3q=4", ""),
        _ => (
            "h200-nvl-141",
            FitMode::Mixed,
            "nvidia_h200-70c=7 nvidia_h200-35c=7 nvidia_h200-8c=7",
            "nvidia_h200-14c=2",
        ),
    };
    let want: Combination = want
        .split_whitespace()
        .map(|part| part.split_once('=').map(|(name, n)| (name.to_owned(), n.parse().unwrap())).unwrap())
        .collect();
    let beside: Vec<Beside> = beside.split_whitespace().map(|one| one.parse().unwrap()).collect();
    let model = catalog().model(model).unwrap();
    bencher.bench(|| catalog().fit(black_box(model), mode, black_box(&want), &beside));
}

fn run(arguments: &[&str]) {
    let program = env!("CARGO_BIN_EXE_poolwright");
    let status = Command::new(program).args(arguments).stdout(Stdio::null()).status().unwrap();
    assert!(status.success());
}

/// The whole process: start, print, end.
#[divan::bench(sample_count = 100)]
fn version() {
    run(&["--version"]);
}

/// The same with the embedded catalogue read and one model printed: the difference is its parsing.
#[divan::bench(sample_count = 100)]
fn first_use_of_the_catalogue() {
    run(&["catalog", "t4"]);
}
