//! The marker on the live host object: whose it is, and what it remembers (FORMATS "Marker").

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Compensation, Held};
use crate::model::{Fact, HostView, LastReboot, Marker, MarkerPhase, NodeRef, PciAddress, RunId};
use crate::plan::{Memory, OurMaintenance, RebootAsked, Refusal, Step};

/// Whose marker a host carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Owner {
    /// Nobody's.
    Nobody,
    /// This run's.
    Ours(Box<Marker>),
    /// Another run's, or nobody can tell: the host is held, whatever the marker's age.
    Other(Held),
}

/// Whose marker this host carries. `known` are those that this process wrote or found when it took
/// the host up: the attribute has no compare-and-swap, so a later one of the same run is another
/// process's. An earlier one is a read that lags.
pub(super) fn owner(view: &HostView, run: &RunId, known: &[Marker]) -> Owner {
    let text = match &view.marker {
        Fact::Absent => return Owner::Nobody,
        Fact::Unknown { why } => {
            return Owner::Other(Held::Refused(Refusal::Unreadable(format!("the marker ({why})"))));
        }
        Fact::Known(text) => text,
    };
    match serde_json::from_str::<Marker>(text) {
        Ok(marker) if marker.v != Marker::VERSION => {
            Owner::Other(Held::UnreadableMarker { why: format!("its version is {}", marker.v) })
        }
        Ok(marker) if marker.run == *run => {
            let lags = known.iter().any(|known| marker.at < known.at);
            if known.is_empty() || known.contains(&marker) || lags {
                Owner::Ours(Box::new(marker))
            } else {
                Owner::Other(Held::OtherProcess { phase: marker.phase, at: marker.at })
            }
        }
        Ok(marker) => Owner::Other(Held::ForeignMarker { run: marker.run }),
        Err(error) => Owner::Other(Held::UnreadableMarker { why: error.to_string() }),
    }
}

/// The marker on this host, if there is one that can be read, whoever wrote it.
pub(super) fn read(view: &HostView) -> Option<Marker> {
    view.marker.known().and_then(|text| serde_json::from_str(text).ok())
}

/// The marker as it is written, or why it cannot be.
pub(super) fn text(marker: &Marker) -> Result<String, String> {
    let text = serde_json::to_string(marker).map_err(|error| error.to_string())?;
    if text.len() > Marker::LIMIT {
        return Err(format!("it is {} bytes long, at most {} are written", text.len(), Marker::LIMIT));
    }
    Ok(text)
}

/// The phase that stands on the host while this step runs; none for a step that leaves it as it is.
pub(super) fn phase_of(step: &Step) -> Option<MarkerPhase> {
    Some(match step {
        Step::StartShell | Step::StopMonitor | Step::StartMonitor => return None,
        // Nodes that moved are looked at while the host is closed.
        Step::AwaitNode { stopped: false, .. } => return None,
        Step::CordonNode { .. } | Step::DrainNode { .. } => MarkerPhase::Draining,
        Step::StartClosing { .. } | Step::StopVm { .. } | Step::EnterMaintenance { .. } => MarkerPhase::Closing,
        Step::SetPassthrough { .. } | Step::SetGraphics { .. } | Step::SetMig { .. } => MarkerPhase::Changing,
        Step::Reboot { .. } => MarkerPhase::Rebooting,
        Step::VerifyHost => MarkerPhase::Verifying,
        Step::ExitMaintenance
        | Step::StartVm { .. }
        | Step::AwaitNode { stopped: true, .. }
        | Step::ValidateNode { .. }
        | Step::UncordonNode { .. } => MarkerPhase::Exiting,
    })
}

/// The compensations that a marker lists, of the kinds that this program knows.
pub(super) fn armed(marker: &Marker) -> Vec<Compensation> {
    let node = |[cluster, name, uid]: &[String; 3]| {
        Compensation::Node(NodeRef { cluster: cluster.clone(), name: name.clone(), uid: uid.clone() })
    };
    marker.arm.iter().filter_map(Compensation::from_marker).chain(marker.nodes.iter().map(node)).collect()
}

/// What is armed, as a marker lists it: its list of nodes stands beside the other one.
pub(super) fn lists(armed: &[Compensation]) -> (Vec<[String; 3]>, Vec<[String; 3]>) {
    let node = |comp: &Compensation| match comp {
        Compensation::Node(NodeRef { cluster, name, uid }) => Some([cluster.clone(), name.clone(), uid.clone()]),
        _ => None,
    };
    (armed.iter().filter_map(Compensation::to_marker).collect(), armed.iter().filter_map(node).collect())
}

/// What a visit remembers when nothing but the marker is left of it.
pub(super) fn memory(marker: &Marker) -> Memory {
    let comps = armed(marker);
    let armed = comps.contains(&Compensation::Maintenance);
    Memory {
        begun: marker.phase.is_changed(),
        maintenance: match marker.phase {
            _ if !armed => OurMaintenance::NotAsked,
            MarkerPhase::Prechecking | MarkerPhase::Draining | MarkerPhase::Closing => OurMaintenance::Asked,
            MarkerPhase::Exiting | MarkerPhase::Released => OurMaintenance::Leaving,
            MarkerPhase::Changing | MarkerPhase::Rebooting | MarkerPhase::Verifying | MarkerPhase::Failed => {
                OurMaintenance::Closed
            }
        },
        reboots: marker.reboots[0],
        last_reboot: marker.last.as_ref().map(|last| RebootAsked {
            boot_before: last.boot,
            pending: lines(&last.pend),
            proven: last.asked.is_none(),
        }),
        // What is early goes out before the first reboot.
        early_graphics_sent: marker.last.is_some(),
        written_since_reboot: marker.phase == MarkerPhase::Changing,
        // A switch that waits for a reboot shows at the shell; a person is asked again.
        mig: Vec::new(),
        monitor_stopped: comps.contains(&Compensation::Monitor),
        shell: comps.contains(&Compensation::Ssh),
        vms: comps
            .into_iter()
            .filter_map(|comp| match comp {
                Compensation::Vm(vm) => Some(vm),
                _ => None,
            })
            .collect(),
        // Their marks say the rest (`nodes`).
        nodes: Vec::new(),
        baseline: Some(marker.base.clone()),
    }
}

/// The last reboot that a visit remembers, as its marker says it. `asked`: when, if it is not proven.
pub(super) fn last(memory: &Memory, asked: Timestamp) -> Option<LastReboot> {
    memory.last_reboot.as_ref().map(|last| LastReboot {
        asked: (!last.proven).then_some(asked),
        boot: last.boot_before,
        // What is pending after a write says nothing of the reboot before it.
        pend: if memory.written_since_reboot { BTreeMap::new() } else { by_words(&last.pending) },
    })
}

/// Lines of the form `ADDRESS WORDS` by their words; a line of another form has no address.
pub(super) fn by_words(lines: &[String]) -> BTreeMap<String, Vec<PciAddress>> {
    let mut words: BTreeMap<String, Vec<PciAddress>> = BTreeMap::new();
    for line in lines {
        match line.split_once(' ').and_then(|(address, words)| Some((address.parse().ok()?, words))) {
            Some((address, said)) => words.entry(said.to_owned()).or_default().push(address),
            None => drop(words.entry(line.clone()).or_default()),
        }
    }
    words
}

/// The lines again.
fn lines(words: &BTreeMap<String, Vec<PciAddress>>) -> Vec<String> {
    let of = |(words, addresses): (&String, &Vec<PciAddress>)| match addresses.is_empty() {
        true => vec![words.clone()],
        false => addresses.iter().map(|address| format!("{address} {words}")).collect(),
    };
    words.iter().flat_map(of).collect()
}
