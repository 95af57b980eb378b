//! The folder of references, recordings and specifications, which is not part of the repository.

use std::path::{Path, PathBuf};
use std::sync::Once;

static SAID: Once = Once::new();

/// A file of the shared folder: that of `POOLWRIGHT_SHARED`, else `../shared`.
///
/// Without the folder the test that asks has nothing to say: it should return.
pub fn shared(name: &str) -> Option<PathBuf> {
    let folder = match std::env::var_os("POOLWRIGHT_SHARED") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"),
    };
    if !folder.is_dir() {
        let said = format!("skipped: there is no folder {} (POOLWRIGHT_SHARED names another)", folder.display());
        #[allow(clippy::print_stderr)]
        SAID.call_once(|| eprintln!("{said}"));
        return None;
    }
    Some(folder.join(name))
}
