//! Guest clusters in documents, and the templates of the Jobs that validate their nodes.

use std::fmt::Write;

use poolwright::model::{GpuSelect, JobTemplate, OnValidationFailure, Severity};
use poolwright::profile::{self, Loaded};
use serde_json::json;

use super::{TODAY, pool, problems, shown};

const SITE: &str = "\
apiVersion: poolwright/v1
kind: Site
metadata: {name: lab}
spec:
  vcenter: {address: vc.lab, credentials: {user: pw@vsphere.local, password: env:VC_PASSWORD}}
  guests:
    - {name: k8s-serve, kubeconfig: \"file:kube/serve\", context: admin}
    - {name: k8s-train, kubeconfig: \"env:TRAIN_KUBECONFIG\"}
";

const GUESTS: &str = "guests: [{cluster: k8s-serve, expect: {resource: nvidia.com/gpu, perNode: 2}}]";

/// The template that is shipped.
fn vector_add() -> String {
    std::fs::read_to_string(format!("{}/templates/cuda-vector-add.yaml", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// These documents, with these templates.
fn load(site: &str, pools: &[String], templates: &[(&str, &str)]) -> Loaded {
    let names: Vec<String> = (1..=pools.len()).map(|n| format!("p{n}.yaml")).collect();
    let mut files: Vec<(&str, &str)> = vec![("site.yaml", site)];
    files.extend(names.iter().zip(pools).map(|(name, text)| (name.as_str(), text.as_str())));
    let mut loaded = super::load(&files);
    let found = |path: &str| templates.iter().find(|(name, _)| *name == path);
    let read = |path: &str| found(path).map(|(_, text)| text.as_bytes().to_vec()).ok_or("no such file".to_owned());
    let templates: Vec<_> = loaded.templates().into_iter().map(|path| (path.to_owned(), read(path))).collect();
    loaded.fill(&templates);
    loaded
}

fn everything_wrong(loaded: &Loaded) -> String {
    let mut text = problems(&loaded.problems);
    for finding in profile::check(loaded, Some(TODAY)) {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&shown(loaded, &finding));
    }
    text
}

/// What is said of each of these, one after the other.
fn all_wrong(cases: &[(&str, Loaded)]) -> String {
    let mut text = String::new();
    for (name, loaded) in cases {
        let wrong = everything_wrong(loaded);
        assert!(!wrong.is_empty(), "{name} is taken");
        write!(text, "## {name}\n\n{wrong}\n").unwrap();
    }
    text
}

/// Whoever keeps templates beside the documents may.
#[test]
fn a_template_among_the_documents_is_no_document() {
    let named = |file: &str| {
        let template = format!("{{template: {{file: {file}, set: {{image: a}}}}}}");
        let expect = "expect: {resource: nvidia.com/gpu, perNode: 2}";
        pool("a", &[&format!("guests: [{{cluster: k8s-serve, {expect}, validate: [{template}]}}]")])
    };
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata: {namespace: default}\nspec: {}\n";
    let beside = |file: &str, text: &str| {
        let pool = named(file);
        super::load(&[("docs/site.yaml", SITE), ("docs/p.yaml", &pool), ("./docs/templates/x.yaml", text)])
    };
    for text in [vector_add().as_str(), job] {
        assert_eq!(problems(&beside("docs/templates/x.yaml", text).problems), "");
        // Not named, or by another path.
        for other in ["templates/x.yaml", "docs/templates/y.yaml"] {
            let said = problems(&beside(other, text).problems);
            assert_eq!(said.matches("it looks like the template of a Job").count(), 1, "{said}");
            assert!(said.contains("x.yaml") && said.contains("a file that a pool names"), "{said}");
        }
    }
    // A document that is broken is told as one.
    let broken = SITE.replace("metadata: {name: lab}", "metadata: {name: {{ lab }}}");
    assert!(!problems(&super::load(&[("site.yaml", &broken)]).problems).contains("template"));
}

#[test]
fn what_pools_say_wrong_of_guests() {
    let of = |lines: &[&str]| load(SITE, &[pool("a", lines)], &[]);
    let guest = |rest: &str| of(&[&format!("guests: [{{{rest}}}]")]);
    let expect = |rest: &str| guest(&format!("cluster: k8s-serve, expect: {{{rest}}}"));
    let cases = [
        (
            "a cluster that the site does not name",
            guest("cluster: k8s-server, expect: {resource: nvidia.com/gpu, perNode: 2}"),
        ),
        ("a cluster that is like none", guest("cluster: other, expect: {resource: nvidia.com/gpu, perNode: 2}")),
        (
            "a cluster that is listed twice",
            of(&[
                "guests: [{cluster: k8s-serve, expect: {resource: nvidia.com/gpu, perNode: 2}}, {cluster: k8s-serve, expect: {resource: nvidia.com/gpu, perNode: 1}}]",
            ]),
        ),
        ("no GPU is expected", expect("resource: nvidia.com/gpu, perNode: 0")),
        ("a resource without a domain", expect("resource: gpu, perNode: 1")),
        ("a resource of Kubernetes itself", expect("resource: requests.kubernetes.io/cpu, perNode: 1")),
        ("a resource that is written wrong", expect("resource: NVIDIA.com/gpu, perNode: 1")),
        ("no expectation", guest("cluster: k8s-serve")),
        (
            "an unknown key",
            guest("cluster: k8s-serve, expect: {resource: nvidia.com/gpu, perNode: 1}, drian: {timeout: 1m}"),
        ),
        (
            "no time to drain",
            guest("cluster: k8s-serve, expect: {resource: nvidia.com/gpu, perNode: 1}, drain: {timeout: 0s}"),
        ),
        ("no guests", of(&["guests: []"])),
        ("a selector of a cluster that the pool does not list", of(&[GUESTS, "vms: {mayStop: [{guest: k8s-serv}]}"])),
        ("a selector without any guests", of(&["vms: {mayMove: {only: [{guest: k8s-serve}]}}"])),
        (
            "what happens on failure, without guests",
            of(&["rollout: {maxUnavailable: 1, maxReboots: 2, onValidationFailure: keepOpen}"]),
        ),
        (
            "what happens on failure, unknown",
            of(&[GUESTS, "rollout: {maxUnavailable: 1, maxReboots: 2, onValidationFailure: keepOpn}"]),
        ),
    ];
    insta::assert_snapshot!(all_wrong(&cases));
}

#[test]
fn what_sites_say_wrong_of_guests() {
    let of = |guests: &str| {
        let site = SITE.split("  guests:").next().unwrap();
        load(&format!("{site}  guests: [{guests}]\n"), &[], &[])
    };
    let cases = [
        ("two of one name", of("{name: a, kubeconfig: \"file:a\"}, {name: a, kubeconfig: \"file:b\"}")),
        ("one cluster twice", of("{name: a, kubeconfig: \"file:a\"}, {name: b, kubeconfig: \"file:a\"}")),
        ("a kubeconfig in the document", of("{name: a, kubeconfig: kube/serve}")),
        ("a name that is none", of("{name: \"k8s serve\", kubeconfig: \"file:a\"}")),
        ("no kubeconfig", of("{name: a}")),
        ("an unknown key", of("{name: a, kubeconfig: \"file:a\", contxt: b}")),
    ];
    insta::assert_snapshot!(all_wrong(&cases));
    assert_eq!(
        everything_wrong(&of("{name: a, kubeconfig: \"file:a\", context: x}, {name: b, kubeconfig: \"file:a\"}")),
        ""
    );
}

/// A pool whose nodes are validated by this template.
fn validated(template: &str) -> String {
    let guest = format!(
        "guests: [{{cluster: k8s-serve, expect: {{resource: nvidia.com/gpu, perNode: 2}}, validate: [{{template: {template}}}]}}]"
    );
    pool("a", &[&guest])
}

#[test]
fn what_is_wrong_with_a_template_is_said_at_its_line() {
    let wish = validated("{file: t.yaml, set: {image: lab/vectoradd}}");
    let with = |text: &str| load(SITE, std::slice::from_ref(&wish), &[("t.yaml", text)]);
    let changed = |from: &str, to: &str| {
        let text = vector_add();
        assert!(text.contains(from), "{from}");
        with(&text.replacen(from, to, 1))
    };
    let set = |template: &str| load(SITE, &[validated(template)], &[("t.yaml", &vector_add())]);
    let cases = [
        ("no file", load(SITE, std::slice::from_ref(&wish), &[])),
        ("a variable that nobody gives", set("{file: t.yaml, set: {imge: lab/vectoradd}}")),
        ("a variable that the template does not have", set("{file: t.yaml, set: {image: lab/vectoradd, tag: v1}}")),
        ("a variable that `expect` gives", set("{file: t.yaml, set: {image: lab/vectoradd, perNode: \"1\"}}")),
        ("a brace that is not closed", changed("{{ image }}", "{{ image }")),
        ("a filter that there is not", changed("{{ image }}", "{{ image | lowercase }}")),
        ("another template", changed("{{ image }}", "{% include \"other.yaml\" %}{{ image }}")),
        ("no YAML", changed("kind: Job", "kind: [Job")),
        ("a key that stands twice", changed("kind: Job", "kind: Job\nkind: Job")),
        ("two documents", changed("apiVersion", "---\na: b\n---\napiVersion")),
        ("another kind", changed("kind: Job", "kind: Pod")),
        ("another version", changed("batch/v1", "batch/v1beta1")),
        ("a name", changed("namespace: default", "name: vector-add")),
        ("a node", changed("restartPolicy: Never", "restartPolicy: Never\n      nodeName: serve-1")),
        ("no restart policy", changed("      restartPolicy: Never\n", "")),
        ("a restart policy that Jobs do not have", changed("restartPolicy: Never", "restartPolicy: Always")),
        (
            "no container",
            with(
                "apiVersion: batch/v1\nkind: Job\nspec: {template: {spec: {restartPolicy: Never, containers: []}}}\n# {{ image }}\n",
            ),
        ),
        ("no image", changed("          image: {{ image }}\n", "          # {{ image }}\n")),
        ("another resource", changed("{{ resource }}", "nvidia.com/gpus")),
        ("more than there is", changed("{{ perNode }}", "3")),
        ("none of it", changed("{{ perNode }}", "0")),
        ("half of one", changed("{{ perNode }}", "500m")),
        ("no pod at a time", changed("backoffLimit: 0", "parallelism: 0")),
        ("no pod at all", changed("backoffLimit: 0", "completions: 0")),
        ("no time", changed("activeDeadlineSeconds: 900", "activeDeadlineSeconds: 0")),
        ("held back", changed("backoffLimit: 0", "suspend: true")),
        ("more than there is at one time", changed("backoffLimit: 0", "parallelism: 2\n  completions: 4")),
        ("nothing at all", with("")),
    ];
    insta::assert_snapshot!(all_wrong(&cases));
}

/// The shipped template, with one text of it changed.
fn changed(from: &str, to: &str) -> Loaded {
    let text = vector_add();
    assert!(text.contains(from), "{from}");
    let wish = validated("{file: t.yaml, set: {image: lab/vectoradd}}");
    load(SITE, &[wish], &[("t.yaml", &text.replacen(from, to, 1))])
}

const NAMESPACE: &str = "  namespace: default\n";
const RESTART: &str = "      restartPolicy: Never\n";
const BACKOFF: &str = "  backoffLimit: 0\n";

#[test]
fn a_job_whose_pod_would_never_prove_the_node_is_refused() {
    let of_job = |line: &str| changed(BACKOFF, &format!("  {line}\n"));
    let of_pod = |line: &str| changed(RESTART, &format!("{RESTART}      {line}\n"));
    let init = |containers: &str| of_pod(&format!("initContainers: [{containers}]"));
    let asking = "name: a, image: b, resources: {limits: {nvidia.com/gpu: 1}}";
    let cases = [
        ("a namespace that is a number", changed(NAMESPACE, "  namespace: 5\n")),
        ("a namespace that is empty", changed(NAMESPACE, "  namespace: \"\"\n")),
        ("metadata that are a list", changed(NAMESPACE, "  - namespace: default\n")),
        ("labels that are a list", changed(NAMESPACE, "  labels: [a, b]\n")),
        ("annotations that are a text", changed(NAMESPACE, "  annotations: a\n")),
        ("labels of the pod that are a text", changed("  template:\n", "  template:\n    metadata: {labels: a}\n")),
        ("tolerations that are a mapping", of_pod("tolerations: {operator: Exists}")),
        ("a limit of tries that is a text", of_job("backoffLimit: \"0\"")),
        ("a limit of tries below nothing", of_job("backoffLimit: -1")),
        ("half a completion", of_job("completions: 0.5")),
        ("pods at a time in words", of_job("parallelism: two")),
        ("a time that is over", changed("activeDeadlineSeconds: 900", "activeDeadlineSeconds: -5")),
        ("gates", of_pod("schedulingGates: [{name: example.com/quota}]")),
        ("another controller", of_job("managedBy: kueue.x-k8s.io/multikueue")),
        (
            "a policy for failures and tries in place",
            changed(
                "  template:\n    spec:\n      restartPolicy: Never\n",
                "  podFailurePolicy: {rules: [{action: FailJob}]}\n  template:\n    spec:\n      restartPolicy: OnFailure\n",
            ),
        ),
        ("labels that the node must have", of_pod("nodeSelector: {nvidia.com/gpu.present: \"true\"}")),
        (
            "an affinity that has to hold",
            of_pod(
                "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}",
            ),
        ),
        (
            "a request that is not the limit",
            changed("            limits:\n", "            requests: {nvidia.com/gpu: 1}\n            limits:\n"),
        ),
        ("a sidecar with a GPU", init(&format!("{{{asking}, restartPolicy: Always}}"))),
        ("an init container that asks for more", init(&asking.replace("gpu: 1", "gpu: 3"))),
        (
            "an init container beside a sidecar",
            init(&format!("{{{asking}, restartPolicy: Always}}, {{{}}}", asking.replace("gpu: 1", "gpu: 2"))),
        ),
    ];
    insta::assert_snapshot!(all_wrong(&cases));
}

#[test]
fn init_containers_are_counted_as_kubernetes_counts() {
    let one = "{name: a, image: b, resources: {limits: {nvidia.com/gpu: 1}}";
    let two = "{name: a, image: b, resources: {limits: {nvidia.com/gpu: 2}}";
    for (init, gpus) in [
        // One after the other, before the containers.
        (format!("{two}}}, {two}}}, {one}}}"), "{{ perNode }}"),
        // Beside the containers.
        (format!("{one}, restartPolicy: Always}}"), "1"),
        (format!("{one}, restartPolicy: Always}}, {one}}}"), "1"),
        // Before the sidecar starts.
        (format!("{two}}}, {one}, restartPolicy: Always}}"), "1"),
        // The init container has all of them.
        (format!("{two}}}"), "1"),
    ] {
        let text = vector_add().replacen(RESTART, &format!("{RESTART}      initContainers: [{init}]\n"), 1);
        let text = text.replacen("{{ perNode }}", gpus, 1);
        let wish = validated("{file: t.yaml, set: {image: lab/vectoradd}}");
        assert_eq!(everything_wrong(&load(SITE, &[wish], &[("t.yaml", &text)])), "", "{init}");
    }
}

#[test]
fn what_does_no_harm_to_a_job_is_taken() {
    let of_pod = |line: &str| changed(RESTART, &format!("{RESTART}      {line}\n"));
    for loaded in [
        changed(NAMESPACE, "  namespace:\n  labels:\n"),
        changed(BACKOFF, "  managedBy: kubernetes.io/job-controller\n  backoffLimit: 2\n"),
        changed(BACKOFF, "  backoffLimit: 0\n  podFailurePolicy: {rules: [{action: FailJob}]}\n"),
        changed(
            "            limits:\n",
            "            requests: {nvidia.com/gpu: \"2\", cpu: 500m}\n            limits:\n",
        ),
        of_pod("tolerations: [{operator: Exists}]"),
        of_pod("nodeSelector: {}"),
        of_pod("schedulingGates: []"),
        of_pod("affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1}]}}"),
    ] {
        assert_eq!(everything_wrong(&loaded), "");
    }
}

/// Which GPU it was given, nobody knows; the other may be the broken one.
#[test]
fn a_job_that_is_given_one_gpu_of_two_is_a_warning() {
    let warned = |loaded: &Loaded| {
        assert_eq!(problems(&loaded.problems), "");
        let found = profile::check(loaded, Some(TODAY));
        assert!(found.iter().all(|one| one.id.0 == "PW-DOC-15" && one.severity == Severity::Warning), "{found:#?}");
        found.into_iter().map(|one| one.message).collect::<Vec<_>>()
    };
    let said = "1 of 2 nvidia.com/gpu is proven: the Job of `t.yaml` is given no more";
    assert_eq!(warned(&changed("{{ perNode }}", "1")), [said]);
    let text = vector_add().replacen("{{ perNode }}", "1", 1);
    let both = |second: &str| {
        let template = |file: &str| format!("{{template: {{file: {file}, set: {{image: a}}}}}}");
        let guest = "cluster: k8s-serve, expect: {resource: nvidia.com/gpu, perNode: 2}";
        let list = format!("{}, {}", template("t.yaml"), template("u.yaml"));
        let pool = pool("a", &[&format!("guests: [{{{guest}, validate: [{list}]}}]")]);
        load(SITE, &[pool], &[("t.yaml", &text), ("u.yaml", second)])
    };
    assert_eq!(warned(&both(&text)), [said, &said.replace("t.yaml", "u.yaml")], "each may be given the same one");
    assert_eq!(warned(&both(&vector_add())), [""; 0], "the other Job proves both");
}

#[test]
fn a_job_of_several_pods_is_taken_where_the_node_has_gpus_for_them() {
    let wish = validated("{file: t.yaml, set: {image: lab/vectoradd}}");
    for (gpus, spec) in [
        ("1", "parallelism: 2\n  completions: 2"),
        ("2", "completions: 3"),
        ("2", "parallelism: 2\n  completions: 1"),
        ("2", "suspend: false"),
    ] {
        let text = vector_add().replacen("backoffLimit: 0", spec, 1).replacen("{{ perNode }}", gpus, 1);
        assert_eq!(everything_wrong(&load(SITE, std::slice::from_ref(&wish), &[("t.yaml", &text)])), "", "{spec}");
    }
}

#[test]
fn a_template_of_two_pools_is_wrong_once() {
    let wish = validated("{file: t.yaml, set: {image: lab/vectoradd}}");
    let other = wish.replace("name: a}", "name: b}").replace("names: [\"*\"]", "names: [x]");
    let loaded = load(SITE, &[wish, other], &[("t.yaml", &vector_add().replace("kind: Job", "kind: Pod"))]);
    assert_eq!(loaded.problems.len(), 1, "{}", problems(&loaded.problems));
}

#[test]
fn guests_reach_the_wish_with_their_jobs_filled_in() {
    let guests = "guests: [{cluster: k8s-serve, expect: {resource: nvidia.com/gpu, perNode: 2}, drain: {timeout: 45m}, validate: [{template: {file: t.yaml, set: {image: \"lab/x & <y>\"}}}]}, {cluster: k8s-train, expect: {resource: nvidia.com/gpu, perNode: 1}}]";
    let lines = [
        guests,
        "vms: {mayStop: [{guest: k8s-serve}]}",
        "rollout: {maxUnavailable: 1, maxReboots: 2, onValidationFailure: keepOpen}",
    ];
    let loaded = load(SITE, &[pool("a", &lines)], &[("t.yaml", &vector_add())]);
    assert_eq!(everything_wrong(&loaded), "");
    let resolved = profile::resolve(
        &loaded.pools,
        &loaded.sites[0],
        &super::selectors::roster(&[("/DC1/host/gpu-a", &["esx-01"])]),
    )
    .unwrap();
    let wish = &resolved.desired.pools[0];
    assert!(matches!(wish.gpus[0].select.value, GpuSelect::All));
    assert_eq!(wish.rollout.on_validation_failure, OnValidationFailure::KeepOpen);
    assert_eq!(wish.vms.may_stop[0].to_string(), "nodes of k8s-serve");
    let [serve, train] = wish.guests.as_slice() else { panic!("{:#?}", wish.guests) };
    assert_eq!((serve.drain_timeout_s, train.drain_timeout_s), (45 * 60, 30 * 60), "half an hour unless said");
    assert_eq!(train.validate, []);
    let [JobTemplate { file, job }] = serve.validate.as_slice() else { panic!("{:#?}", serve.validate) };
    assert_eq!(file.value, "t.yaml");
    // As they are: nothing here is HTML.
    assert_eq!(job["spec"]["template"]["spec"]["containers"][0]["image"], json!("lab/x & <y>"));
    assert_eq!(job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"], json!({"nvidia.com/gpu": 2}));
    assert_eq!(job["spec"]["backoffLimit"], json!(0), "a number stays one");
}

#[test]
fn a_pool_whose_template_was_not_read_is_never_planned() {
    let pool = validated("{file: t.yaml, set: {image: lab/vectoradd}}");
    let loaded = super::load(&[("site.yaml", SITE), ("p1.yaml", &pool)]);
    let roster = super::selectors::roster(&[("/DC1/host/gpu-a", &["esx-01"])]);
    let findings = profile::resolve(&loaded.pools, &loaded.sites[0], &roster).unwrap_err();
    let errors: Vec<&str> =
        findings.iter().filter(|one| one.severity == Severity::Error).map(|one| one.message.as_str()).collect();
    assert_eq!(errors, ["a template of k8s-serve was not read"]);
}
