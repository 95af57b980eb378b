//! Exit codes: what a script learns of a command.

use std::process::ExitCode;

use crate::rollout;

/// How a command ended. The numbers are part of the interface and never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, or nothing to do.
    Done,
    /// A fault of this program or of the machine it runs on.
    Internal,
    /// Hosts are not as the profiles want them (`--detailed-exitcode`).
    Changes,
    /// A document or an argument is wrong.
    Invalid,
    /// A system could not be reached or refused the login; nothing was done.
    Unreachable,
    /// The plan is spent, stale, or was made from other documents; nothing was done.
    Stale,
    /// Another run holds the host or the state directory; nothing was done.
    Taken,
    /// Halted: the hosts are safe and work is left.
    Halted,
    /// A host failed, waits for a person, or was not given back.
    HostsFailed,
    /// SIGINT with work left; the journal is valid.
    Interrupted,
    /// SIGTERM with work left; the journal is valid.
    Terminated,
}

impl Exit {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Internal => 1,
            Self::Changes => 2,
            Self::Invalid => 3,
            Self::Unreachable => 5,
            Self::Stale => 6,
            Self::Taken => 7,
            Self::Halted => 9,
            Self::HostsFailed => 10,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }
}

impl From<rollout::Exit> for Exit {
    fn from(exit: rollout::Exit) -> Self {
        match exit {
            rollout::Exit::Done => Self::Done,
            rollout::Exit::Stale => Self::Stale,
            rollout::Exit::Foreign => Self::Taken,
            rollout::Exit::WorkLeft => Self::Halted,
            rollout::Exit::HostsLeft => Self::HostsFailed,
            rollout::Exit::Interrupted => Self::Interrupted,
            rollout::Exit::Terminated => Self::Terminated,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f08_a_run_has_one_exit_code() {
        for exit in [
            rollout::Exit::Done,
            rollout::Exit::Stale,
            rollout::Exit::Foreign,
            rollout::Exit::WorkLeft,
            rollout::Exit::HostsLeft,
            rollout::Exit::Interrupted,
            rollout::Exit::Terminated,
        ] {
            assert_eq!(Exit::from(exit).code(), exit.code());
        }
    }
}
