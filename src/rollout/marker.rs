//! The marker on the live host object: whose it is, and what it remembers (FORMATS "Marker").

use super::{Compensation, Held};
use crate::model::{Fact, HostView, Marker, MarkerPhase, RunId};
use crate::plan::{Memory, OurMaintenance, RebootAsked, Step};

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

/// Whose marker this host carries.
pub(super) fn owner(view: &HostView, run: &RunId) -> Owner {
    let text = match &view.marker {
        Fact::Absent => return Owner::Nobody,
        Fact::Unknown { why } => return Owner::Other(Held::UnreadableMarker { why: why.clone() }),
        Fact::Known(text) => text,
    };
    match serde_json::from_str::<Marker>(text) {
        Ok(marker) if marker.v != Marker::VERSION => {
            Owner::Other(Held::UnreadableMarker { why: format!("its version is {}", marker.v) })
        }
        Ok(marker) if marker.run == *run => Owner::Ours(Box::new(marker)),
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

/// The phase that stands on the host while this step runs; none for a step that leaves it.
pub(super) fn phase_of(step: &Step) -> MarkerPhase {
    match step {
        Step::StartClosing { .. } | Step::StopVm { .. } | Step::EnterMaintenance { .. } => MarkerPhase::Closing,
        Step::SetPassthrough { .. } | Step::SetGraphics { .. } => MarkerPhase::Changing,
        Step::Reboot { .. } => MarkerPhase::Rebooting,
        Step::VerifyHost => MarkerPhase::Verifying,
        Step::ExitMaintenance | Step::StartVm { .. } => MarkerPhase::Exiting,
    }
}

/// The compensations that a marker lists, of the kinds that this program knows.
pub(super) fn armed(marker: &Marker) -> Vec<Compensation> {
    marker.arm.iter().filter_map(Compensation::from_marker).collect()
}

/// What a visit remembers when nothing but the marker is left of it.
pub(super) fn memory(marker: &Marker) -> Memory {
    let armed = armed(marker).contains(&Compensation::Maintenance);
    Memory {
        begun: marker.phase != MarkerPhase::Prechecking,
        maintenance: match marker.phase {
            _ if !armed => OurMaintenance::NotAsked,
            MarkerPhase::Prechecking | MarkerPhase::Closing => OurMaintenance::Asked,
            MarkerPhase::Exiting | MarkerPhase::Released => OurMaintenance::Leaving,
            MarkerPhase::Changing | MarkerPhase::Rebooting | MarkerPhase::Verifying | MarkerPhase::Failed => {
                OurMaintenance::Closed
            }
        },
        reboots: marker.reboots[0],
        // Written just before the reboot is sent; what was pending does not fit into a marker.
        last_reboot: (marker.phase == MarkerPhase::Rebooting).then(|| RebootAsked {
            boot_before: marker.boot,
            pending: Vec::new(),
            proven: false,
        }),
        early_graphics_sent: false,
        written_since_reboot: marker.phase == MarkerPhase::Changing,
        vms: Vec::new(),
        baseline: Some(marker.base.clone()),
    }
}
