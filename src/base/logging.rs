//! The log: for people who look for a fault, on stderr, off by default. Known secrets are cut out
//! of every line, whatever wrote it.
//!
//! The log is no journal: what decides is in the journal, and nothing reads the log.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use secrecy::{ExposeSecret, SecretString};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// What stands in the log for a secret.
const HIDDEN: &str = "[hidden]";

/// The values to cut out, each also as XML and JSON escape it. One list for the process, since the
/// log is one.
static SECRETS: Mutex<Vec<SecretString>> = Mutex::new(Vec::new());

/// Cuts this value out of everything that is logged from now on: a credential, a session key.
///
/// Values of fewer than three characters are not cut out: they would tear every line apart.
pub fn hide(secret: &SecretString) {
    let plain = secret.expose_secret();
    if plain.chars().count() < 3 {
        return;
    }
    let mut secrets = SECRETS.lock().unwrap_or_else(PoisonError::into_inner);
    let xml = plain.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    for form in
        [plain.to_owned(), xml.replace('"', "&quot;").replace('\'', "&apos;"), xml, plain.escape_debug().to_string()]
    {
        if !secrets.iter().any(|known| known.expose_secret() == form) {
            secrets.push(SecretString::from(form));
        }
    }
    // Longest first, so that no secret is cut in half by one that it contains.
    secrets.sort_by_key(|known| std::cmp::Reverse(known.expose_secret().len()));
}

/// The text with every known secret cut out.
pub fn redact(text: &str) -> String {
    let secrets = SECRETS.lock().unwrap_or_else(PoisonError::into_inner);
    secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret.expose_secret(), HIDDEN))
}

/// Why the log could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("`{filter}` is no log filter")]
pub struct LoggingError {
    /// The filter as given.
    pub filter: String,
    /// Why.
    #[source]
    source: tracing_subscriber::filter::ParseError,
}

/// Starts the log on stderr. `filter` (`debug`, `poolwright::vim25=trace`) wins over `verbosity`,
/// the number of `-v`: 0 only warnings that something is tried again, 1 info, 2 debug, 3 trace, of this crate alone.
///
/// # Errors
/// [`LoggingError`] if the filter cannot be read.
pub fn start(verbosity: u8, filter: Option<&str>, colour: bool) -> Result<(), LoggingError> {
    let level = match verbosity {
        0 => "poolwright::base::retry=warn",
        1 => "poolwright=info",
        2 => "poolwright=debug",
        _ => "poolwright=trace",
    };
    // Without being asked it is talk like any other; a log says when and where from.
    let talk = verbosity == 0 && filter.is_none();
    let filter = filter.unwrap_or(level);
    let filter = EnvFilter::try_new(filter).map_err(|source| LoggingError { filter: filter.to_owned(), source })?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colour).with_writer(Redacting);
    // A second start (two commands in one process, as tests do) keeps the first log.
    let _ = match talk {
        true => log.without_time().with_target(false).with_level(false).try_init(),
        false => log.try_init(),
    };
    Ok(())
}

/// Gives each event a line that is redacted before it is written.
struct Redacting;

/// One event's text, written as a whole when it is complete.
struct Line(Vec<u8>);

impl<'a> MakeWriter<'a> for Redacting {
    type Writer = Line;
    fn make_writer(&'a self) -> Line {
        Line(Vec::new())
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // A log that cannot be written must not stop a rollout.
        let _ = io::stderr().write_all(redact(&String::from_utf8_lossy(&self.0)).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f11_a_secret_is_cut_out_in_each_form_it_is_written_in() {
        hide(&SecretString::from("MARKED<&\"1"));
        hide(&SecretString::from("MARKED<&\"1-longer"));
        for text in [
            "a MARKED<&\"1 b",
            "<password>MARKED&lt;&amp;\"1</password>",
            "<a b='MARKED&lt;&amp;&quot;1'/>",
            "{\"p\":\"MARKED<&\\\"1\"}",
            "x MARKED<&\"1-longer y",
        ] {
            let redacted = redact(text);
            assert!(!redacted.contains("MARKED") && !redacted.contains("-longer"), "{redacted}");
            assert!(redacted.contains("[hidden]"), "{redacted}");
        }
    }
}
