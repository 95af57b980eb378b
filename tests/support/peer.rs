//! Programs that we did not write, which judge us. `tests/run` installs them under `target/peers`.

use std::path::{Path, PathBuf};

/// The program of a peer: `pyvmomi/bin/python`, `vcsim/vcsim`.
///
/// Where it is not installed the test that asks for it has nothing to say: it should return.
/// `tests/run` counts it as skipped then, and with `CI=true` it fails instead.
pub fn peer(program: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/peers").join(program);
    if path.exists() {
        return Some(path);
    }
    let ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    assert!(!ci, "the peer {} is not installed: run tests/run", path.display());
    eprintln!("skipped: the peer {} is not installed: run tests/run", path.display());
    None
}

/// kubectl with this kubeconfig, whose files are kept in a folder.
pub fn kubectl(dir: &Path, kubeconfig: &str) -> Option<tokio::process::Command> {
    let path = dir.join("kubeconfig");
    std::fs::write(&path, kubeconfig).unwrap();
    let mut command = tokio::process::Command::new(peer("kubernetes/kubernetes")?);
    // Its caches and the user's preferences would be those of the home folder.
    command.arg("kubectl").arg("--cache-dir").arg(dir.join("cache")).env("KUBERC", "off");
    command.arg("--kubeconfig").arg(path).kill_on_drop(true);
    Some(command)
}
