//! The recorder: an event goes into the journal, then into the state, then to who watches.

use jiff::Timestamp;

use super::journal::Journal;
use super::{Entry, Event, RunError, RunState, StepKind};
use crate::base::clock::Clock;
use crate::base::files::FileError;
use crate::model::HostName;

/// Who watches a run. It is told, and cannot hinder.
pub trait Sink {
    /// A line stands in the journal, and `state` has taken it in.
    fn entry(&mut self, entry: &Entry, state: &RunState);

    /// Something is waited for: told at every look.
    fn waiting(&mut self, waiting: &Waiting<'_>);
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting<'a> {
    /// On which host.
    pub host: &'a HostName,
    /// In which step; none while a marker is read back.
    pub step: Option<StepKind>,
    /// For what, one line each.
    pub what: &'a [String],
    /// Since when, by our clock.
    pub since: Timestamp,
    /// When it is given up.
    pub until: Timestamp,
    /// Percent, where the server says so.
    pub progress: Option<u32>,
}

/// Journal, state and watcher in one.
pub(super) struct Recorder<'a> {
    journal: Journal,
    pub(super) state: RunState,
    pub(super) sink: &'a mut dyn Sink,
    clock: Clock,
}

impl<'a> Recorder<'a> {
    /// Begins a journal with its first event, which must be [`Event::RunStarted`].
    pub(super) fn begin(
        mut journal: Journal,
        first: Event,
        sink: &'a mut dyn Sink,
        clock: Clock,
    ) -> Result<Self, RunError> {
        let entry = Entry { n: journal.next(), at: clock.now(), host: None, e: first };
        let state = super::fold([&entry])?;
        append(&mut journal, &entry)?;
        sink.entry(&entry, &state);
        Ok(Self { journal, state, sink, clock })
    }

    /// Goes on with a journal.
    pub(super) fn go_on(journal: Journal, state: RunState, sink: &'a mut dyn Sink, clock: Clock) -> Self {
        Self { journal, state, sink, clock }
    }

    /// Records what happened to the run.
    pub(super) fn run(&mut self, e: Event) -> Result<(), RunError> {
        self.record(None, e)
    }

    /// Records what happened to a host.
    pub(super) fn host(&mut self, host: &HostName, e: Event) -> Result<(), RunError> {
        self.record(Some(host.clone()), e)
    }

    fn record(&mut self, host: Option<HostName>, e: Event) -> Result<(), RunError> {
        let entry = Entry { n: self.journal.next(), at: self.clock.now(), host, e };
        // First the fold: a line that could not be read again is never written.
        self.state.take(&entry)?;
        append(&mut self.journal, &entry)?;
        self.sink.entry(&entry, &self.state);
        Ok(())
    }
}

fn append(journal: &mut Journal, entry: &Entry) -> Result<(), RunError> {
    journal.append(entry).map_err(|source: FileError| RunError::Journal { n: entry.n, source })
}
