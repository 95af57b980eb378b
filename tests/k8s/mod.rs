//! The API server of a guest cluster, over the real wire: what is sent, and what each answer means.

mod access;
mod credentials;
mod drain;
mod evict;
mod garbled;
mod jobs;
mod nodes;
mod pods;
mod script;
mod simulated;
mod watch;
mod wire;

use std::error::Error;

/// An error with all its causes.
fn says(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text.push_str(": ");
        text.push_str(&error.to_string());
        next = error.source();
    }
    text
}
