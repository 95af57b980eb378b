//! Credentials by reference: `env:NAME`, `file:PATH`, `exec:COMMAND`.
//!
//! Documents hold the reference, never the value. The value is resolved just before a login, goes
//! into a secrecy type and is hidden from logs; no error holds it.

#![expect(clippy::disallowed_methods, reason = "the environment is read here and in cli/ only")]

use std::fmt;
use std::io::{ErrorKind, Read};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::str::FromStr;
use std::time::Duration;

use secrecy::SecretString;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

use super::files::{self, FileError};
use super::logging;

/// The longest credential that is read, in bytes: SAML tokens have a few kilobytes, more is a
/// mistaken path.
const LONGEST: u64 = 64 * 1024;

/// The longest document with credentials in it that is read, in bytes: a kubeconfig has some kilobytes for
/// each cluster, mostly certificates, and people keep a hundred of them in one file.
const LONGEST_DOCUMENT: u64 = 1 << 20;

/// How long an `exec:` command may take. Helpers that unlock a store or ask for a touch of a key
/// need some seconds; a minute is past every one that still works.
const EXEC_DEADLINE: Duration = Duration::from_secs(60);

/// Where a credential comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretRef {
    /// An environment variable.
    Env(String),
    /// A file, relative to the working directory.
    File(PathBuf),
    /// A command: its program and arguments. No shell: words are split at blanks, and what needs
    /// more than that belongs into a script. It gets no input and inherits the error output.
    Exec(Vec<String>),
}

/// Why a text is no reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretRefError {
    /// No known prefix. The text is not shown: it may be a password written where a reference
    /// belongs.
    #[error("a credential is given by reference: `env:NAME`, `file:PATH` or `exec:COMMAND`")]
    NoScheme,
    /// Nothing after the prefix.
    #[error("nothing follows `{scheme}:`")]
    Empty {
        /// The prefix.
        scheme: &'static str,
    },
    /// A quote or a backslash in a command.
    #[error("`exec:` runs no shell: words are split at blanks, so put what needs `{character}` into a script")]
    Quote {
        /// The character.
        character: char,
    },
}

/// Why a credential could not be had. Never holds it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The variable is not set, or not text.
    #[error("the environment variable {name}, which a credential refers to, {problem}")]
    Env {
        /// Its name.
        name: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// The file could not be read.
    #[error("cannot read the credential")]
    File {
        /// Why.
        #[source]
        source: FileError,
    },
    /// The command could not be run.
    #[error("cannot run `{program}` for the credential")]
    Spawn {
        /// The program.
        program: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The command failed. What it printed on its error output was shown as it came.
    #[error("`{program}`, which gives the credential, failed ({status})")]
    Failed {
        /// The program.
        program: String,
        /// How it ended.
        status: ExitStatus,
    },
    /// The command did not end.
    #[error("`{program}`, which gives the credential, did not end within {seconds} s")]
    Deadline {
        /// The program.
        program: String,
        /// How long it had.
        seconds: u64,
    },
    /// What came is no credential.
    #[error("the credential of {reference} {problem}")]
    Value {
        /// The reference.
        reference: SecretRef,
        /// What is wrong.
        problem: &'static str,
    },
}

impl FromStr for SecretRef {
    type Err = SecretRefError;

    fn from_str(text: &str) -> Result<Self, SecretRefError> {
        let rest = |rest: &str, scheme| {
            if rest.trim().is_empty() { Err(SecretRefError::Empty { scheme }) } else { Ok(rest.to_owned()) }
        };
        if let Some(name) = text.strip_prefix("env:") {
            Ok(Self::Env(rest(name, "env")?))
        } else if let Some(path) = text.strip_prefix("file:") {
            Ok(Self::File(PathBuf::from(rest(path, "file")?)))
        } else if let Some(command) = text.strip_prefix("exec:") {
            let command = rest(command, "exec")?;
            match command.chars().find(|character| matches!(character, '"' | '\'' | '\\')) {
                Some(character) => Err(SecretRefError::Quote { character }),
                None => Ok(Self::Exec(command.split_whitespace().map(str::to_owned).collect())),
            }
        } else {
            Err(SecretRefError::NoScheme)
        }
    }
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Exec(words) => write!(f, "exec:{}", words.join(" ")),
        }
    }
}

impl SecretRef {
    /// Reads the credential: one line, its line end cut.
    ///
    /// Must not be called in a paused runtime: its clock would run out while the command runs.
    ///
    /// # Errors
    /// [`SecretError`]; it names the reference and never the value.
    pub async fn resolve(&self) -> Result<SecretString, SecretError> {
        let secret = self.value(self.read(LONGEST).await?)?;
        logging::hide(&secret);
        Ok(secret)
    }

    /// Reads a credential of several lines, as it is: a private key.
    ///
    /// # Errors
    /// As [`SecretRef::resolve`].
    pub async fn resolve_text(&self) -> Result<SecretString, SecretError> {
        let text = self.text(LONGEST, "is longer than 64 KiB").await?;
        // A log is written line by line; the lines that frame a key are no secret.
        for line in text.lines().filter(|line| !line.starts_with("-----")) {
            logging::hide(&SecretString::from(line));
        }
        Ok(SecretString::from(text))
    }

    /// Reads a document of which parts are secret, as it is: a kubeconfig. Who understands it hides those
    /// parts from the log.
    ///
    /// # Errors
    /// As [`SecretRef::resolve`].
    pub async fn resolve_document(&self) -> Result<SecretString, SecretError> {
        self.text(LONGEST_DOCUMENT, "is longer than 1 MiB").await.map(SecretString::from)
    }

    async fn text(&self, limit: u64, too_long: &'static str) -> Result<String, SecretError> {
        let fail = |problem| SecretError::Value { reference: self.clone(), problem };
        let text = String::from_utf8(self.read(limit).await?).map_err(|_| fail("is not UTF-8"))?;
        if text.len() as u64 > limit { Err(fail(too_long)) } else { Ok(text) }
    }

    async fn read(&self, limit: u64) -> Result<Vec<u8>, SecretError> {
        match self {
            Self::Env(name) => match std::env::var_os(name) {
                Some(value) => Ok(value.into_encoded_bytes()),
                None => Err(SecretError::Env { name: name.clone(), problem: "is not set" }),
            },
            Self::File(path) => files::read_stream(path, limit).map_err(|source| SecretError::File { source }),
            Self::Exec(words) => run(words, limit).await,
        }
    }

    fn value(&self, bytes: Vec<u8>) -> Result<SecretString, SecretError> {
        let fail = |problem| Err(SecretError::Value { reference: self.clone(), problem });
        let Ok(mut text) = String::from_utf8(bytes) else { return fail("is not UTF-8") };
        if text.ends_with('\n') {
            text.pop();
            if text.ends_with('\r') {
                text.pop();
            }
        }
        if text.is_empty() {
            fail("is empty")
        } else if text.len() as u64 > LONGEST {
            fail("is longer than 64 KiB")
        } else if text.contains(['\n', '\r', '\0']) {
            fail("has more than one line")
        } else {
            Ok(SecretString::from(text))
        }
    }
}

async fn run(words: &[String], limit: u64) -> Result<Vec<u8>, SecretError> {
    let Some((program, arguments)) = words.split_first() else {
        unreachable!("a command is parsed from text that is not blank, so it has a first word");
    };
    output_of(tokio::process::Command::new(program).args(arguments), program, limit).await
}

/// What a command that gives a credential prints, at most two bytes more than `limit`, so that too much
/// of it can be told. It can ask nobody anything. What it leaves behind may keep its output open: whoever has
/// ended says no more.
///
/// Must not be called in a paused runtime: its clock would run out while the command runs.
///
/// # Errors
/// [`SecretError`] if it cannot be run, fails or does not end; it says nothing of what was printed.
pub async fn output_of(
    command: &mut tokio::process::Command,
    program: &str,
    limit: u64,
) -> Result<Vec<u8>, SecretError> {
    let spawn = |source| SecretError::Spawn { program: program.to_owned(), source };
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn().map_err(spawn)?;
    let Some(mut stdout) = child.stdout.take() else {
        unreachable!("the output was asked for as a pipe above");
    };
    let mut bytes = Vec::new();
    let whole = async {
        let limit = limit + 2;
        loop {
            let most = limit.saturating_sub(bytes.len() as u64);
            let mut bounded = (&mut stdout).take(most);
            tokio::select! {
                read = bounded.read_buf(&mut bytes) => if read? == 0 { break },
                status = child.wait() => {
                    // Without a wait: what it has said is in the pipe.
                    let stdout = Receiver::from_owned_fd(stdout.into_owned_fd()?)?.into_nonblocking_fd()?;
                    let rest = std::fs::File::from(stdout).take(most).read_to_end(&mut bytes);
                    return match rest {
                        Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
                        _ => status,
                    };
                }
            }
        }
        drop(stdout);
        child.wait().await
    };
    match tokio::time::timeout(EXEC_DEADLINE, whole).await {
        Err(_) => Err(SecretError::Deadline { program: program.to_owned(), seconds: EXEC_DEADLINE.as_secs() }),
        Ok(Err(source)) => Err(spawn(source)),
        Ok(Ok(status)) if status.success() => Ok(bytes),
        Ok(Ok(status)) => Err(SecretError::Failed { program: program.to_owned(), status }),
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    fn parse(text: &str) -> SecretRef {
        text.parse().unwrap()
    }

    #[tokio::test]
    async fn a_file_gives_its_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("password");
        for (content, expected) in [("s3 cr\u{e9}t", "s3 cr\u{e9}t"), ("x\n", "x"), ("x\r\n", "x"), (" x ", " x ")] {
            files::replace(&path, content.as_bytes()).unwrap();
            let secret = SecretRef::File(path.clone()).resolve().await.unwrap();
            assert_eq!(secret.expose_secret(), expected);
        }
    }

    #[tokio::test]
    async fn a_private_key_keeps_its_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        files::replace(&path, b"one\ntwo\n").unwrap();
        let secret = SecretRef::File(path.clone()).resolve_text().await.unwrap();
        assert_eq!(secret.expose_secret(), "one\ntwo\n");
        files::replace(&path, b"MARKED\xff").unwrap();
        let error = SecretRef::File(path).resolve_text().await.unwrap_err();
        assert!(!format!("{error} {error:?}").contains("MARKED"));
    }

    #[tokio::test]
    async fn a_document_may_be_longer_than_a_credential() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config");
        let document = "a: kubeconfig\n".repeat(10_000);
        files::replace(&path, document.as_bytes()).unwrap();
        assert_eq!(SecretRef::File(path.clone()).resolve_document().await.unwrap().expose_secret(), document);
        assert!(SecretRef::File(path.clone()).resolve_text().await.is_err());
        assert!(!logging::redact("a: kubeconfig").contains("[hidden]"), "most of it is no secret");
        files::replace(&path, document.repeat(10).as_bytes()).unwrap();
        assert!(SecretRef::File(path).resolve_document().await.is_err());
    }

    #[tokio::test]
    async fn errors_name_the_reference_and_never_the_value() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("password");
        files::replace(&path, b"MARKED-1\nMARKED-2\n").unwrap();
        let error = SecretRef::File(path.clone()).resolve().await.unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(text.contains("has more than one line") && text.contains("file:"), "{text}");
        assert!(!text.contains("MARKED"), "{text}");
        for bad in ["MARKED", "password: MARKED", "ENV:MARKED", ""] {
            let error = bad.parse::<SecretRef>().unwrap_err();
            assert!(!format!("{error} {error:?}").contains("MARKED"));
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_command_is_run_without_a_shell_and_its_failure_is_told() {
        let secret = parse("exec:echo $HOME  x").resolve().await.unwrap();
        assert_eq!(secret.expose_secret(), "$HOME x");
        let error = parse("exec:false").resolve().await.unwrap_err().to_string();
        assert!(error.starts_with("`false`, which gives the credential, failed (exit status: 1"), "{error}");
        let error = parse("exec:/no/such/helper").resolve().await.unwrap_err().to_string();
        assert_eq!(error, "cannot run `/no/such/helper` for the credential");
    }

    #[tokio::test]
    async fn a_variable_that_is_not_set_is_named() {
        let error = parse("env:POOLWRIGHT_TEST_NOT_SET").resolve().await.unwrap_err().to_string();
        assert_eq!(error, "the environment variable POOLWRIGHT_TEST_NOT_SET, which a credential refers to, is not set");
    }

    #[test]
    fn what_a_reference_cannot_be() {
        assert_eq!("file:".parse::<SecretRef>(), Err(SecretRefError::Empty { scheme: "file" }));
        assert_eq!("exec: ".parse::<SecretRef>(), Err(SecretRefError::Empty { scheme: "exec" }));
        assert_eq!("exec:pass 'a b'".parse::<SecretRef>(), Err(SecretRefError::Quote { character: '\'' }));
    }
}
