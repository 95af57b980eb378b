//! What a switch of MIG asks of the shell of a host, before anything of it is disturbed.

use super::device::{Gap, addresses};
use super::mig::SSH_SERVICE;
use super::sheet::Sheet;
use super::work::Work;
use super::{GpuTarget, HostPlan, HostTarget, Impact};
use crate::model::{
    Fact, Finding, HostName, HostView, Lockdown, MigKind, PciAddress, Rule, ShellWay, VgpuMode, counted,
};

/// Findings on MIG of the host, and on who switches it how.
pub(super) fn judge(
    sheet: &mut Sheet,
    view: &HostView,
    target: Option<&HostTarget>,
    work: Option<&Work>,
    impact: Impact,
    way: ShellWay,
) {
    if impact >= Impact::Reboot
        && let Some(target) = target
    {
        beside(sheet, view, target);
    }
    if impact >= Impact::Maintenance && !work.is_some_and(Work::gate_asks_shell) {
        sheet.add(sheet.here(&Rule::SHELL_NOT_CHECKED, Rule::SHELL_NOT_CHECKED.title));
    }
    if let Some(target) = target {
        behind(sheet, work, target);
    }
    let Some(work) = work else { return };
    if !work.may_hide.is_empty() && !work.switches_mig() {
        hidden(sheet, view, way);
    }
    if !work.switches_mig() {
        return;
    }
    match way {
        ShellWay::Direct => {
            for Obstacle { rules, why } in obstacles(view) {
                match why {
                    Ok(message) => sheet.add(sheet.here(rules[0], message)),
                    Err(gap) => sheet.unread(rules, &gap),
                }
            }
        }
        ShellWay::Handoff => {
            let message =
                "MIG is switched by hand: the host is closed, the commands are printed and a person types them";
            sheet.add(sheet.here(&Rule::SHELL_HANDOFF, message));
        }
    }
    let lost = work.gives_mig_of_driver();
    if lost {
        let message = "MIG of these GPUs does not survive a reboot, whoever reboots the host: plan again after one";
        let boot = view.boot_time.known().map(|at| format!("the host booted at {at:.0}"));
        let mut finding = sheet.here(&Rule::MIG_LOST, message);
        finding.evidence.extend(boot);
        sheet.add(finding);
    }
}

/// MIG that a guest may have left on behind passthrough: it shows once the driver owns the GPUs, on a host
/// that is closed by then.
fn hidden(sheet: &mut Sheet, view: &HostView, way: ShellWay) {
    match (way, keeps_out(view)) {
        (ShellWay::Direct, None) => {}
        (ShellWay::Direct, Some(why)) => {
            let message = format!("if a guest has left MIG on, it could not be switched off through the shell: {why}");
            sheet.add(sheet.here(&Rule::SHELL_HIDDEN, message));
        }
        (ShellWay::Handoff, _) => {
            let message =
                "if a guest has left MIG on, it shows after the reboot, and a person is asked to switch it off";
            sheet.add(sheet.here(&Rule::SHELL_HANDOFF, message));
        }
    }
}

/// Why nobody would get into the shell by SSH, as far as it can be told without a try.
pub(super) fn keeps_out(view: &HostView) -> Option<String> {
    let first = obstacles(view).into_iter().next()?;
    Some(first.why.unwrap_or_else(|gap| gap.to_string()))
}

/// What keeps us out of a shell, or what could not be read of it.
struct Obstacle {
    /// The rules that it breaks, or that could not be checked.
    rules: &'static [&'static Rule],
    why: Result<String, Gap>,
}

/// Everything that keeps us out: a locked host refuses us after it was disturbed.
fn obstacles(view: &HostView) -> Vec<Obstacle> {
    let lockdown = match Gap::need(&view.lockdown, "config.lockdownMode") {
        Ok(Lockdown::Disabled) => None,
        Ok(mode) => Some(Ok(format!("the host is in lockdown mode ({mode}): nobody logs in to its shell by SSH"))),
        Err(gap) => Some(Err(gap)),
    };
    let (login_rules, login): (&[&Rule], _) = match Gap::optional(&view.shell_login, "who logs in to its shell") {
        Ok(Some(login)) => {
            let message = format!("no key of the host is pinned, so {} does not log in to it", login.user);
            (&[&Rule::SHELL_NO_PIN], (!login.pinned).then_some(Ok(message)))
        }
        Ok(None) => (&[&Rule::SHELL_NO_LOGIN], Some(Ok("no user of the Site's `shell` fits the host".to_owned()))),
        Err(gap) => (&[&Rule::SHELL_NO_PIN, &Rule::SHELL_NO_LOGIN], Some(Err(gap))),
    };
    let service = match Gap::need(&view.services, "the services of the host") {
        Ok(services) if services.iter().any(|service| service.key == SSH_SERVICE) => None,
        Ok(_) => Some(Ok(format!("the host lists no service {SSH_SERVICE}: SSH cannot be started there"))),
        Err(gap) => Some(Err(gap)),
    };
    let found: [(&'static [&'static Rule], _); 3] =
        [(&[&Rule::SHELL_LOCKDOWN], lockdown), (login_rules, login), (&[&Rule::SHELL_SERVICE], service)];
    found.into_iter().filter_map(|(rules, why)| Some(Obstacle { rules, why: why? })).collect()
}

/// Boards that go to passthrough: a switch of MIG that waits for a reboot shows nowhere but at the shell,
/// which is not asked for that.
fn behind(sheet: &mut Sheet, work: Option<&Work>, target: &HostTarget) {
    if !work.is_some_and(|work| work.expected > 0 && !work.switches_mig()) {
        return;
    }
    let goes = |gpu: &&GpuTarget| gpu.mig == Some(MigKind::Board) && !gpu.mode.needs_driver();
    let gpus: Vec<PciAddress> = target.gpus.iter().filter(goes).map(|gpu| gpu.address).collect();
    if !gpus.is_empty() {
        let message = format!(
            "MIG that somebody has switched on and that waits for a reboot is not looked for; it would go along behind passthrough, to the guest: {}",
            addresses(&gpus)
        );
        sheet.add(sheet.here(&Rule::MIG_BEHIND, message));
    }
}

/// The hosts whose boards the gate does not check, in one finding for the whole plan: it is so of most
/// hosts, and nothing that one of them could help.
pub(super) fn not_checked(findings: &mut Vec<Finding>, hosts: &[HostPlan]) {
    let is_one = |finding: &Finding| finding.id.0 == Rule::SHELL_NOT_CHECKED.id;
    let said: Vec<Finding> = findings.extract_if(.., |finding| is_one(finding)).collect();
    let changed = said.iter().filter_map(|finding| finding.subject.host.as_ref());
    let names: Vec<&str> =
        changed.filter(|name| hosts.iter().any(|host| host.host.name == **name)).map(HostName::as_str).collect();
    if names.is_empty() {
        return;
    }
    let message = format!(
        "the PCIe link, ECC and rows of memory of GPUs are not checked on {}: only a shell shows them, and it is used only where MIG is switched through it",
        counted(names.len(), "host")
    );
    findings.push(Finding::new(&Rule::SHELL_NOT_CHECKED, message));
}

/// GPUs outside the pool that would lose their MIG: nobody asked for that, and nobody gives it back.
fn beside(sheet: &mut Sheet, view: &HostView, target: &HostTarget) {
    let kind = target.gpus.iter().find_map(|gpu| gpu.mig);
    if kind == Some(MigKind::Board) {
        return;
    }
    let active = view.graphics_active.known().into_iter().flatten();
    let losing: Vec<PciAddress> = active
        .filter(|state| state.vgpu_mode == Fact::Known(VgpuMode::MultiInstanceGpu))
        .map(|state| state.address)
        .filter(|address| target.others.contains(address))
        .collect();
    if !losing.is_empty() {
        let message = format!("the reboot would take MIG from GPUs outside the pool: {}", addresses(&losing));
        sheet.add(sheet.here(&Rule::MIG_BESIDE, message));
    }
}
