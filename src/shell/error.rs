//! Why a shell gave nothing.

use crate::base::net::DialError;

/// Why a shell gave nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShellError {
    /// No connection: nothing was sent.
    #[error("cannot reach the shell of {host}")]
    Dial {
        /// The host.
        host: String,
        /// Why.
        #[source]
        source: DialError,
    },
    /// No key of the host is pinned: nothing was sent.
    #[error("no host key of {host} is pinned, so its shell is not used")]
    NoPin {
        /// The host.
        host: String,
    },
    /// The host has another key than the pinned one: no login was tried.
    #[error("{host} does not have the host key that is pinned{}", instead(.shown))]
    HostKey {
        /// The host.
        host: String,
        /// SHA-256 of the keys that it showed instead; none: it has no key of the pinned kind.
        shown: Vec<String>,
    },
    /// The two sides found no common ground before a login was tried.
    #[error("cannot agree with the SSH server of {host}")]
    Handshake {
        /// The host.
        host: String,
        /// Why.
        #[source]
        source: russh::Error,
    },
    /// Our own private key cannot be used: no login was tried.
    #[error("the private key for {host} {problem}")]
    UserKey {
        /// The host.
        host: String,
        /// What is wrong with it; it says nothing of its content.
        problem: &'static str,
    },
    /// The host refused the login.
    #[error("{host} refuses the login of {user}: {why}")]
    LoginRefused {
        /// The host.
        host: String,
        /// The user.
        user: String,
        /// What is known of the reason.
        why: String,
    },
    /// The login was sent and not answered: it may count as a wrong one.
    #[error("{host} did not answer the login of {user}")]
    LoginUnanswered {
        /// The host.
        host: String,
        /// The user.
        user: String,
    },
    /// The connection broke. What the command did is unknown.
    #[error("the SSH connection to {host} broke")]
    Broken {
        /// The host.
        host: String,
        /// Why.
        #[source]
        source: russh::Error,
    },
    /// The host does not run commands for this user.
    #[error("{host} does not run `{command}`")]
    NotRun {
        /// The host.
        host: String,
        /// The command.
        command: String,
    },
    /// No end within the deadline. What the command did is unknown.
    #[error("{host} did not end `{doing}` within {seconds} s")]
    Deadline {
        /// The host.
        host: String,
        /// The command, or a stage of the connection.
        doing: String,
        /// The deadline.
        seconds: u64,
    },
}

impl ShellError {
    /// Whether this host's shell must not be tried again in this run: the login may have counted as a
    /// wrong one, and a few of them lock the account.
    pub fn ends_shell_use(&self) -> bool {
        matches!(self, Self::LoginRefused { .. } | Self::LoginUnanswered { .. })
    }

    /// Whether the command that was to be run certainly had no effect.
    pub fn not_run(&self) -> bool {
        !matches!(self, Self::Broken { .. } | Self::Deadline { .. })
    }
}

fn instead(keys: &[String]) -> String {
    if keys.is_empty() { ", nor any of its kind".to_owned() } else { format!(", but {}", keys.join(" and ")) }
}
