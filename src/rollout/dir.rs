//! The state directory: plans that were started, and their runs (FORMATS "State directory").
//!
//! ```text
//!   .poolwright/                     0700
//!     plans/<id>.json                the plan, for resume
//!     plans/<id>.spent               {"run": …, "at": …}: created once, so that a plan is applied once
//!     plans/<id>.reach               how the last command on its run reached documents and fleet
//!     runs/<run>/journal.jsonl       and journal.torn after a crash in mid-line
//!     runs/<run>/lock                held by the process that works on the run
//!     runs/<run>/before-<host>.json  what was read of a host before its visit
//! ```

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Entry;
use super::journal::{self, Journal, JournalError};
use crate::base::files::{self, FileError, Lock};
use crate::model::{HostName, HostRecord, PlanId, RunId};
use crate::plan::{Plan, PlanFileError};

/// The longest plan that is read, in bytes: 10,000 hosts of 16 GPUs, twice over.
const PLAN_LIMIT: u64 = 256 << 20;
/// The longest other file that is read, in bytes: a host with 4,000 PCI devices, ten times over.
const RECORD_LIMIT: u64 = 16 << 20;

/// Why the state directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// A file.
    #[error("cannot use the state directory")]
    File(#[from] FileError),
    /// A journal.
    #[error("cannot read the journal of run {run}")]
    Journal {
        /// Whose.
        run: RunId,
        /// Why.
        #[source]
        source: JournalError,
    },
    /// A stored plan.
    #[error("cannot read {}", path.display())]
    Plan {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: PlanFileError,
    },
    /// A file of ours that is not JSON, or not what it should be.
    #[error("cannot read {}", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// There is no such run here.
    #[error("there is no run {run} in {}", dir.display())]
    NoSuchRun {
        /// Which.
        run: RunId,
        /// The state directory.
        dir: PathBuf,
    },
    /// Another process works on the run.
    #[error("another process works on run {run}")]
    Busy {
        /// Which.
        run: RunId,
        /// Who.
        #[source]
        source: FileError,
    },
}

/// Which run used a plan up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spent {
    /// The run.
    pub run: RunId,
    /// Since when.
    pub at: Timestamp,
}

/// How the last command that worked on the run of a plan reached its documents and its fleet. Nothing is decided
/// by it: `status`, which connects to nothing, proposes commands that reach the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reach {
    /// The working directory, to which the paths are relative.
    pub dir: String,
    /// Files and folders with documents, where they were named.
    pub documents: Vec<String>,
    /// The site, where it must be named.
    pub site: Option<String>,
    /// The World document, if the fleet is simulated.
    pub world: Option<String>,
}

/// The state directory.
#[derive(Debug, Clone)]
pub struct StateDir {
    root: PathBuf,
}

impl StateDir {
    /// Opens it, and creates it where there is none (readable by its owner alone).
    ///
    /// # Errors
    /// [`StateError::File`].
    pub fn open(root: &Path) -> Result<Self, StateError> {
        for dir in [root, &root.join("plans"), &root.join("runs")] {
            files::create_private_dir(dir)?;
        }
        Ok(Self { root: root.to_owned() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Keeps a plan, for resume.
    ///
    /// # Errors
    /// [`StateError::File`].
    pub fn keep(&self, plan: &Plan) -> Result<(), StateError> {
        Ok(files::replace(&self.plan_file(&plan.id, "json"), &plan.to_bytes())?)
    }

    /// A plan that was kept.
    ///
    /// # Errors
    /// [`StateError::File`] if it is not here, [`StateError::Plan`].
    pub fn plan(&self, id: &PlanId) -> Result<Plan, StateError> {
        let path = self.plan_file(id, "json");
        let bytes = files::read_bytes(&path, PLAN_LIMIT)?;
        Plan::from_bytes(&bytes).map_err(|source| StateError::Plan { path, source })
    }

    /// Spends a plan for this run. If another run did so before, that one is the answer.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn spend(&self, plan: &PlanId, by: &Spent) -> Result<Result<(), Spent>, StateError> {
        match files::create(&self.plan_file(plan, "spent"), &json(by)) {
            Ok(()) => Ok(Ok(())),
            Err(error) => match self.spent(plan)? {
                Some(other) => Ok(Err(other)),
                None => Err(error.into()),
            },
        }
    }

    /// The run that spent a plan, if any.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn spent(&self, plan: &PlanId) -> Result<Option<Spent>, StateError> {
        read_json(&self.plan_file(plan, "spent"))
    }

    /// The plan that a run spent, if its journal does not say so itself.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn plan_of(&self, run: &RunId) -> Result<Option<PlanId>, StateError> {
        for path in files::list(&self.root.join("plans"))? {
            if path.extension().is_some_and(|extension| extension == "spent")
                && read_json::<Spent>(&path)?.is_some_and(|spent| spent.run == *run)
            {
                return Ok(path.file_stem().map(|stem| PlanId(stem.to_string_lossy().into_owned())));
            }
        }
        Ok(None)
    }

    /// The runs that are kept here, oldest first.
    ///
    /// # Errors
    /// [`StateError::File`].
    pub fn runs(&self) -> Result<Vec<RunId>, StateError> {
        let dirs = files::list(&self.root.join("runs"))?;
        Ok(dirs
            .iter()
            .filter_map(|dir| dir.file_name())
            .map(|name| RunId(name.to_string_lossy().into_owned()))
            .collect())
    }

    /// The lines of a run's journal, without taking its lock.
    ///
    /// # Errors
    /// [`StateError::NoSuchRun`], [`StateError::Journal`].
    pub fn entries(&self, run: &RunId) -> Result<Vec<Entry>, StateError> {
        match journal::read(&self.run_path(run).join("journal.jsonl")) {
            Ok(contents) => Ok(contents.entries),
            Err(JournalError::File(error)) if error.is_missing() => {
                Err(StateError::NoSuchRun { run: run.clone(), dir: self.root.clone() })
            }
            Err(source) => Err(StateError::Journal { run: run.clone(), source }),
        }
    }

    /// Takes the lock of a run, and creates its folder where there is none.
    ///
    /// # Errors
    /// [`StateError::Busy`] if another process has it.
    pub fn lock(&self, run: &RunId, holder: &str) -> Result<RunDir, StateError> {
        let path = self.run_path(run);
        files::create_private_dir(&path)?;
        match Lock::acquire(&path.join("lock"), holder) {
            Ok(lock) => Ok(RunDir { run: run.clone(), path, _lock: lock }),
            Err(source @ FileError::Locked { .. }) => Err(StateError::Busy { run: run.clone(), source }),
            Err(error) => Err(error.into()),
        }
    }

    /// The process that works on a run now, in its own words; none if there is none.
    ///
    /// # Errors
    /// The lock cannot be looked at.
    pub fn worked_on(&self, run: &RunId) -> Result<Option<String>, StateError> {
        Ok(Lock::holder(&self.run_path(run).join("lock"))?)
    }

    /// Keeps how the run of a plan is reached.
    ///
    /// # Errors
    /// [`StateError::File`].
    pub fn keep_reach(&self, plan: &PlanId, reach: &Reach) -> Result<(), StateError> {
        Ok(files::replace(&self.plan_file(plan, "reach"), &json(reach))?)
    }

    /// How the run of a plan is reached; none if no command got so far.
    ///
    /// # Errors
    /// [`StateError::File`], [`StateError::Damaged`].
    pub fn reach(&self, plan: &PlanId) -> Result<Option<Reach>, StateError> {
        read_json(&self.plan_file(plan, "reach"))
    }

    fn plan_file(&self, id: &PlanId, extension: &str) -> PathBuf {
        self.root.join("plans").join(format!("{}.{extension}", plain(id.as_str())))
    }

    fn run_path(&self, run: &RunId) -> PathBuf {
        self.root.join("runs").join(plain(run.as_str()))
    }
}

/// The folder of a run, locked.
#[derive(Debug)]
pub struct RunDir {
    run: RunId,
    path: PathBuf,
    _lock: Lock,
}

impl RunDir {
    /// Which run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// Opens its journal to go on with it, or to begin it.
    ///
    /// # Errors
    /// [`StateError::Journal`].
    pub fn journal(&self) -> Result<(Vec<Entry>, Journal), StateError> {
        journal::reopen(&self.path.join("journal.jsonl"), &self.path.join("journal.torn"))
            .map_err(|source| StateError::Journal { run: self.run.clone(), source })
    }

    /// Keeps what was read of a host before its visit.
    ///
    /// # Errors
    /// [`StateError::File`].
    pub fn keep_before(&self, host: &HostName, record: &HostRecord) -> Result<(), StateError> {
        let path = self.path.join(format!("before-{}.json", plain(host.as_str())));
        Ok(files::replace(&path, &json(record))?)
    }
}

/// A name as a file name: what could leave the folder or hide the file is written as `%xx`.
fn plain(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => text.push(byte.into()),
            b'.' if at > 0 => text.push('.'),
            other => text.push_str(&format!("%{other:02x}")),
        }
    }
    text
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Option<T>, StateError> {
    match files::read_bytes(path, RECORD_LIMIT) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|source| StateError::Damaged { path: path.to_owned(), source }),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn json<T: Serialize>(value: &T) -> Vec<u8> {
    match serde_json::to_vec(value) {
        Ok(bytes) => bytes,
        // serde_json fails on maps whose keys are no strings, and there are none in these types.
        Err(error) => unreachable!("a record is JSON by construction: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_folder() {
        assert_eq!(plain("esx-gpu-01.lab"), "esx-gpu-01.lab");
        assert_eq!(plain("../etc/passwd"), "%2e./etc/passwd".replace('/', "%2f"));
        assert_eq!(plain("büro"), "b%c3%bcro");
    }

    #[test]
    fn a_plan_is_spent_once_and_names_its_run() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(&dir.path().join("state")).unwrap();
        let at: Timestamp = "2026-11-30T22:00:00Z".parse().unwrap();
        let (plan, first, second) =
            (PlanId::from("ab12"), Spent { run: "01A".into(), at }, Spent { run: "01B".into(), at });
        assert_eq!(state.spend(&plan, &first).unwrap(), Ok(()));
        assert_eq!(state.spend(&plan, &second).unwrap(), Err(first));
        assert_eq!(state.plan_of(&"01A".into()).unwrap(), Some(plan));
        assert_eq!(state.plan_of(&"01B".into()).unwrap(), None);
    }

    #[test]
    fn how_a_run_is_reached_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path()).unwrap();
        let plan = PlanId::from("ab12");
        assert_eq!(state.reach(&plan).unwrap(), None);
        let reach = Reach { dir: "/srv".into(), world: Some("w.yaml".into()), ..Reach::default() };
        state.keep_reach(&plan, &reach).unwrap();
        assert_eq!(state.reach(&plan).unwrap(), Some(reach));
    }

    #[cfg(unix)]
    #[test]
    fn others_cannot_read_the_state() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("state");
        StateDir::open(&root).unwrap();
        assert_eq!(std::fs::metadata(&root).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_run_has_one_process() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path()).unwrap();
        let held = state.lock(&"01A".into(), "process 1").unwrap();
        assert!(matches!(state.lock(&"01A".into(), "process 2"), Err(StateError::Busy { .. })));
        drop(held);
        state.lock(&"01A".into(), "process 2").unwrap();
    }
}
