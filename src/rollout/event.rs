//! What is written into a journal: one [`Entry`] a line, after the [`Header`] (FORMATS "Journal").

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Held, LeftAs, StepKind};
use crate::model::{Connection, Fact, HostName, HostRecord, Marker, MoRef, NodeMark, NodeRef, PlanId, RunId};
use crate::plan::{GateCheck, Input, Memory, Step, Verdict, Visit};
use crate::vim25::wire::names::managed;

/// The first line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// What the file is: [`Header::FORMAT`].
    pub format: String,
    /// Version of the format.
    pub v: u32,
}

impl Header {
    /// The name of the format.
    pub const FORMAT: &str = "poolwright.journal";
    /// The version that this program writes, and the only one that it reads.
    pub const VERSION: u32 = 1;
}

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Number of the line, from 1, without gaps.
    pub n: u64,
    /// When, by our clock.
    pub at: Timestamp,
    /// The host it is about; none for what concerns the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostName>,
    /// What happened.
    pub e: Event,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Event {
    /// A run began; its plan is spent from now on.
    RunStarted {
        /// Its id.
        run: RunId,
        /// Version of the program.
        tool: String,
        /// The plan.
        plan: PlanId,
        /// The documents that the plan was made from.
        inputs: Vec<Input>,
        /// `about.instanceUuid` of the vCenter.
        site_uuid: String,
        /// Who is logged in there.
        user: String,
        /// The hosts of the plan, in the order in which they are visited.
        hosts: Vec<HostName>,
    },
    /// A process took the run up again.
    RunResumed {
        /// Version of the program.
        tool: String,
        /// Who is logged in.
        user: String,
        /// From what, and what for.
        how: Resumed,
    },
    /// Nothing is done to the host, or nothing more.
    HostHeld {
        /// Why.
        why: Held,
    },
    /// The host's steps, made from fresh facts. Synced before the first effect.
    VisitPlanned {
        /// The steps.
        visit: Visit,
        /// What they were made from; the whole record is in `before-<host>.json`.
        facts: SeenFacts,
        /// What the visit remembered.
        memory: Box<Memory>,
    },
    /// Fresh facts ask for other steps.
    VisitReplanned {
        /// What was seen.
        why: String,
        /// The steps that are left.
        visit: Visit,
    },
    /// The marker on the host object was written, or cleared, and read back.
    MarkerWritten {
        /// What stands there now; none after clearing it.
        marker: Option<Box<Marker>>,
    },
    /// A side setting is about to be changed and will be put back.
    Armed {
        /// Which.
        comp: Compensation,
    },
    /// A side setting was put back.
    Undone {
        /// Which.
        comp: Compensation,
    },
    /// A side setting was not put back: it does not have the value that we set.
    LeftAlone {
        /// Which.
        comp: Compensation,
        /// What was found.
        found: String,
    },
    /// A step begins. Synced before its effect.
    StepStarted {
        /// The step.
        step: Step,
        /// From 1; more than 1 after an attempt that certainly had no effect.
        attempt: u32,
        /// The server's time: tasks queued from now on may be ours.
        server_time: Timestamp,
        /// Why the attempt before this one does not count.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        again: Option<String>,
    },
    /// The server's task of the running step.
    TaskSeen {
        /// The step.
        step: StepKind,
        /// The task.
        key: MoRef,
    },
    /// The step is verified from fresh reads.
    StepDone {
        /// The step.
        step: StepKind,
        /// Whether we did it.
        how: How,
        /// What was read, one line each.
        evidence: Vec<String>,
    },
    /// The step failed; the visit ends here.
    StepFailed {
        /// The step.
        step: StepKind,
        /// The class.
        class: FailureClass,
        /// What went wrong, to the deepest cause.
        error: String,
    },
    /// A person is asked to type commands at the shell of the host.
    HandoffAsked {
        /// The commands, in order.
        commands: Vec<String>,
        /// Whether the person has to say that it is done: nothing shows it before the reboot.
        confirm: bool,
    },
    /// The person says that the commands are typed.
    HandoffConfirmed,
    /// What the person was asked for is done.
    HandoffSeen {
        /// What was read, or who said so.
        evidence: String,
    },
    /// The person is not waited for any more, and has not begun: the host is as it was.
    HandoffWithdrawn {
        /// What was read.
        evidence: String,
    },
    /// A login to the shell of the host failed: the shell is not used again in this run, since another
    /// failure could lock the account.
    ShellLoginFailed {
        /// Why, to the deepest cause.
        error: String,
    },
    /// One line of the host gate.
    GateRead {
        /// Which check.
        gate: GateCheck,
        /// Of what.
        subject: String,
        /// What it says.
        result: Verdict,
        /// What was read.
        evidence: String,
    },
    /// The mark on a node was written, with the cordon where it is the first, and read back; or it was taken
    /// off.
    NodeMarked {
        /// The node.
        node: NodeRef,
        /// Its VM.
        vm: MoRef,
        /// What stands there now; none after taking it off.
        mark: Option<Box<NodeMark>>,
    },
    /// What keeps a node from being drained has changed.
    NodeBlocked {
        /// The node.
        node: NodeRef,
        /// What is waited for, one line each; nothing if the way is free.
        why: Vec<String>,
    },
    /// Pods were evicted that nothing starts again: they have no controller.
    PodsEnded {
        /// The node that they ran on.
        node: NodeRef,
        /// Each, with what is lost.
        pods: Vec<String>,
    },
    /// Somebody uncordoned a node that had not passed its gate; it was cordoned again.
    NodeRecordoned {
        /// The node.
        node: NodeRef,
    },
    /// The object of a node was deleted and made anew while its VM started: the new one carries our mark now.
    NodeRenewed {
        /// The node as it was.
        node: NodeRef,
        /// The UID of its new object.
        uid: String,
    },
    /// A signal came.
    Signal {
        /// Which.
        signal: Signal,
    },
    /// The visit stops before its end; this is how the host stands.
    HostLeft {
        /// How.
        left_as: LeftAs,
    },
    /// The host is given back: nothing of ours is left on it.
    HostReleased {
        /// As what.
        outcome: Outcome,
    },
    /// No new host is started.
    Halted {
        /// Why.
        why: String,
    },
    /// The process ends in order.
    RunFinished {
        /// How the fleet stands.
        outcome: RunOutcome,
    },
}

/// From what a run was taken up again, and what for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Resumed {
    /// From the journal, to go on.
    Journal,
    /// From the markers on the hosts: the journal is gone.
    Live,
    /// To visit a failed host again.
    Retry {
        /// Which.
        host: HostName,
    },
    /// To give back what is not changed yet.
    Abort,
    /// To leave a host to somebody, as it stands.
    GiveUp {
        /// Which.
        host: HostName,
    },
}

/// The facts a visit was planned from, short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeenFacts {
    /// When they were read, by the server's clock.
    pub read_at: Timestamp,
    /// `runtime.connectionState`.
    pub connection: Fact<Connection>,
    /// `runtime.inMaintenanceMode`.
    pub in_maintenance: Fact<bool>,
    /// `runtime.bootTime`.
    pub boot_time: Fact<Timestamp>,
}

impl SeenFacts {
    /// The short form of this record.
    pub fn of(record: &HostRecord) -> Self {
        match &record.view {
            Ok(view) => Self {
                read_at: record.read_at,
                connection: view.connection.clone(),
                in_maintenance: view.in_maintenance.clone(),
                boot_time: view.boot_time.clone(),
            },
            Err(fault) => Self {
                read_at: record.read_at,
                connection: Fact::unknown(&fault.message),
                in_maintenance: Fact::unknown(&fault.message),
                boot_time: Fact::unknown(&fault.message),
            },
        }
    }
}

/// A side setting that is changed for the visit and put back after it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Compensation {
    /// Maintenance mode: the host was not in it, and leaves it again.
    Maintenance,
    /// A VM that was powered on, on this host, and runs there again.
    Vm(MoRef),
    /// The SSH service of the host: it was stopped, and is stopped again. Its policy is left alone.
    Ssh,
    /// NVIDIA's monitoring daemon: it ran, and is started again.
    Monitor,
    /// A node that is cordoned with our mark on it: it is left as it was before.
    Node(NodeRef),
}

impl Compensation {
    /// As it stands in a marker's list: kind, subject, value before. None for a node, which has a list of
    /// its own.
    pub fn to_marker(&self) -> Option<[String; 3]> {
        Some(match self {
            Self::Maintenance => ["maintenance".to_owned(), "-".to_owned(), "out".to_owned()],
            Self::Vm(vm) => ["vm".to_owned(), vm.id.clone(), "on".to_owned()],
            Self::Ssh => ["ssh".to_owned(), "-".to_owned(), "off".to_owned()],
            Self::Monitor => ["mon".to_owned(), "-".to_owned(), "on".to_owned()],
            Self::Node(_) => return None,
        })
    }

    /// From a marker's list; none if it is of a kind that this program does not know.
    pub fn from_marker(text: &[String; 3]) -> Option<Self> {
        let [_, subject, _] = text;
        let vm = Self::Vm(MoRef { kind: managed::VIRTUAL_MACHINE.to_owned(), id: subject.clone() });
        [Self::Maintenance, Self::Ssh, Self::Monitor, vm]
            .into_iter()
            .find(|comp| comp.to_marker().as_ref() == Some(text))
    }
}

impl fmt::Display for Compensation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Maintenance => f.write_str("maintenance mode"),
            Self::Vm(vm) => write!(f, "power of the VM {}", vm.id),
            Self::Ssh => f.write_str("SSH service"),
            Self::Monitor => f.write_str("NVIDIA monitoring daemon"),
            Self::Node(node) => write!(f, "cordon of the node {node}"),
        }
    }
}

/// Whether a step that is done was our doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum How {
    /// We did it.
    Did,
    /// It was so already.
    Already,
}

/// Why a step failed, by class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FailureClass {
    /// The live object is not as the step expects; the step was not sent.
    Refused,
    /// The server refused or its task ended in error.
    Fault,
    /// A deadline passed, ours or the server's; the state was read again.
    Timeout,
    /// The server did not answer, and what it did could not be found out.
    Unknown,
    /// The server took it, and the active state does not show it.
    NotVerified,
    /// A signal stopped it.
    Interrupted,
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Refused => "refused",
            Self::Fault => "failed",
            Self::Timeout => "timed out",
            Self::Unknown => "unknown",
            Self::NotVerified => "not verified",
            Self::Interrupted => "interrupted",
        })
    }
}

/// Signals that stop a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

/// How a host was given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// Changed and verified.
    Converged,
    /// It was as the plan wants it already.
    AlreadyConverged,
    /// Not changed: the visit ended before its first mode was written.
    AsItWas,
    /// As it stands: somebody takes it over by hand.
    GivenUp,
}

/// How the fleet stands when the process ends in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RunOutcome {
    /// Every host of the plan is as it should be.
    Converged,
    /// Work is left; all hosts are given back.
    WorkLeft,
    /// A host failed or is not given back.
    HostsLeft,
}
