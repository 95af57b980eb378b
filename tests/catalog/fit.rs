//! Answers that people would check by hand.

use std::collections::BTreeMap;

use poolwright::catalog::{Beside, Combination, EsxiVersion, Fit, FitMode, catalog};

fn combination(text: &str) -> Combination {
    text.split_whitespace()
        .map(|part| {
            let (name, n) = part.rsplit_once('=').unwrap();
            (name.to_owned(), n.parse().unwrap())
        })
        .collect()
}

fn fit(model: &str, mode: FitMode, want: &str, beside: &str) -> Fit {
    let beside: Vec<Beside> = beside.split_whitespace().map(|one| one.parse().unwrap()).collect();
    catalog().fit(catalog().model(model).unwrap(), mode, &combination(want), &beside)
}

fn fits(model: &str, mode: FitMode, want: &str, beside: &str) -> Option<bool> {
    fit(model, mode, want, beside).fits
}

use FitMode::{MigVgpu, Mixed, Same};

#[test]
fn offers_of_the_design_page() {
    assert_eq!(fits("h100-nvl-94", MigVgpu, "nvidia_h100l-3-47c=2", ""), Some(true));
    assert_eq!(fits("h100-nvl-94", MigVgpu, "nvidia_h100l-1-12c=7", ""), Some(true));
    assert_eq!(fits("h100-nvl-94", MigVgpu, "nvidia_h100l-1-12c=8", ""), Some(false));
}

#[test]
fn three_wide_1g_and_a_3g_do_not_fit() {
    let fit = fit("h100-sxm5-80", MigVgpu, "nvidia_h100xm-1-20c=3 nvidia_h100xm-3-40c=1", "");
    assert_eq!(fit.fits, Some(false));
    assert_eq!(fit.first_misfit.as_deref(), Some("nvidia_h100xm-1-20c"));
    assert!(fit.why.contains("10 of 8 memory slices"), "{}", fit.why);
    assert_eq!(
        fit.nearest,
        [combination("nvidia_h100xm-3-40c=1 nvidia_h100xm-1-20c=2"), combination("nvidia_h100xm-1-20c=4"),]
    );
}

/// The answer depends on where the running instance sits: at 0 it blocks the only start of 4g.
#[test]
fn where_a_running_instance_sits_decides() {
    let want = "nvidia_h100l-4-47c=1";
    assert_eq!(fits("h100-nvl-94", MigVgpu, want, ""), Some(true));
    assert_eq!(fits("h100-nvl-94", MigVgpu, want, "3g.47gb@4"), Some(true));
    assert_eq!(fits("h100-nvl-94", MigVgpu, want, "3g.47gb@0"), Some(false));
    let unknown = fit("h100-nvl-94", MigVgpu, want, "nvidia_h100l-3-47c=1");
    assert_eq!(unknown.fits, None);
    assert!(unknown.why.contains("where the running ones sit"), "{}", unknown.why);
    // What fits beside every place of it.
    assert_eq!(fits("h100-nvl-94", MigVgpu, "nvidia_h100l-3-47c=1", "nvidia_h100l-3-47c=1"), Some(true));
    assert_eq!(fits("h100-nvl-94", MigVgpu, "nvidia_h100l-7-94c=1", "nvidia_h100l-1-12c=1"), Some(false));
}

#[test]
fn what_cannot_run_makes_the_answer_unknown() {
    for beside in ["nvidia_h100l-7-94c=2", "3g.47gb@2", "3g.47gb@0 4g.47gb@0", "5g.1gb@0", "nvidia_h100l-1-99c=1"] {
        let fit = fit("h100-nvl-94", MigVgpu, "nvidia_h100l-1-12c=1", beside);
        assert_eq!(fit.fits, None, "{beside}: {}", fit.why);
        assert!(fit.why.contains("said to run"), "{}", fit.why);
        assert!(fit.nearest.is_empty());
    }
}

#[test]
fn media_engines_go_once() {
    assert_eq!(fits("a30", MigVgpu, "nvidia_a30-1-6cme=1 nvidia_a30-2-12cme=1", ""), Some(false));
    assert_eq!(fits("a30", MigVgpu, "nvidia_a30-1-6cme=1 nvidia_a30-2-12c=1", ""), Some(true));
    assert_eq!(fits("a100-pcie-40", MigVgpu, "grid_a100-1-5cme=2", ""), Some(false));
    // RTX PRO: all media engines in one instance leave none to instances that carry vGPUs.
    assert_eq!(
        fits("rtxpro6000-bse", MigVgpu, "nvidia_rtx_pro_6000_blackwell_dc-1-24q=1", "1g.24gb+me.all@0"),
        Some(false)
    );
    assert_eq!(fits("rtxpro6000-bse", MigVgpu, "nvidia_rtx_pro_6000_blackwell_dc-1-24q=1", "1g.24gb+me@0"), Some(true));
}

#[test]
fn time_sliced_mig_types_share_an_instance() {
    let q = |n| format!("nvidia_rtx_pro_6000_blackwell_dc-1-2q={n}");
    assert_eq!(fits("rtxpro6000-bse", MigVgpu, &q(48), ""), Some(true));
    assert_eq!(fits("rtxpro6000-bse", MigVgpu, &q(49), ""), Some(false));
    let full = "nvidia_rtx_pro_6000_blackwell_dc-2-48q=1";
    assert_eq!(fits("rtxpro6000-bse", MigVgpu, &format!("{} {full}", q(24)), ""), Some(true));
    assert_eq!(fits("rtxpro6000-bse", MigVgpu, &format!("{} {full}", q(25)), ""), Some(false));
    // Types do not share an instance with each other.
    let mixed = format!("{} nvidia_rtx_pro_6000_blackwell_dc-1-3q=1 nvidia_rtx_pro_6000_blackwell_dc-1-4q=1", q(30));
    assert_eq!(fits("rtxpro6000-bse", MigVgpu, &mixed, ""), Some(false));
    // Two that run sit in one instance or in two, so a 4g is out and three more 1g are uncertain.
    assert_eq!(fits("rtxpro6000-bse", MigVgpu, "nvidia_rtx_pro_6000_blackwell_dc-4-96q=1", &q(2)), Some(false));
    assert_eq!(fits("rtxpro6000-bse", MigVgpu, "nvidia_rtx_pro_6000_blackwell_dc-1-24q=3", &q(2)), None);
    assert_eq!(fits("rtxpro6000-bse", MigVgpu, "nvidia_rtx_pro_6000_blackwell_dc-1-24q=2", &q(2)), Some(true));
    assert_eq!(fits("rtxpro6000-bse", MigVgpu, &q(46), &q(2)), Some(true));
    // An instance at a known place may be full or not.
    assert_eq!(fits("rtxpro6000-bse", MigVgpu, &q(37), "1g.24gb+gfx@0"), None);
    assert_eq!(fits("rtxpro6000-bse", MigVgpu, &q(48), "1g.24gb+gfx@0"), Some(false));
}

#[test]
fn one_size_in_same_size_mode() {
    assert_eq!(fits("l40s", Same, "nvidia_l40s-12q=4", ""), Some(true));
    assert_eq!(fits("l40s", Same, "nvidia_l40s-12q=5", ""), Some(false));
    let two = fit("l40s", Same, "nvidia_l40s-12q=1 nvidia_l40s-24q=1", "");
    assert_eq!((two.fits, two.rule), (Some(false), Some("TS-1")));
    assert_eq!(two.nearest, [combination("nvidia_l40s-24q=2"), combination("nvidia_l40s-12q=4")]);
    // The first VM fixes the size.
    assert_eq!(fits("l40s", Same, "nvidia_l40s-12q=1", "nvidia_l40s-24q=1"), Some(false));
    assert_eq!(fits("l40s", Same, "nvidia_l40s-12q=3", "nvidia_l40s-12q=1"), Some(true));
    assert_eq!(fits("l40s", Same, "nvidia_l40s-12q=4", "nvidia_l40s-12q=1"), Some(false));
    // Series of one size beside each other, but never C with the others: its host driver differs.
    assert_eq!(fits("l40s", Same, "nvidia_l40s-2q=12 nvidia_l40s-2b=12", ""), Some(true));
    assert_eq!(fits("l40s", Same, "nvidia_l40s-2q=12 nvidia_l40s-2b=13", ""), Some(false));
    assert_eq!(fit("l40s", Same, "nvidia_l40s-12q=1 nvidia_l40s-12c=1", "").rule, Some("HOST-2"));
}

#[test]
fn a_number_without_a_source_is_unknown_and_never_passes() {
    let unknown = fit("l40s", Same, "nvidia_l40s-3b=2", "");
    assert_eq!(unknown.fits, None, "{}", unknown.why);
    assert!(unknown.nearest.is_empty());
    assert_eq!(fits("l40s", Same, "nvidia_l40s-3b=17", ""), Some(false), "more than the framebuffer");
    assert_eq!(fits("l40s", Mixed, "nvidia_l40s-3b=1", ""), None);
    assert_eq!(fits("b200-sxm-180", Mixed, "nvidia_b200x-180c=1", ""), None, "whether it has the mode");
    assert_eq!(fits("gh200-96", MigVgpu, "nvidia_gh200-1-12c=1", ""), None, "whether vSphere runs it");
    assert_eq!(fits("gb300-278", Same, "nvidia_gb300-278c=1", ""), None);
    // NVIDIA prints 4 of 12 GB for H20, the driver's rule gives 8: between them nobody knows.
    assert_eq!(fits("h20-96", Mixed, "nvidia_h20-12c=4", ""), Some(true));
    let between = fit("h20-96", Mixed, "nvidia_h20-12c=5", "");
    assert_eq!(between.fits, None, "{}", between.why);
    assert_eq!(between.nearest, [combination("nvidia_h20-12c=4")]);
    assert_eq!(fits("h20-96", Mixed, "nvidia_h20-12c=9", ""), Some(false));
}

#[test]
fn mixed_sizes_by_placement_ids() {
    assert_eq!(fits("l40s", Mixed, "nvidia_l40s-24q=1 nvidia_l40s-12q=2", ""), Some(true));
    assert_eq!(fits("l40s", Mixed, "nvidia_l40s-16q=3", ""), Some(false), "two ids only");
    assert_eq!(fits("l40s", Mixed, "nvidia_l40s-24q=1", "nvidia_l40s-12q@0 nvidia_l40s-12q@24"), Some(false));
    assert_eq!(fits("l40s", Mixed, "nvidia_l40s-24q=1", "nvidia_l40s-12q@0 nvidia_l40s-12q@12"), Some(true));
    assert_eq!(fits("l40s", Mixed, "nvidia_l40s-24q=1", "nvidia_l40s-12q=2"), None);
    assert_eq!(fits("l40s", Mixed, "nvidia_l40s-24q=1", "nvidia_l40s-12q@3"), None, "it cannot sit there");
    assert_eq!(fits("v100-pcie-32", Mixed, "grid_v100d-8q=1", ""), Some(false));
    assert!(!fit("h200-nvl-141", Mixed, "nvidia_h200-70c=2", "").unverified.is_empty());
    assert!(fit("l40s", Mixed, "nvidia_l40s-24q=2", "").unverified.is_empty());
}

#[test]
fn a_gpu_has_one_mode() {
    assert_eq!(fits("a100-pcie-40", Same, "grid_a100-20c=1", "grid_a100-3-20c=1"), Some(false));
    assert_eq!(fits("a100-pcie-40", Same, "grid_a100-20c=1", "3g.20gb@0"), Some(false));
    assert_eq!(fits("a100-pcie-40", Mixed, "grid_a100-20c=1", "3g.20gb@0"), Some(false));
    assert_eq!(fits("a100-pcie-40", MigVgpu, "grid_a100-3-20c=1", "grid_a100-20c=1"), Some(false));
    assert_eq!(fits("l40s", MigVgpu, "nvidia_l40s-12q=1", ""), Some(false));
}

#[test]
fn a20_a_name_of_the_other_mode_says_which_and_what_is_near() {
    let mig = fit("a100-pcie-40", MigVgpu, "grid_a100-4c=1", "");
    assert_eq!((mig.fits, mig.first_misfit.as_deref()), (Some(false), Some("grid_a100-4c")));
    assert!(mig.why.contains("time-sliced, for mode vgpu"), "{}", mig.why);
    assert_eq!(mig.names[0], "grid_a100-1-5c");
    let vgpu = fit("h100-sxm5-80", Same, "nvidia_h100xm-1-10c=1", "");
    assert!(vgpu.why.contains("MIG-backed, for mode migVgpu"), "{}", vgpu.why);
    assert_eq!(vgpu.names[0], "nvidia_h100xm-10c");
}

#[test]
fn a16_a_type_that_only_the_host_knows_is_unknown_not_wrong() {
    let unlisted = fit("h200-sxm-141", Same, "nvidia_h200x-93c=1", "");
    assert_eq!((unlisted.fits, unlisted.rule), (None, Some("NAME-1")));
    assert!(unlisted.why.contains("the host is right"), "{}", unlisted.why);
    // A type of another model is wrong, and says whose it is.
    let foreign = fit("a100-pcie-40", Same, "grid_a100d-80c=1", "");
    assert_eq!(foreign.fits, Some(false));
    assert!(foreign.why.contains("a100-pcie-80"), "{}", foreign.why);
}

#[test]
fn spellings_are_one_type() {
    let want = BTreeMap::from([("grid_a100-20c".to_owned(), 1), ("NVIDIA A100-20C".to_owned(), 1)]);
    let model = catalog().model("a100-pcie-40").unwrap();
    assert_eq!(catalog().fit(model, Same, &want, &[]).fits, Some(true));
    let want = BTreeMap::from([("grid_a100-20c".to_owned(), 2), ("NVIDIA A100-20C".to_owned(), 1)]);
    assert_eq!(catalog().fit(model, Same, &want, &[]).fits, Some(false));
}

#[test]
fn absurd_counts_are_answered() {
    for mode in [Same, Mixed] {
        let fit = fit("l40s", mode, "nvidia_l40s-1q=4294967295 nvidia_l40s-1b=4294967295", "");
        assert_eq!(fit.fits, Some(false));
        assert!(!fit.nearest.is_empty());
    }
    let fit = fit("rtxpro6000-bse", MigVgpu, "nvidia_rtx_pro_6000_blackwell_dc-1-2q=4294967295", "");
    assert_eq!(fit.nearest, [combination("nvidia_rtx_pro_6000_blackwell_dc-1-2q=48")]);
    let beside = self::fit("l40s", Same, "nvidia_l40s-1q=1", "nvidia_l40s-1q=4294967295");
    assert_eq!(beside.fits, None);
}

/// JSON of `catalog fit`: `fits` is true, false or null.
#[test]
fn the_answer_as_json() {
    let json = |want| serde_json::to_value(fit("l40s", Same, want, "")).unwrap();
    assert_eq!(json("nvidia_l40s-12q=4")["fits"], true);
    let no = json("nvidia_l40s-12q=5");
    assert_eq!(no["fits"], false);
    assert_eq!(no["nearest"][0]["nvidia_l40s-12q"], 4);
    assert!(no["why"].is_string());
    assert!(json("nvidia_l40s-3b=1")["fits"].is_null());
}

#[test]
fn a19_gates_name_the_version() {
    let model = catalog().model("l40s").unwrap();
    let types: Vec<_> = model.types.iter().filter(|vgpu| vgpu.name == "nvidia_l40s-12q").collect();
    let esxi = |text: &str| Some(text.parse::<EsxiVersion>().unwrap());
    let closed = |mode, version, branch| -> Vec<(Option<bool>, String)> {
        let needs = catalog().needs(model, mode, &types);
        let needs = needs.iter().map(|need| (need.met(version, branch), need.requirement()));
        needs.filter(|(met, _)| *met != Some(true)).collect()
    };
    assert_eq!(closed(Mixed, esxi("8.0.2"), Some(19)), [(Some(false), "ESXi 8.0U3".to_owned())]);
    assert_eq!(closed(Mixed, esxi("8.0.3"), Some(19)), []);
    assert_eq!(closed(Mixed, esxi("9.0.0"), Some(15)), [(Some(false), "vGPU 16 or later".to_owned())]);
    assert_eq!(closed(Mixed, None, None).len(), 2, "unknown is not met");
    assert_eq!(closed(Same, esxi("7.0.3"), Some(19)), []);

    let b300 = catalog().model("b300-sxm-269").unwrap();
    let needs = catalog().needs(b300, Same, &[]);
    let p06 = needs.iter().find(|need| need.requirement().contains("P06")).unwrap();
    assert_eq!(p06.met(esxi("8.0.3"), None), None, "a version does not show the patch level");
    assert_eq!(p06.met(esxi("9.0.0"), None), Some(true));
    assert_eq!(p06.met(esxi("8.0.2"), None), Some(false));
}

/// Many types, many of each, some of them running: the answer comes, and what it offers instead fits.
#[test]
fn hard_questions_are_answered() {
    use poolwright::catalog::Series;
    for (model, mode, series, small) in [
        ("l40s", Mixed, Series::Q, "nvidia_l40s-1q"),
        ("a40", Mixed, Series::Q, "nvidia_a40-1q"),
        ("h200-nvl-141", Mixed, Series::C, "nvidia_h200-14c"),
        ("rtxpro6000-bse", MigVgpu, Series::Q, "nvidia_rtx_pro_6000_blackwell_dc-1-2q"),
        ("h100-nvl-94", MigVgpu, Series::C, "nvidia_h100l-1-12c"),
    ] {
        let known = catalog().model(model).unwrap();
        let types = known.types.iter().filter(|vgpu| mode.takes(vgpu) && vgpu.series == series);
        let want: Combination = types.map(|vgpu| (vgpu.name.clone(), 7)).collect();
        let running = Beside::Running { vgpu: small.to_owned(), count: 2 };
        for beside in [vec![], vec![running]] {
            let fit = catalog().fit(known, mode, &want, &beside);
            assert_eq!(fit.fits, Some(false), "{model}: {}", fit.why);
            assert!(!fit.nearest.is_empty(), "{model} beside {beside:?}");
            for nearest in &fit.nearest {
                let again = catalog().fit(known, mode, nearest, &beside);
                assert_eq!(again.fits, Some(true), "{model}: {nearest:?}: {}", again.why);
            }
        }
    }
}

/// A layout of what runs that nobody can look through is no proof.
#[test]
fn too_many_ways_to_run_are_unknown() {
    let fit = fit("l40s", Mixed, "nvidia_l40s-12q=1", "nvidia_l40s-1q=8");
    assert_eq!(fit.fits, None, "{}", fit.why);
    assert!(fit.why.contains("more than 4000 ways"), "{}", fit.why);
}
