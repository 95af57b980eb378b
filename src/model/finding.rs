//! Findings: what a check has to say.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{HostName, PciAddress, Place};

/// How bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Look at it.
    Warning,
    /// On a document: no plan. On a host: that host is refused.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// The stable id of a kind of finding, `PW-HOST-03`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FindingId(pub String);

impl fmt::Display for FindingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What a finding is about, beside its place in a document.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// Pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostName>,
    /// GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<PciAddress>,
}

/// Somebody's acceptance of a finding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Acceptance {
    /// The reason given.
    pub reason: String,
    /// Last day (UTC), `2026-12-31`.
    pub until: String,
    /// Where it is written.
    pub place: Place,
}

/// What a check has to say: id, severity, place, subject, evidence and hint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The kind.
    pub id: FindingId,
    /// How bad, after acceptance.
    pub severity: Severity,
    /// What it is about.
    #[serde(default)]
    pub subject: Subject,
    /// The line of the document it concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// One sentence: what is wrong, with the value found and the value expected.
    pub message: String,
    /// What was read, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Who accepted it, if anybody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Acceptance>,
}

impl Finding {
    /// A finding of this rule, with its severity and its hint.
    pub fn new(rule: &Rule, message: impl Into<String>) -> Self {
        Self {
            id: FindingId(rule.id.to_owned()),
            severity: rule.severity,
            subject: Subject::default(),
            place: None,
            message: message.into(),
            evidence: Vec::new(),
            hint: rule.hint().map(str::to_owned),
            accepted: None,
        }
    }

    /// Adds the place.
    #[must_use]
    pub fn at(mut self, place: &Place) -> Self {
        self.place = Some(place.clone());
        self
    }

    /// Adds the host.
    #[must_use]
    pub fn on_host(mut self, host: &HostName) -> Self {
        self.subject.host = Some(host.clone());
        self
    }

    /// Adds the pool.
    #[must_use]
    pub fn in_pool(mut self, pool: &str) -> Self {
        self.subject.pool = Some(pool.to_owned());
        self
    }

    /// Adds the GPU.
    #[must_use]
    pub fn on_gpu(mut self, gpu: PciAddress) -> Self {
        self.subject.gpu = Some(gpu);
        self
    }

    /// Adds a line of evidence.
    #[must_use]
    pub fn seen(mut self, line: impl Into<String>) -> Self {
        self.evidence.push(line.into());
        self
    }

    /// Says what to do, nearer than the rule does.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// A kind of finding: its id, default severity and whether `accept` may lower it.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Stable id.
    pub id: &'static str,
    /// Severity unless accepted.
    pub severity: Severity,
    /// Whether `accept` may lower it to a warning (FORMATS rule 9: identity, "not a GPU" and the
    /// like can never be accepted).
    pub acceptable: bool,
    /// One line for people.
    pub title: &'static str,
}

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident = ($id:literal, $severity:ident, $acceptable:literal, $title:literal);)+) => {
        impl Rule {
            $($(#[$doc])* #[doc = $title] pub const $name: Rule =
                Rule { id: $id, severity: Severity::$severity, acceptable: $acceptable, title: $title };)+
        }
        /// Every kind of finding, in id order.
        pub const RULES: &[Rule] = &[$(Rule::$name),+];
    };
}

// In id order within an area. An id is never used again for something else.
rules! {
    CAT_UNKNOWN_TYPE = ("PW-CAT-01", Error, false, "a vGPU type that neither the catalogue nor the host knows");
    CAT_HOST_LISTS = ("PW-CAT-02", Info, false, "a vGPU type that the host lists and the catalogue does not know");
    CAT_UNKNOWN_FIT = ("PW-CAT-03", Warning, true, "the catalogue cannot say whether a combination fits");
    CAT_NO_FIT = ("PW-CAT-04", Error, false, "a combination that does not fit a GPU in its mode");
    CAT_WRONG_MODE = ("PW-CAT-05", Error, false, "a vGPU type of another mode");
    CAT_GATE = ("PW-CAT-06", Error, false, "the ESXi or vGPU release does not have the feature");
    CAT_OTHER_MODEL = ("PW-CAT-07", Error, false, "a vGPU type of another GPU model");
    CAT_DESKTOP = ("PW-CAT-08", Warning, true, "a vGPU type of a desktop class in a pool for compute");
    CAT_UNVERIFIED = ("PW-CAT-09", Info, false, "a combination whose proof rests on facts that nobody verified");
    CAT_MODEL = ("PW-CAT-10", Error, false, "a GPU model that the catalogue does not know");
    CAT_GATE_UNKNOWN = ("PW-CAT-11", Warning, true, "it cannot be told whether the release has the feature");
    DOC_DUPLICATE = ("PW-DOC-01", Error, false, "two documents of one kind and name");
    DOC_SITE = ("PW-DOC-02", Error, false, "a pool of a site that no document describes");
    DOC_EMPTY = ("PW-DOC-03", Error, false, "a selector or list that is empty");
    DOC_NUMBER = ("PW-DOC-04", Error, false, "a number that cannot be meant");
    DOC_GROUPS = ("PW-DOC-05", Error, false, "two groups that select the same GPU");
    DOC_NO_EFFECT = ("PW-DOC-06", Error, false, "a field that can do nothing in this mode");
    DOC_CLUSTER = ("PW-DOC-07", Error, false, "a cluster that is not there, or several of the name");
    DOC_HOST = ("PW-DOC-08", Error, false, "a host that is not there, or several of the name");
    DOC_CLAIMED = ("PW-DOC-09", Error, false, "two pools that claim one host");
    DOC_EXCEPT = ("PW-DOC-10", Error, false, "an exception that matches no host");
    DOC_UNEXPECTED = ("PW-DOC-11", Info, false, "hosts of a pool's cluster that are in no pool");
    DOC_GUEST = ("PW-DOC-12", Error, false, "a guest cluster that is not listed, or listed twice");
    DOC_RESOURCE = ("PW-DOC-13", Error, false, "a resource that no device plugin offers");
    DOC_TEMPLATE = ("PW-DOC-14", Error, false, "a template that was not read");
    DOC_PROVES_PART = ("PW-DOC-15", Warning, false, "Jobs that are given fewer GPUs than their node has");
    DRV_MISSING = ("PW-DRV-01", Error, false, "the NVIDIA host driver that vGPU needs is not installed");
    DRV_DIFFERS = ("PW-DRV-02", Error, true, "the host driver is not the one the profile names");
    DRV_UNKNOWN = ("PW-DRV-03", Error, true, "the host driver could not be read");
    DRV_FAMILY = ("PW-DRV-04", Error, true, "a vGPU type that comes with the other family of host drivers");
    GPU_MODEL = ("PW-GPU-01", Error, false, "a GPU of another model than the pool's");
    GPU_COUNT = ("PW-GPU-02", Error, false, "another number of GPUs than the pool's");
    GPU_SELECT = ("PW-GPU-03", Error, false, "a GPU selector that matches nothing, or too much");
    GPU_NOT_CAPABLE = ("PW-GPU-04", Error, false, "the host says that the device cannot be passed through");
    GPU_CONSOLE = ("PW-GPU-05", Error, true, "the GPU is the only display adapter of the host");
    GPU_COMPANION = ("PW-GPU-06", Info, false, "companion functions go with their GPU");
    GPU_NVSWITCH = ("PW-GPU-07", Error, false, "NVSwitch baseboard: not supported yet");
    GPU_UNCOVERED = ("PW-GPU-08", Info, false, "GPUs of the host that no group of the pool selects");
    GPU_STRANGER = ("PW-GPU-09", Error, true, "a device that is no GPU is configured for passthrough");
    GPU_IN_USE = ("PW-GPU-10", Error, false, "a GPU is in use by a VM that is not known to run here");
    GPU_VF = ("PW-GPU-11", Info, false, "virtual functions of a GPU are listed; they are neither counted nor written");
    GPU_STORAGE = ("PW-GPU-12", Error, false, "a mass storage controller is configured for passthrough");
    GPU_LABEL = ("PW-GPU-13", Error, false, "the host does not support labels of passthrough devices");
    GPU_OTHER_PENDING = ("PW-GPU-14", Error, false, "a reboot would activate what is pending on a device outside the pool");
    GUEST_UNREAD = ("PW-GUEST-01", Error, false, "a guest cluster of the pool cannot be read, and a VM may be a node of it");
    GUEST_NOT_LISTED = ("PW-GUEST-02", Error, false, "a node of a guest cluster that the pool does not list has to be stopped");
    GUEST_OTHER = ("PW-GUEST-03", Warning, false, "a guest cluster that no pool lists cannot be read");
    GUEST_TWINS = ("PW-GUEST-04", Error, false, "two guest clusters of the Site are one");
    HOST_VERSION = ("PW-HOST-01", Error, false, "vCenter or ESXi is older than 8.0.3");
    HOST_NOT_CONNECTED = ("PW-HOST-02", Error, false, "the host does not answer vCenter");
    HOST_UNREADABLE = ("PW-HOST-03", Error, false, "the host, or a property that decides, could not be read");
    // PW-HOST-04 was *VMs are powered on*, before their fates were planned one by one (PW-VM).
    HOST_SUSPENDED_VM = ("PW-HOST-05", Error, false, "a suspended VM has a GPU");
    HOST_OFF_VM = ("PW-HOST-06", Warning, false, "a powered-off VM would not start in the new mode");
    HOST_IN_MAINTENANCE = ("PW-HOST-07", Error, false, "found in maintenance mode, not ours");
    HOST_BUSY = ("PW-HOST-08", Error, false, "another task works on the host");
    HOST_MARKED = ("PW-HOST-09", Error, false, "the marker of another run");
    HOST_REBOOTS = ("PW-HOST-10", Error, false, "more reboots than the pool approves");
    HOST_PENDING = ("PW-HOST-11", Info, false, "configured, but not active until a reboot");
    HOST_DEFAULT_KEPT = ("PW-HOST-12", Info, false, "the host default graphics type is left alone");
    HOST_POLICY_NO_EFFECT = ("PW-HOST-13", Info, false, "the assignment policy has no effect in this mode");
    HOST_AMBIGUOUS = ("PW-HOST-14", Error, false, "two hosts have the identity");
    HOST_PARITY = ("PW-HOST-15", Error, true, "what the host gate compares before and after could not be read");
    HOST_MISSING = ("PW-HOST-16", Error, false, "a host of the pool is not there");
    MIG_LOST = ("PW-MIG-01", Info, false, "MIG of this kind is lost at every reboot");
    MIG_BESIDE = ("PW-MIG-02", Error, false, "a reboot would take MIG from a GPU outside the pool");
    MIG_NVLINK = ("PW-MIG-03", Info, false, "MIG-backed vGPUs have no NVLink");
    MIG_BEHIND = ("PW-MIG-04", Info, false, "MIG that waits on a board would go along behind passthrough");
    NODE_IDENTITY = ("PW-NODE-01", Error, false, "it cannot be told which node a VM is, or on which boot");
    NODE_UNIDENTIFIED = ("PW-NODE-02", Error, false, "a VM that has to be stopped may be a node of which it is not known where it runs");
    NODE_OWNED = ("PW-NODE-03", Error, true, "a node whose VM has to be stopped has an owner that would start or replace it");
    NODE_NOT_READY = ("PW-NODE-04", Error, true, "a node whose VM has to be stopped is not Ready");
    NODE_DELETING = ("PW-NODE-05", Error, false, "a node whose VM has to be stopped is being deleted");
    NODE_MARKED = ("PW-NODE-06", Error, false, "the mark of another run on a node");
    NODE_CORDONED = ("PW-NODE-07", Info, false, "a node was cordoned before, and stays so");
    NODE_LEFT_OFF = ("PW-NODE-08", Info, false, "an earlier run left the VM of a node off");
    NODE_SICK = ("PW-NODE-09", Warning, false, "a node offers less than the pool expects, before anything is done");
    NODE_DRIVER = ("PW-NODE-10", Warning, false, "the class of the guest driver changes under nodes");
    NODE_ELSEWHERE = ("PW-NODE-11", Info, false, "a VM is stopped as no node, and a guest cluster has nodes on no VM that was read");
    NODE_OUT = ("PW-NODE-12", Warning, false, "nodes of a host that is as wished give no service, or less than they should");
    // PW-POOL-01 was *MIG-backed vGPU is not rolled out yet*.
    POOL_BUDGET = ("PW-POOL-02", Error, false, "as many hosts are unavailable as the pool allows");
    POOL_NO_CHANGE_ROOM = ("PW-POOL-03", Warning, false, "more GPUs of the pool are out of service than one host's at the worst moment");
    SHELL_LOCKDOWN = ("PW-SHELL-01", Error, false, "lockdown mode keeps everybody out of the shell that switches MIG");
    SHELL_NO_PIN = ("PW-SHELL-02", Error, false, "no key of the host is pinned, so nobody logs in to its shell");
    SHELL_NO_LOGIN = ("PW-SHELL-03", Error, false, "nobody is named who logs in to the shell that switches MIG");
    SHELL_HANDOFF = ("PW-SHELL-04", Info, false, "a person types the commands that switch MIG");
    SHELL_NOT_CHECKED = ("PW-SHELL-05", Info, false, "the PCIe link, ECC and rows of memory of GPUs are not checked");
    SHELL_SERVICE = ("PW-SHELL-06", Error, false, "the SSH service of the host is not listed");
    SHELL_HIDDEN = ("PW-SHELL-07", Warning, false, "MIG that a guest has left on could not be switched off through the shell");
    SITE_FIELD = ("PW-SITE-01", Info, false, "the custom field definition will be created");
    ACCEPT_EXPIRED = ("PW-ACC-01", Warning, false, "an acceptance has expired");
    ACCEPT_UNUSED = ("PW-ACC-02", Info, false, "an acceptance that matches no finding");
    ACCEPT_REFUSED = ("PW-ACC-03", Error, false, "an acceptance of a finding that can never be accepted, or of none that exists");
    VM_DIRECT_PATH = ("PW-VM-01", Error, false, "a VM has a device that never moves, and it may not be stopped");
    VM_WOULD_BE_MOVED = ("PW-VM-02", Error, false, "DRS would move a VM that the pool does not allow to be moved");
    VM_NO_EVACUATION = ("PW-VM-03", Error, false, "nothing proves that a VM can be moved away, and it may not be stopped");
    VM_WOULD_NOT_START = ("PW-VM-04", Error, false, "a VM that has to be stopped would not start again");
    VM_OWNED = ("PW-VM-05", Error, false, "a VM that has to be stopped has an owner that would start or replace it");
    VM_NO_TOOLS = ("PW-VM-06", Error, false, "a VM that has to be stopped cannot be asked to shut down");
    VM_POWERED_OFF = ("PW-VM-07", Error, false, "DRS would power a VM off, and it may not be stopped");
    VM_LEFT_OFF = ("PW-VM-08", Warning, false, "a VM is stopped and stays off");
    VM_UNREAD = ("PW-VM-09", Info, false, "what may hinder a move and is not read");
    VM_LATER = ("PW-VM-10", Warning, false, "a VM may find no room once the hosts before are changed");
}
