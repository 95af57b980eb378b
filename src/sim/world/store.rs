//! `FILE.state`: the state beside the document, bound to it by its digest.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::WorldError;
use super::state::State;
use crate::base::files;
use crate::sim::document::WorldSpec;

/// Version of the file.
const VERSION: u32 = 1;

/// A saved fleet of some thousand hosts has about 100 MB.
const LIMIT: u64 = 1 << 30;

#[derive(Serialize)]
struct Saved<'a> {
    version: u32,
    document: &'a str,
    state: &'a State,
}

#[derive(Deserialize)]
struct Loaded {
    version: u32,
    document: String,
    state: State,
}

/// Where the state of this document is kept.
pub(super) fn state_path(document: &Path) -> PathBuf {
    let mut path = OsString::from(document);
    path.push(".state");
    PathBuf::from(path)
}

/// The digest of what a document says; comments and layout do not count.
pub(super) fn digest(name: &str, spec: &WorldSpec) -> String {
    let mut hash = Sha256::new();
    hash.update(name.as_bytes());
    // A value made of texts and numbers always has a JSON form.
    hash.update(serde_json::to_vec(spec).unwrap_or_default());
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The state as it was left, if it was ever saved.
pub(super) fn load(file: &Path, digest: &str) -> Result<Option<State>, WorldError> {
    let text = match files::read_text(file, LIMIT) {
        Ok(text) => text,
        Err(error) if error.is_missing() => return Ok(None),
        Err(error) => return Err(WorldError::Files(error)),
    };
    let loaded: Loaded = serde_json::from_str(&text).map_err(WorldError::State)?;
    if loaded.version != VERSION || loaded.document != digest {
        return Err(WorldError::OtherDocument);
    }
    Ok(Some(loaded.state))
}

/// Saves the state, whole or not at all.
pub(super) fn save(file: &Path, digest: &str, state: &State) -> Result<(), WorldError> {
    let saved = Saved { version: VERSION, document: digest, state };
    let text = serde_json::to_vec(&saved).map_err(WorldError::State)?;
    files::replace(file, &text).map_err(WorldError::Files)
}

impl super::World {
    /// `sim reset FILE`: forgets what happened, so that the world begins again. Tells whether there
    /// was something to forget.
    ///
    /// # Errors
    /// [`WorldError::Files`].
    pub fn reset(document: &Path) -> Result<bool, WorldError> {
        let file = state_path(document);
        match files::read_bytes(&file, LIMIT) {
            Err(error) if error.is_missing() => Ok(false),
            _ => files::remove(&file).map(|()| true).map_err(WorldError::Files),
        }
    }
}
