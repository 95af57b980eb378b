//! esxcli through vCenter, as `govc host.esxcli` calls it (vsphere-gpu §1.11): a method of a host that is in no
//! public table, and of it the three commands that a person needs who changes the modes of GPUs by hand.

use super::request::Call;
use crate::sim::behaviour::{Moment, SentDevice, SentGraphics, SentPassthru};
use crate::sim::fault::VimFault;
use crate::sim::world::state::Host;
use crate::vim25::wire::{Node, document};

/// The methods (§1.11, 1 and 2): pyVmomi's tables do not have them.
const METHODS: [&str; 3] = ["RetrieveManagedMethodExecuter", "RetrieveDynamicTypeManager", "ExecuteSoap"];
/// Where commands are described.
const INFO: &str = "ha-dynamic-type-manager-local-cli-cliinfo";

/// A parameter: its name, and how it is written.
type Parameter = (&'static str, &'static [&'static str]);

/// A command: namespace, name, parameters (the esxcli reference of 8.0.3). What a parameter is called on the wire
/// is the server's own business (§5.2: unverified), and clients learn it from here.
const COMMANDS: [(&str, &str, &[Parameter]); 3] = [
    (
        "hardware.pci.pcipassthru",
        "set",
        &[("deviceid", &["-d", "--device-id"]), ("enable", &["-e", "--enable"]), ("applynow", &["-a", "--apply-now"])],
    ),
    (
        "graphics.device",
        "set",
        &[("deviceid", &["-d", "--device-id"]), ("type", &["-t", "--type"]), ("vgpumode", &["-m", "--vgpu-mode"])],
    ),
    (
        "graphics.host",
        "set",
        &[
            ("defaulttype", &["--default-type"]),
            ("sharedpassthruassignmentpolicy", &["--shared-passthru-assignment-policy"]),
        ],
    ),
];

/// Whether it is one of the methods that no table has.
pub(super) fn knows(method: &str) -> bool {
    METHODS.contains(&method)
}

/// Whether a call asks for no command, but what commands there are.
pub(super) fn only_reads(call: &Call) -> bool {
    call.method == "ExecuteSoap" && call.text("moid") == Some(INFO)
}

/// `vim.CLIInfo.FetchCLIInfo`.
pub(super) fn info(call: &Call) -> Vec<Node> {
    let asked = argument(call, "typeName").unwrap_or_default();
    let namespace = asked.strip_prefix("vim.EsxCLI.").unwrap_or_default().to_owned();
    let methods: Vec<Node> = COMMANDS
        .iter()
        .filter(|(of, _, _)| *of == namespace)
        .map(|(_, name, parameters)| named("method", name).with_all(parameters.iter().map(parameter)))
        .collect();
    if methods.is_empty() {
        return failed("The object or item referred to could not be found.");
    }
    let info = Node::new("obj")
        .with(Node::leaf("name", &namespace))
        .with(Node::leaf("displayName", &namespace))
        .with(Node::leaf("help", ""))
        .with_all(methods);
    answered(&info)
}

fn named(element: &str, name: &str) -> Node {
    Node::new(element).with(Node::leaf("name", name)).with(Node::leaf("displayName", name)).with(Node::leaf("help", ""))
}

fn parameter((name, aliases): &Parameter) -> Node {
    named("param", name)
        .with_all(aliases.iter().map(|alias| Node::leaf("aliases", *alias)))
        .with(Node::leaf("flag", "false"))
}

/// Runs a command on a host: whether it had an effect, and the answer, which is one of success either way.
pub(super) fn run(moment: &mut Moment<'_>, host: u32, call: &Call) -> Result<(bool, Vec<Node>), VimFault> {
    let method = call.text("method").unwrap_or_default();
    let command = method.strip_prefix("vim.EsxCLI.").and_then(|command| command.rsplit_once('.'));
    let known = COMMANDS.iter().any(|(namespace, name, _)| Some((*namespace, *name)) == command);
    let Some((namespace, _)) = command.filter(|_| known) else {
        return Ok((false, failed("The object or item referred to could not be found.")));
    };
    let done = match namespace {
        "hardware.pci.pcipassthru" => passthru(moment, host, call),
        "graphics.device" => device(moment.host(host)?, call).and_then(|sent| moment.update_graphics(host, &sent)),
        _ => {
            let sent = defaults(moment.host(host)?, call);
            moment.update_graphics(host, &sent)
        }
    };
    Ok(match done {
        Ok(()) => (true, answered(&Node::leaf("obj", "true").xsd("boolean"))),
        Err(fault) => (false, failed(&fault.message)),
    })
}

fn passthru(moment: &mut Moment<'_>, host: u32, call: &Call) -> Result<(), VimFault> {
    let id = argument(call, "deviceid").unwrap_or_default();
    let enabled = argument(call, "enable").as_deref() == Some("true");
    let apply_now = argument(call, "applynow").map(|now| now == "true");
    let same = moment.host(host)?.functions.iter().any(|one| one.address.to_string() == id && one.enabled == enabled);
    if same {
        let owner = if enabled { "passthru" } else { "vmkernel" };
        return Err(VimFault::platform(&format!("Device owner is already configured to {owner}")));
    }
    moment.update_passthru(host, &[SentPassthru { id, enabled, apply_now, label: None, sriov: None }])
}

/// The graphics configuration as it is stored: esxcli changes one thing of it.
fn stored(host: &Host) -> SentGraphics {
    let devices = host.graphics.devices.iter().map(|entry| SentDevice {
        device_id: entry.address.to_string(),
        graphics_type: entry.graphics_type.clone(),
        vgpu_mode: entry.vgpu_mode.clone(),
    });
    SentGraphics {
        default_type: host.graphics.default_type.clone(),
        policy: host.graphics.policy.clone(),
        devices: devices.collect(),
    }
}

fn device(host: &Host, call: &Call) -> Result<SentGraphics, VimFault> {
    let id = argument(call, "deviceid").unwrap_or_default();
    let mut sent = stored(host);
    let known = sent.devices.iter().position(|device| device.device_id == id);
    let before = known.map(|place| sent.devices.remove(place));
    let graphics_type = match argument(call, "type") {
        Some(kind) => graphics_type(&kind),
        None => before.as_ref().map_or_else(|| sent.default_type.clone(), |before| before.graphics_type.clone()),
    };
    let vgpu_mode = match argument(call, "vgpumode").as_deref() {
        Some("MixedSize") => Some("mixedSize".to_owned()),
        Some("SameSize") => Some("sameSize".to_owned()),
        Some(_) => return Err(VimFault::argument("vgpu-mode")),
        None => before.and_then(|before| before.vgpu_mode),
    };
    sent.devices.push(SentDevice { device_id: id, graphics_type, vgpu_mode });
    Ok(sent)
}

fn defaults(host: &Host, call: &Call) -> SentGraphics {
    let mut sent = stored(host);
    if let Some(kind) = argument(call, "defaulttype") {
        sent.default_type = graphics_type(&kind);
    }
    if let Some(policy) = argument(call, "sharedpassthruassignmentpolicy") {
        sent.policy = policy.to_lowercase();
    }
    sent
}

fn graphics_type(word: &str) -> String {
    match word {
        "SharedPassthru" => "sharedDirect".to_owned(),
        other => other.to_lowercase(),
    }
}

/// An argument: its value is XML again, `<deviceid>0000:3b:00.0</deviceid>`.
fn argument(call: &Call, name: &str) -> Option<String> {
    let sent = call.body.all("argument").find(|argument| argument.text_of("name") == Some(name))?;
    let value = sent.text_of("val")?;
    let inner = value.strip_prefix(&format!("<{name}>"))?.strip_suffix(&format!("</{name}>"))?;
    Some(inner.to_owned())
}

/// A result: XML as text in XML.
fn answered(result: &Node) -> Vec<Node> {
    vec![Node::new("returnval").with(Node::leaf("response", document(result)))]
}

/// A failure inside of a success (§1.11, 3).
fn failed(why: &str) -> Vec<Node> {
    let fault = Node::new("fault").typed("VimEsxCLICLIFault").with(Node::leaf("errMsg", why));
    let detail = Node::new("obj").typed("LocalizedMethodFault").with(fault);
    let fault = Node::new("fault")
        .with(Node::leaf("faultMsg", "EsxCLI.CLIFault.summary"))
        .with(Node::leaf("faultDetail", document(&detail)));
    vec![Node::new("returnval").with(fault)]
}
