//! `nvidia-smi` of a host (vsphere-gpu §2.1, F28, F31; DESIGN §3, honesty rule 6): it says "All
//! done." and exits with 0 of what only waits.
//!
//! ```text
//!   -mig N ──► pending ──┬─ GPU in use (a VM, the monitoring daemon) ─► waits
//!                        ├─ Ampere ─► waits for the reboot, keeps it over reboots
//!                        └─ later  ─► in effect at once, off again after a reboot
//! ```

use super::Moment;
use super::nvidia_query;
use super::shell::Printed;
use crate::model::PciAddress;
use crate::sim::document::{MigVisible, Monitor};
use crate::sim::gpus;
use crate::sim::world::device::{Function, Gpu};
use crate::sim::world::state::Host;

/// The name under which the world's log and its faults know a switch of MIG.
pub(in crate::sim) const SET_MIG: &str = "nvidia-smi -mig";

/// What is asked of `nvidia-smi`.
#[derive(Debug, Default)]
struct Asked<'a> {
    /// Of these GPUs; none: of all.
    gpus: Option<&'a str>,
    mig: Option<&'a str>,
    query: Option<&'a str>,
    rows: Option<&'a str>,
    format: &'a str,
    list: bool,
}

impl<'a> Asked<'a> {
    fn read(words: &[&'a str]) -> Option<Self> {
        let mut asked = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let (option, value) = word.split_once('=').map_or((*word, None), |(option, value)| (option, Some(value)));
            match (option, value) {
                ("-i" | "--id", None) => asked.gpus = Some(words.next()?),
                ("--id", value) => asked.gpus = value,
                ("-mig" | "--multi-instance-gpu", None) => asked.mig = Some(words.next()?),
                ("--multi-instance-gpu", value) => asked.mig = value,
                ("--query-gpu", Some(fields)) => asked.query = Some(fields),
                ("--query-remapped-rows", Some(fields)) => asked.rows = Some(fields),
                ("--format", Some(format)) => asked.format = format,
                ("-L" | "--list-gpus", None) => asked.list = true,
                _ => return None,
            }
        }
        Some(asked)
    }
}

impl Moment<'_> {
    /// Runs `nvidia-smi` with these arguments; `hollow`: it lies about what it does.
    pub(super) fn nvidia_smi(&mut self, number: u32, words: &[&str], who: &str, hollow: bool) -> Printed {
        let Some(host) = self.state.hosts.get(&number) else { return Printed::default() };
        let Some(driver) = &host.driver else { return Printed::not_found("nvidia-smi") };
        let own: Vec<PciAddress> = owned(host).map(|(function, _)| function.address).collect();
        if own.is_empty() {
            // F17: the module has nothing to load for.
            return Printed::out(
                "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the \
                 latest NVIDIA driver is installed and running.\n",
                9,
            );
        }
        let Some(asked) = Asked::read(words) else {
            return Printed::out("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n", 2);
        };
        let Some(chosen) = asked.gpus.map_or(Some(own.clone()), |ids| choose(&own, ids)) else {
            return Printed::out("No devices were found\n", 6);
        };
        let shown: Vec<(&Function, &Gpu)> =
            owned(host).filter(|(function, _)| chosen.contains(&function.address)).collect();
        match (asked.mig, asked.query, asked.rows) {
            (Some(value), None, None) => {
                let on = match value {
                    "1" => true,
                    "0" => false,
                    _ => return Printed::out(format!("Option \"{value}\" is not recognized.\n"), 2),
                };
                self.set_mig(number, &chosen, on, who, words, hollow)
            }
            (None, Some(fields), None) | (None, None, Some(fields)) => {
                nvidia_query::answer(fields, asked.format, &shown, &driver.version)
            }
            (None, None, None) => nvidia_query::list(&shown, asked.list, &driver.version),
            _ => Printed::out("Invalid combination of input arguments.\n", 2),
        }
    }

    fn set_mig(
        &mut self,
        number: u32,
        chosen: &[PciAddress],
        on: bool,
        who: &str,
        words: &[&str],
        hollow: bool,
    ) -> Printed {
        let by_vms = self.busy_gpus(number);
        let visible = self.spec.readings.mig_visible;
        let Some(host) = self.state.hosts.get_mut(&number) else { return Printed::default() };
        let monitored = host.shell.monitor == Monitor::Running;
        let name = host.name.clone();
        let mut said = String::new();
        let mut code = 0;
        for address in chosen {
            let Some(gpu) =
                host.functions.iter_mut().find(|known| known.address == *address).and_then(|known| known.gpu.as_mut())
            else {
                continue;
            };
            let bus = nvidia_query::bus_id(address);
            let word = if on { "enable" } else { "disable" };
            if !gpus::knows_mig(&gpu.model) {
                said.push_str(&format!("Unable to {word} MIG Mode for GPU {bus}: Not Supported\n"));
                code = 3;
                continue;
            }
            if hollow {
                said.push_str(&done(on, &bus));
                continue;
            }
            gpu.mig_pending = on;
            if gpu.mig == on {
                said.push_str(&done(on, &bus));
            } else if monitored || by_vms.contains(address) {
                said.push_str(&format!(
                    "Warning: MIG mode is in pending {word} state for GPU {bus}:In use by another client\n{bus} is \
                     currently being used by one or more other processes (e.g. CUDA application or a monitoring \
                     application such as another instance of nvidia-smi). Please first kill all processes using the \
                     device and retry the command or reboot the system to make MIG mode effective.\n"
                ));
            } else if gpus::mig_survives_boot(&gpu.model) {
                said.push_str(&format!(
                    "Warning: MIG mode is in pending {word} state for GPU {bus}:Not Supported\nReboot the system or \
                     try nvidia-smi --gpu-reset to make MIG mode effective on GPU {bus}\n"
                ));
            } else {
                gpu.mig = on;
                said.push_str(&done(on, &bus));
            }
        }
        if code == 0 {
            said.push_str("All done.\n");
        } else {
            said.push_str("Terminating early due to previous errors.\n");
        }
        if visible == MigVisible::AtOnce {
            self.notice_mig(number);
        }
        self.did(number, &name, who, SET_MIG, words.join(" "), !hollow && code == 0);
        Printed::out(said, code)
    }

    /// hostd looks at its GPUs again: MIG that came or went shows as the size mode (§2.1).
    pub fn notice_mig(&mut self, number: u32) {
        let Some(host) = self.state.hosts.get_mut(&number) else { return };
        let Host { functions, graphics, .. } = host;
        for function in functions.iter_mut().filter(|function| !function.active) {
            let entry = graphics.devices.iter().find(|entry| entry.address == function.address);
            let configured = entry.and_then(|entry| entry.vgpu_mode.as_deref()).unwrap_or("sameSize");
            if let Some(gpu) = &mut function.gpu
                && gpu.graphics_type == "sharedDirect"
                && gpu.mig != (gpu.vgpu_mode == "multiInstanceGpu")
            {
                gpu.vgpu_mode = if gpu.mig { "multiInstanceGpu" } else { configured }.to_owned();
                self.changed = true;
            }
        }
    }
}

fn done(on: bool, bus: &str) -> String {
    format!("{} MIG Mode for GPU {bus}\n", if on { "Enabled" } else { "Disabled" })
}

/// GPUs that the driver owns: what is passed through is not there.
fn owned(host: &Host) -> impl Iterator<Item = (&Function, &Gpu)> {
    host.functions
        .iter()
        .filter(|function| !function.active)
        .filter_map(|function| Some((function, function.gpu.as_ref()?)))
}

/// GPUs by index or address, several with commas; none if one is not there.
fn choose(own: &[PciAddress], ids: &str) -> Option<Vec<PciAddress>> {
    ids.split(',')
        .map(|id| match id.parse::<usize>() {
            Ok(index) => own.get(index).copied(),
            Err(_) => id.parse::<PciAddress>().ok().filter(|address| own.contains(address)),
        })
        .collect()
}
