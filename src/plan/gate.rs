//! The host gate: what must be true before a host leaves maintenance, and after.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::blocks::not_connected;
use super::board::boards;
use super::device::{Devices, Gap};
use super::need::{Need, difference};
use super::seal::digest;
use super::slow::others;
use super::visit::{Mismatch, identity};
use super::{GpuSetting, GpuTarget, HostPlan, Memory};
use crate::model::{AssignmentPolicy, Baseline, Fact, HostView, Parity, PciAddress, PciId, counted};

/// A check of the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GateCheck {
    /// The host answers, and is the one of the plan.
    Identity,
    /// The mode of each GPU of the pool, on active fields, and the assignment policy.
    Signature,
    /// PCI devices: the same as before.
    Devices,
    /// GPUs outside the pool: as before, configured and active.
    Others,
    /// Datastores, uplinks, HA agent, crypto state, alarms: no worse than before.
    Parity,
    /// What the shell shows of a GPU: MIG in effect with nothing pending; ECC, rows of memory and the
    /// PCIe link, which decide nothing.
    Board,
    /// A node of a guest cluster ([`node_gate`](super::node_gate)), and its Jobs.
    Node,
}

impl fmt::Display for GateCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Identity => "identity",
            Self::Signature => "signature",
            Self::Devices => "devices",
            Self::Others => "other GPUs",
            Self::Parity => "parity",
            Self::Board => "board",
            Self::Node => "node",
        })
    }
}

/// What a check of the gate says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// As it should be.
    Passed,
    /// Does not apply now: the HA agent of a host in maintenance is inactive.
    NotNow,
    /// Could not be read, which somebody accepted when the plan was made.
    NotChecked,
    /// Not as it should be, or not known, and nothing says that the visit is the cause: said, not
    /// blamed.
    Noted,
    /// Could not be read. Never taken for passed.
    Unverifiable,
    /// Not as it should be.
    Failed,
}

impl Verdict {
    /// Whether the gate opens with this.
    pub fn opens(self) -> bool {
        matches!(self, Self::Passed | Self::NotNow | Self::NotChecked | Self::Noted)
    }
}

/// One line of the gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GateRead {
    /// Which check.
    pub check: GateCheck,
    /// Of what: a GPU's address, `datastores`, …
    pub subject: String,
    /// What it says.
    pub verdict: Verdict,
    /// What was read and what was expected.
    pub evidence: String,
}

/// Reads the gate. It opens if every line does ([`Verdict::opens`]). `baseline` is the state before
/// the visit, from [`baseline`] or from the marker.
pub fn gate(host: &HostPlan, baseline: Option<&Baseline>, view: &HostView) -> Vec<GateRead> {
    let devices = match Devices::of(view) {
        Ok(devices) => devices,
        Err(gap) => return vec![unverifiable(GateCheck::Identity, "host", &gap)],
    };
    let mut lines = vec![identity_line(host, view, &devices)];
    lines.extend(host.target.gpus.iter().map(|gpu| signature(gpu, view, &devices)));
    lines.extend(host.target.placement.as_ref().map(|wanted| policy(wanted, view)));
    lines.push(device_set(host, baseline, view, &devices));
    lines.extend(host.target.others.iter().map(|address| other(host, *address, view)));
    lines.extend(parity(host, baseline, view));
    lines.extend(boards(host, view));
    lines
}

pub(super) fn line(check: GateCheck, subject: &str, verdict: Verdict, evidence: impl Into<String>) -> GateRead {
    GateRead { check, subject: subject.to_owned(), verdict, evidence: evidence.into() }
}

fn passed_if(check: GateCheck, subject: &str, good: bool, evidence: impl Into<String>) -> GateRead {
    line(check, subject, if good { Verdict::Passed } else { Verdict::Failed }, evidence)
}

fn unverifiable(check: GateCheck, subject: &str, gap: &Gap) -> GateRead {
    line(check, subject, Verdict::Unverifiable, gap.to_string())
}

fn identity_line(host: &HostPlan, view: &HostView, devices: &Devices) -> GateRead {
    let check = GateCheck::Identity;
    if let Some(why) = not_connected(view) {
        return line(check, "host", Verdict::Failed, why);
    }
    match identity(host, view, devices) {
        Ok(()) => line(
            check,
            "host",
            Verdict::Passed,
            format!("machine {}, {}", host.uuid, counted(devices.gpus.len(), "GPU")),
        ),
        Err(Mismatch { expected, found }) => {
            line(check, "host", Verdict::Failed, format!("expected {expected}; found {found}"))
        }
    }
}

fn signature(target: &GpuTarget, view: &HostView, devices: &Devices) -> GateRead {
    let subject = target.address.to_string();
    match (Need::of(target, view, devices, &Memory::default()), GpuSetting::of(view, target.address)) {
        (Ok(need), Ok(setting)) => {
            passed_if(GateCheck::Signature, &subject, need.is_empty(), difference(target, &setting))
        }
        (Err(gap), _) | (_, Err(gap)) => unverifiable(GateCheck::Signature, &subject, &gap),
    }
}

fn policy(wanted: &AssignmentPolicy, view: &HostView) -> GateRead {
    match Gap::need(&view.graphics_config, "config.graphicsConfig") {
        Ok(config) => passed_if(
            GateCheck::Signature,
            "assignment policy",
            config.policy == *wanted,
            format!("expected {wanted}; found {}", config.policy),
        ),
        Err(gap) => unverifiable(GateCheck::Signature, "assignment policy", &gap),
    }
}

fn device_set(host: &HostPlan, baseline: Option<&Baseline>, view: &HostView, devices: &Devices) -> GateRead {
    let now = others(devices);
    let short = |digest: &str| digest.chars().take(DIGEST).collect::<String>();
    if now != host.slow.devices {
        let evidence = format!("digest of the plan {}; now {}", short(&host.slow.devices), short(&now));
        return line(GateCheck::Devices, "PCI devices", Verdict::Failed, evidence);
    }
    match (baseline.map(|baseline| baseline.dev.as_str()), device_digest(host, view)) {
        (_, Fact::Unknown { why }) => line(GateCheck::Devices, "PCI devices", Verdict::Unverifiable, why),
        (Some(before), Fact::Known(now)) => passed_if(
            GateCheck::Devices,
            "PCI devices",
            before == now,
            format!("digest before the visit {before}; now {now}"),
        ),
        (_, now) => line(
            GateCheck::Devices,
            "PCI devices",
            Verdict::Unverifiable,
            format!("the state before the visit is not known; now {}", now.known().map_or("-", String::as_str)),
        ),
    }
}

fn other(host: &HostPlan, address: PciAddress, view: &HostView) -> GateRead {
    let subject = address.to_string();
    let before = host.slow.gpus.iter().find(|gpu| gpu.address == address).map(|gpu| &gpu.setting);
    match (before, GpuSetting::of(view, address)) {
        (Some(before), Ok(now)) => {
            let unknown = now.active_type.is_unknown() || now.configured_type.is_unknown() || now.label.is_unknown();
            let verdict = match *before == now {
                true => Verdict::Passed,
                false if unknown => Verdict::Unverifiable,
                false => Verdict::Failed,
            };
            line(GateCheck::Others, &subject, verdict, format!("before: {before}; now: {now}"))
        }
        (None, _) => line(GateCheck::Others, &subject, Verdict::Unverifiable, "the plan does not know the GPU"),
        (_, Err(gap)) => unverifiable(GateCheck::Others, &subject, &gap),
    }
}

/// Parity: no worse than before. What was sick before is recorded, not blamed.
fn parity(host: &HostPlan, before: Option<&Baseline>, view: &HostView) -> Vec<GateRead> {
    let Some(before) = before else {
        return vec![line(
            GateCheck::Parity,
            "host",
            Verdict::Unverifiable,
            "baseline lost, compare by hand: the state before the visit is not known",
        )];
    };
    // The same words as in the marker, so that both can be compared with it.
    let now = Baseline::new(&view.parity, "");
    let closed = view.in_maintenance == Fact::Known(true);
    let judge = |name: &str, before: &str, now: &str, no_worse: fn(&str, &str) -> bool| {
        let (subject, evidence) = (name, format!("before {before}, now {now}"));
        let verdict = if host.not_checked.iter().any(|accepted| accepted == name) {
            Verdict::NotChecked
        } else if before == UNREADABLE || now == UNREADABLE {
            Verdict::Unverifiable
        } else if name == "ha" && closed && HA_AT_REST.contains(&now) {
            // A host in maintenance is not active in HA. It is judged once the host is open.
            Verdict::NotNow
        } else if before == now || no_worse(before, now) {
            Verdict::Passed
        } else {
            Verdict::Failed
        };
        line(GateCheck::Parity, subject, verdict, evidence)
    };
    vec![
        judge("datastores", &before.ds, &now.ds, tally_no_worse),
        judge("uplinks", &before.up, &now.up, tally_no_worse),
        judge("ha", &before.das, &now.das, |before, now| before == NOT_THERE || HA_GOOD.contains(&now)),
        judge("crypto", &before.crypto, &now.crypto, |before, now| before == NOT_THERE || now == "safe"),
        judge(
            "alarms",
            &before.alarms,
            &now.alarms,
            |before, now| matches!((before.parse::<u32>(), now.parse::<u32>()), (Ok(before), Ok(now)) if now <= before),
        ),
    ]
}

/// Characters of a digest in a marker: enough to tell two states apart, few enough for 2,000 bytes.
const DIGEST: usize = 16;
/// What a baseline says of a property that could not be read.
const UNREADABLE: &str = "?";
/// What it says of one that is not there.
const NOT_THERE: &str = "-";
/// HA agents of a host that is not active in HA: the property is unset (vSphere API,
/// HostRuntimeInfo.dasHostState), or the agent says that it is not initialized.
const HA_AT_REST: [&str; 2] = [NOT_THERE, "uninitialized"];
/// HA agents that work (vSphere API, ClusterDasFdmAvailabilityState).
const HA_GOOD: [&str; 2] = ["connectedToMaster", "master"];

/// The parts of parity, by the names that [`HostPlan::not_checked`] uses.
pub(super) fn unreadable_parity(parity: &Parity) -> Vec<(&'static str, String)> {
    let Parity { datastores, uplinks, ha, crypto, alarms } = parity;
    fn why<T>(fact: &Fact<T>) -> Option<String> {
        match fact {
            Fact::Unknown { why } => Some(why.clone()),
            Fact::Known(_) | Fact::Absent => None,
        }
    }
    [
        ("datastores", why(datastores)),
        ("uplinks", why(uplinks)),
        ("ha", why(ha)),
        ("crypto", why(crypto)),
        ("alarms", why(alarms)),
    ]
    .into_iter()
    .filter_map(|(name, why)| Some((name, why?)))
    .collect()
}

/// `12/12`: no good one fewer, and none gone.
fn tally_no_worse(before: &str, now: &str) -> bool {
    let read = |text: &str| {
        let (good, all) = text.split_once('/')?;
        Some((good.parse::<u32>().ok()?, all.parse::<u32>().ok()?))
    };
    matches!((read(before), read(now)), (Some(before), Some(now)) if now.0 >= before.0 && now.1 >= before.1)
}

/// The state before the visit, for the marker and the gate.
pub fn baseline(host: &HostPlan, view: &HostView) -> Baseline {
    Baseline::new(&view.parity, device_digest(host, view).known().map_or(UNREADABLE, String::as_str))
}

/// Digest of the device set, and of the state of the GPUs outside the pool: 16 hex characters.
pub fn device_digest(host: &HostPlan, view: &HostView) -> Fact<String> {
    let read = || -> Result<String, Gap> {
        let devices = Devices::of(view)?;
        let set: Vec<(PciAddress, PciId)> = devices.all.iter().map(|device| (device.address, device.id)).collect();
        let states =
            host.target.others.iter().map(|address| GpuSetting::of(view, *address)).collect::<Result<Vec<_>, _>>()?;
        Ok(digest(&(set, states)).chars().take(DIGEST).collect())
    };
    read().map_or_else(|gap| Fact::unknown(gap.to_string()), Fact::Known)
}
