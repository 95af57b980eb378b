//! What is wrong with the sense of a profile, found without any live system.

use jiff::civil::date;
use poolwright::catalog::{FitMode, catalog};
use poolwright::model::{Finding, Place, RULES, Severity};
use poolwright::profile;

use super::{SITE, findings, good, pool};

fn one(pools: &[String]) -> Finding {
    let mut found = findings(pools);
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

fn is(finding: &Finding, id: &str, place: &str, words: &str) {
    let at = finding.place.as_ref().map(Place::to_string).unwrap_or_default();
    assert_eq!(format!("{} {at}", finding.id), format!("{id} {place}"), "{}", finding.message);
    assert!(finding.message.contains(words), "{}", finding.message);
}

/// A pool with one group: its mode and one offer.
fn offering(model: &str, mode: &str, offer: &str) -> String {
    let gpus = format!("gpus: [{{mode: {mode}, offers: [{offer}]}}]");
    pool("a", &[&format!("gpuModel: {model}"), &gpus])
}

#[test]
fn a_good_pool_has_no_findings() {
    assert_eq!(findings(&[pool("a", &[])]), []);
    assert_eq!(findings(&[offering("h100-nvl-94", "{migVgpu: {}}", "{nvidia_h100l-3-47c: 2}")]), []);
}

#[test]
fn a20_a_name_of_another_mode() {
    let finding = one(&[offering("a100-pcie-40", "{migVgpu: {}}", "{grid_a100-4c: 1}")]);
    is(
        &finding,
        "PW-CAT-05",
        "p1.yaml:8:42",
        "`grid_a100-4c` belongs to time-sliced vGPU, and the group is in MIG mode",
    );
    assert!(finding.hint.unwrap().contains("grid_a100-1-5c"));
    let finding = one(&[offering("h100-sxm5-80", "{vgpu: {size: same}}", "{nvidia_h100xm-1-10c: 1}")]);
    is(&finding, "PW-CAT-05", "p1.yaml:8:49", "belongs to MIG mode, and the group is in same-size mode");
    assert!(finding.hint.unwrap().contains("nvidia_h100xm-10c"));
}

#[test]
fn a20_by_kind_every_type_in_every_wrong_mode() {
    let modes = [
        ("{vgpu: {size: same}}", FitMode::Same),
        ("{vgpu: {size: mixed}}", FitMode::Mixed),
        ("{migVgpu: {}}", FitMode::MigVgpu),
    ];
    let mut seen = 0;
    for model in ["a30", "a100-pcie-80", "h100-nvl-94", "h200-sxm-141"].map(|id| catalog().model(id).unwrap()) {
        for vgpu in &model.types {
            for (text, mode) in modes.iter().filter(|(_, mode)| !mode.takes(vgpu)) {
                let found = findings(&[offering(&model.id, text, &format!("{{{}: 1}}", vgpu.name))]);
                let wrong = found.iter().filter(|finding| finding.id.0 == "PW-CAT-05").count();
                assert_eq!((wrong, found.len()), (1, 1), "{} {mode:?} {found:#?}", vgpu.name);
                seen += 1;
            }
        }
    }
    assert!(seen > 50, "{seen}");
}

#[test]
fn a18_desktop_classes_in_a_pool_for_compute() {
    for (model, mode, name, licence) in [
        ("l40s", "{vgpu: {size: same}}", "nvidia_l40s-2b", "vPC or vWS"),
        ("l40s", "{vgpu: {size: mixed}}", "nvidia_l40s-1a", "vApps"),
        ("a40", "{vgpu: {size: same}}", "nvidia_a40-1b", "vPC"),
        ("t4", "{vgpu: {size: same}}", "grid_t4-2a", "vApps"),
    ] {
        let found = findings(&[offering(model, mode, &format!("{{{name}: 1}}"))]);
        let finding = found.iter().find(|finding| finding.id.0 == "PW-CAT-08").unwrap();
        assert_eq!((finding.severity, finding.place.as_ref().unwrap().line), (Severity::Warning, 8));
        assert!(finding.message.contains(name) && finding.message.contains(licence), "{}", finding.message);
    }
    let q = findings(&[offering("l40s", "{vgpu: {size: same}}", "{nvidia_l40s-12q: 4}")]);
    assert_eq!(q, [], "workstation types are no desktop class");
}

#[test]
fn offers_that_do_not_fit_are_told_with_what_does() {
    let finding = one(&[offering("h100-nvl-94", "{migVgpu: {}}", "{nvidia_h100l-3-47c: 2, nvidia_h100l-1-12c: 1}")]);
    is(&finding, "PW-CAT-04", "p1.yaml:8:41", "does not fit");
    assert!(finding.evidence.iter().any(|line| line.contains("first type that does not fit")), "{finding:#?}");
    assert!(finding.hint.unwrap().starts_with("these fit:"));
    let finding = one(&[offering("l40s", "{vgpu: {size: same}}", "{nvidia_l40s-24q: 3}")]);
    is(&finding, "PW-CAT-04", "p1.yaml:8:48", "does not fit");
    let finding = one(&[offering("l40s", "{vgpu: {size: same}}", "{nvidia_l40s-24q: 1, nvidia_l40s-12q: 1}")]);
    is(&finding, "PW-CAT-04", "p1.yaml:8:48", "does not fit");
    assert_eq!(findings(&[offering("l40s", "{vgpu: {size: mixed}}", "{nvidia_l40s-24q: 1, nvidia_l40s-12q: 1}")]), []);
}

#[test]
fn unknown_never_passes_in_silence() {
    let unknown = one(&[offering("h200-sxm-141", "{vgpu: {size: same}}", "{nvidia_h200x-1411c: 1}")]);
    is(&unknown, "PW-CAT-03", "p1.yaml:8:49", "counts only if the host itself lists it");
    assert!(unknown.severity >= Severity::Warning && unknown.hint.unwrap().contains("nvidia_h200x-141c"));
    // Every model and mode: yes, no, or a finding that says unknown.
    for model in catalog().models() {
        for mode in ["{passthrough: {}}", "{vgpu: {size: same}}", "{vgpu: {size: mixed}}", "{migVgpu: {}}"] {
            let found =
                findings(&[pool("a", &[&format!("gpuModel: {}", model.id), &format!("gpus: [{{mode: {mode}}}]")])]);
            let fits = match mode {
                "{passthrough: {}}" => model.can.passthrough,
                _ => {
                    let mode = if mode.contains("mig") {
                        FitMode::MigVgpu
                    } else if mode.contains("mixed") {
                        FitMode::Mixed
                    } else {
                        FitMode::Same
                    };
                    catalog().fit(model, mode, &Default::default(), &[]).fits
                }
            };
            assert_eq!(found.is_empty(), fits == Some(true), "{} {mode}: {found:#?}", model.id);
        }
    }
}

#[test]
fn names_of_another_model() {
    let finding = one(&[offering("h100-nvl-94", "{vgpu: {size: same}}", "{nvidia_h100xm-40c: 2}")]);
    is(&finding, "PW-CAT-07", "p1.yaml:8:49", "is a type of");
    assert!(finding.hint.unwrap().contains("nvidia_h100l-"));
}

#[test]
fn a_gpu_model_that_does_not_exist() {
    let finding = one(&[pool("a", &["gpuModel: h100-nvl-49"])]);
    is(&finding, "PW-CAT-10", "p1.yaml:6:13", "no GPU model `h100-nvl-49`");
    assert_eq!(finding.hint.as_deref(), Some("did you mean `h100-nvl-94`?"));
    let finding = one(&[pool("a", &["gpuModel: NVIDIA H100 NVL 94GB"])]);
    assert!(finding.hint.is_some());
}

#[test]
fn numbers_that_cannot_be_meant() {
    is(&one(&[pool("a", &["gpuCount: 0"])]), "PW-DOC-04", "p1.yaml:7:13", "`gpuCount` is 0");
    is(
        &one(&[pool("a", &["rollout: {maxUnavailable: 0, maxReboots: 0}"])]),
        "PW-DOC-04",
        "p1.yaml:9:29",
        "maxUnavailable",
    );
    is(
        &one(&[offering("l40s", "{vgpu: {size: same}}", "{nvidia_l40s-24q: 0}")]),
        "PW-DOC-04",
        "p1.yaml:8:66",
        "is no offer",
    );
    is(
        &one(&[pool("a", &["gpus: [{select: {count: 0}, mode: {passthrough: {}}}]"])]),
        "PW-DOC-04",
        "p1.yaml:8:27",
        "`count` is 0",
    );
    let more = "gpus: [{select: {count: 3}, mode: {passthrough: {}}}, {select: {count: 2}, mode: {migVgpu: {}}}]";
    is(&one(&[pool("a", &[more])]), "PW-DOC-04", "p1.yaml:8:66", "select 5 GPUs, and `gpuCount` is 4");
}

#[test]
fn two_groups_that_take_one_gpu() {
    let groups = |one: &str, other: &str| {
        let group = |select: &str| match select {
            "" => "{mode: {passthrough: {}}}".to_owned(),
            select => format!("{{select: {select}, mode: {{passthrough: {{}}}}}}"),
        };
        findings(&[pool("a", &[&format!("gpus: [{}, {}]", group(one), group(other))])])
    };
    let both = groups("{numaNode: 0}", "{numaNode: 0}");
    assert_eq!(both.len(), 2, "{both:#?}");
    is(&both[0], "PW-DOC-05", "p1.yaml:8:30", "NUMA node 0");
    assert!(both[0].evidence[0].contains("p1.yaml:8:80") && both[1].evidence[0].contains("p1.yaml:8:30"), "{both:#?}");
    // A05: one device in two spellings.
    let both = groups("{addresses: [\"0000:D8:00.0\"]}", "{addresses: [\"00000000:d8:00.0\", \"0000:3b:00.0\"]}");
    assert_eq!(both.len(), 2);
    is(&both[0], "PW-DOC-05", "p1.yaml:8:32", "0000:d8:00.0");
    assert_eq!(groups("all", "{numaNode: 0}").len(), 1);
    assert_eq!(groups("", "{count: 1}").len(), 1);
    assert_eq!(groups("", "").len(), 2);
    assert_eq!(groups("{count: 2}", "{count: 2}"), [], "each takes what the other leaves");
    assert_eq!(groups("{numaNode: 0}", "{numaNode: 1}"), []);
}

/// A site that could not be read is a mistake of its own, and not one of each of its pools.
#[test]
fn a_mistake_in_a_site_is_told_once() {
    let site = SITE.replace("env:VC_PASSWORD", "hunter2");
    let pools = [pool("a", &[]), pool("b", &["hosts: {site: lab, cluster: gpu-b, names: [\"*\"]}"])];
    let loaded = super::load(&[("site.yaml", &site), ("a.yaml", &pools[0]), ("b.yaml", &pools[1])]);
    assert_eq!(loaded.problems.len(), 1, "{}", super::problems(&loaded.problems));
    assert_eq!(profile::check(&loaded, None), []);
    // Another one is not there, whatever is wrong with this one.
    let other = pool("c", &["hosts: {site: fra1, cluster: gpu-c, names: [\"*\"]}"]);
    let loaded = super::load(&[("site.yaml", &site), ("c.yaml", &other)]);
    let found = profile::check(&loaded, None);
    is(&found[0], "PW-DOC-02", "c.yaml:5:17", "no document describes the site `fra1`");
}

#[test]
fn fields_that_can_do_nothing() {
    is(
        &one(&[offering("l40s", "{passthrough: {}}", "{nvidia_l40s-24q: 1}")]),
        "PW-DOC-06",
        "p1.yaml:8:45",
        "`offers` does nothing here",
    );
    is(&one(&[pool("a", &["host: {placement: consolidation}"])]), "PW-DOC-06", "p1.yaml:10:21", "`host.placement`");
}

#[test]
fn acceptances() {
    let accept = |id: &str, until: &str| {
        findings(&[pool("a", &[&format!("accept: [{{finding: {id}, reason: \"case 1\", until: {until}}}]")])])
    };
    for rule in RULES {
        let found = accept(rule.id, "2026-12-31");
        assert_eq!(found.is_empty(), rule.acceptable, "{found:#?}");
        if !rule.acceptable {
            is(&found[0], "PW-ACC-03", "p1.yaml:10:22", "can never be accepted");
        }
    }
    let unknown = accept("PW-DRV-99", "2026-12-31");
    is(&unknown[0], "PW-ACC-03", "p1.yaml:10:22", "there is no finding");
    assert!(unknown[0].hint.as_ref().unwrap().contains("PW-DRV-0"));
    assert_eq!(accept("PW-DRV-02", "2026-11-30"), [], "the last day counts");
    let expired = accept("PW-DRV-02", "2026-11-29");
    is(&expired[0], "PW-ACC-01", "p1.yaml:10:58", "ended on 2026-11-29");
    let text = pool("a", &["accept: [{finding: PW-DRV-02, reason: x, until: 2020-01-01}]"]);
    let loaded = good(&[("site.yaml", SITE), ("p1.yaml", &text)]);
    assert_eq!(profile::check(&loaded, None), [], "without a date nothing has expired");
    assert_eq!(profile::check(&loaded, Some(date(2020, 1, 1))), []);
}

#[test]
fn documents_together() {
    let twice = findings(&[
        pool("a", &["hosts: {site: lab, cluster: x, names: [a]}"]),
        pool("a", &["hosts: {site: lab, cluster: y, names: [a]}"]),
    ]);
    assert_eq!(twice.len(), 2);
    is(&twice[0], "PW-DOC-01", "p1.yaml:3:18", "two GpuPool documents have the name `a`");
    assert!(twice[0].evidence[0].contains("p2.yaml:3:18"));
    let far = one(&[pool("a", &["hosts: {site: lap, cluster: gpu-a, names: [\"*\"]}"])]);
    is(&far, "PW-DOC-02", "p1.yaml:5:17", "no document describes the site `lap`");
    assert_eq!(far.hint.as_deref(), Some("did you mean `lab`?"));
    let alone = profile::check(&good(&[("p.yaml", &pool("a", &[]))]), None);
    is(&alone[0], "PW-DOC-02", "p.yaml:5:17", "lab");
}

#[test]
fn two_pools_that_list_one_host() {
    let names = |names: &str| format!("hosts: {{site: lab, cluster: gpu-a, names: [{names}]}}");
    let claims = findings(&[pool("a", &[&names("esx-01, esx-07")]), pool("b", &[&names("'esx-[05-08]'")])]);
    assert_eq!(claims.len(), 2, "{claims:#?}");
    is(&claims[0], "PW-DOC-09", "p1.yaml:5:54", "the pools a and b both claim esx-07");
    is(&claims[1], "PW-DOC-09", "p2.yaml:5:46", "the pools b and a both claim esx-07");
    assert!(claims[0].evidence[0].contains("p2.yaml:5:46"));
    let other_cluster = pool("b", &["hosts: {site: lab, cluster: gpu-b, names: [esx-07]}"]);
    assert_eq!(findings(&[pool("a", &[&names("esx-07")]), other_cluster]), []);
    let except = pool("b", &["hosts: {site: lab, cluster: gpu-a, names: ['esx-[05-08]'], except: [esx-07]}"]);
    assert_eq!(findings(&[pool("a", &[&names("esx-07")]), except]), []);
}
