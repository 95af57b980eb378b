//! The data: complete, consistent, each row with its sources.

use std::collections::{BTreeMap, BTreeSet};

use poolwright::catalog::{TypeKind, catalog, digest};

/// The counts that the research states for its data (models, types, geometry), so that a row lost
/// in an edit is seen.
#[test]
fn counts_are_those_of_the_research() {
    let models = catalog().models();
    let types = || models.iter().flat_map(|model| &model.types);
    let time_sliced = || types().filter(|vgpu| matches!(vgpu.kind, TypeKind::TimeSliced { .. }));
    assert_eq!(models.len(), 36);
    assert_eq!(models.iter().filter(|model| !model.unverified.is_empty()).count(), 7);
    assert_eq!(time_sliced().count(), 462);
    assert_eq!(time_sliced().filter(|vgpu| vgpu.unverified).count(), 7);
    assert_eq!(types().count(), 462 + 174);
    assert_eq!(types().filter(|vgpu| vgpu.seen).count(), 29);

    let profiles = || models.iter().filter_map(|model| model.mig.as_ref()).flat_map(|mig| &mig.profiles);
    assert_eq!(profiles().count(), 149);
    assert_eq!(profiles().filter(|profile| !profile.unverified.is_empty()).count(), 70);
    assert_eq!(profiles().map(|profile| profile.starts.len()).sum::<usize>(), 518);
    let inferred = profiles().filter(|profile| profile.unverified.iter().any(|field| field == "starts"));
    assert_eq!(inferred.map(|profile| profile.starts.len()).sum::<usize>(), 200);

    // Every published table, and the three that follow the driver's rule.
    let rows = |unverified| -> usize {
        let regions = catalog().regions().iter().filter(|region| region.unverified == unverified);
        regions.map(|region| region.sizes.len()).sum()
    };
    assert_eq!((rows(false), rows(true)), (71, 29));
    assert_eq!(catalog().rules().len(), 56);
    assert_eq!(catalog().rules().iter().filter(|rule| rule.unverified.is_some()).count(), 7);
    assert_eq!(models.iter().filter(|model| model.nvlink.unverified.is_empty()).count(), 4);
    assert_eq!(catalog().branches().table.len(), 9);
    assert_eq!(catalog().gates().len(), 17);
}

#[test]
fn every_row_names_sources_that_exist_and_every_source_is_used() {
    let mut used = BTreeSet::new();
    let mut check = |what: &str, sources: &poolwright::catalog::Sources| {
        assert!(!sources.0.is_empty(), "{what} has no source");
        for id in &sources.0 {
            assert!(catalog().sources().contains_key(id), "{what}: no source {id}");
            used.insert(id.clone());
        }
    };
    for model in catalog().models() {
        check(&model.id, &model.sources);
        check(&model.id, &model.nvlink.sources);
        for pci in &model.pci {
            check(&model.id, &pci.sources);
        }
        if let Some(mmio) = &model.mmio_gb {
            check(&model.id, &mmio.sources);
        }
        for vgpu in &model.types {
            check(&vgpu.name, &vgpu.sources);
        }
        for profile in model.mig.iter().flat_map(|mig| &mig.profiles) {
            check(&profile.name, &profile.sources);
        }
    }
    for region in catalog().regions() {
        check(&region.name, &region.sources);
    }
    for gate in catalog().gates() {
        check(&gate.id, &gate.sources);
    }
    for rule in catalog().rules() {
        check(&rule.id, &rule.sources);
    }
    for branch in &catalog().branches().table {
        check(&branch.driver, &branch.sources);
    }
    check("compatibility", &catalog().branches().sources);
    let unused: Vec<&String> = catalog().sources().keys().filter(|id| !used.contains(*id)).collect();
    assert!(unused.is_empty(), "sources that nothing names: {unused:?}");
}

#[test]
fn maxima_agree_with_geometry_and_framebuffer() {
    for model in catalog().models() {
        for vgpu in &model.types {
            match &vgpu.kind {
                TypeKind::Mig { profile, max, per_instance } => {
                    let found = model.mig_profile(profile).unwrap();
                    assert_eq!(*max, found.max * per_instance, "{}", vgpu.name);
                }
                TypeKind::TimeSliced { same, mixed } => {
                    if let (Some(mixed), Some(same)) = (mixed, same) {
                        assert!(mixed <= same, "{}", vgpu.name);
                    }
                    if let (Some(same), Some(fb), Some(mib)) = (same, vgpu.memory_mib, model.memory.mib) {
                        // 94 GB: the sizes that NVIDIA prints are rounded, 2 x 48128 is 10 MiB more.
                        assert!(same * fb <= mib + 10, "{}", vgpu.name);
                    }
                }
            }
        }
        for profile in model.mig.iter().flat_map(|mig| &mig.profiles) {
            let slices = model.mig.as_ref().unwrap().memory_slices;
            assert!(profile.starts.iter().all(|start| start + profile.memory <= slices), "{}", profile.name);
        }
    }
}

#[test]
fn placement_ids_do_not_overlap() {
    for region in catalog().regions() {
        for size in &region.sizes {
            assert_eq!(size.ids.len(), size.mixed as usize, "{} {}", region.name, size.fb);
            assert!(size.mixed <= size.same, "{} {}", region.name, size.fb);
            assert!(size.ids.windows(2).all(|pair| pair[0] + size.gb <= pair[1]), "{} {}", region.name, size.fb);
        }
    }
}

/// No PCI id is listed for two models.
#[test]
fn pci_ids_are_unique() {
    let mut seen = BTreeMap::new();
    for model in catalog().models() {
        for pci in &model.pci {
            for subsystem in &pci.subsystems {
                assert_eq!(seen.insert((pci.device, subsystem), &model.id), None, "{:04x}:{subsystem:04x}", pci.device);
            }
        }
    }
}

/// Plans carry it: the same files, the same digest, on every machine.
#[test]
fn the_digest_is_a_sha_256_of_fixed_length() {
    assert_eq!(digest().len(), 64);
    assert!(digest().bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase()));
    assert_eq!(digest(), digest());
}

/// Rules that answers name exist.
#[test]
fn rules_named_by_answers_are_in_the_catalogue() {
    let sources = ["decide", "instances", "mig", "mixed", "same"].map(|file| {
        let path = format!("{}/src/catalog/fit/{file}.rs", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).unwrap()
    });
    let quoted = sources.iter().flat_map(|text| text.split('"').skip(1).step_by(2));
    let areas = ["NAME-", "HOST-", "TS-", "MIG-"];
    let named: BTreeSet<&str> =
        quoted.filter(|text| areas.iter().any(|area| text.starts_with(area)) && text.len() < 8).collect();
    assert!(named.len() >= 8, "{named:?}");
    for id in named {
        assert!(catalog().rules().iter().any(|rule| rule.id == id), "{id}");
    }
}

/// What a check asks for by id is there.
#[test]
fn gates_are_found_by_the_checks() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/catalog/gate.rs")).unwrap();
    let pushed: Vec<&str> =
        text.split("push(\"").skip(1).filter_map(|rest| rest.split_once('"')).map(|(id, _)| id).collect();
    assert!(pushed.len() >= 9, "{pushed:?}");
    for id in pushed {
        assert!(catalog().gates().iter().any(|gate| gate.id == id), "{id}");
    }
}
