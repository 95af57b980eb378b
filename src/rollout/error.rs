//! Why a run could not begin, or had to stop where it was.

use jiff::Timestamp;

use super::{FoldError, StateError};
use crate::base::files::FileError;
use crate::model::{HostName, PlanId, RunId};

/// Why a run could not begin, or had to stop where it was. What happens to single hosts is no error
/// of the run: it stands in the [`RunState`](super::RunState).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The journal cannot be written: nothing more is done to hosts.
    #[error("line {n} of the journal cannot be written; nothing more is done to hosts")]
    Journal {
        /// Which line.
        n: u64,
        /// Why.
        #[source]
        source: FileError,
    },
    /// The state directory.
    #[error(transparent)]
    State(#[from] StateError),
    /// A journal that does not fold.
    #[error("the journal contradicts itself")]
    Fold(#[from] FoldError),
    /// The plan was applied before.
    #[error("plan {} is spent: run {run} used it at {at:.0}", plan.short())]
    Spent {
        /// The plan.
        plan: PlanId,
        /// By which run.
        run: RunId,
        /// When.
        at: Timestamp,
        /// Whether that run has work left: then it is resumed, not applied again.
        open: bool,
    },
    /// The plan is under way, by the markers on its hosts, and its journal is not here.
    #[error("plan {} is under way: its hosts carry the marker of run {run}, whose journal is not here", plan.short())]
    UnderWay {
        /// The plan.
        plan: PlanId,
        /// By which run.
        run: RunId,
    },
    /// The plan is too old.
    #[error("plan {} expired at {at:.0}", plan.short())]
    Expired {
        /// The plan.
        plan: PlanId,
        /// When.
        at: Timestamp,
    },
    /// The plan was made for another vCenter.
    #[error("the plan was made for vCenter {expected}, this is {found}")]
    OtherSite {
        /// `about.instanceUuid` in the plan.
        expected: String,
        /// That of the server.
        found: String,
    },
    /// The journal of the run is here: it says more than the markers.
    #[error("the journal of run {run} is here; resume it from that")]
    JournalIsHere {
        /// Which run.
        run: RunId,
    },
    /// The markers of the plan's hosts are of several runs.
    #[error("the hosts carry markers of several runs of this plan: {}", join(runs))]
    SeveralRuns {
        /// Which.
        runs: Vec<RunId>,
    },
    /// The plan has no such host, or nothing failed on it.
    #[error("{host} is not a host of run {run} whose visit failed")]
    NotFailed {
        /// The host.
        host: HostName,
        /// The run.
        run: RunId,
    },
    /// Nobody is asked for anything on this host.
    #[error("run {run} does not wait for a person on {host}")]
    NotAwaited {
        /// The host.
        host: HostName,
        /// The run.
        run: RunId,
    },
    /// The server does not answer before anything was done.
    #[error("vCenter does not answer; nothing was done")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

fn join(runs: &[RunId]) -> String {
    runs.iter().map(RunId::as_str).collect::<Vec<_>>().join(", ")
}
