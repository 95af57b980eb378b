//! How a simulated fleet behaves: readings of what nobody could verify, boot, faults, actors.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Span;
use super::fleet::GpuMode;

/// What nobody could verify on hardware: each switch is one possible truth (docs/assumptions.md).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Readings {
    /// Whether `UpdateGraphicsConfig` keeps the entries of devices it does not name.
    pub device_type: DeviceTypeReading,
    /// What becomes of a graphics entry for a GPU that is passed through.
    pub while_passthrough: WhilePassthrough,
    /// Whether a device can be rebound without a reboot when passthrough is switched.
    pub rebind: RebindReading,
    /// Whether vGPU becomes active only if the host default is `sharedDirect` too.
    pub host_default_needed: HostDefaultReading,
    /// What the HA agent of a host in maintenance mode says of itself.
    pub ha_in_maintenance: HaInMaintenance,
    /// Where it is told that a VM cannot be powered on or moved.
    pub vm_faults: VmFaults,
    /// When vCenter shows MIG that was switched in the shell.
    pub mig_visible: MigVisible,
    /// How a host asks for a password by SSH.
    pub ssh_password: SshPassword,
    /// How long a custom field that was set reads as before.
    pub field_lag: Span,
}

/// Readings of `HostGraphicsConfig.deviceType` (vsphere-gpu §1.2: not documented).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DeviceTypeReading {
    /// Entries that are not sent stay.
    #[default]
    Merge,
    /// The list that is sent is the whole list.
    Replace,
}

/// Readings of a graphics entry for a GPU in passthrough (vsphere-gpu §3.3-1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WhilePassthrough {
    /// The call answers well and the entry is dropped.
    #[default]
    Ignored,
    /// The entry is kept and takes effect when the driver owns the GPU.
    Stored,
    /// The call faults and nothing of it is stored.
    Refused,
}

/// Readings of a switch of passthrough without a reboot (vsphere-gpu §1.3, §3.2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RebindReading {
    /// Always after the next reboot.
    #[default]
    Never,
    /// At once if no VM uses the device and the host says that it can.
    Idle,
}

/// Readings of the host default beside a device's own entry (vsphere-gpu §2.4: "the host default
/// *and* each device").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum HostDefaultReading {
    /// The device's entry is enough.
    #[default]
    No,
    /// Without the host default the device stays vSGA.
    Yes,
}

/// Readings of `runtime.dasHostState` of a host in maintenance mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum HaInMaintenance {
    /// Not set, as the API reference says; after maintenance the agent starts anew (`boot.agent`).
    #[default]
    Unset,
    /// As if the agent went on.
    Runs,
}

/// Readings of `vgpuMode` after `nvidia-smi -mig` (vsphere-gpu §2.1: whether hostd notices without
/// a refresh is unverified).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum MigVisible {
    /// After `RefreshGraphicsManager`, or a reboot.
    #[default]
    AfterRefresh,
    /// At once.
    AtOnce,
}

/// Readings of the faults that the reference lists for `PowerOnVM_Task` and `RelocateVM_Task`: it does not
/// say which of them the call itself answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum VmFaults {
    /// In the task that the call started.
    #[default]
    InTask,
    /// In the answer to the call: no task is started.
    InCall,
}

/// Readings of how ESXi's SSH server takes a password (stack: what a real ESXi offers is not verified).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SshPassword {
    /// As the answer to a question.
    #[default]
    KeyboardInteractive,
    /// As a password.
    Password,
}

/// How a host comes back from a reboot (vsphere-gpu §3.5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Boot {
    /// From the call to the moment the host stops answering.
    pub shutdown: Span,
    /// Not answering, from then on.
    pub down: Span,
    /// Of that, the end during which vCenter shows `disconnected` instead of `notResponding`.
    pub disconnected: Span,
    /// How often it drops out again after the first `connected`.
    pub flaps: u32,
    /// How long each of these drop-outs and the answer between them lasts.
    pub flap: Span,
    /// How long after the last `connected` graphics and PCI state are those of before the reboot.
    pub stale: Span,
    /// How long after the last `connected` the datastores are missing.
    pub storage: Span,
    /// How long after the last `connected`, and after maintenance mode, the HA agent needs to start.
    pub agent: Span,
    /// GPUs that are gone after the next reboot.
    pub lose_gpus: Vec<String>,
    /// GPUs whose PCIe link has half its lanes after the next reboot.
    pub narrow_gpus: Vec<String>,
    /// Whether the host comes back at all.
    pub returns: bool,
}

impl Default for Boot {
    fn default() -> Self {
        Self {
            shutdown: Span::seconds(20),
            down: Span::seconds(240),
            disconnected: Span::seconds(0),
            flaps: 0,
            flap: Span::seconds(10),
            stale: Span::seconds(0),
            storage: Span::seconds(0),
            agent: Span::seconds(0),
            lose_gpus: Vec::new(),
            narrow_gpus: Vec::new(),
            returns: true,
        }
    }
}

/// A fault: on which calls, from which one on, how often, what happens. Counted, never random.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FaultRule {
    /// The face: `soap`, `ssh`, or `k8s`.
    #[serde(default)]
    pub face: Face,
    /// Name of the method on the wire, `EnterMaintenanceMode_Task`; of SSH `connect`, `login` or the program:
    /// `nvidia-smi`, `nvidia-smi -mig`, `nvdGpuMgmtDaemon`; of Kubernetes verb and resource: `patch nodes`,
    /// `create pods/eviction`, `watch pods`, `get version`. `*` for any, `write` for any that changes
    /// something, `evacuation` for a move by which DRS empties a host that closes.
    pub method: String,
    /// Name or id of the object, of Kubernetes also the name of the cluster (`serve-1`, `default/web-0`,
    /// `k8s-serve/nodes/serve-1`, `k8s-serve`); a read matches if the object is among what it reads. None: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Whether dry runs of Kubernetes (`dryRun=All`) match, which a real server answers as the write and of which
    /// it keeps nothing. They do not by default: neither struck nor counted, whatever the method.
    #[serde(default)]
    pub dry_run: DryRuns,
    /// The first matching call that it strikes, from 1.
    #[serde(default = "one")]
    pub on_call: u32,
    /// How many matching calls it strikes from there.
    #[serde(default = "one")]
    pub times: u32,
    /// What happens.
    pub then: Fault,
}

fn one() -> u32 {
    1
}

/// Whether a rule is for dry runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DryRuns {
    /// For calls that are none.
    #[default]
    No,
    /// For dry runs alone.
    Only,
    /// For both.
    Also,
}

/// Faces of a world.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Face {
    /// vim25 over SOAP.
    #[default]
    Soap,
    /// The shell of a host.
    Ssh,
    /// The API of a guest cluster.
    K8s,
}

/// What a fault does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Fault {
    /// The connection breaks, the call has no effect.
    DropBefore,
    /// The call has its effect, the connection breaks before the answer.
    DropAfter,
    /// The answer comes this much later.
    Delay(Span),
    /// The call is answered with this fault (`Timedout`, `InvalidState`, `NotAuthenticated` …; of Kubernetes
    /// a reason: `Forbidden`, `TooManyRequests`, `NamespaceTerminating` …) and has no effect.
    Fault(String),
    /// The task that the call starts ends with this fault after it has run its time.
    TaskFault(String),
    /// The task that the call starts never ends.
    TaskHangs,
    /// An HTTP answer of this status, as a proxy in front of vCenter gives it; no effect.
    Status(u16),
    /// The session of the caller is forgotten before the call.
    EndSession,
    /// A lie.
    Lie(Lie),
    /// The object is deleted between the page before and this one (reads only).
    Gone,
    /// These properties come as missing, with a NoPermission (reads only).
    Missing(Vec<String>),
    /// The command does not end before its kill time (SSH only).
    Hangs,
    /// The command prints this line first (SSH only).
    Prints(String),
    /// The command prints nothing of what has this text in its line, as of a GPU that fell off the bus,
    /// which is simply not listed (SSH only).
    Omits(String),
}

/// Lies: the worst faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Lie {
    /// Success without effect (writes).
    NoEffect,
    /// The state before the last change (reads).
    Stale,
}

/// Somebody else at work on the fleet, on the world's clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Actor {
    /// Who: shown as the user of tasks and in the world's log.
    pub who: String,
    /// On which host; of what is done to nodes it says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// After what it acts; none: after the world's start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub once: Option<Trigger>,
    /// How long after that.
    #[serde(default)]
    pub after: Span,
    /// What it does.
    pub does: Deed,
}

impl Deed {
    /// The cluster that it is done in, and the key of its object there.
    pub fn of_guest(&self) -> Option<(&str, String)> {
        match self {
            Self::Uncordon { cluster, node }
            | Self::Cordon { cluster, node }
            | Self::Annotate { cluster, node, .. } => Some((cluster, format!("nodes//{node}"))),
            Self::DeleteObject { cluster, object } => {
                let (resource, name) = object.split_once('/').unwrap_or((object, ""));
                let name = if name.contains('/') { name.to_owned() } else { format!("/{name}") };
                Some((cluster, format!("{resource}/{name}")))
            }
            _ => None,
        }
    }
}

/// A call that makes an actor act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Trigger {
    /// Name of the method on the wire; of Kubernetes verb and resource, `patch nodes`.
    pub method: String,
    /// Name of the object that is called, a VM's or another host's, of Kubernetes its id
    /// (`k8s-serve/nodes/serve-1`); none: the actor's host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Which call of it on that object, from 1.
    #[serde(default = "one")]
    pub on_call: u32,
}

/// What an actor does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Deed {
    /// Starts to enter maintenance mode.
    EnterMaintenance,
    /// Takes the host out of maintenance mode.
    LeaveMaintenance,
    /// Reboots it, by force if it must.
    Reboot,
    /// Configures a GPU by its address.
    Configure {
        /// The GPU.
        gpu: String,
        /// Its mode, configured as the vSphere Client would.
        mode: GpuMode,
    },
    /// Types a command at the host's own shell, as a person to whom work is handed: `nvidia-smi -i
    /// 0000:17:00.0 -mig 1`, `nvdGpuMgmtDaemon stop`.
    Shell {
        /// The command line.
        command: String,
    },
    /// Sets a custom field of the host (the definition is made if need be).
    SetField {
        /// Name of the field.
        name: String,
        /// Value.
        value: String,
    },
    /// Powers on a VM, where DRS puts it.
    PowerOn {
        /// Name of the VM.
        vm: String,
    },
    /// Powers off a VM.
    PowerOff {
        /// Name of the VM.
        vm: String,
    },
    /// Moves a VM to the host, as DRS does to balance a cluster.
    MoveIn {
        /// Name of the VM.
        vm: String,
    },
    /// Uncordons a node, as `kubectl uncordon` does.
    Uncordon {
        /// The cluster.
        cluster: String,
        /// The node.
        node: String,
    },
    /// Cordons a node.
    Cordon {
        /// The cluster.
        cluster: String,
        /// The node.
        node: String,
    },
    /// Writes an annotation of a node, or takes it off, as `kubectl annotate` does.
    Annotate {
        /// The cluster.
        cluster: String,
        /// The node.
        node: String,
        /// Name of the annotation.
        key: String,
        /// Its value; none: it is taken off.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<String>,
    },
    /// Deletes an object of a cluster, with its own grace.
    DeleteObject {
        /// The cluster.
        cluster: String,
        /// Resource and name: `nodes/serve-1`, `pods/default/web-0`.
        object: String,
    },
    /// Triggers an alarm of status red on the host.
    Alarm {
        /// Name of the alarm.
        name: String,
    },
}
