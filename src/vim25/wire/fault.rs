//! Faults: what the server says went wrong, down to the deepest cause.

use std::fmt;

use super::decode::reference;
use super::names::fault;
use super::tree::Node;
use crate::model::MoRef;

/// A fault of vim25 with all that it carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Its actual type (`xsi:type`), `PlatformConfigFault`; the declared element says less.
    pub kind: String,
    /// `localizedMessage` or `faultstring`, often empty.
    pub message: String,
    /// `faultMessage`: what the host or a plugin says, in order.
    pub details: Vec<FaultDetail>,
    /// Its plain fields, `text`, `reason`, `privilegeId`: name and text.
    pub fields: Vec<(String, String)>,
    /// The object it is about (`object`, `obj`).
    pub object: Option<MoRef>,
    /// The task that stands in the way (`TaskInProgress`).
    pub task: Option<MoRef>,
    /// Faults inside it: `faultCause`, `error`, `hostFaults`, `failure`, …
    pub causes: Vec<Fault>,
}

/// One `faultMessage`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultDetail {
    /// Message key, `com.vmware.cdrs.maintenancemode.wcp.exitmaintenancemode`.
    pub key: String,
    /// Message, empty where the server has none in its language.
    pub message: String,
}

impl Fault {
    /// A fault of this type that says nothing more.
    pub fn plain(kind: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            message: String::new(),
            details: Vec::new(),
            fields: Vec::new(),
            object: None,
            task: None,
            causes: Vec::new(),
        }
    }

    /// The fault of a SOAP answer. A missing or empty `detail`, and one without `xsi:type`, still
    /// make a fault: its kind is then the declared element, or the `faultcode`.
    pub fn of_soap(soap: &Node) -> Self {
        let said = soap.text_of("faultstring").unwrap_or_default();
        let mut fault = match soap.get("detail").and_then(|detail| detail.children.first()) {
            Some(detail) => Self::of_data(detail, said),
            None => {
                Self { message: said.to_owned(), ..Self::plain(soap.text_of("faultcode").unwrap_or("Fault").trim()) }
            }
        };
        // A code such as `soapenv:Client` names no fault; its local part is kept.
        if let Some((_, local)) = fault.kind.rsplit_once(':') {
            fault.kind = local.to_owned();
        }
        fault
    }

    /// A `LocalizedMethodFault`: `fault` inside, `localizedMessage` beside it.
    pub fn of_localized(node: &Node) -> Self {
        let said = node.text_of("localizedMessage").unwrap_or_default();
        Self::of_data(node.get("fault").unwrap_or(node), said)
    }

    fn of_data(node: &Node, message: &str) -> Self {
        let kind = match node.type_name() {
            Some(name) => name.to_owned(),
            // The element is the declared fault and "Fault".
            None => node.name.strip_suffix("Fault").filter(|rest| !rest.is_empty()).unwrap_or(&node.name).to_owned(),
        };
        let mut fault = Self { message: message.to_owned(), ..Self::plain(&kind) };
        for child in &node.children {
            match child.name.as_str() {
                "faultMessage" => fault.details.push(FaultDetail {
                    key: child.text_of("key").unwrap_or_default().to_owned(),
                    message: child.text_of("message").unwrap_or_default().to_owned(),
                }),
                "object" | "obj" => fault.object = reference(child).ok().or(fault.object),
                "task" => fault.task = reference(child).ok().or(fault.task),
                _ if child.get("fault").is_some() => fault.causes.push(Self::of_localized(child)),
                _ if !child.children.is_empty() => fault.causes.extend(nested(child)),
                _ => fault.fields.push((child.name.clone(), child.text.clone())),
            }
        }
        fault
    }

    /// Whether it or any fault inside it is of this type.
    pub fn involves(&self, kind: &str) -> bool {
        self.kind == kind || self.causes.iter().any(|cause| cause.involves(kind))
    }

    /// The deepest cause; of several inside one fault the first.
    pub fn deepest(&self) -> &Fault {
        self.causes.first().map_or(self, Fault::deepest)
    }

    /// Every fault, from the outside in.
    pub fn chain(&self) -> Vec<&Fault> {
        let mut all = vec![self];
        for cause in &self.causes {
            all.extend(cause.chain());
        }
        all
    }

    /// A plain field, `reason`.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, text)| text.as_str())
    }

    /// What these faults say, each the cause of the one before it: every word once, then the types in
    /// parentheses.
    pub fn sentence(chain: &[&Fault]) -> String {
        let mut said: Vec<String> = Vec::new();
        for word in chain.iter().flat_map(|fault| fault.words()) {
            if !said.contains(&word) {
                said.push(word);
            }
        }
        let kinds: Vec<&str> = chain.iter().map(|fault| fault.kind.as_str()).collect();
        if said.is_empty() {
            said.push("the server gives no reason".to_owned());
        }
        format!("{} ({})", said.join(": "), kinds.join(" > "))
    }

    /// What this one fault says, without its type: the server's words, else ours.
    fn words(&self) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        let mut say = |said: &str| {
            let said = said.trim().trim_end_matches('.');
            if !said.is_empty() && !words.iter().any(|word| word == said) {
                words.push(said.to_owned());
            }
        };
        say(&self.message);
        for detail in &self.details {
            say(if detail.message.is_empty() { &detail.key } else { &detail.message });
        }
        for name in ["text", "reason"] {
            say(self.field(name).unwrap_or_default());
        }
        if words.is_empty() {
            words.extend(plain_words(&self.kind).map(str::to_owned));
        }
        // What one needs to know to put it right.
        let named = [
            ("privilegeId", "privilege"),
            ("invalidProperty", "argument"),
            ("name", "name"),
            ("failedHostName", "host"),
        ];
        for (name, word) in named {
            let value = self.field(name).unwrap_or_default();
            words.extend((!value.is_empty()).then(|| format!("{word} {value}")));
        }
        words
    }
}

/// Faults in a structure that is not itself a `LocalizedMethodFault` (`faultsByVm`, `hostFaults`).
fn nested(node: &Node) -> Vec<Fault> {
    let mut found = Vec::new();
    for child in &node.children {
        if child.get("fault").is_some() {
            found.push(Fault::of_localized(child));
        } else if child.type_name().is_some() && child.name == "fault" {
            found.push(Fault::of_data(child, node.text_of("localizedMessage").unwrap_or_default()));
        } else {
            found.extend(nested(child));
        }
    }
    found
}

/// Words for faults that come without any (vcsim; vCenter for some).
fn plain_words(kind: &str) -> Option<&'static str> {
    Some(match kind {
        fault::NOT_AUTHENTICATED => "the session is not authenticated",
        fault::INVALID_LOGIN => "the user name or password is wrong",
        fault::NO_PERMISSION => "the user lacks a privilege",
        fault::INVALID_STATE => "the operation is not allowed in the current state",
        fault::INVALID_ARGUMENT => "an argument is not valid",
        fault::INVALID_PROPERTY => "the server does not know a property",
        fault::MANAGED_OBJECT_NOT_FOUND => "the object does not exist any more",
        fault::TASK_IN_PROGRESS => "another task is already in progress",
        fault::RESOURCE_IN_USE => "it is in use",
        fault::TIMEDOUT => "the operation timed out on the server",
        fault::REQUEST_CANCELED => "the operation was cancelled",
        fault::NOT_SUPPORTED => "the operation is not supported",
        fault::DUPLICATE_NAME => "the name exists already",
        fault::INVALID_NAME => "the name is not valid",
        fault::NOT_FOUND => "not found",
        fault::HOST_NOT_CONNECTED => "vCenter is not connected to the host",
        fault::HOST_NOT_REACHABLE => "vCenter cannot reach the host",
        fault::HOST_COMMUNICATION => "vCenter could not communicate with the host",
        // Of DRS and of power-on (vsphere-gpu §1.8), by the API reference.
        "DrsDisabledOnVm" => "DRS is switched off for the virtual machine",
        "NoCompatibleHost" => "no host is compatible with the virtual machine",
        "NoCompatibleHostWithAccessToDevice" => "no compatible host has access to a device of the virtual machine",
        "DrsVmotionIncompatibleFault" => "a host is not compatible for a migration",
        "InsufficientFailoverResourcesFault" => "what HA keeps for failover would not be free any more",
        "InsufficientGraphicsResourcesFault" => "no GPU has room for the vGPU",
        "DeviceNotSupported" => "a device is not supported",
        "DisallowedMigrationDeviceAttached" => "a device keeps the virtual machine from moving",
        "MigrationFeatureNotSupported" => "the virtual machine cannot be migrated while it runs",
        "VmHostAffinityRuleViolation" => "a rule of VMs and hosts forbids it",
        "QuarantineModeFault" => "the host is in quarantine mode",
        "ToolsUnavailable" => "VMware Tools do not run in the guest",
        "InvalidPowerState" => "the virtual machine is in another power state",
        _ => return None,
    })
}

/// A sentence from the outside in to the deepest cause, then the types in parentheses.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Self::sentence(&self.chain()))
    }
}

impl std::error::Error for Fault {}
