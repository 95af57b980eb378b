//! Host selectors against the names of a vCenter.

use poolwright::model::{ClusterRef, Finding, GpuSelect, HostRef, MoRef, Mode, Roster, Severity, VgpuSize};
use poolwright::profile::{self, Resolved};

use super::{SITE, good, pool, shown};

/// A roster: cluster paths, each with its hosts.
pub fn roster(clusters: &[(&str, &[&str])]) -> Roster {
    let mut roster = Roster::default();
    for (n, (path, hosts)) in clusters.iter().enumerate() {
        let last = path.rsplit('/').next().unwrap();
        let name = last.replace("%2f", "/").replace("%25", "%");
        roster.clusters.push(ClusterRef {
            moref: MoRef::new("ClusterComputeResource", format!("domain-c{n}")),
            name,
            path: (*path).to_owned(),
        });
        for host in *hosts {
            let moref = MoRef::new("HostSystem", format!("host-{}", roster.hosts.len()));
            let shown = host.replace('%', "%25").replace('/', "%2f");
            roster.hosts.push(HostRef {
                moref,
                name: (*host).into(),
                path: format!("{path}/{shown}"),
                cluster: (*path).to_owned(),
            });
        }
    }
    roster
}

const FOUR: &[(&str, &[&str])] = &[("/DC1/host/gpu-a", &["esx-01", "esx-02", "esx-03", "esx-07"])];

fn hosts(cluster: &str, names: &str, except: &str) -> String {
    let except = if except.is_empty() { String::new() } else { format!(", except: [{except}]") };
    format!("hosts: {{site: lab, cluster: {cluster}, names: [{names}]{except}}}")
}

fn resolve(pools: &[String], roster: &Roster) -> Result<Resolved, Vec<Finding>> {
    let names: Vec<String> = (1..=pools.len()).map(|n| format!("p{n}.yaml")).collect();
    let mut files: Vec<(&str, &str)> = vec![("site.yaml", SITE)];
    files.extend(names.iter().zip(pools).map(|(name, text)| (name.as_str(), text.as_str())));
    let loaded = good(&files);
    profile::resolve(&loaded.pools, &loaded.sites[0], roster)
}

fn selected(line: &str, roster: &Roster) -> Vec<String> {
    let resolved = resolve(&[pool("a", &[line])], roster).unwrap_or_else(|found| panic!("{found:#?}"));
    resolved.desired.pools[0].hosts.iter().map(|pin| pin.host.name.to_string()).collect()
}

fn refused(line: &str, roster: &Roster) -> Finding {
    let found = resolve(&[pool("a", &[line])], roster).unwrap_err();
    let mut errors: Vec<Finding> = found.into_iter().filter(|f| f.severity == Severity::Error).collect();
    assert_eq!(errors.len(), 1, "{errors:#?}");
    errors.remove(0)
}

#[test]
fn names_globs_ranges_and_exceptions() {
    let roster = roster(FOUR);
    assert_eq!(selected(&hosts("gpu-a", "esx-07, esx-01", ""), &roster), ["esx-01", "esx-07"]);
    assert_eq!(selected(&hosts("gpu-a", "'esx-0*'", "esx-07"), &roster), ["esx-01", "esx-02", "esx-03"]);
    assert_eq!(selected(&hosts("gpu-a", "'esx-[01-03]', 'esx-0?'", "'*-[02-03]'"), &roster), ["esx-01", "esx-07"]);
}

#[test]
fn every_value_keeps_its_place() {
    let text = pool(
        "a",
        &[
            &hosts("gpu-a", "'esx-0[1-2]', '*'", "esx-07"),
            "gpus: [{select: {count: 2}, mode: {vgpu: {size: mixed}}, offers: [{nvidia_h100l-47c: 2}]}, {select: {numaNode: 1}, mode: {passthrough: {label: t}}}]",
            "accept: [{finding: PW-DRV-02, hosts: [esx-01], reason: x, until: 2026-12-31}]",
        ],
    );
    let resolved = resolve(&[text], &roster(FOUR)).unwrap();
    let desired = &resolved.desired.pools[0];
    assert_eq!(desired.cluster.value, "/DC1/host/gpu-a");
    assert_eq!(desired.gpu_count.place.to_string(), "p1.yaml:7:13");
    let selectors: Vec<(String, String)> =
        desired.hosts.iter().map(|pin| (pin.selector.value.clone(), pin.selector.place.to_string())).collect();
    let (range, star) = (("esx-0[1-2]", "p1.yaml:5:46"), ("*", "p1.yaml:5:60"));
    let expected = [range, range, star].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(selectors, expected);
    assert_eq!(desired.gpus[0].select.value, GpuSelect::Count(2));
    assert_eq!(desired.gpus[0].mode.value, Mode::Vgpu { size: VgpuSize::Mixed });
    assert_eq!(desired.gpus[0].offers[0]["nvidia_h100l-47c"], 2);
    assert_eq!(desired.gpus[1].mode.value, Mode::Passthrough { label: Some("t".into()) });
    assert_eq!(desired.accept[0].hosts[0].place.to_string(), "p1.yaml:10:41");
    assert_eq!(resolved.desired.pace, Default::default());
}

#[test]
fn d02_a_cluster_name_that_several_have() {
    let roster = roster(&[("/EU/DC1/host/CORP-A", &["esx-01"]), ("/US/DC1/host/CORP-A", &["esx-01"])]);
    let finding = refused(&hosts("CORP-A", "'*'", ""), &roster);
    assert_eq!(finding.place.as_ref().unwrap().to_string(), "p1.yaml:5:31");
    assert!(finding.message.contains("2 clusters have the name CORP-A"));
    assert_eq!(finding.evidence, ["/EU/DC1/host/CORP-A", "/US/DC1/host/CORP-A"]);
    for path in ["/EU/DC1/host/CORP-A", "/US/DC1/host/CORP-A"] {
        let resolved = resolve(&[pool("a", &[&hosts(path, "'*'", "")])], &roster).unwrap();
        assert_eq!(resolved.desired.pools[0].cluster.value, path);
        assert_eq!(resolved.desired.pools[0].hosts[0].host.cluster, path);
    }
}

#[test]
fn d03_a_datacenter_inside_folders() {
    let roster = roster(&[("/Prod/EU/DC1/host/Ost/gpu-a", &["esx-01"])]);
    assert_eq!(selected(&hosts("/Prod/EU/DC1/host/Ost/gpu-a", "'*'", ""), &roster), ["esx-01"]);
    assert_eq!(selected(&hosts("gpu-a", "'*'", ""), &roster), ["esx-01"]);
    let finding = refused(&hosts("/Prod/EU/DC1/host/gpu-a", "'*'", ""), &roster);
    assert!(finding.message.contains("no cluster has the path") && finding.hint.unwrap().contains("/Ost/gpu-a"));
}

#[test]
fn d04_nothing_is_chosen_in_silence() {
    let one = roster(FOUR);
    // The only cluster, the only host: still named, or refused.
    let finding = refused(&hosts("gpu", "'*'", ""), &one);
    assert_eq!(finding.id.0, "PW-DOC-07");
    for left_out in [
        "hosts: {site: lab, cluster: gpu-a}",
        "hosts: {site: lab, names: ['*']}",
        "hosts: {cluster: gpu-a, names: ['*']}",
    ] {
        let loaded = super::load(&[("p.yaml", &pool("a", &[left_out]))]);
        assert_eq!(loaded.problems.len(), 1, "{left_out}");
        assert!(loaded.problems[0].message.contains("is missing in `spec.hosts`"));
    }
    let twice = roster(&[("/DC1/host/gpu-a", &["esx-01", "esx-01"])]);
    let finding = refused(&hosts("gpu-a", "esx-01", ""), &twice);
    assert!(finding.message.contains("two hosts have the name esx-01"));
    assert!(finding.evidence[0].contains("host-0") && finding.evidence[1].contains("host-1"), "{finding:#?}");
}

#[test]
fn d12_a_host_that_does_not_exist() {
    let finding = refused(&hosts("gpu-a", "esx-01, esx-77", ""), &roster(FOUR));
    assert_eq!(finding.message, "no host esx-77 in cluster gpu-a; nearest: esx-07");
    assert_eq!(finding.place.as_ref().unwrap().to_string(), "p1.yaml:5:54");
    let loaded = good(&[("p1.yaml", &pool("a", &[&hosts("gpu-a", "esx-01, esx-77", "")]))]);
    assert!(shown(&loaded, &finding).contains("^"), "the line is shown");
    // Neighbours: one name of a range, a glob, the wrong cluster, another case.
    let finding = refused(&hosts("gpu-a", "'esx-[01-04]'", ""), &roster(FOUR));
    assert!(finding.message.starts_with("no host esx-04 in cluster gpu-a"));
    let finding = refused(&hosts("gpu-a", "'gpu-*'", ""), &roster(FOUR));
    assert_eq!(finding.message, "no host of cluster gpu-a matches gpu-*");
    let two = roster(&[("/DC1/host/gpu-a", &["esx-01"]), ("/DC1/host/gpu-b", &["db-99"])]);
    let finding = refused(&hosts("gpu-a", "db-99", ""), &two);
    assert_eq!(finding.evidence, ["there is /DC1/host/gpu-b/db-99"]);
    let finding = refused(&hosts("gpu-a", "ESX-01", ""), &roster(FOUR));
    assert!(finding.message.ends_with("nearest: esx-01"));
}

#[test]
fn d13_names_byte_for_byte() {
    let names = ["esx'1", "esx\"2", "esx#3", "esx-ü", "東京-01", "50%", "a/b"];
    let roster = roster(&[("/EU/DC%2f1/host/gpu \"ü\" #1", &names), ("/EU/DC/host/a%2fb", &["x"])]);
    let line =
        "hosts: {site: lab, cluster: 'gpu \"ü\" #1', names: [\"esx'1\", 'esx\"2', 'esx#3', esx-ü, 東京-01, 50%, a/b]}";
    let mut expected = names.to_vec();
    expected.sort_unstable();
    assert_eq!(selected(line, &roster), expected);
    for cluster in ["a/b", "a%2fb", "a%2Fb", "/EU/DC/host/a%2fb", "/EU/DC/host/a%2Fb"] {
        assert_eq!(selected(&hosts(cluster, "x", ""), &roster), ["x"], "{cluster}");
    }
    assert_eq!(
        selected("hosts: {site: lab, cluster: '/EU/DC%2F1/host/gpu \"ü\" #1', names: ['東*']}", &roster),
        ["東京-01"]
    );
    let json = serde_json::to_string(&resolve(&[pool("a", &[line])], &roster).unwrap().desired).unwrap();
    assert!(json.contains("東京-01") && json.contains("esx-ü") && json.contains("esx\\\"2"));
}

#[test]
fn b18_missing_and_unexpected_hosts() {
    let there = roster(&[("/DC1/host/gpu-a", &["esx-01", "esx-02", "esx-03", "esx-09"])]);
    let found = resolve(&[pool("a", &[&hosts("gpu-a", "'esx-[01-04]'", "")])], &there).unwrap_err();
    let told: Vec<(&str, Severity)> = found.iter().map(|f| (f.id.0.as_str(), f.severity)).collect();
    assert_eq!(told, [("PW-DOC-11", Severity::Info), ("PW-DOC-08", Severity::Error)]);
    assert_eq!(found[0].evidence, ["esx-09"]);
    // Without the missing one there is a plan, and the unexpected host is named, not touched.
    let resolved = resolve(&[pool("a", &[&hosts("gpu-a", "'esx-[01-03]'", "")])], &there).unwrap();
    assert_eq!(resolved.desired.pools[0].hosts.len(), 3);
    assert_eq!(resolved.findings[0].message, "1 host of cluster gpu-a is in no pool; it is not touched");
    // Left out on purpose is not unexpected.
    assert_eq!(resolve(&[pool("a", &[&hosts("gpu-a", "'*'", "esx-09")])], &there).unwrap().findings, []);
}

#[test]
fn two_pools_that_claim_one_host() {
    let pools = [pool("a", &[&hosts("gpu-a", "'esx-0[1-3]'", "")]), pool("b", &[&hosts("/DC1/host/gpu-a", "'*'", "")])];
    let found = resolve(&pools, &roster(FOUR)).unwrap_err();
    let claims: Vec<&Finding> = found.iter().filter(|f| f.id.0 == "PW-DOC-09").collect();
    assert_eq!(claims.len(), 6);
    assert!(claims[..3].iter().all(|f| f.place.as_ref().unwrap().to_string() == "p1.yaml:5:46"), "{claims:#?}");
    assert!(claims[3..].iter().all(|f| f.place.as_ref().unwrap().file.as_ref() == "p2.yaml"));
    assert!(claims[0].evidence[0].contains("p2.yaml:5:"));
}

#[test]
fn exceptions_that_leave_out_nothing() {
    let finding = refused(&hosts("gpu-a", "'*'", "esx-08"), &roster(FOUR));
    assert_eq!(finding.id.0, "PW-DOC-10");
    assert_eq!(finding.hint.as_deref(), Some("nearest: esx-01"));
    let finding = refused(&hosts("gpu-a", "esx-01", "esx-07"), &roster(FOUR));
    assert!(finding.message.contains("which `names` does not select"));
    let finding = refused(&hosts("gpu-a", "esx-01", "'*'"), &roster(FOUR));
    assert!(finding.message.contains("leaves no host"));
}

#[test]
fn acceptances_name_hosts_of_the_pool() {
    let accept = "accept: [{finding: PW-DRV-02, hosts: [esx-99], reason: x, until: 2026-12-31}]";
    let found = resolve(&[pool("a", &[&hosts("gpu-a", "'*'", ""), accept])], &roster(FOUR)).unwrap_err();
    assert_eq!(found[0].message, "`accept` names esx-99, which is no host of the pool");
}

#[test]
fn pools_of_other_sites_are_left_out_and_pools_come_in_name_order() {
    let far = pool("c", &["hosts: {site: far, cluster: nowhere, names: [x]}"]);
    let pools = [pool("z", &[&hosts("gpu-a", "esx-01", "")]), far, pool("b", &[&hosts("gpu-a", "'*'", "esx-01")])];
    let resolved = resolve(&pools, &roster(FOUR)).unwrap();
    let names: Vec<&str> = resolved.desired.pools.iter().map(|pool| pool.name.value.as_str()).collect();
    assert_eq!(names, ["b", "z"]);
}
