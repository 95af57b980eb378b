//! What the steps at a host's shell find before their effect, and what proves them.
//!
//! What the shell shows is in `view.shell`: whoever checks such a step has read it just before. MIG of
//! a driver is proven by what vSphere shows as well; that of a board waits for a reboot, and only the
//! shell, or a person, can say that it does.

use super::blocks::not_connected;
use super::check::{Verify, done, refused};
use super::device::{Gap, addresses};
use super::setting::on as word;
use super::{Check, GpuSetting, GpuTarget, HostPlan, Memory, Step};
use crate::model::{
    Fact, GraphicsType, HostView, Lockdown, MigKind, PciAddress, ShellView, ShellWay, Switch, VgpuMode,
};

/// The SSH service of ESXi (vsphere-gpu §1.10).
pub const SSH_SERVICE: &str = "TSM-SSH";

/// What is found before the shell is opened.
pub(super) fn start_shell(host: &HostPlan, view: &HostView) -> Result<Check, Check> {
    if let Some(why) = not_connected(view) {
        return refused("a host that answers", why);
    }
    // A login that is bound to be refused is one too many.
    if let Fact::Known(mode) = &view.lockdown
        && *mode != Lockdown::Disabled
    {
        return refused("a host that is not in lockdown mode", mode.to_string());
    }
    ssh_runs(view)?;
    match shell_open(host, view) {
        Verify::Reached { evidence } => Ok(Check::AlreadyDone { evidence }),
        Verify::Settling { .. } | Verify::NotYet { .. } => Ok(Check::Ready),
    }
}

/// Whether we are logged in, and `nvidia-smi` shows MIG of the GPUs that the driver owns: a host whose
/// shell does not is better found out before it is closed.
pub(super) fn shell_open(host: &HostPlan, view: &HostView) -> Verify {
    match (ssh_runs(view), &view.shell) {
        (Err(gap), _) => waits(gap.to_string()),
        (Ok(false), _) => waits(format!("the service {SSH_SERVICE} to run")),
        (Ok(true), Fact::Known(shell)) => {
            let of_pool = host.target.gpus.iter().filter_map(|gpu| unread(gpu, view, shell));
            let beside = host.target.others.iter().filter_map(|gpu| waits_beside(*gpu, shell));
            let open: Vec<String> = of_pool.chain(beside).collect();
            match open.is_empty() {
                true => logged_in(shell),
                false => Verify::NotYet { waiting_for: open },
            }
        }
        (Ok(true), Fact::Absent) => waits("the login to the shell".to_owned()),
        (Ok(true), Fact::Unknown { why }) => waits(format!("the login to the shell ({why})")),
    }
}

/// Lines that are not understood are no harm if all that is asked for is shown, and are kept.
fn logged_in(shell: &ShellView) -> Verify {
    let also = shell.unread.iter().map(|line| format!("nvidia-smi also says `{line}`"));
    let evidence = std::iter::once("logged in; the SSH service runs".to_owned()).chain(also).collect();
    Verify::Reached { evidence }
}

/// What the shell does not show of a GPU, though the driver owns it.
fn unread(gpu: &GpuTarget, view: &HostView, shell: &ShellView) -> Option<String> {
    gpu.mig?;
    let owned = GpuSetting::of(view, gpu.address).is_ok_and(|setting| is_owned(&setting));
    if !owned {
        return None;
    }
    let why = |gap: Gap| Some(format!("{} MIG to be shown by nvidia-smi ({})", gpu.address, gap.why));
    let mig = match Gap::need(&shell.gpu(&gpu.address), "the GPU at the shell") {
        Ok(shown) => &shown.mig,
        Err(gap) => return why(gap),
    };
    [&mig.current, &mig.pending].into_iter().find_map(|fact| Gap::need(fact, "MIG").err().and_then(why))
}

/// A switch of MIG that waits for a reboot on a GPU outside the pool: ours would make it take effect.
fn waits_beside(gpu: PciAddress, shell: &ShellView) -> Option<String> {
    let mig = &shell.gpus.get(&gpu)?.mig;
    match (&mig.current, &mig.pending) {
        (Fact::Known(current), Fact::Known(pending)) if current != pending => Some(format!(
            "{gpu}, which is not of the pool, to wait for no reboot (nvidia-smi: MIG {}, pending {})",
            word(*current),
            word(*pending)
        )),
        _ => None,
    }
}

/// Whether the driver owns the GPU: the shell then shows it.
fn is_owned(setting: &GpuSetting) -> bool {
    !setting.passthru_active
        && matches!(setting.active_type, Fact::Known(GraphicsType::SharedDirect | GraphicsType::Shared))
}

fn ssh_runs(view: &HostView) -> Result<bool, Gap> {
    let services = Gap::need(&view.services, "its services")?;
    let ssh = services.iter().find(|service| service.key == SSH_SERVICE);
    ssh.map(|service| service.running)
        .ok_or_else(|| Gap { what: format!("the service {SSH_SERVICE}"), why: "the host does not list it".to_owned() })
}

/// What is found before the monitoring daemon is stopped.
pub(super) fn stop_monitor(view: &HostView) -> Result<Check, Check> {
    match Gap::optional(&shown(view)?.monitor, "the monitoring daemon")? {
        None => done("not installed"),
        Some(false) => done("it does not run"),
        Some(true) => Ok(Check::Ready),
    }
}

/// What is found before it is started again.
pub(super) fn start_monitor(view: &HostView, memory: &Memory) -> Result<Check, Check> {
    if !memory.monitor_stopped {
        return done("it was not stopped");
    }
    match Gap::optional(&shown(view)?.monitor, "the monitoring daemon")? {
        None => done("not installed any more"),
        Some(true) => done("it runs"),
        Some(false) => Ok(Check::Ready),
    }
}

/// Whether the daemon runs, or not, as it should.
pub(super) fn monitor_is(running: bool, view: &HostView) -> Verify {
    let wanted = if running { "to run" } else { "to be stopped" };
    match shown(view).and_then(|shell| Gap::optional(&shell.monitor, "the monitoring daemon")) {
        Ok(Some(found)) if *found == running => {
            reached(if running { "the monitoring daemon runs" } else { "the monitoring daemon is stopped" })
        }
        Ok(None) if !running => reached("the monitoring daemon is not installed"),
        Ok(_) => waits(format!("the monitoring daemon {wanted}")),
        Err(gap) => waits(gap.to_string()),
    }
}

/// What is found before MIG is switched.
pub(super) fn set(step: &Step, view: &HostView, memory: &Memory) -> Result<Check, Check> {
    let Step::SetMig { gpus, way, .. } = step else {
        return refused("a switch of MIG", "another step");
    };
    for gpu in gpus {
        let setting = GpuSetting::of(view, *gpu)?;
        if !is_owned(&setting) {
            return refused("GPUs that the driver owns", format!("{gpu} with {setting}"));
        }
        if *way == ShellWay::Direct {
            let mig = &Gap::need(&shown(view)?.gpu(gpu), "the GPU at the shell")?.mig;
            if mig.current == Fact::Absent {
                return refused("GPUs that know MIG", format!("nvidia-smi shows none on {gpu}"));
            }
        }
    }
    match is_set(step, view, memory) {
        Verify::Reached { evidence } => Ok(Check::AlreadyDone { evidence }),
        Verify::Settling { .. } | Verify::NotYet { .. } => Ok(Check::Ready),
    }
}

/// Whether MIG is switched.
pub(super) fn is_set(step: &Step, view: &HostView, memory: &Memory) -> Verify {
    let Step::SetMig { gpus, on, kind, way } = step else {
        return waits("a switch of MIG".to_owned());
    };
    let open: Vec<String> = gpus.iter().filter_map(|gpu| missing(*gpu, *on, *kind, *way, view, memory)).collect();
    if open.is_empty() {
        let seen = match kind {
            MigKind::Board => "pending until the reboot",
            MigKind::Driver => "in effect",
        };
        return reached(&format!("MIG {}, {seen}: {}", word(*on), addresses(gpus)));
    }
    Verify::NotYet { waiting_for: open }
}

/// What is missing of the switch of one GPU.
fn missing(
    gpu: PciAddress,
    on: bool,
    kind: MigKind,
    way: ShellWay,
    view: &HostView,
    memory: &Memory,
) -> Option<String> {
    let shows = match shows_mig(view, gpu) {
        Ok(shows) => shows,
        Err(gap) => return Some(gap.to_string()),
    };
    let shell = match way {
        ShellWay::Handoff => None,
        ShellWay::Direct => match shown(view)
            .and_then(|shell| Gap::need(&shell.gpu(&gpu), "the GPU at the shell").map(|gpu| &gpu.mig))
        {
            Ok(mig) => Some(mig),
            Err(gap) => return Some(gap.to_string()),
        },
    };
    let wait = |what: &str| Some(format!("{gpu} {what}"));
    match (kind, shell) {
        // A person's word: nothing shows it before the reboot.
        (MigKind::Board, None) if memory.mig.contains(&(gpu, on)) => None,
        (MigKind::Board, None) if shows == on && !memory.mig.contains(&(gpu, !on)) => None,
        (MigKind::Board, None) => wait(&format!("MIG {} to be confirmed", word(on))),
        (MigKind::Board, Some(Switch { pending, .. })) => match pending {
            Fact::Known(pending) if *pending == on => None,
            found => wait(&format!("MIG {} to be pending (nvidia-smi: {})", word(on), switch(found))),
        },
        (MigKind::Driver, Some(mig)) if mig.settled() != Some(on) => wait(&format!(
            "MIG {} to be in effect (nvidia-smi: current {}, pending {})",
            word(on),
            switch(&mig.current),
            switch(&mig.pending)
        )),
        (MigKind::Driver, _) if shows != on => wait(&format!("MIG {} to show in vCenter (vgpuMode)", word(on))),
        (MigKind::Driver, _) => None,
    }
}

/// Whether vSphere shows MIG in effect on a GPU that the driver owns.
fn shows_mig(view: &HostView, gpu: PciAddress) -> Result<bool, Gap> {
    let setting = GpuSetting::of(view, gpu)?;
    Ok(*Gap::need(&setting.active_mode, "vgpuMode")? == VgpuMode::MultiInstanceGpu)
}

fn shown(view: &HostView) -> Result<&ShellView, Gap> {
    match &view.shell {
        Fact::Absent => Err(Gap { what: "what the shell shows".to_owned(), why: "nobody is logged in".to_owned() }),
        fact => Gap::need(fact, "what the shell shows"),
    }
}

fn switch(fact: &Fact<bool>) -> String {
    match fact {
        Fact::Known(value) => word(*value).to_owned(),
        Fact::Absent => "not known to the GPU".to_owned(),
        Fact::Unknown { why } => why.clone(),
    }
}

fn reached(line: &str) -> Verify {
    Verify::Reached { evidence: vec![line.to_owned()] }
}

fn waits(line: String) -> Verify {
    Verify::NotYet { waiting_for: vec![line] }
}
