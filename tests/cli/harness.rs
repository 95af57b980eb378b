//! Runs the binary in a folder of its own, with nothing of this machine's environment.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// The site of these tests, with another password reference or pin where a test wants one.
pub const SITE: &str = include_str!("lab.yaml");
/// Their fleet, which has no guest clusters.
pub const WORLD: &str = include_str!("lab-world.yaml");
/// The shipped profile of one cluster.
pub const L40S: &str = include_str!("../../profiles/l40s.yaml");
/// Another one.
pub const H100: &str = include_str!("../../profiles/h100-nvl.yaml");

/// A100 hosts that become MIG.
pub const A100_MIG: &str = include_str!("../../profiles/a100-mig.yaml");
/// A Hopper host that was MIG.
pub const H100_MIG: &str = include_str!("../../profiles/h100-mig.yaml");

/// A folder, and commands in it.
pub struct Folder {
    dir: TempDir,
}

/// How a command ended.
#[must_use = "look at the exit code or at what was printed"]
pub struct Ended {
    /// Exit code; -1 if a signal ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    dir: PathBuf,
}

/// The Site, or one made from it, without its shell: a person types.
pub fn by_hand(site: &str) -> String {
    let (head, rest) = site.split_once("  shell:\n").unwrap();
    let (_, tail) = rest.split_once("  # How long to look").unwrap();
    format!("{head}  # How long to look{tail}")
}

impl Folder {
    /// An empty one.
    pub fn empty() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// One with the site and the world, and these profiles.
    pub fn lab(profiles: &[(&str, &str)]) -> Self {
        let folder = Self::empty();
        folder.write("inventories/lab.yaml", SITE);
        folder.write("world.yaml", WORLD);
        for (name, text) in profiles {
            folder.write(&format!("profiles/{name}.yaml"), text);
        }
        folder
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a file.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Reads a file.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap()
    }

    /// The command of this line, words apart by single blanks.
    pub fn command(&self, line: &str) -> Command {
        let mut command = self.program();
        command.args(line.split(' '));
        command
    }

    /// The program, without arguments yet.
    pub fn program(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_poolwright"));
        command.current_dir(self.path()).env_clear().stdin(Stdio::null());
        // Credentials by `exec:` need to find their program.
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    /// Runs a command.
    pub fn run(&self, line: &str) -> Ended {
        let output = self.command(line).output().unwrap();
        self.ended(&output)
    }

    /// How this output reads here.
    pub fn ended(&self, output: &Output) -> Ended {
        Ended {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout.clone()).unwrap(),
            stderr: String::from_utf8(output.stderr.clone()).unwrap(),
            dir: self.path().to_owned(),
        }
    }

    /// The one run that was made here.
    pub fn run_id(&self) -> String {
        let mut runs = std::fs::read_dir(self.path().join(".poolwright/runs")).unwrap();
        let run = runs.next().unwrap().unwrap().file_name().into_string().unwrap();
        assert!(runs.next().is_none(), "more than one run");
        run
    }

    /// Every file below, with its content.
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let (mut files, mut dirs) = (Vec::new(), vec![self.path().to_owned()]);
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    dirs.push(path);
                } else {
                    files.push((path.clone(), std::fs::read(path).unwrap()));
                }
            }
        }
        files
    }
}

impl Ended {
    /// Fails with what was printed, unless it ended so.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "\n--- stdout\n{}--- stderr\n{}", self.stdout, self.stderr);
        self
    }

    /// Exit code and both streams, as a snapshot holds them: what differs from run to run is named.
    pub fn shown(&self) -> String {
        let text = format!("exit {}\n--- stdout\n{}--- stderr\n{}", self.code, self.stdout, self.stderr);
        let text = text.replace(&self.dir.display().to_string(), "DIR");
        let mut shown = String::new();
        for word in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
            let (bare, end) = match word.char_indices().last() {
                Some((at, last)) if !last.is_ascii_alphanumeric() => word.split_at(at),
                _ => (word, ""),
            };
            let run = bare.len() == 26 && bare.starts_with("01") && bare.chars().all(|c| !c.is_ascii_lowercase());
            let digest = matches!(bare.len(), 16 | 64) && bare.bytes().all(|b| b.is_ascii_hexdigit());
            shown.push_str(if run {
                "RUN"
            } else if digest {
                "DIGEST"
            } else {
                bare
            });
            shown.push_str(end);
        }
        shown
    }
}
