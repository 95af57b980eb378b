//! What the shell shows of the boards, for the host gate.
//!
//! MIG decides: the visit switched it. What else nvidia-smi shows (ECC, rows of memory, the PCIe link)
//! is not known of before the visit, so nobody can say that the visit is the cause: it is said, and
//! decides nothing (decision 010).

use super::gate::line;
use super::setting::on as word;
use super::{GateCheck, GateRead, HostPlan, Verdict};
use crate::model::{Fact, GpuShellView, HostView, Mode, Switch};

/// Lines for the GPUs of the plan that the driver owns; what is passed through is not there. None if
/// nobody asked at the shell.
pub(super) fn boards(host: &HostPlan, view: &HostView) -> Vec<GateRead> {
    let owned = host.target.gpus.iter().filter(|gpu| gpu.mode.needs_driver());
    let mut lines = Vec::new();
    for gpu in owned {
        let subject = gpu.address.to_string();
        let seen = match &view.shell {
            Fact::Absent => continue,
            Fact::Known(shell) => shell.gpu(&gpu.address),
            Fact::Unknown { why } => Fact::unknown(why),
        };
        match seen {
            Fact::Known(seen) => {
                lines.push(mig(&subject, gpu.mode == Mode::MigVgpu, &seen.mig));
                lines.push(health(&format!("{subject} health"), seen));
            }
            Fact::Absent => {}
            Fact::Unknown { why } => {
                let evidence = format!("the shell could not be read: {why}");
                lines.push(line(GateCheck::Board, &subject, Verdict::Unverifiable, evidence));
            }
        }
    }
    lines
}

/// MIG in effect as wished, and nothing that the next boot would change.
fn mig(subject: &str, wanted: bool, mig: &Switch) -> GateRead {
    let verdict = match (&mig.current, mig.settled()) {
        (_, Some(settled)) if settled == wanted => Verdict::Passed,
        // It does not know MIG.
        (Fact::Absent, None) if !wanted => Verdict::Passed,
        (Fact::Unknown { .. }, _) => Verdict::Unverifiable,
        (Fact::Known(current), None) if *current == wanted && mig.pending.known().is_none() => Verdict::Unverifiable,
        _ => Verdict::Failed,
    };
    let show = |fact: &Fact<bool>| fact.known().map_or("?", |on| word(*on));
    let evidence = format!(
        "expected MIG {}, nothing pending; nvidia-smi shows current {}, pending {}",
        word(wanted),
        show(&mig.current),
        show(&mig.pending)
    );
    line(GateCheck::Board, subject, verdict, evidence)
}

/// ECC, rows of memory and the PCIe link, which an idle GPU may run slower.
fn health(subject: &str, seen: &GpuShellView) -> GateRead {
    let ecc = match (&seen.ecc.current, seen.ecc.settled()) {
        (_, Some(state)) => (true, format!("ECC {}", word(state))),
        (Fact::Absent, None) => (true, "no ECC".to_owned()),
        (Fact::Known(current), None) => (false, format!("ECC {}, and another state is pending", word(*current))),
        (Fact::Unknown { .. }, None) => (false, "ECC not known".to_owned()),
    };
    let row = |fact: &Fact<bool>, sick: &str| match fact {
        Fact::Known(false) | Fact::Absent => (true, String::new()),
        Fact::Known(true) => (false, sick.to_owned()),
        Fact::Unknown { .. } => (false, format!("not known: {sick}")),
    };
    let rows = [
        row(&seen.remap_failed, "a row of memory could not be remapped, the board is broken"),
        row(&seen.remap_pending, "a row of memory waits for a reset to be remapped"),
    ];
    let number = |fact: &Fact<u32>| fact.known().map_or_else(|| "?".to_owned(), ToString::to_string);
    let link = format!("PCIe generation {}, {} lanes", number(&seen.link_generation), number(&seen.link_width));
    let parts: Vec<(bool, String)> = std::iter::once(ecc).chain(rows).chain([(true, link)]).collect();
    let verdict = if parts.iter().all(|(good, _)| *good) { Verdict::Passed } else { Verdict::Noted };
    let said: Vec<&str> = parts.iter().map(|(_, said)| said.as_str()).filter(|said| !said.is_empty()).collect();
    line(GateCheck::Board, subject, verdict, said.join("; "))
}
