//! A session on the vCenter of a site, or on a simulated one: credentials, runtime, signals, and a
//! logout on every way out.

use std::path::Path;
use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};
use tokio::runtime::{Builder, Runtime};

use super::args::typed;
use super::{CommandError, Exit, Ui};
use crate::base::cause::chain;
use crate::base::clock::Clock;
use crate::base::net::{Dial, Network, RealNetwork};
use crate::base::secret::SecretRef;
use crate::document::Document;
use crate::inventory::{Guest, Site};
use crate::k8s::{Access, Client};
use crate::observe::{Fleet, Guests, Shells, ShellsError};
use crate::rollout::{Interrupt, Raise, Signal, interrupt};
use crate::sim::{SimNetwork, World, WorldError};

/// What a command works with while the session lasts.
pub struct Session {
    /// The fleet, logged in.
    pub fleet: Fleet,
    /// The time: of this machine, or of the simulated fleet.
    pub clock: Clock,
    /// Signals that came.
    pub interrupt: Interrupt,
}

/// What a session is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To read: who would log in to the shells of hosts is known, and nobody does.
    Reading,
    /// To change hosts, by their shells too.
    Changing,
}

/// Logs in, works, logs out.
///
/// With a world everything happens in this process, on a paused runtime: where the fleet would take
/// an hour, the clock jumps. What is left of the world is saved whatever the work came to.
pub fn with_session<T>(
    site: &Document<Site>,
    world: Option<&Path>,
    purpose: Purpose,
    ui: &Ui,
    work: impl AsyncFnOnce(&Session) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    // Before the paused runtime: its clock would run out while a command gives the password.
    let ((user, password), shells, kubeconfigs) = runtime(false)?.block_on(async {
        let (login, shells) = (credentials(site).await?, shells(site, world, purpose).await?);
        Ok::<_, CommandError>((login, shells, kubeconfigs(&site.spec.guests, world).await))
    })?;
    let simulated = world.map(open_world).transpose()?;
    let runtime = runtime(simulated.is_some())?;
    let result = runtime.block_on(async {
        let (network, clock): (Arc<dyn Network>, Clock) = match &simulated {
            Some(world) => (Arc::new(SimNetwork::new(world.clone())), world.clock()),
            None => (Arc::new(RealNetwork), Clock::system()),
        };
        let (raise, interrupt) = interrupt();
        let listening = tokio::spawn(signals(raise));
        // It listens before anything is sent: else a signal ends the process without a logout.
        tokio::task::yield_now().await;
        ui.busy(format!("logging in to {}", site.spec.vcenter.address.value));
        let connected = tokio::select! {
            () = interrupt.first() => Err(stopped(&interrupt)),
            fleet = Fleet::connect(&site.name, &site.spec, &user, password, network.as_ref(), clock) => fleet.map_err(CommandError::from),
        };
        let result = match connected {
            Ok(fleet) => {
                let fleet = fleet.with_guests(guests(kubeconfigs, network.as_ref()).await);
                let fleet = match shells {
                    Some(shells) => fleet.with_shells(shells, network as Arc<dyn Dial>),
                    None => fleet,
                };
                let session = Session { fleet, clock, interrupt };
                let result = work(&session).await;
                ui.idle();
                if let Err(error) = session.fleet.close().await {
                    tracing::warn!(%error, "the logout failed; the session ends by itself");
                }
                result
            }
            Err(error) => Err(error),
        };
        listening.abort();
        // Here, where the clock of the fleet is the paused one.
        let saved = simulated.as_ref().map_or(Ok(()), World::save);
        result.and_then(|done| saved.map(|()| done).map_err(CommandError::from))
    });
    // A question that nobody answered must not keep the process.
    runtime.shutdown_background();
    result
}

/// The simulated fleet of a document, as it was left.
pub fn open_world(file: &Path) -> Result<World, CommandError> {
    World::open(file).map_err(|error| {
        let stale = matches!(error, WorldError::OtherDocument);
        let error = CommandError::from(error);
        if stale {
            error.hint(format!("begin again with the new one: `poolwright sim reset {}`", typed(file)))
        } else {
            error
        }
    })
}

impl Session {
    /// Reads: the first signal ends them.
    pub async fn read<T>(&self, reading: impl Future<Output = T>) -> Result<T, CommandError> {
        tokio::select! {
            () = self.interrupt.first() => Err(stopped(&self.interrupt)),
            read = reading => Ok(read),
        }
    }

    /// Asks a question that only `yes` answers with yes.
    pub async fn confirm(&self, ui: &Ui, question: &str) -> Result<bool, CommandError> {
        ui.ask(question);
        let answer = tokio::task::spawn_blocking(Ui::answer);
        let answer = self.read(answer).await?;
        Ok(answer.is_ok_and(|answer| answer.trim() == "yes"))
    }
}

/// A command that a signal ended before it changed anything.
fn stopped(interrupt: &Interrupt) -> CommandError {
    match interrupt.raised() {
        Some(Signal::Terminate) => CommandError::words(Exit::Terminated, "stopped by SIGTERM; nothing was changed"),
        Some(Signal::Interrupt) | None => {
            CommandError::words(Exit::Interrupted, "stopped by Ctrl-C; nothing was changed")
        }
    }
}

/// The runtime of a command; paused, its clock jumps to whatever is waited for.
pub fn runtime(paused: bool) -> Result<Runtime, CommandError> {
    let runtime = Builder::new_current_thread().enable_all().start_paused(paused).build();
    runtime.map_err(|error| {
        CommandError::new(Exit::Internal, anyhow::Error::new(error).context("cannot start the runtime"))
    })
}

/// The user and the password, from their references.
async fn credentials(site: &Document<Site>) -> Result<(String, SecretString), CommandError> {
    let credentials = &site.spec.vcenter.credentials;
    let user = match credentials.user_ref() {
        None => credentials.user.value.clone(),
        Some(reference) => resolve(reference.as_str(), site, "user").await?.expose_secret().to_owned(),
    };
    Ok((user, resolve(credentials.password.value.as_str(), site, "password").await?))
}

async fn resolve(reference: &str, site: &Document<Site>, field: &str) -> Result<SecretString, CommandError> {
    let place = &site.spec.vcenter.credentials.password.place.file;
    let context = format!("cannot get the {field} of site {} ({place})", site.name.value);
    let reference: SecretRef = reference
        .parse()
        .map_err(|error| CommandError::new(Exit::Invalid, anyhow::Error::new(error).context(context.clone())))?;
    reference.resolve().await.map_err(|error| CommandError::from(error).context(context))
}

/// The shells of the site's hosts, with the credentials if they are to be logged in to.
async fn shells(site: &Document<Site>, world: Option<&Path>, purpose: Purpose) -> Result<Option<Shells>, CommandError> {
    let Some(shells) =
        site.spec.shell.as_ref().map(Shells::of).transpose().map_err(|error| of_shells(error, world))?.flatten()
    else {
        return Ok(None);
    };
    match purpose {
        Purpose::Reading => Ok(Some(shells)),
        Purpose::Changing => shells.with_credentials().await.map(Some).map_err(|error| of_shells(error, world)),
    }
}

/// What each guest cluster of the site is reached by, or why it is not. A cluster that cannot be reached
/// refuses its hosts, and no others.
async fn kubeconfigs(guests: &[Guest], world: Option<&Path>) -> Vec<(String, Result<Access, String>)> {
    let mut found = Vec::new();
    for guest in guests {
        found.push((guest.name.value.clone(), kubeconfig(guest, world).await));
    }
    found
}

async fn kubeconfig(guest: &Guest, world: Option<&Path>) -> Result<Access, String> {
    let wrong = |error: &dyn std::error::Error| {
        format!("cannot use its kubeconfig ({}): {}", guest.kubeconfig.place, chain(error))
    };
    let reference = guest.kubeconfig.value.as_str();
    let secret: SecretRef = reference.parse().map_err(|error| wrong(&error))?;
    let text = secret.resolve_document().await.map_err(|error| match world {
        Some(world) => {
            let prints = format!("`poolwright sim kubeconfig {}` prints that of the simulated fleet", typed(world));
            format!("{}; {prints}", wrong(&error))
        }
        None => wrong(&error),
    })?;
    // Files that a kubeconfig names are relative to it.
    let folder = reference.strip_prefix("file:").and_then(|path| Path::new(path).parent());
    let context = guest.context.as_ref().map(|context| context.value.as_str());
    Access::parse(text.expose_secret(), context, folder).map_err(|error| wrong(&error))
}

async fn guests(kubeconfigs: Vec<(String, Result<Access, String>)>, network: &dyn Network) -> Guests {
    let mut guests = Guests::new();
    for (name, access) in kubeconfigs {
        let client = match access {
            Ok(access) => Client::connect(&name, &access, network).await.map_err(|error| chain(&error)),
            Err(why) => Err(why),
        };
        guests.add(&name, client);
    }
    guests
}

fn of_shells(error: ShellsError, world: Option<&Path>) -> CommandError {
    let no_file = matches!(error, ShellsError::File { .. });
    let error = CommandError::from(error);
    match world {
        _ if !no_file => error,
        Some(world) => {
            error.hint(format!("`poolwright sim known-hosts {}` prints those of the simulated fleet", typed(world)))
        }
        None => error.hint("`ssh-keyscan HOST` prints them; compare them with those that the hosts' consoles show"),
    }
}

/// Raises each signal that comes; never ends.
pub async fn signals(raise: Raise) {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let (Ok(mut interrupts), Ok(mut terminations)) =
            (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        else {
            tracing::warn!("signals cannot be caught: Ctrl-C ends the program at once");
            return;
        };
        loop {
            tokio::select! {
                _ = interrupts.recv() => raise.raise(Signal::Interrupt),
                _ = terminations.recv() => raise.raise(Signal::Terminate),
            }
        }
    }
    #[cfg(not(unix))]
    while tokio::signal::ctrl_c().await.is_ok() {
        raise.raise(Signal::Interrupt);
    }
}
