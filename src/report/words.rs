//! Values as words: times, counts, settings of a GPU.

use jiff::Timestamp;

use crate::catalog::{Identity, catalog};
use crate::model::{Fact, GraphicsType, HostName, NodeRef, PciId, VgpuMode, counted};
use crate::plan::GpuSetting;

/// `2026-11-30 22:04 UTC`: the zone is always said.
pub fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// `22:04:11`, for lines that follow each other within hours; the zone is UTC and said once above.
pub fn clock(at: Timestamp) -> String {
    at.strftime("%H:%M:%S").to_string()
}

/// A span of seconds: `45 s`, `12 min`, `3 h 05 min`.
pub fn span(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..=119 => format!("{seconds} s"),
        seconds @ 120..=7_199 => format!("{} min", seconds / 60),
        seconds => format!("{} h {:02} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// `1 host`, `3 hosts`.
pub fn count(number: usize, noun: &str) -> String {
    counted(number, noun)
}

/// A node that somebody opened although it carries our mark.
pub fn opened(node: &NodeRef) -> String {
    format!("our mark on the node {node}, which is not cordoned: somebody opened it")
}

/// Tenths as a decimal: `56` is `5.6`.
pub fn tenths(value: u64) -> String {
    format!("{}.{}", value / 10, value % 10)
}

/// A version as NVIDIA writes it: what ESXi adds behind it (`580.95.02-1OEM.800.1.0.20613240`) is cut.
pub fn release(version: &str) -> &str {
    version.split_once('-').map_or(version, |(release, _)| release)
}

/// Names in a row; from the seventh on only their number is told.
pub fn names<'a>(names: impl IntoIterator<Item = &'a HostName>) -> String {
    /// More names than this do not fit a line that is read.
    const SHOWN: usize = 6;
    let all: Vec<&str> = names.into_iter().map(HostName::as_str).collect();
    if all.len() <= SHOWN + 1 {
        return all.join(", ");
    }
    format!("{} and {} more", all[..SHOWN].join(", "), all.len() - SHOWN)
}

/// The model of a GPU, by its PCI id; the id itself where the catalogue does not know it.
pub fn gpu(id: PciId) -> String {
    match catalog().identify(id) {
        Identity::Model(model) => short(&model.name).to_owned(),
        Identity::Ambiguous(models) => {
            let names: Vec<&str> = models.iter().map(|model| short(&model.name)).collect();
            format!("{} ({id})", names.join(" or "))
        }
        Identity::Unknown => format!("unknown device {id}"),
    }
}

/// Every GPU here is NVIDIA's.
fn short(name: &str) -> &str {
    name.strip_prefix("NVIDIA ").unwrap_or(name)
}

/// What a GPU is, from its active state, and what waits for a reboot.
pub fn setting(setting: &GpuSetting) -> String {
    let GpuSetting {
        passthru_enabled,
        passthru_active,
        label,
        configured_type,
        configured_mode,
        active_type,
        active_mode,
    } = setting;
    let mut words = if *passthru_active {
        match label {
            Fact::Known(label) => format!("passthrough (label {label})"),
            Fact::Absent => "passthrough".to_owned(),
            Fact::Unknown { .. } => "passthrough (label unknown)".to_owned(),
        }
    } else {
        graphics(active_type, active_mode)
    };
    match (passthru_enabled, passthru_active) {
        (true, false) => words.push_str("; passthrough is configured and waits for a reboot"),
        (false, true) => words.push_str("; the end of passthrough is configured and waits for a reboot"),
        (true, true) | (false, false) => {}
    }
    // A GPU that is passed through has no active graphics state to compare with.
    if !passthru_enabled && !passthru_active {
        let differs = |configured: &str, active: Fact<&str>| active.known().is_some_and(|active| configured != *active);
        let kind = configured_type
            .known()
            .is_some_and(|configured| differs(configured.as_str(), active_type.as_ref().map(GraphicsType::as_str)));
        // MIG is switched elsewhere: the size that is configured stays under it.
        let size = *active_mode != Fact::Known(VgpuMode::MultiInstanceGpu)
            && configured_mode
                .known()
                .is_some_and(|configured| differs(configured.as_str(), active_mode.as_ref().map(VgpuMode::as_str)));
        if kind || size {
            words.push_str(&format!("; {} is configured and not active", graphics(configured_type, configured_mode)));
        }
    }
    words
}

/// A graphics type and its size mode.
fn graphics(kind: &Fact<GraphicsType>, mode: &Fact<VgpuMode>) -> String {
    match kind {
        Fact::Unknown { .. } => "unknown".to_owned(),
        Fact::Absent => "no graphics state".to_owned(),
        Fact::Known(GraphicsType::Basic) => "no driver".to_owned(),
        Fact::Known(GraphicsType::Shared) => "vSGA".to_owned(),
        Fact::Known(GraphicsType::Direct) => "passthrough".to_owned(),
        Fact::Known(GraphicsType::Other(other)) => format!("graphics type {other}"),
        Fact::Known(GraphicsType::SharedDirect) => match mode {
            Fact::Known(VgpuMode::SameSize) => "time-sliced vGPU, same size".to_owned(),
            Fact::Known(VgpuMode::MixedSize) => "time-sliced vGPU, mixed size".to_owned(),
            Fact::Known(VgpuMode::MultiInstanceGpu) => "MIG-backed vGPU".to_owned(),
            Fact::Known(VgpuMode::None) | Fact::Absent => "time-sliced vGPU, no size mode".to_owned(),
            Fact::Known(VgpuMode::Other(other)) => format!("vGPU of size mode {other}"),
            Fact::Unknown { .. } => "time-sliced vGPU, size mode unknown".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> GpuSetting {
        GpuSetting {
            passthru_enabled: false,
            passthru_active: false,
            label: Fact::Absent,
            configured_type: Fact::Known(GraphicsType::SharedDirect),
            configured_mode: Fact::Known(VgpuMode::SameSize),
            active_type: Fact::Known(GraphicsType::SharedDirect),
            active_mode: Fact::Known(VgpuMode::SameSize),
        }
    }

    #[test]
    fn the_active_state_is_told_and_the_pending_one_beside_it() {
        assert_eq!(setting(&plain()), "time-sliced vGPU, same size");
        let mixed = GpuSetting { configured_mode: Fact::Known(VgpuMode::MixedSize), ..plain() };
        assert_eq!(
            setting(&mixed),
            "time-sliced vGPU, same size; time-sliced vGPU, mixed size is configured and not active"
        );
        let pending = GpuSetting { passthru_enabled: true, ..plain() };
        assert_eq!(setting(&pending), "time-sliced vGPU, same size; passthrough is configured and waits for a reboot");
        let label = Fact::Known("train".to_owned());
        let leaving = GpuSetting { passthru_active: true, label, active_type: Fact::Absent, ..plain() };
        assert_eq!(
            setting(&leaving),
            "passthrough (label train); the end of passthrough is configured and waits for a reboot"
        );
    }

    #[test]
    fn unknown_is_told_as_unknown() {
        let unknown = GpuSetting { active_type: Fact::unknown("no answer"), ..plain() };
        assert_eq!(setting(&unknown), "unknown");
        let size = GpuSetting { active_mode: Fact::unknown("no answer"), ..plain() };
        assert_eq!(setting(&size), "time-sliced vGPU, size mode unknown");
    }

    #[test]
    fn spans_counts_and_many_names() {
        assert_eq!([span(45), span(130), span(11_100)], ["45 s", "2 min", "3 h 05 min"]);
        assert_eq!([count(1, "host"), count(0, "host")], ["1 host", "0 hosts"]);
        let many: Vec<HostName> = (1..=9).map(|n| HostName(format!("h{n}"))).collect();
        assert_eq!(names(&many), "h1, h2, h3, h4, h5, h6 and 3 more");
        assert_eq!(names(&many[..7]), "h1, h2, h3, h4, h5, h6, h7");
    }
}
