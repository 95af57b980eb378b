//! A command line of a guest: what runs, its kill time, the faults that strike it.

use std::time::Duration;

use crate::sim::World;
use crate::sim::behaviour::{Printed, SET_MIG};
use crate::sim::faults::{Seen, Struck};

/// Exit status of what `timeout` has killed: 128 and the number of SIGKILL.
const KILLED: u32 = 137;

/// What came of a command.
pub(super) enum Ran {
    Printed(Printed),
    /// The connection breaks.
    Broken,
}

/// Runs a command line on a host. A command that a fault lets hang ends only by its own kill time.
pub(super) async fn run(world: &World, host: u32, user: &str, line: &str) -> Ran {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    let limit = kill_time(&mut words);
    let Some((program, arguments)) = words.split_first() else { return Ran::Printed(Printed::default()) };
    let name = program.rsplit('/').next().unwrap_or(program);
    let sets = arguments.iter().any(|argument| argument.starts_with("-mig"));
    let method = if name == "nvidia-smi" && sets { SET_MIG } else { name };
    let struck = strike(world, host, method, method != "nvidia-smi");
    let scaled = |time: Duration| time / world.speed();
    if struck.drop_before {
        return Ran::Broken;
    }
    tokio::time::sleep(scaled(struck.delay)).await;
    if struck.hangs {
        match limit {
            Some(limit) => tokio::time::sleep(scaled(limit)).await,
            None => std::future::pending().await,
        }
        return Ran::Printed(Printed { stderr: "Killed\n".to_owned(), code: KILLED, ..Printed::default() });
    }
    let printed = world.look(|moment| moment.at_the_shell(host, &words, user, struck.hollow));
    // What changes something is kept, as on the other faces: a world outlives the process that plays it.
    if method != "nvidia-smi"
        && let Err(error) = world.save()
    {
        tracing::warn!(%error, "the state of the world was not saved");
    }
    if struck.drop_after {
        return Ran::Broken;
    }
    let before: String = struck.prints.iter().map(|line| format!("{line}\n")).collect();
    let kept = |line: &&str| !struck.omits.iter().any(|text| line.contains(text.as_str()));
    let own: String = printed.stdout.split_inclusive('\n').filter(kept).collect();
    Ran::Printed(Printed { stdout: before + &own, ..printed })
}

/// `timeout -s KILL 30 …` of busybox; taken off.
fn kill_time(words: &mut Vec<&str>) -> Option<Duration> {
    let [_, _, _, seconds, ..] = words.as_slice() else { return None };
    let seconds = match words[..3] {
        ["timeout", "-s", "KILL" | "9"] => seconds.parse().ok()?,
        _ => return None,
    };
    words.drain(..4);
    Some(Duration::from_secs(seconds))
}

/// What strikes a call of this host's SSH server.
pub(super) fn strike(world: &World, host: u32, method: &str, write: bool) -> Struck {
    world.look(|moment| {
        let name = moment.state.hosts.get(&host).map(|host| host.name.clone());
        moment.strike(&Seen::ssh(method, write, &[(name, format!("host-{host}"))]))
    })
}
