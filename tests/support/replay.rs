//! What happened to hosts, told again from the world's own log: independent of what the engine says.

use std::collections::BTreeMap;

use jiff::Timestamp;
use poolwright::sim::Write;

use super::lab::{Lab, USER};

/// What the log tells.
#[derive(Debug, Default)]
pub struct Replay {
    /// By the name of the host.
    pub hosts: BTreeMap<String, Told>,
    /// Host of each VM, by name.
    at: BTreeMap<String, String>,
}

/// What happened to one host.
#[derive(Debug, Default)]
pub struct Told {
    /// VMs that were shut down or powered off there.
    pub stops: u32,
    /// VMs that were moved away while they ran.
    pub moves: u32,
    /// VMs that were powered on there.
    pub starts: u32,
    pub reboots: u32,
    /// First and last thing that we did to it or to a VM on it.
    pub touched: Option<(Timestamp, Timestamp)>,
    /// From each asking for maintenance to the last thing that we did before the next, which clears the
    /// marker: longer than it was out of service.
    pub out: Vec<(Line, Line)>,
}

/// A line of the log: its number and time.
pub type Line = (u64, Timestamp);

impl Replay {
    /// Tells the log of a lab's world.
    pub fn of(lab: &Lab) -> Self {
        let name = |id: &serde_json::Value| {
            let host = &lab.before["hosts"][id.as_str().unwrap_or_default()];
            host["name"].as_str().unwrap_or_default().to_owned()
        };
        let mut replay = Self::default();
        for vm in lab.before["vms"].as_object().unwrap().values() {
            replay.at.insert(vm["name"].as_str().unwrap().to_owned(), name(&vm["host"]));
        }
        lab.world.log().iter().filter(|write| write.effect).for_each(|write| replay.tell(write));
        replay
    }

    fn tell(&mut self, write: &Write) {
        let line = (write.n, write.at);
        let vm = self.at.get(&write.object).cloned();
        let named = write.arguments.split([' ', ',']).find_map(|argument| argument.strip_prefix("host="));
        let host = vm.clone().unwrap_or_else(|| write.object.clone());
        let told = self.hosts.entry(host.clone()).or_default();
        match write.call.as_str() {
            "ShutdownGuest" | "PowerOffVM_Task" => told.stops += 1,
            "evacuation" => {
                told.moves += 1;
                self.at.insert(write.object.clone(), named.unwrap_or_default().to_owned());
            }
            "PowerOnVM_Task" => told.starts += 1,
            "RebootHost_Task" => told.reboots += 1,
            "EnterMaintenanceMode_Task" => told.out.push((line, line)),
            _ => {}
        }
        if write.who != USER {
            return;
        }
        let told = self.hosts.entry(host).or_default();
        told.touched = Some((told.touched.map_or(write.at, |(first, _)| first), write.at));
        if let Some(last) = told.out.last_mut() {
            last.1 = line;
        }
    }

    /// The most GPUs that were out of service at one moment: hosts by name, with their GPUs.
    pub fn most_out(&self, gpus: &BTreeMap<&str, u32>) -> u32 {
        let out = |at: u64| -> u32 {
            let within = |told: &Told| told.out.iter().any(|(from, to)| (from.0..to.0).contains(&at));
            gpus.iter().filter(|(host, _)| self.hosts.get(**host).is_some_and(within)).map(|(_, count)| count).sum()
        };
        // It gets worse only when a host goes out.
        let starts = self.hosts.values().flat_map(|told| told.out.iter().map(|(from, _)| from.0));
        starts.map(out).max().unwrap_or(0)
    }

    /// How long a host was out of service, in seconds.
    pub fn out_s(&self, host: &str) -> i64 {
        let lengths = |told: &Told| told.out.iter().map(|(from, to)| to.1.duration_since(from.1).as_secs()).sum();
        self.hosts.get(host).map_or(0, lengths)
    }
}
