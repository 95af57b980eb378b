//! How a host stands, as far as the run knows: one view of what the journal, the marker and a visit that
//! was given up say.

use crate::model::{GuestRules, HostName, Marker, MoRef, NodeRef, RunId};
use crate::plan::{Boot, Fate, HostPlan, Memory, NodeEnd, NodeMemory, Step};
use crate::rollout::{Compensation, HostPhase, HostState, LeftAs, Outcome};

/// How a host stands.
pub(super) struct Standing<'a> {
    /// The run that it is left by.
    pub(super) run: &'a RunId,
    pub(super) name: &'a HostName,
    pub(super) host: &'a HostState,
    pub(super) plan: Option<&'a HostPlan>,
    /// Whether modes may have been written.
    pub(super) changed: bool,
    /// What the visit remembers.
    pub(super) memory: &'a Memory,
    /// What is not put back.
    pub(super) open: Vec<Compensation>,
    /// How it was left, if somebody looked.
    pub(super) left_as: Option<&'a LeftAs>,
    pub(super) given_up: bool,
}

impl<'a> Standing<'a> {
    pub(super) fn of(run: &'a RunId, name: &'a HostName, host: &'a HostState, plan: Option<&'a HostPlan>) -> Self {
        let given_up = host.phase == HostPhase::Done { outcome: Outcome::GivenUp };
        if let Some(stood) = host.stood.as_ref().filter(|_| given_up) {
            // Nodes are left to somebody, without our mark, before it is said how the host stands.
            let nodes =
                host.left_alone.iter().map(|(comp, _)| comp).filter(|comp| matches!(comp, Compensation::Node(_)));
            return Self {
                run,
                name,
                host,
                plan,
                changed: stood.changed,
                memory: &stood.memory,
                open: distinct(nodes.chain(&stood.left_as.uncompensated).chain(&host.armed).cloned()),
                left_as: Some(&stood.left_as),
                given_up,
            };
        }
        let left_as = match &host.phase {
            HostPhase::Left { left_as, .. } => Some(left_as),
            HostPhase::Failed { left_as, .. } => left_as.as_ref(),
            _ => None,
        };
        let mut open = match left_as {
            // Somebody looked: what was seen as it was before is not open, whatever is still armed.
            Some(left) => left.uncompensated.clone(),
            None => host.armed.clone(),
        };
        match &host.marker {
            // What was put back since that look is not, either.
            _ if host.visit.is_some() => open.retain(|comp| host.armed.contains(comp)),
            // What the journal does not know the marker says.
            Some(marker) if left_as.is_none() => open.extend(of_marker(marker)),
            _ => {}
        }
        open.extend(host.memory.nodes.iter().map(|known| Compensation::Node(known.node.clone())));
        let open = distinct(open);
        Self { run, name, host, plan, changed: host.changed, memory: &host.memory, open, left_as, given_up }
    }

    /// Whether a person has anything to do on it.
    pub(super) fn needs_hands(&self) -> bool {
        !self.open.is_empty() || self.is_marked() || !self.host.is_released()
    }

    /// Whether the host carries our marker, as far as we know.
    pub(super) fn is_marked(&self) -> bool {
        !self.given_up && (self.host.marker.is_some() || self.left_as.is_some_and(|left| left.marker))
    }

    /// Steps of the visit that are not done.
    pub(super) fn to_do(&self) -> &'a [Step] {
        &self.host.to_do
    }

    /// Whether a step that is not done is still to be done on a host that goes forward: a VM of the visit that
    /// is put back is not started.
    pub(super) fn is_due(&self, step: &Step) -> bool {
        match step {
            Step::StartVm { vm, .. } => self.has(&Compensation::Vm(vm.clone())),
            _ => true,
        }
    }

    fn steps(&self) -> impl Iterator<Item = &'a Step> {
        self.host.visit.iter().flat_map(|visit| &visit.steps)
    }

    pub(super) fn has(&self, comp: &Compensation) -> bool {
        self.open.contains(comp)
    }

    /// VMs that are not put back.
    pub(super) fn vms(&self) -> impl Iterator<Item = &MoRef> {
        self.open.iter().filter_map(|comp| match comp {
            Compensation::Vm(vm) => Some(vm),
            _ => None,
        })
    }

    /// Nodes that are not put back.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &NodeRef> {
        self.open.iter().filter_map(|comp| match comp {
            Compensation::Node(node) => Some(node),
            _ => None,
        })
    }

    /// The name of a VM, if it is known.
    pub(super) fn vm_name(&self, vm: &MoRef) -> Option<&'a str> {
        let planned = self.plan.iter().flat_map(|plan| &plan.fates).find(|fate| fate.vm == *vm);
        planned.map(|fate| fate.name.as_str()).or_else(|| {
            self.steps().chain(self.to_do()).find_map(|step| match step {
                Step::StopVm { vm: of, name, .. } | Step::StartVm { vm: of, name, .. } if of == vm => {
                    Some(name.as_str())
                }
                _ => None,
            })
        })
    }

    /// A VM as people know it: `serve-1 (vm-7)`.
    pub(super) fn vm_words(&self, vm: &MoRef) -> String {
        match self.vm_name(vm) {
            Some(name) => format!("{name} ({})", vm.id),
            None => vm.id.clone(),
        }
    }

    /// Whether the plan leaves this VM off.
    pub(super) fn is_left_off(&self, vm: &MoRef) -> bool {
        let planned = self.plan.iter().flat_map(|plan| &plan.fates).find(|fate| fate.vm == *vm);
        planned.is_some_and(|fate| matches!(fate.fate, Fate::LeftOff { .. }))
    }

    /// What is remembered of a node.
    pub(super) fn mark(&self, node: &NodeRef) -> Option<&'a NodeMemory> {
        self.memory.nodes.iter().find(|known| known.node == *node)
    }

    /// What the pool asks of the nodes of a cluster.
    pub(super) fn rules(&self, node: &NodeRef) -> Option<&'a GuestRules> {
        self.plan?.guests.iter().find(|rules| rules.cluster.value == node.cluster)
    }

    /// The VM of a node, if it is known.
    pub(super) fn vm_of(&self, node: &NodeRef) -> Option<&'a MoRef> {
        let of_step = |step: &'a Step| match step {
            Step::CordonNode { node: of, vm }
            | Step::DrainNode { node: of, vm, .. }
            | Step::AwaitNode { node: of, vm, .. }
                if of == node =>
            {
                Some(vm)
            }
            _ => None,
        };
        let planned = self.plan.iter().flat_map(|plan| &plan.fates).find(|fate| fate.node.as_ref() == Some(node));
        let marked = self.mark(node).map(|known| &known.vm);
        marked.or_else(|| self.steps().find_map(of_step)).or(planned.map(|fate| &fate.vm))
    }

    /// Whether a VM is the one of a node.
    pub(super) fn is_node(&self, vm: &MoRef) -> bool {
        let of_fate = self.plan.iter().flat_map(|plan| &plan.fates).any(|fate| fate.vm == *vm && fate.node.is_some());
        let of_step = |step: &Step| match step {
            Step::StopVm { vm: of, node, .. } => of == vm && node.is_some(),
            Step::CordonNode { vm: of, .. } | Step::DrainNode { vm: of, .. } | Step::AwaitNode { vm: of, .. } => {
                of == vm
            }
            _ => false,
        };
        of_fate || self.memory.nodes.iter().any(|known| known.vm == *vm) || self.steps().any(of_step)
    }

    /// Whether a VM was asked to shut down and nobody has seen it off since: it may run on, or heed that yet.
    pub(super) fn may_go_off(&self, vm: &MoRef) -> bool {
        let stops = |step: &Step| matches!(step, Step::StopVm { vm: of, .. } if of == vm);
        self.host.asked_to_stop.contains(vm) && self.to_do().iter().any(stops)
    }

    /// Which boot a node has to be on.
    pub(super) fn boot(&self, node: &NodeRef) -> Boot {
        match self.vm_of(node) {
            Some(vm) if self.may_go_off(vm) => Boot::Either,
            Some(vm) if self.host.asked_to_stop.contains(vm) => Boot::Another,
            Some(_) if self.host.visit.is_some() && !self.given_up => Boot::Same,
            // A visit that is given up, or known by its marker alone, does not say it.
            Some(_) | None => Boot::Either,
        }
    }

    /// Whether the visit leaves this node cordoned, its VM off.
    pub(super) fn stays_off(&self, node: &NodeRef) -> bool {
        self.steps().any(|step| matches!(step, Step::UncordonNode { node: of, leave: NodeEnd::LeftOff } if of == node))
    }
}

fn distinct(all: impl IntoIterator<Item = Compensation>) -> Vec<Compensation> {
    let mut kept = Vec::new();
    for comp in all {
        if !kept.contains(&comp) {
            kept.push(comp);
        }
    }
    kept
}

/// What a marker says is not put back.
fn of_marker(marker: &Marker) -> impl Iterator<Item = Compensation> {
    let nodes = marker.nodes.iter().map(|[cluster, name, uid]| {
        Compensation::Node(NodeRef { cluster: cluster.clone(), name: name.clone(), uid: uid.clone() })
    });
    marker.arm.iter().filter_map(Compensation::from_marker).chain(nodes)
}
