//! `sim`: a simulated fleet on a port.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use crate::base::files;
use crate::base::net::colons;
use crate::cli::args::{SimArgs, SimCommand, typed};
use crate::cli::session::{open_world, runtime, signals};
use crate::cli::{CommandError, Exit, Ui};
use crate::rollout::{Signal, interrupt};
use crate::sim::{ServeError, World, kubeconfig, serve, serve_guests, serve_shells};

pub fn run(args: &SimArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let file = match (&args.command, &args.world) {
        (Some(SimCommand::Reset(reset)), _) => {
            let forgotten = World::reset(&reset.world)?;
            ui.talk(if forgotten { "the fleet is as its document says" } else { "there was nothing to put back" });
            return Ok(Exit::Done);
        }
        (Some(SimCommand::KnownHosts(of)), _) => {
            ui.data(&open_world(&of.world)?.known_hosts());
            return Ok(Exit::Done);
        }
        (Some(SimCommand::Kubeconfig(of)), _) => {
            ui.data(&kubeconfig(&open_world(&of.world)?, &[]));
            return Ok(Exit::Done);
        }
        (None, Some(file)) => file,
        (None, None) => unreachable!("the argument is required unless there is a subcommand"),
    };
    let world = open_world(file)?;
    world.set_speed(args.speed);
    let runtime = runtime(false)?;
    let ended = runtime.block_on(async {
        let (raise, interrupt) = interrupt();
        let signals = tokio::spawn(signals(raise));
        // It listens before anybody knows the address: else a signal ends it without keeping the state.
        tokio::task::yield_now().await;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
        let served = serve(world.clone(), address).await.map_err(|error| not_served(file, error))?;
        ui.data(&format!("address: {}\nthumbprint: {}\n", served.addr, colons(&served.thumbprint)));
        let shells = serve_shells(&world, Ipv4Addr::LOCALHOST.into()).await;
        let shells = shells.map_err(|error| not_served(file, error))?;
        if let Some(file) = &args.known_hosts {
            let lines: Vec<String> = shells.iter().map(|shell| format!("{}\n", shell.known_host)).collect();
            files::replace(file, lines.concat().as_bytes())?;
        }
        let lines: Vec<String> = shells.iter().map(|shell| format!("shell: {} {}\n", shell.host, shell.addr)).collect();
        ui.data(&lines.concat());
        let guests = serve_guests(&world, Ipv4Addr::LOCALHOST.into()).await;
        let guests = guests.map_err(|error| not_served(file, error))?;
        if let Some(file) = &args.kubeconfig {
            files::replace(file, kubeconfig(&world, &guests).as_bytes())?;
        }
        let lines = guests.iter().map(|guest| format!("guest: {} {}\n", guest.cluster, guest.served.addr));
        ui.data(&lines.collect::<String>());
        ui.talk(format!(
            "write them into a Site as `address` and `trust: {{thumbprint: ...}}`; the vCenter is {} with instance {}",
            world.spec().vcenter.version,
            world.spec().vcenter.instance_uuid
        ));
        for user in &world.spec().vcenter.users {
            ui.talk(format!("user {}, password {}", user.name, user.password));
        }
        ui.talk("Ctrl-C ends it");
        interrupt.first().await;
        signals.abort();
        Ok(interrupt.raised())
    });
    world.save()?;
    // To be stopped is how a server ends.
    ended.map(|signal| match signal {
        Some(Signal::Terminate | Signal::Interrupt) | None => Exit::Done,
    })
}

fn not_served(world: &Path, error: ServeError) -> CommandError {
    let kept = format!("{}.served", world.display());
    let kept = typed(Path::new(&kept));
    match &error {
        ServeError::Listen { .. } => CommandError::new(Exit::Invalid, error).hint(format!(
            "end what listens there; or `rm {kept}`, and write the new ports and thumbprints where the old ones are named"
        )),
        ServeError::Kept { .. } => CommandError::new(Exit::Invalid, error)
            .hint(format!("`rm {kept}` forgets the ports and certificates; the next start makes new ones")),
        _ => CommandError::new(Exit::Internal, error),
    }
}
