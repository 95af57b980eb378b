//! The exit code: a pure function of the state that the summary prints (FORMATS "Exit code"), so
//! that code and text cannot disagree.

use super::{Held, HostPhase, HostState, Outcome, RunOutcome, RunState, Signal};

/// How `apply`, `resume` and `abort` end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Exit {
    /// Every host of the plan is as it should be; of an abort: everything is given back.
    Done,
    /// Every remaining host changed since the plan, and nothing was done.
    Stale,
    /// Another run has marked hosts, and nothing was done.
    Foreign,
    /// Work is left; all hosts are given back.
    WorkLeft,
    /// A host failed, waits for a person, or is not given back.
    HostsLeft,
    /// Ctrl-C with work left.
    Interrupted,
    /// SIGTERM with work left.
    Terminated,
}

impl Exit {
    /// The exit code of the process.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Stale => 6,
            Self::Foreign => 7,
            Self::WorkLeft => 9,
            Self::HostsLeft => 10,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }
}

impl RunState {
    /// How the run ends: the first that applies, in the order of FORMATS.
    pub fn exit(&self) -> Exit {
        let left: Vec<&HostState> = self.hosts.values().filter(|host| !host.is_converged()).collect();
        let nothing_done = self.hosts.values().all(HostState::is_untouched);
        let foreign = |host: &&HostState| {
            let HostPhase::Held { why } = &host.phase else { return false };
            matches!(why, Held::ForeignMarker { .. } | Held::UnreadableMarker { .. })
        };
        match self.signal {
            Some(Signal::Interrupt) if !left.is_empty() => return Exit::Interrupted,
            Some(Signal::Terminate) if !left.is_empty() => return Exit::Terminated,
            Some(_) | None => {}
        }
        if left.is_empty() {
            Exit::Done
        } else if nothing_done && left.iter().all(|host| matches!(host.phase, HostPhase::Refused { .. })) {
            Exit::Stale
        } else if nothing_done && left.iter().any(foreign) {
            Exit::Foreign
        } else if left.iter().any(|host| host.is_left()) {
            Exit::HostsLeft
        } else if self.aborting {
            Exit::Done
        } else {
            Exit::WorkLeft
        }
    }

    /// How the fleet stands, whatever stopped the process.
    pub fn outcome(&self) -> RunOutcome {
        if self.hosts.values().all(HostState::is_converged) {
            RunOutcome::Converged
        } else if self.hosts.values().any(HostState::is_left) {
            RunOutcome::HostsLeft
        } else {
            RunOutcome::WorkLeft
        }
    }
}

impl HostState {
    /// Whether it is given back as the plan wants it.
    pub fn is_converged(&self) -> bool {
        matches!(self.phase, HostPhase::Done { outcome: Outcome::Converged | Outcome::AlreadyConverged })
    }

    /// Whether its visit failed, and nobody has retried or given it back since.
    pub fn is_failed(&self) -> bool {
        matches!(self.phase, HostPhase::Failed { .. })
    }

    /// Whether somebody has to look at it: it failed, is not given back, or was given up.
    pub fn is_left(&self) -> bool {
        self.is_failed() || !self.is_released() || self.phase == HostPhase::Done { outcome: Outcome::GivenUp }
    }

    /// Whether nothing of ours is on the host, as far as we know.
    pub fn is_released(&self) -> bool {
        self.marker.is_none() && self.armed.is_empty() && !matches!(self.phase, HostPhase::Working { .. })
    }

    fn is_untouched(&self) -> bool {
        self.is_released()
            && self.done.is_empty()
            && !matches!(self.phase, HostPhase::Left { .. } | HostPhase::Failed { .. })
    }
}
