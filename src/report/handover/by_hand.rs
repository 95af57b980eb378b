//! Each thing that is left to be done, as a person does it: clicks in the vSphere Client 8, lines of govc and
//! kubectl to paste (docs/decisions/008), and what shows that it is done.

use serde::Serialize;

use super::order::Todo;
use super::paste::{
    ended, esxcli_policy, esxcli_size, esxcli_type, fields, kubectl, mark_path, mode_words, pinned, policy_words,
    power_on, size_words, type_words, vm_path, volumes,
};
use super::standing::Standing;
use crate::model::{
    AssignmentPolicy, GraphicsType, Marker, MigKind, MoRef, Mode, NodeMark, NodePhase, NodeRef, PciAddress, counted,
};
use crate::plan::{Boot, GraphicsChange, NodeEnd, PassthruChange, Step};
use crate::report::quoted;

/// One thing that is left to be done, by hand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ByHand {
    /// What it does.
    pub does: String,
    /// What has to be so before it is done.
    pub first: Vec<String>,
    /// Lines to paste that only look.
    pub look: Vec<String>,
    /// Where to click in the vSphere Client.
    pub clicks: Vec<String>,
    /// Lines for the shell of the host, as root.
    pub shell: Vec<String>,
    /// Lines to paste: govc and kubectl.
    pub commands: Vec<String>,
    /// What shows that it is done.
    pub then: Vec<String>,
}

/// The script of NVIDIA's monitoring daemon (gpu-catalog HOST-10).
const MONITOR: &str = "/etc/init.d/nvdGpuMgmtDaemon";
/// How MIG of all GPUs is asked for.
const MIG_MODES: &str = "nvidia-smi --query-gpu=pci.bus_id,mig.mode.current,mig.mode.pending --format=csv,noheader";
/// Where the reader is told that govc does not do it itself.
const NO_VERB: &str = "# govc has no verb for it; esxcli through govc, as documented for 8.0.3:";
/// How long a node may take to be Ready after its VM started: compiling a driver takes 15 minutes
/// (kubernetes §6.6).
const READY: &str = "30m";

impl ByHand {
    fn new(does: impl Into<String>) -> Self {
        Self { does: does.into(), ..Self::default() }
    }

    fn first(mut self, line: impl Into<String>) -> Self {
        self.first.push(line.into());
        self
    }

    fn look(mut self, line: impl Into<String>) -> Self {
        self.look.push(line.into());
        self
    }

    fn click(mut self, line: impl Into<String>) -> Self {
        self.clicks.push(line.into());
        self
    }

    fn shell(mut self, line: impl Into<String>) -> Self {
        self.shell.push(line.into());
        self
    }

    fn run(mut self, line: impl Into<String>) -> Self {
        self.commands.push(line.into());
        self
    }

    fn then(mut self, line: impl Into<String>) -> Self {
        self.then.push(line.into());
        self
    }
}

/// How it is done by hand.
pub(super) fn by_hand(standing: &Standing<'_>, todo: &Todo) -> ByHand {
    let desk = Desk(standing);
    match todo {
        Todo::Step(step) => desk.step(step),
        Todo::CancelEntering => desk.cancel_entering(),
        Todo::SeeToVm(vm) => desk.see_to(vm),
        Todo::ReleaseNode(node) => desk.release(node),
        Todo::StopSsh => ByHand::new("stop the SSH service of the host")
            .first("it still runs: a reboot has stopped it, unless its policy starts it with the host")
            .look(format!("govc host.service -host {} status TSM-SSH", desk.path()))
            .click(format!("{} > Configure > System > Services > SSH > Stop", desk.host()))
            .run(format!("govc host.service -host {} stop TSM-SSH", desk.path())),
        Todo::Unmark => ByHand::new("take the mark of the run off the host")
            .first("all of the above is done: the mark is what keeps other runs away")
            .click(format!("{} > Summary > Custom Attributes > Edit: empty {}", desk.host(), Marker::FIELD))
            .run(format!("govc fields.set {} '' {}", Marker::FIELD, desk.path())),
    }
}

struct Desk<'a>(&'a Standing<'a>);

impl Desk<'_> {
    fn host(&self) -> &str {
        self.0.name.as_str()
    }

    /// The host as govc finds it: by its inventory path, or by its name where the plan is not there.
    fn path(&self) -> String {
        match self.0.plan {
            Some(plan) => quoted(&plan.host.path),
            None => format!("\"$(govc find / -type h -name {})\"", quoted(self.host())),
        }
    }

    fn step(&self, step: &Step) -> ByHand {
        let (host, path) = (self.host(), self.path());
        let does = ByHand::new(step.to_string());
        match step {
            Step::CordonNode { node, .. } => does.run(kubectl(node, &format!("cordon {}", quoted(&node.name)))),
            Step::DrainNode { node, timeout_s, .. } => does
                .run(kubectl(
                    node,
                    &format!(
                        "drain {} --ignore-daemonsets --delete-emptydir-data --timeout={timeout_s}s",
                        quoted(&node.name)
                    ),
                ))
                .then("nothing but DaemonSet and mirror pods is left on it, and no volume is attached to it:")
                .run(volumes(node)),
            Step::StartClosing { .. } => self
                .click_enter(does)
                // govc waits for the end of the task, which waits for the VMs that are shut down below.
                .run(format!("govc host.maintenance.enter {path} >/dev/null &"))
                .then("the task runs on until every VM is off or moved; a VM that stays keeps it running for ever"),
            Step::EnterMaintenance { .. } => self.enter(does),
            Step::StopVm { vm, node, .. } => {
                let does = match node {
                    Some(node) => does.first(format!("the node {node} is drained and has no volume attached")),
                    None => does,
                };
                let does = match self.0.may_go_off(vm) {
                    true => self.look_at_guest(does, vm),
                    false => does,
                };
                does.click(format!("right-click {} > Power > Shut Down Guest OS", self.0.vm_words(vm)))
                    .run(format!("govc vm.power -s {}", vm_path(vm)))
                    .then("its power state is Powered Off")
            }
            Step::SetPassthrough { changes } => self.passthrough(does, changes),
            Step::SetGraphics { default_type, policy, devices, .. } => {
                let does = self.graphics(does, devices);
                let defaults = default_type.as_ref().map(|change| &change.to);
                self.graphics_of_host(does, defaults, policy.as_ref().map(|change| &change.to))
            }
            Step::StartShell => does
                .click(format!(
                    "{host} > Configure > System > Services > SSH > Start; stop it again at the end if it was stopped"
                ))
                .run(format!("govc host.service -host {path} start TSM-SSH")),
            Step::StopMonitor => does.shell(format!("{MONITOR} stop")),
            Step::StartMonitor => does.shell(format!("{MONITOR} start")),
            Step::SetMig { gpus, on, kind, .. } => {
                let does = does.first("no VM and no other program uses these GPUs: stop the monitoring daemon, too");
                let does = does.shell(format!("{MONITOR} stop"));
                let switch =
                    |does: ByHand, gpu: &PciAddress| does.shell(format!("nvidia-smi -i {gpu} -mig {}", u8::from(*on)));
                let does = gpus.iter().fold(does, switch).shell(format!("{MONITOR} start")).shell(MIG_MODES);
                let state = if *on { "Enabled" } else { "Disabled" };
                does.then(match kind {
                    MigKind::Board => format!("pending shows {state}: it waits for the reboot"),
                    MigKind::Driver => format!("current shows {state}; a reboot loses it"),
                })
            }
            Step::Reboot { boot_before, .. } => {
                let does = match self.0.host.reboot_asked {
                    Some(at) => does.first(format!(
                        "it was asked to reboot {at:.0}: look at its boot time, wait, and reboot it only if it does not"
                    )),
                    None => does,
                };
                does.first("the host is in maintenance mode, and no VM runs on it")
                    .look(format!("govc host.info {path}"))
                    .click(format!("right-click {host} > Power > Reboot"))
                    .run(format!("govc host.shutdown -r {path}"))
                    .then(format!(
                        "it is connected again, in maintenance mode, with a boot time after {boot_before:.0}"
                    ))
            }
            Step::VerifyHost => self.verify(does),
            Step::ExitMaintenance => self.exit(does),
            Step::StartVm { vm, .. } => does
                .first(format!("{host} is out of maintenance mode"))
                .click(format!("right-click {} > Power > Power On, if it is off", self.0.vm_words(vm)))
                .run(power_on(vm))
                .then(format!("it runs, and its Summary shows the host {host}: DRS may choose another one")),
            Step::AwaitNode { node, vm, stopped } => self.wait_for(does, node, vm, *stopped),
            Step::ValidateNode { node, .. } => self.validate(does, node),
            Step::UncordonNode { node, leave: NodeEnd::Open } => self.uncordon(does, node),
            Step::UncordonNode { node, leave: NodeEnd::LeftOff } => {
                let plan = self.0.mark(node).map_or("by-hand", |known| known.mark.plan.as_str());
                let marks = format!(
                    "annotate node {} {}={} {}-",
                    quoted(&node.name),
                    NodeMark::LEFT_OFF,
                    quoted(plan),
                    NodeMark::ANNOTATION
                );
                self.is_ours(does, node)
                    .run(kubectl(node, &marks))
                    .then("it stays cordoned, and its VM off, as planned")
            }
        }
    }

    fn click_enter(&self, does: ByHand) -> ByHand {
        does.click(format!(
            "right-click {} > Maintenance Mode > Enter Maintenance Mode, without moving powered-off VMs",
            self.host()
        ))
    }

    /// The end of the entering that an earlier step of the card has begun, or the whole of it: a second one beside
    /// one that runs is refused.
    fn enter(&self, does: ByHand) -> ByHand {
        let path = self.path();
        let shows = format!("govc object.collect -s {path} runtime.inMaintenanceMode");
        let mut due = self.0.to_do().iter().filter(|step| self.0.is_due(step));
        let does = if due.any(|step| matches!(step, Step::StartClosing { .. })) {
            does.first("it was begun above, and every VM of the host is off or moved since").look(shows)
        } else {
            self.click_enter(
                does.first("if such a task runs already, wait for its end").look(format!("govc tasks {path}")),
            )
            .run(format!("{shows} | grep -q true || govc host.maintenance.enter {path}"))
            .run(shows)
        };
        does.then("it shows `true`. Until then the host is not in it, and nothing below is begun")
    }

    fn cancel_entering(&self) -> ByHand {
        let task = self.0.host.running.as_ref().and_then(|running| running.task.as_ref());
        let does = ByHand::new("cancel entering maintenance mode, if it still runs")
            .click(format!("Recent Tasks: `Enter maintenance mode` of {}, if it is there > Cancel", self.host()));
        let does = does.look(format!("govc tasks {}", self.path()));
        match task {
            Some(task) => does.run(format!("govc task.cancel {}", quoted(&task.id))),
            None => does.run("govc task.cancel TASK"),
        }
        .then("no such task runs any more")
    }

    fn look_at_guest(&self, does: ByHand, vm: &MoRef) -> ByHand {
        does.first("it was asked to shut down, and was not seen to go off: see what its guest waits for")
            .look(format!("govc vm.info {}", vm_path(vm)))
            .click(format!("right-click {} > Launch Web Console", self.0.vm_words(vm)))
    }

    /// A VM that was asked to shut down runs on, as far as anybody has seen, on a host that is given back: nothing
    /// will start it anew, and its guest may heed yet.
    fn see_to(&self, vm: &MoRef) -> ByHand {
        let (words, path) = (self.0.vm_words(vm), vm_path(vm));
        let does = self.look_at_guest(ByHand::new(format!("see to the VM {words}, which was asked to shut down")), vm);
        let drained = match self.0.nodes().find(|node| self.0.vm_of(node) == Some(vm)) {
            Some(node) => format!("the node {node} is drained and has no volume attached"),
            None => "whoever it belongs to agrees".to_owned(),
        };
        does.click(format!("only if its guest hangs, and {drained}: right-click {words} > Power > Power Off"))
            .click(format!("right-click {words} > Power > Power On, if it is off"))
            .run(format!("# only if its guest hangs, and {drained}: govc vm.power -off {path}"))
            .run(power_on(vm))
            .then(
                "its guest works: leave it on, it is given back as it is. It may go off later: then power it on again",
            )
    }

    fn passthrough(&self, does: ByHand, changes: &[PassthruChange]) -> ByHand {
        let place = format!("{} > Configure > Hardware > PCI Devices > All PCI Devices", self.host());
        let mut does = does.first("the host is in maintenance mode, and no VM uses these GPUs");
        for change in changes {
            let address = change.address;
            if change.enabled != change.from_enabled {
                let state = if change.enabled { "Enabled" } else { "Disabled" };
                does = does.click(format!("{place}: tick {address} > Toggle Passthrough, until it shows {state}"));
            }
            if let Some(label) = &change.label {
                let text = if label.is_empty() { "empty it".to_owned() } else { format!("set {label}") };
                does = does.click(format!("{place}: tick {address} > Hardware Label: {text}"));
            }
        }
        does = does.run(NO_VERB);
        for change in changes.iter().filter(|change| change.enabled != change.from_enabled) {
            does = does
                .run(self.esxcli(&format!("hardware pci pcipassthru set -d {} -e {}", change.address, change.enabled)));
        }
        if changes.iter().any(|change| change.label.is_some()) {
            does = does.run("# neither of them sets a hardware label");
        }
        does.then("`needs reboot` beside it means that it waits for the reboot")
    }

    fn graphics(&self, does: ByHand, devices: &[GraphicsChange]) -> ByHand {
        if devices.is_empty() {
            return does;
        }
        let place = format!("{} > Configure > Hardware > Graphics > Graphics Devices", self.host());
        let mut does = does.first("the host is in maintenance mode, and no VM uses these GPUs");
        for change in devices {
            let address = change.address;
            let size = change.vgpu_mode.as_ref().map(|mode| format!(", vGPU mode {}", size_words(mode)));
            let kind = type_words(&change.graphics_type);
            does = does.click(format!("{place}: {address} > Edit: {kind}{}", size.unwrap_or_default()));
        }
        does = does.run(NO_VERB);
        for change in devices {
            let size = change.vgpu_mode.as_ref().map(|mode| format!(" -m {}", esxcli_size(mode))).unwrap_or_default();
            let kind = esxcli_type(&change.graphics_type);
            does = does.run(self.esxcli(&format!("graphics device set -d {} -t {kind}{size}", change.address)));
        }
        does.then("what is shown as Configured is stored; Active follows, for some changes with the reboot")
    }

    fn graphics_of_host(
        &self,
        mut does: ByHand,
        default: Option<&GraphicsType>,
        policy: Option<&AssignmentPolicy>,
    ) -> ByHand {
        let place = format!("{} > Configure > Hardware > Graphics > Host Graphics > Edit", self.host());
        let mut options = String::new();
        if let Some(default) = default {
            does = does.click(format!("{place}: {}", type_words(default)));
            options.push_str(&format!(" --default-type {}", esxcli_type(default)));
        }
        if let Some(policy) = policy {
            does = does.click(format!("{place}: assignment policy {}", policy_words(policy)));
            options.push_str(&format!(" --shared-passthru-assignment-policy {}", esxcli_policy(policy)));
        }
        if options.is_empty() {
            return does;
        }
        if !does.commands.iter().any(|line| line == NO_VERB) {
            does = does.run(NO_VERB);
        }
        does.run(self.esxcli(&format!("graphics host set{options}")))
    }

    fn esxcli(&self, command: &str) -> String {
        format!("govc host.esxcli -host {} {command}", self.path())
    }

    fn verify(&self, does: ByHand) -> ByHand {
        let host = self.host();
        let mut does = does
            .click(format!("{host} > Configure > Hardware > Graphics > Graphics Devices, and > PCI Devices"))
            .look(format!("govc object.collect -json {} config.graphicsInfo config.pciPassthruInfo", self.path()));
        match self.0.plan {
            Some(plan) => {
                for gpu in &plan.target.gpus {
                    does = does.then(format!("{}: {}", gpu.address, mode_words(&gpu.mode)));
                }
                if plan.target.gpus.iter().any(|gpu| gpu.mode == Mode::MigVgpu) {
                    does = does.shell(MIG_MODES);
                }
            }
            None => does = does.then("each GPU has the mode that the plan wants, active and not only configured"),
        }
        if let Some(base) = &self.0.memory.baseline {
            does = does.then(format!(
                "no worse than before: datastores {}, uplinks {}, red alarms {} (? was unknown, - is not there)",
                base.ds, base.up, base.alarms
            ));
        }
        does
    }

    fn exit(&self, does: ByHand) -> ByHand {
        let host = self.host();
        let does = match self.0.left_as.and_then(|left| left.maintenance) {
            Some(false) => does.first("it was seen out of it: if it is, nothing is to be done here"),
            None => does.first("look whether it is in it: if it is not, nothing is to be done here"),
            Some(true) => does,
        };
        let mut does = does;
        if self.0.changed {
            does = does.first("it is verified: the GPUs show their modes as active. If they do not, leave it closed");
        }
        for node in self.0.nodes().filter(|node| self.has_failed(node)) {
            does = does.first(format!("why the node {node} did not pass its gate is found, and mended"));
        }
        let does = does
            .click(format!("right-click {host} > Maintenance Mode > Exit Maintenance Mode"))
            .run(format!("govc host.maintenance.exit {}", self.path()));
        match self.0.memory.baseline.as_ref().filter(|base| base.das != "-" && base.das != "?") {
            Some(base) => does.then(format!("connected, no red alarm that is new, HA agent as before: {}", base.das)),
            None => does.then("connected, and no red alarm that is new"),
        }
    }

    fn wait_for(&self, does: ByHand, node: &NodeRef, vm: &MoRef, stopped: bool) -> ByHand {
        let name = quoted(&node.name);
        let boot = if self.0.mark(node).is_some() || self.0.nodes().any(|of| of == node) {
            self.0.boot(node)
        } else if stopped {
            Boot::Another
        } else {
            Boot::Same
        };
        let mut does = does;
        if boot != Boot::Same {
            let vm = self.0.vm_of(node).unwrap_or(vm);
            does = does.first(format!("its VM {} runs, on {}", self.0.vm_words(vm), self.host()));
        }
        let rules = self.0.rules(node);
        does = does
            .look(kubectl(node, &format!("wait --for=condition=Ready node/{name} --timeout={READY}")))
            .look(kubectl(node, &format!("get node {name} -o jsonpath='{}'", fields(rules))))
            .then(format!("uid {}: another one is another node, leave it alone", node.uid));
        if let Some(known) = self.0.mark(node) {
            let before = &known.mark.boot;
            does = does.then(match boot {
                Boot::Another => format!("boot is not {before}: its VM was started anew"),
                Boot::Same => format!("boot is {before}: its VM was left alone"),
                Boot::Either => format!("boot {before} means that its VM was left alone"),
            });
        }
        does = does.then("Ready is True");
        match rules {
            Some(rules) => {
                let (resource, count) = (&rules.expect.resource.value, rules.expect.per_node.value);
                does.then(format!("allocatable {resource} is {count}, neither more nor less"))
            }
            None => match self.0.mark(node) {
                Some(known) => {
                    does.then(format!("allocatable shows {}, as before", counted(known.mark.gpus as usize, "GPU")))
                }
                None => does.then("allocatable shows as many GPUs as before"),
            },
        }
    }

    fn validate(&self, does: ByHand, node: &NodeRef) -> ByHand {
        let mut does = does.first("its check has passed: what was waited for above is as it says");
        if self.has_failed(node) {
            does = does.first("it did not pass its gate before: without a cause that is gone it will not pass now");
        }
        let Some(rules) = self.0.rules(node) else {
            return does
                .first("the plan is not here: take the Jobs of its profile for this cluster, pinned to the node")
                .run(kubectl(node, "create -f JOB.yaml"))
                .then("each of them completes. If one fails, leave the node cordoned, and find out why");
        };
        if rules.validate.is_empty() {
            return does.then("no Job is asked for: what the check of the node shows is all");
        }
        for (number, template) in rules.validate.iter().enumerate() {
            let (job, namespace, name) = pinned(&template.job, node, number);
            does = does
                .run(format!("printf %s {} | {}", quoted(&job), kubectl(node, "create -f -")))
                .run(ended(node, &namespace, &name))
                .run(kubectl(node, &format!("-n {namespace} logs job/{name}")))
                .run(kubectl(node, &format!("-n {namespace} delete job {name}")));
            if let Some(known) = self.0.mark(node).filter(|_| self.has_failed(node)) {
                let ours = quoted(&format!("{}={}", NodeMark::JOB_RUN, known.mark.run));
                does = does.run(kubectl(node, &format!("-n {namespace} delete jobs -l {ours}")));
            }
        }
        if self.has_failed(node) {
            does = does.then("the last line deletes the Jobs that this run has kept as evidence in this cluster");
        }
        does.then("each says `Complete`. If one says `Failed`, leave the node cordoned, and find out why")
    }

    /// Whether the node is marked as one that did not pass its gate.
    fn has_failed(&self, node: &NodeRef) -> bool {
        self.0.mark(node).is_some_and(|known| known.mark.phase == NodePhase::Failed)
    }

    fn uncordon(&self, mut does: ByHand, node: &NodeRef) -> ByHand {
        if self.0.mark(node).is_some_and(|known| known.mark.was_unschedulable) {
            does.does.push_str(": it was cordoned before, only the mark goes");
        }
        let does = match self.0.boot(node) {
            Boot::Either => does.first(
                "its check and its Jobs have passed, on this boot; or its VM was never stopped: boot and UID as before",
            ),
            Boot::Another | Boot::Same => does.first(
                "its check and its Jobs have passed, on this boot. If not, leave it cordoned: pods would fail on it",
            ),
        };
        self.open(does, node)
    }

    /// A node whose VM was not stopped, on a host that is not changed.
    fn release(&self, node: &NodeRef) -> ByHand {
        let name = quoted(&node.name);
        let mut does = ByHand::new(format!("leave the node {node} as it was"))
            .look(kubectl(node, &format!("get node {name} -o jsonpath='{}'", fields(self.0.rules(node)))));
        does = match self.0.mark(node) {
            Some(known) => does.first(format!(
                "it shows uid {}, boot {} and Ready True: its VM was not stopped. With another boot validate it first, by a Job on its GPUs",
                node.uid, known.mark.boot
            )),
            None => does.first(format!("it shows uid {} and Ready True, and its VM was not stopped", node.uid)),
        };
        self.open(does, node)
    }

    /// A node may have come to another run meanwhile, which opens it itself.
    fn is_ours(&self, does: ByHand, node: &NodeRef) -> ByHand {
        let mark = format!("get node {} -o jsonpath='{}{{\"\\n\"}}'", quoted(&node.name), mark_path());
        does.look(kubectl(node, &mark)).first(format!(
            "its mark names the run {}, or it has none. With the mark of another run leave the node alone: that run opens it",
            self.0.run
        ))
    }

    fn open(&self, does: ByHand, node: &NodeRef) -> ByHand {
        let name = quoted(&node.name);
        let does = self.is_ours(does, node);
        let unmark = kubectl(node, &format!("annotate node {name} {}-", NodeMark::ANNOTATION));
        match self.0.mark(node).map(|known| known.mark.was_unschedulable) {
            Some(true) => {
                does.run(unmark).then("it was cordoned before this run, and stays cordoned: only the mark goes")
            }
            Some(false) => {
                does.run(kubectl(node, &format!("uncordon {name}"))).run(unmark).then("new pods start on it")
            }
            // A person who pastes all lines at once must not uncordon what was cordoned before.
            None => does
                .first(
                    "whether it was cordoned before stands in its mark: the first line uncordons it only if it was not",
                )
                .run(format!(
                    "{} | grep -q '\"wasUnschedulable\":false' && {}",
                    kubectl(node, &format!("get node {name} -o jsonpath='{}'", mark_path())),
                    kubectl(node, &format!("uncordon {name}"))
                ))
                .run(unmark),
        }
    }
}
