//! Other people and programs, on the world's clock (DESIGN §3, honesty rule 7).

use super::Moment;
use super::due::Transition;
use super::graphics::{SentDevice, SentGraphics};
use super::moment::NewWrite;
use super::passthru::SentPassthru;
use super::tasks::TaskFate;
use crate::sim::document::{Actor, Alarm, Deed, GpuMode, VgpuSize};
use crate::sim::fault::VimFault;

impl Moment<'_> {
    /// Counts a call on an object; actors that wait for it act after their time.
    pub fn count_call(&mut self, method: &str, object: &str) {
        let count = self.state.calls.entry(format!("{method} {object}")).or_default();
        *count += 1;
        let count = *count;
        let due: Vec<(usize, std::time::Duration)> = self
            .spec
            .actors
            .iter()
            .enumerate()
            .filter(|(_, actor)| {
                actor.once.as_ref().is_some_and(|once| {
                    let wanted = once.object.as_ref().or(actor.host.as_ref());
                    wanted.is_some_and(|wanted| wanted == object) && once.method == method && once.on_call == count
                })
            })
            .map(|(index, actor)| (index, actor.after.0))
            .collect();
        for (actor, after) in due {
            self.schedule(after, Transition::Acts { actor });
        }
    }

    pub(super) fn acts(&mut self, index: usize) {
        let Some(actor) = self.spec.actors.get(index).cloned() else { return };
        if let Some((cluster, key)) = actor.does.of_guest() {
            return self.acts_on_guest(&actor, cluster, &key);
        }
        let Some(name) = actor.host.clone() else { return };
        let Some(host) = self.state.hosts.iter().find(|(_, host)| host.name == name).map(|(number, _)| *number) else {
            return;
        };
        if let Deed::Shell { command } = &actor.does {
            // The shell lists what it does itself.
            let words: Vec<&str> = command.split_whitespace().collect();
            self.at_the_shell(host, &words, &actor.who, false);
            return;
        }
        let (call, arguments) = describe(&actor.does);
        let effect = self.act(&actor, host).is_ok();
        self.wrote(NewWrite { who: &actor.who, object: &name, id: &format!("host-{host}"), call, arguments, effect });
    }

    fn act(&mut self, actor: &Actor, host: u32) -> Result<(), VimFault> {
        match &actor.does {
            Deed::EnterMaintenance => self.enter_maintenance(host, &actor.who, 0, TaskFate::default()).map(drop),
            Deed::LeaveMaintenance => self.exit_maintenance(host, &actor.who, 0, TaskFate::default()).map(drop),
            Deed::Reboot => self.reboot(host, &actor.who, true, TaskFate::default()).map(drop),
            Deed::Configure { gpu, mode } => self.configure(host, gpu, mode),
            // Done before, where they have their own line in the log.
            Deed::Shell { .. }
            | Deed::Uncordon { .. }
            | Deed::Cordon { .. }
            | Deed::Annotate { .. }
            | Deed::DeleteObject { .. } => Ok(()),
            Deed::SetField { name, value } => {
                let known = self.state.fields.iter().find(|(_, field)| field.name == *name).map(|(key, _)| *key);
                let key = match known {
                    Some(key) => key,
                    None => self.add_field(name, Some("HostSystem"))?,
                };
                self.set_field(host, key, value)
            }
            Deed::PowerOn { vm } => {
                let vm = self.vm_named(vm)?;
                let task = self.power_on(vm, None, &actor.who, TaskFate::default())?;
                self.under_way(task)
            }
            Deed::PowerOff { vm } => {
                let vm = self.vm_named(vm)?;
                let task = self.power_off(vm, &actor.who, TaskFate::default())?;
                self.under_way(task)
            }
            Deed::MoveIn { vm } => {
                let vm = self.vm_named(vm)?;
                let task = self.relocate(vm, host, &actor.who, TaskFate::default())?;
                self.under_way(task)
            }
            Deed::Alarm { name } => {
                self.host(host)?.alarms.push(Alarm { name: name.clone(), status: "red".to_owned() });
                Ok(())
            }
        }
    }

    fn vm_named(&self, name: &str) -> Result<u32, VimFault> {
        let found = self.state.vms.iter().find(|(_, vm)| vm.name == name).map(|(number, _)| *number);
        found.ok_or_else(|| VimFault::named("NotFound"))
    }

    /// Fails if a task that was started is going to fail.
    fn under_way(&self, task: u64) -> Result<(), VimFault> {
        let doomed = self.state.tasks.get(&task).and_then(|task| task.doomed.as_ref());
        doomed.map_or(Ok(()), |failure| Err(failure.fault()))
    }

    /// As somebody does it in the vSphere Client: one device, everything else as it is.
    fn configure(&mut self, host: u32, gpu: &str, mode: &GpuMode) -> Result<(), VimFault> {
        let passthru = |enabled, label: Option<String>| {
            vec![SentPassthru { id: gpu.to_owned(), enabled, apply_now: None, label, sriov: None }]
        };
        let (graphics_type, vgpu_mode) = match mode {
            GpuMode::Passthrough { label } => {
                return self.update_passthru(host, &passthru(true, Some(label.clone().unwrap_or_default())));
            }
            GpuMode::Vgpu { size: VgpuSize::Mixed } => ("sharedDirect", Some("mixedSize")),
            GpuMode::Vgpu { size: VgpuSize::Same } | GpuMode::MigVgpu {} => ("sharedDirect", Some("sameSize")),
            GpuMode::Shared {} => ("shared", None),
        };
        self.update_passthru(host, &passthru(false, None))?;
        let graphics = self.host(host)?.graphics.clone();
        let mut devices: Vec<SentDevice> = graphics
            .devices
            .iter()
            .filter(|entry| entry.address.to_string() != gpu)
            .map(|entry| SentDevice {
                device_id: entry.address.to_string(),
                graphics_type: entry.graphics_type.clone(),
                vgpu_mode: entry.vgpu_mode.clone(),
            })
            .collect();
        devices.push(SentDevice {
            device_id: gpu.to_owned(),
            graphics_type: graphics_type.to_owned(),
            vgpu_mode: vgpu_mode.map(str::to_owned),
        });
        let sent = SentGraphics { default_type: graphics.default_type, policy: graphics.policy, devices };
        self.update_graphics(host, &sent)
    }
}

fn describe(deed: &Deed) -> (&'static str, String) {
    match deed {
        Deed::EnterMaintenance => ("EnterMaintenanceMode_Task", String::new()),
        Deed::LeaveMaintenance => ("ExitMaintenanceMode_Task", String::new()),
        Deed::Reboot => ("RebootHost_Task", "force=true".to_owned()),
        Deed::Configure { gpu, mode } => ("UpdateGraphicsConfig", format!("{gpu} {mode:?}")),
        Deed::Shell { command } => ("shell", command.clone()),
        Deed::SetField { name, value } => ("SetField", format!("{name}={value}")),
        Deed::PowerOn { vm } => ("PowerOnVM_Task", vm.clone()),
        Deed::PowerOff { vm } => ("PowerOffVM_Task", vm.clone()),
        Deed::MoveIn { vm } => ("RelocateVM_Task", vm.clone()),
        Deed::Alarm { name } => ("Alarm", name.clone()),
        // Listed where they are done.
        Deed::Uncordon { .. } | Deed::Cordon { .. } | Deed::Annotate { .. } | Deed::DeleteObject { .. } => {
            ("", String::new())
        }
    }
}
