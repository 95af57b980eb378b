//! The steps of a host as words, with reboots and minutes and what they rest on.

use std::time::Duration;

use super::group::{by_words, grouped};
use super::setting::on;
use super::work::Work;
use super::{Minutes, NodeEnd, Outline, Reboots, Step};
use crate::model::{Fact, HostView, MigKind, Pace, ShellWay};

/// Why the host reboots, and why perhaps once more or not at all.
pub(super) fn why(work: &Work, view: &HostView, most: u32) -> Vec<String> {
    let mut why = Vec::new();
    for (number, lines) in work.pending().enumerate() {
        let then = if number > 0 { "then " } else { "" };
        why.extend(grouped(lines).into_iter().map(|line| format!("{then}{line}")));
    }
    if work.may_spare {
        why.push("perhaps one fewer: where a guest has left MIG on, it shows after the first".to_owned());
    }
    // A switch of the board is no matter of binding devices.
    let binds = work.pending().flatten().all(|line| !line.contains(" MIG "));
    if work.expected > 0 && binds && view.capabilities.rebind_without_reboot == Fact::Known(true) {
        why.push(
            "perhaps none: the host can rebind idle devices without one (deviceRebindWithoutRebootSupported)"
                .to_owned(),
        );
    }
    let mut approved = most.saturating_sub(work.expected);
    let ignored = "once more if the host ignores the graphics type of a GPU that is still passed through";
    let hidden = "once more if MIG turns out to be on, left by a guest: only the driver shows it";
    let possible = u32::from(work.may_ignore) + u32::from(!work.may_hide.is_empty());
    for (may, again) in [(work.may_ignore, ignored), (!work.may_hide.is_empty(), hidden)] {
        if !may || work.most == work.expected {
            continue;
        }
        why.push(match approved.checked_sub(1) {
            Some(left) => {
                approved = left;
                again.to_owned()
            }
            None if possible > 1 && most > work.expected => format!("{again}; not approved for both (maxReboots)"),
            None => format!("{again}: not approved (maxReboots), the host would be held in maintenance"),
        });
    }
    why
}

/// The steps as words.
pub(super) fn steps(steps: &[Step], work: &Work, reboots: &Reboots) -> Vec<Outline> {
    let mut lines = Vec::new();
    let mut rebooted = false;
    let last = steps.iter().rposition(|step| matches!(step, Step::Reboot { .. }));
    for (at, step) in steps.iter().enumerate() {
        // After a reboot the size mode may be as wished already.
        let perhaps = rebooted && matches!(step, Step::SetGraphics { .. });
        lines.push(Outline { does: step.to_string(), expects: expects(step), perhaps });
        let reboots_now = matches!(step, Step::Reboot { .. });
        if Some(at) == last && reboots.most > reboots.expected {
            lines.extend(once_more(work));
        } else if reboots_now && !rebooted && Some(at) != last && work.may_ignore {
            // The reboot that comes anyhow activates it.
            lines.push(ignored());
        }
        rebooted |= reboots_now;
    }
    lines
}

fn again(does: &str, expects: &str) -> Outline {
    Outline { does: does.to_owned(), expects: expects.to_owned(), perhaps: true }
}

fn ignored() -> Outline {
    again("set graphics again", "the graphics type was ignored while the GPU was passed through")
}

/// What a reboot may show to be due, with the reboot that it takes.
fn once_more(work: &Work) -> Vec<Outline> {
    let mut lines = Vec::new();
    if work.may_ignore {
        lines.push(ignored());
        lines.push(again("reboot once more", "the type is configured and not active"));
    }
    if !work.may_hide.is_empty() {
        lines.extend(work.unhide().iter().map(|step| again(&step.to_string(), &expects(step))));
        lines.push(again("reboot once more", "MIG is on, left by a guest, and switched off"));
    }
    lines
}

fn expects(step: &Step) -> String {
    match step {
        Step::StartClosing { .. } => "no other task on the host".to_owned(),
        Step::CordonNode { .. } => "the node of this VM, with nobody's mark on it".to_owned(),
        Step::DrainNode { .. } => "the node cordoned, with our mark on it".to_owned(),
        Step::StopVm { node: None, .. } => "the host closing, the VM on it, its guest tools running".to_owned(),
        Step::StopVm { node: Some(_), .. } => {
            "the host closing, the VM on it, its node cordoned and empty, its volumes detached".to_owned()
        }
        Step::EnterMaintenance { moves } if moves.is_empty() => {
            "no VM powered on, no other task on the host".to_owned()
        }
        Step::EnterMaintenance { .. } => "powered on only what DRS can move, no other task on the host".to_owned(),
        Step::SetPassthrough { changes } => {
            let found = changes.iter().map(|change| {
                let label = match &change.from_label {
                    Fact::Known(label) => format!("label {label}"),
                    Fact::Absent => "no label".to_owned(),
                    Fact::Unknown { .. } => "label unknown".to_owned(),
                };
                (change.address, format!("passthrough {}, {label}", on(change.from_enabled)))
            });
            by_words(found).join("; ")
        }
        Step::SetGraphics { default_type, policy, devices, .. } => {
            let mut found = Vec::new();
            found.extend(default_type.iter().map(|change| format!("host default type {}", change.from)));
            found.extend(policy.iter().map(|change| format!("assignment policy {}", change.from)));
            found.extend(by_words(devices.iter().map(|change| {
                let kind = match &change.from_type {
                    Fact::Known(kind) => format!("graphics type {kind}"),
                    Fact::Absent => "no graphics entry of its own".to_owned(),
                    Fact::Unknown { .. } => "graphics type unknown".to_owned(),
                };
                let size = match &change.from_mode {
                    Fact::Known(mode) => format!(", {mode}"),
                    // Without an entry there can be no size in it.
                    Fact::Absent if change.from_type == Fact::Absent => String::new(),
                    Fact::Absent => ", no size mode".to_owned(),
                    Fact::Unknown { .. } => ", size mode unknown".to_owned(),
                };
                (change.address, format!("{kind}{size}"))
            })));
            found.join("; ")
        }
        Step::StartShell => "its host key as pinned, the login accepted at the first try".to_owned(),
        Step::StopMonitor => "a login to the shell, in maintenance mode".to_owned(),
        Step::SetMig { kind: MigKind::Board, .. } => "the driver owns the GPUs; pending until the reboot".to_owned(),
        Step::SetMig { kind: MigKind::Driver, .. } => "the driver owns the GPUs, nobody uses them".to_owned(),
        Step::StartMonitor => "a login to the shell".to_owned(),
        Step::Reboot { .. } => "in maintenance mode, something pending, a reboot left within the bound".to_owned(),
        Step::VerifyHost => "modes active as wished, devices and other GPUs unchanged, parity no worse".to_owned(),
        Step::ExitMaintenance => "the host gate passed".to_owned(),
        Step::StartVm { .. } => "the VM off, on this host, with the same GPU devices".to_owned(),
        Step::AwaitNode { stopped: true, .. } => "its VM powered on, on this host".to_owned(),
        Step::AwaitNode { stopped: false, .. } => {
            "the node Ready, on the boot of before, with no fewer GPUs".to_owned()
        }
        Step::ValidateNode { .. } => "the node Ready, with what it should offer".to_owned(),
        Step::UncordonNode { leave: NodeEnd::Open, .. } => "the node gate passed, our mark on the node".to_owned(),
        Step::UncordonNode { leave: NodeEnd::LeftOff, .. } => "its VM off, our mark on the node".to_owned(),
    }
}

/// How long, as usual and by the deadlines.
pub(super) fn minutes(steps: &[Step], work: &Work, reboots: &Reboots, pace: &Pace) -> Minutes {
    let usual: Duration = steps.iter().map(|step| step.usual(pace)).sum();
    let mut most: Duration = steps.iter().map(|step| step.deadline(pace)).sum();
    // Once more: what is due before, and the reboot.
    let extra = reboots.most - reboots.expected;
    let reboot = steps.iter().find(|step| matches!(step, Step::Reboot { .. }));
    most += reboot.map(|step| step.deadline(pace)).unwrap_or_default() * extra;
    if extra > 0 {
        let early = steps.iter().filter(|step| matches!(step, Step::SetGraphics { early: true, .. }));
        most += early.map(|step| step.deadline(pace)).sum::<Duration>();
        most += work.unhide().iter().map(|step| step.deadline(pace)).sum::<Duration>();
    }
    let up = |time: Duration| u32::try_from(time.as_secs().div_ceil(60)).unwrap_or(u32::MAX);
    let mut basis: Vec<String> = Vec::new();
    for step in steps {
        let text = format!("{} {} min (at most {})", kind(step), up(step.usual(pace)), up(step.deadline(pace)));
        if !basis.contains(&text) {
            basis.push(text);
        }
    }
    let moves = steps.iter().any(|step| matches!(step, Step::EnterMaintenance { moves } if !moves.is_empty()));
    let rate = if moves { "; moves at 1 GiB a second, one after the other" } else { "" };
    let basis = format!("by the step, {}{rate}; not measured on this host", basis.join(", "));
    let person = steps.iter().any(|step| matches!(step, Step::SetMig { way: ShellWay::Handoff, .. }));
    Minutes { expected: up(usual), most: up(most), basis, person }
}

fn kind(step: &Step) -> &'static str {
    match step {
        Step::StartClosing { .. } => "begin to close",
        Step::CordonNode { .. } => "cordon a node",
        Step::DrainNode { .. } => "drain a node",
        Step::StopVm { .. } => "stop a VM",
        Step::EnterMaintenance { .. } => "close",
        Step::SetPassthrough { .. } | Step::SetGraphics { .. } => "write",
        Step::StartShell => "log in",
        Step::StopMonitor | Step::StartMonitor => "stop or start the daemon",
        Step::SetMig { way: ShellWay::Direct, .. } => "switch MIG",
        Step::SetMig { way: ShellWay::Handoff, .. } => "switch MIG, not counting how long a person takes,",
        Step::Reboot { .. } => "reboot",
        Step::VerifyHost => "verify",
        Step::ExitMaintenance => "open",
        Step::StartVm { .. } => "start a VM",
        Step::AwaitNode { stopped: true, .. } => "wait for a node",
        Step::AwaitNode { stopped: false, .. } => "look at a node",
        Step::ValidateNode { .. } => "validate a node",
        Step::UncordonNode { .. } => "uncordon a node",
    }
}
