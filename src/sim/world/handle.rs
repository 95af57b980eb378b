//! The world as everybody holds it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

use super::error::WorldError;
use super::state::{State, Write};
use super::{build, store};
use crate::base::clock::Clock;
use crate::document;
use crate::sim::behaviour::Moment;
use crate::sim::document::WorldSpec;

/// A simulated fleet. Copies are the same world.
#[derive(Clone)]
pub struct World(Arc<Shared>);

struct Shared {
    name: String,
    spec: WorldSpec,
    digest: String,
    state: Mutex<State>,
    /// Time starts to pass at the first look.
    clock: OnceLock<Clock>,
    speed: AtomicU32,
    changed: watch::Sender<u64>,
    /// Where the state goes after a write.
    file: Option<PathBuf>,
    /// Its document, if it is kept.
    document: Option<PathBuf>,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("name", &self.0.name).finish_non_exhaustive()
    }
}

impl World {
    /// The world of a `kind: World` document; `path` is only for messages.
    ///
    /// # Errors
    /// [`WorldError::Document`] if it does not read, [`WorldError::Impossible`] if it contradicts
    /// itself or the catalogue.
    pub fn parse(path: &str, bytes: &[u8]) -> Result<Self, WorldError> {
        let (name, spec) = read(path, bytes)?;
        Self::new(&name, spec, None)
    }

    /// The world of a document that was read.
    ///
    /// # Errors
    /// [`WorldError::Impossible`].
    pub fn from_document(name: &str, spec: WorldSpec) -> Result<Self, WorldError> {
        Self::new(name, spec, None)
    }

    /// The world of a file, as it was left: its state is in `FILE.state` beside it and is written
    /// there after each change. Time goes on from there.
    ///
    /// # Errors
    /// As [`World::parse`]; [`WorldError::OtherDocument`] if the document changed since the state was
    /// saved; [`WorldError::Files`].
    pub fn open(path: &Path) -> Result<Self, WorldError> {
        let bytes = crate::base::files::read_bytes(path, document::MAX_BYTES as u64).map_err(WorldError::Files)?;
        let (name, spec) = read(&path.display().to_string(), &bytes)?;
        Self::new(&name, spec, Some(path))
    }

    fn new(name: &str, spec: WorldSpec, path: Option<&Path>) -> Result<Self, WorldError> {
        let fresh = build::state(&spec)?;
        let digest = store::digest(name, &spec);
        let file = path.map(store::state_path);
        let state = match &file {
            Some(file) => store::load(file, &digest)?.unwrap_or(fresh),
            None => fresh,
        };
        Ok(Self(Arc::new(Shared {
            name: name.to_owned(),
            spec,
            digest,
            state: Mutex::new(state),
            clock: OnceLock::new(),
            speed: AtomicU32::new(1),
            changed: watch::Sender::new(0),
            file,
            document: path.map(Path::to_owned),
        })))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The address of its vCenter.
    pub fn address(&self) -> &str {
        &self.0.spec.vcenter.address
    }

    /// The file of the document, if what becomes of the world is kept beside it.
    pub(in crate::sim) fn document(&self) -> Option<&Path> {
        self.0.document.as_deref()
    }

    /// The document.
    pub fn spec(&self) -> &WorldSpec {
        &self.0.spec
    }

    /// How many times faster than tokio's clock time passes here. To be set before the first look at
    /// the world; later it is ignored.
    pub fn set_speed(&self, speed: u32) {
        self.0.speed.store(speed.max(1), Ordering::Relaxed);
    }

    /// How many times faster than tokio's clock time passes here.
    pub(in crate::sim) fn speed(&self) -> u32 {
        self.0.speed.load(Ordering::Relaxed).max(1)
    }

    /// The world's clock. It starts at the first look.
    pub fn clock(&self) -> Clock {
        *self.0.clock.get_or_init(|| {
            let base = self.lock().time;
            Clock::starting_at(base).at_speed(self.0.speed.load(Ordering::Relaxed))
        })
    }

    /// Every write so far, in order, whoever made it.
    pub fn log(&self) -> Vec<Write> {
        self.look(|moment| moment.state.log.clone())
    }

    /// Writes the state to its file, if it has one.
    ///
    /// # Errors
    /// [`WorldError::Files`].
    pub fn save(&self) -> Result<(), WorldError> {
        match &self.0.file {
            // After a paused runtime has ended, the clock would tell the real time that passed, and no two
            // runs would be the same: then the state is that of the last look.
            Some(file) if tokio::runtime::Handle::try_current().is_err() => {
                store::save(file, &self.0.digest, &self.lock())
            }
            Some(file) => self.look(|moment| store::save(file, &self.0.digest, moment.state)),
            None => Ok(()),
        }
    }

    /// Does something with the world as it is now.
    pub(in crate::sim) fn look<R>(&self, f: impl FnOnce(&mut Moment<'_>) -> R) -> R {
        let now = self.clock().now();
        let mut state = self.lock();
        let mut moment = Moment { state: &mut state, spec: &self.0.spec, changed: false };
        moment.advance(now);
        let result = f(&mut moment);
        let changed = moment.changed;
        drop(state);
        if changed {
            self.0.changed.send_modify(|version| *version = version.wrapping_add(1));
        }
        result
    }

    /// Tells when something changes.
    pub(in crate::sim) fn changes(&self) -> watch::Receiver<u64> {
        self.0.changed.subscribe()
    }

    /// How long, on tokio's clock, until something is due.
    pub(in crate::sim) fn next_due(&self) -> Option<Duration> {
        let (now, due) = self.look(|moment| (moment.state.time, moment.next_due()));
        let wait: SignedDuration = due?.1.duration_since(now);
        let wait = Duration::try_from(wait).unwrap_or(Duration::ZERO);
        Some(wait / self.0.speed.load(Ordering::Relaxed).max(1))
    }

    /// The time of the world.
    pub fn now(&self) -> Timestamp {
        self.clock().now()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while the lock is held leaves a state that is still one; nothing is kept half.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(path: &str, bytes: &[u8]) -> Result<(String, WorldSpec), WorldError> {
    let (documents, mut problems) = document::read(path, bytes);
    let mut worlds = Vec::new();
    for raw in documents.iter().filter(|raw| raw.kind.value == document::Kind::World) {
        match raw.parse::<WorldSpec>() {
            Ok(found) => worlds.push(found),
            Err(found) => problems.extend(found),
        }
    }
    if !problems.is_empty() {
        return Err(WorldError::Document { problems });
    }
    let mut worlds = worlds.into_iter();
    match (worlds.next(), worlds.next()) {
        (Some(world), None) => Ok((world.name.value, world.spec)),
        _ => {
            Err(WorldError::Impossible { at: path.to_owned(), what: "expected one document of kind World".to_owned() })
        }
    }
}
