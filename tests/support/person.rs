//! A person who types at the shell of a host what a run asks for, and says so.

use std::time::Duration;

use poolwright::rollout::{self, Confirm, Engine, StateDir, interrupt};

use super::lab::{Lab, Silent};

/// Who types, in the world's log.
pub const WHO: &str = "person";

/// Actors of a world: whoever is asked stops the daemon, switches MIG of all GPUs, starts the daemon again; at
/// these hosts, each time of so many that they are asked.
pub fn actors(hosts: &[&str], on: bool, times: u32) -> String {
    let mut actors = Vec::new();
    for host in hosts {
        for nth in 1..=times {
            let switch = format!("nvidia-smi -mig {}", u8::from(on));
            for (after, command) in [(3, "nvdGpuMgmtDaemon stop"), (4, &switch), (5, "nvdGpuMgmtDaemon start")] {
                actors.push(format!(
                    "{{who: {WHO}, host: {host}, once: {{method: LogUserEvent, onCall: {nth}}}, after: {after}m, \
                     does: {{shell: {{command: \"{command}\"}}}}}}"
                ));
            }
        }
    }
    format!("actors: [{}]", actors.join(", "))
}

/// Does something with an engine that waits an hour for a person, who says so once they have typed; in
/// another state directory than the lab's, if one is given.
pub async fn with<T>(lab: &Lab, state: Option<&StateDir>, work: impl AsyncFnOnce(Engine<'_>) -> T) -> T {
    let fleet = lab.connect().await;
    let (_raise, signals) = interrupt();
    let mut silent = Silent;
    let (confirm, handoff) = rollout::handoff(Duration::from_secs(3600));
    let engine = Engine { handoff, state: state.unwrap_or(&lab.state), ..lab.engine(&fleet, &mut silent, signals) };
    let result = tokio::select! {
        biased;
        result = work(engine) => result,
        () = says_so(lab, confirm) => unreachable!("a person is there as long as the run"),
    };
    fleet.close().await.unwrap();
    result
}

/// Looks now and then whether the host that a person was asked for last is typed at, and says so.
pub async fn says_so(lab: &Lab, confirm: Confirm) {
    loop {
        tokio::time::sleep(Duration::from_secs(60)).await;
        let log = lab.world.log();
        let asked = log.iter().rev().find(|write| write.call == "LogUserEvent");
        let typed =
            |host: &str| log.iter().any(|write| write.who == WHO && write.object == host && write.arguments == "start");
        if asked.is_some_and(|asked| typed(&asked.object)) {
            confirm.confirm();
        }
    }
}
