//! The bearer token: from the kubeconfig, a file, or an exec plugin. What a plugin prints is never
//! shown, neither when it fails nor when it is not understood.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use http::HeaderValue;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::process::Command;
use tokio::sync::Mutex;

use super::answer::shown;
use crate::base::files::{self, FileError};
use crate::base::logging;
use crate::base::secret::{SecretError, output_of};

/// Longest token in a file, and longest answer of a plugin, in bytes: a token that carries all the groups of
/// somebody has some KB.
const LONGEST: u64 = 64 << 10;

/// How we show who we are, beside a client certificate.
#[derive(Clone)]
pub(super) enum Credential {
    /// By the client certificate alone.
    None,
    /// It stands in the kubeconfig.
    Token(SecretString),
    /// A file that somebody keeps fresh: it is read for every call.
    File(PathBuf),
    /// A program that gives one. Shared, so that one expiry runs it once.
    Plugin(Arc<Plugin>),
}

/// A program that gives tokens.
pub(super) struct Plugin {
    command: String,
    arguments: Vec<String>,
    environment: Vec<(String, SecretString)>,
    /// How to get the program, as its kubeconfig says it.
    install_hint: Option<String>,
    /// What it gave last. It is held until the server refuses it: that tells an expiry without
    /// comparing two clocks.
    held: Mutex<Option<SecretString>>,
}

/// Why there is no token. Holds none.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialError {
    /// The file with the token.
    #[error("cannot read the token")]
    File {
        /// Why.
        #[source]
        source: FileError,
    },
    /// What came cannot be sent.
    #[error("{whence} gives no token: {problem}")]
    NoToken {
        /// The file or the plugin.
        whence: String,
        /// What came instead.
        problem: &'static str,
    },
    /// The plugin.
    #[error("the exec plugin gives no token ({advice})")]
    Plugin {
        /// What to do: how to get a program that is not there, in the words of the kubeconfig, else to run it by hand.
        advice: String,
        /// Why.
        #[source]
        source: SecretError,
    },
    /// The plugin did not end.
    #[error("the exec plugin `{command}` did not end within {seconds} s (run it by hand to see what it waits for)")]
    Late {
        /// The program.
        command: String,
        /// How long it had.
        seconds: u64,
    },
}

#[derive(Deserialize)]
struct ExecCredential {
    status: Option<Given>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Given {
    token: Option<SecretString>,
    client_certificate_data: Option<IgnoredAny>,
}

impl Credential {
    pub(super) fn plugin(plugin: Plugin) -> Self {
        Self::Plugin(Arc::new(plugin))
    }

    /// The token for the next request; none where the client certificate says who we are. One that the
    /// server has `refused` is not given a second time.
    pub(super) async fn token(&self, refused: Option<&SecretString>) -> Result<Option<SecretString>, CredentialError> {
        let token = match self {
            Self::None => return Ok(None),
            Self::Token(token) => token.clone(),
            Self::File(path) => {
                let text = files::read_text(path, LONGEST).map_err(|source| CredentialError::File { source })?;
                token(text.trim(), || path.display().to_string())?
            }
            Self::Plugin(plugin) => plugin.token(refused).await?,
        };
        Ok(Some(token).filter(|token| refused.is_none_or(|refused| !same(token, refused))))
    }
}

impl Plugin {
    pub(super) fn new(
        command: String,
        arguments: Vec<String>,
        environment: Vec<(String, SecretString)>,
        install_hint: Option<String>,
    ) -> Self {
        Self { command, arguments, environment, install_hint, held: Mutex::default() }
    }

    fn failed(&self, source: SecretError) -> CredentialError {
        let command = self.command.clone();
        match &source {
            SecretError::Deadline { seconds, .. } => CredentialError::Late { command, seconds: *seconds },
            SecretError::Spawn { source: why, .. } if why.kind() == ErrorKind::NotFound => {
                let hint = self.install_hint.as_deref().map(shown).filter(|hint| !hint.is_empty());
                let advice = hint.unwrap_or_else(|| "it is not installed here, or not in PATH".to_owned());
                CredentialError::Plugin { advice, source }
            }
            _ => CredentialError::Plugin { advice: format!("run `{command}` by hand to see what it says"), source },
        }
    }

    async fn token(&self, refused: Option<&SecretString>) -> Result<SecretString, CredentialError> {
        let mut held = self.held.lock().await;
        if let Some(token) = held.as_ref().filter(|token| refused.is_none_or(|refused| !same(token, refused))) {
            return Ok(token.clone());
        }
        let mut command = Command::new(&self.command);
        command.args(&self.arguments).stderr(Stdio::null());
        command.envs(self.environment.iter().map(|(name, value)| (name, value.expose_secret())));
        let output = output_of(&mut command, &self.command, LONGEST).await;
        let output = output.map_err(|source| self.failed(source))?;
        let whence = || format!("the exec plugin `{}`", self.command);
        let fail = |problem| CredentialError::NoToken { whence: whence(), problem };
        // A parser's error would quote what it has read.
        let parsed = serde_json::from_slice(&output).ok();
        let parsed: ExecCredential = parsed.ok_or_else(|| fail("what it printed is no ExecCredential"))?;
        let given = parsed.status.ok_or_else(|| fail("its ExecCredential has no status"))?;
        let token = match given {
            Given { token: Some(given), .. } => token(given.expose_secret(), whence)?,
            Given { client_certificate_data: Some(_), .. } => {
                return Err(fail("it gives a client certificate, which is taken from the kubeconfig only"));
            }
            _ => return Err(fail("its ExecCredential has none")),
        };
        *held = Some(token.clone());
        Ok(token)
    }
}

fn same(one: &SecretString, other: &SecretString) -> bool {
    one.expose_secret() == other.expose_secret()
}

/// A token that can be sent, and that no log shows from now on.
fn token(text: &str, whence: impl FnOnce() -> String) -> Result<SecretString, CredentialError> {
    let problem = match text {
        "" => "it is empty",
        _ if !text.bytes().all(|byte| byte.is_ascii_graphic()) => "it holds characters that no token has",
        _ => {
            let token = SecretString::from(text);
            logging::hide(&token);
            return Ok(token);
        }
    };
    Err(CredentialError::NoToken { whence: whence(), problem })
}

/// The header that carries a token. Every layer that prints headers is told that it is secret.
pub(super) fn header(token: &SecretString) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {}", token.expose_secret())).ok()?;
    value.set_sensitive(true);
    Some(value)
}
