//! The line to a host's SSH server: whether there is one, and that it breaks when the host goes down.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional, duplex};

use super::guest;
use crate::sim::World;
use crate::sim::document::StartPower;
use crate::sim::faults::Seen;

/// Room of a pipe in memory: that of a TCP window.
const ROOM: usize = 64 << 10;

/// Why nobody gets to a host's SSH server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sim) enum Closed {
    /// The world has no host of this name.
    NoHost,
    /// The host is down.
    Down,
    /// Nothing listens.
    Refused,
    /// A fault of the document: nobody answers.
    Silent,
}

/// The host of this name, if its SSH server listens on this port.
pub(in crate::sim) fn door(world: &World, name: &str, port: u16) -> Result<u32, Closed> {
    world.look(|moment| {
        let number = moment.host_named(name).ok_or(Closed::NoHost)?;
        let objects = [(Some(name.to_owned()), format!("host-{number}"))];
        let struck = moment.strike(&Seen::ssh("connect", false, &objects));
        let host = moment.state.hosts.get(&number).ok_or(Closed::NoHost)?;
        match () {
            () if struck.drop_before => Err(Closed::Silent),
            () if !host.up || host.power == StartPower::Standby => Err(Closed::Down),
            () if port != 22 || !host.shell.ssh_running => Err(Closed::Refused),
            () => Ok(number),
        }
    })
}

/// Serves one connection to a host, until either side ends it or the host goes down.
pub(in crate::sim) fn attach<S>(world: World, host: u32, mut stream: S)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    tokio::spawn(async move {
        let (inner, mut outer) = duplex(ROOM);
        let (cut, cutting) = tokio::sync::oneshot::channel();
        guest::serve(world.clone(), host, inner, Arc::new(guest::Cutter::new(cut)));
        tokio::select! {
            // Whoever hangs up first is no fault of ours.
            _ = copy_bidirectional(&mut stream, &mut outer) => {}
            () = until_down(&world, host) => {}
            _ = cutting => {}
        }
    });
}

async fn until_down(world: &World, host: u32) {
    let mut changes = world.changes();
    loop {
        // What is due makes no noise by itself: somebody has to look when it is.
        let up = world.look(|moment| moment.state.hosts.get(&host).is_some_and(|host| host.up));
        if !up {
            return;
        }
        let due = world.next_due();
        let wait = async {
            match due {
                Some(due) => tokio::time::sleep(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = wait => {}
        }
    }
}
