//! Files: reads that name the path, replacement that a crash cannot halve, an appender that syncs,
//! a lock.
//!
//! ```text
//!   replace:  temp beside the target ── write, sync ──► rename over it ──► sync the directory
//!   append:   one line ── write ──► sync; after a failed write nothing more is written
//! ```

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Why a file could not be read, written or locked. Every variant names the path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// It could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is a pipe, a device or a socket: reading it may never end.
    #[error("{} is {what} and not a file", path.display())]
    NoFile {
        /// Which.
        path: PathBuf,
        /// What it is, with its article.
        what: &'static str,
    },
    /// It is longer than the caller is ready to read.
    #[error("{} is longer than {limit} bytes", path.display())]
    TooLong {
        /// Which file.
        path: PathBuf,
        /// The limit in bytes.
        limit: u64,
    },
    /// It is not UTF-8.
    #[error("{}:{line}:{column}: the file is not UTF-8", path.display())]
    NotUtf8 {
        /// Which file.
        path: PathBuf,
        /// Line of the first bad byte, from 1.
        line: usize,
        /// Column of the first bad byte in characters, from 1.
        column: usize,
    },
    /// It could not be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// Which file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// An earlier write to the same appender failed: its end is not known to be whole.
    #[error("cannot write {}: an earlier write failed", path.display())]
    Broken {
        /// Which file.
        path: PathBuf,
    },
    /// Somebody else holds the lock.
    #[error("{} is locked{}", path.display(), if holder.is_empty() { String::new() } else { format!(" by {holder}") })]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// What the holder wrote into it; empty if it could not be read.
        holder: String,
    },
}

impl FileError {
    /// Whether the file was to be read and is not there.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// Reads a file whole, at most `limit` bytes.
///
/// # Errors
/// [`FileError::Read`], [`FileError::TooLong`], [`FileError::NoFile`].
pub fn read_bytes(path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    // Asked before it is opened: that already waits for the other end of a pipe.
    if let Some(what) = fs::metadata(path).ok().and_then(|metadata| unlike_a_file(metadata.file_type())) {
        return Err(FileError::NoFile { path: path.to_owned(), what });
    }
    read_stream(path, limit)
}

/// What is at a path, if that is neither a file nor a folder.
#[cfg(unix)]
fn unlike_a_file(kind: fs::FileType) -> Option<&'static str> {
    use std::os::unix::fs::FileTypeExt;
    match () {
        () if kind.is_fifo() => Some("a pipe"),
        () if kind.is_socket() => Some("a socket"),
        () if kind.is_char_device() || kind.is_block_device() => Some("a device"),
        () => None,
    }
}

#[cfg(not(unix))]
fn unlike_a_file(_: fs::FileType) -> Option<&'static str> {
    None
}

/// Reads whatever is at a path to its end, at most `limit` bytes: a file, or what a program writes
/// into a pipe.
///
/// # Errors
/// [`FileError::Read`], [`FileError::TooLong`].
pub fn read_stream(path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    let fail = |source| FileError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(fail)?;
    let mut bytes = Vec::new();
    // One byte past the limit tells a file of exactly the limit from a longer one; the length that
    // the file system reports is not asked, since pipes and /proc have none.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 > limit {
        return Err(FileError::TooLong { path: path.to_owned(), limit });
    }
    Ok(bytes)
}

/// Reads a text file whole, at most `limit` bytes.
///
/// # Errors
/// As [`read_bytes`], and [`FileError::NotUtf8`] with the place of the first bad byte.
pub fn read_text(path: &Path, limit: u64) -> Result<String, FileError> {
    String::from_utf8(read_bytes(path, limit)?).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        let tail = good.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        let column = String::from_utf8_lossy(tail).chars().count() + 1;
        FileError::NotUtf8 { path: path.to_owned(), line, column }
    })
}

/// Proves that a file can be written at this path, before the work whose result goes there.
///
/// # Errors
/// [`FileError::Write`].
pub fn check_writable(path: &Path) -> Result<(), FileError> {
    temp_beside(path).map(drop)
}

/// An empty file in the folder of another one; it goes when it is dropped.
fn temp_beside(path: &Path) -> Result<tempfile::NamedTempFile, FileError> {
    let fail = |path: &Path, source| FileError::Write { path: path.to_owned(), source };
    let dir = folder_of(path);
    // Asked first, so that the message names a path that the user knows.
    fs::metadata(dir).map_err(|source| fail(dir, source))?;
    if path.is_dir() {
        return Err(fail(path, io::ErrorKind::IsADirectory.into()));
    }
    tempfile::Builder::new().prefix(".poolwright-").tempfile_in(dir).map_err(|source| fail(path, source))
}

/// Names of a folder's entries, sorted; each is a file or a folder, links followed.
///
/// # Errors
/// [`FileError::Read`].
pub fn list(dir: &Path) -> Result<Vec<PathBuf>, FileError> {
    let fail = |source| FileError::Read { path: dir.to_owned(), source };
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).map_err(fail)? {
        paths.push(entry.map_err(fail)?.path());
    }
    paths.sort();
    Ok(paths)
}

/// Creates a folder that only its owner may read (0700), with its parents.
///
/// # Errors
/// [`FileError::Write`].
pub fn create_private_dir(path: &Path) -> Result<(), FileError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|source| FileError::Write { path: path.to_owned(), source })
}

/// Replaces a file or creates it: a reader sees the old content or the new, and so does a crash.
///
/// # Errors
/// [`FileError::Write`]; the old content is then still there.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let fail = |source| FileError::Write { path: path.to_owned(), source };
    let dir = folder_of(path);
    let mut temp = temp_beside(path)?;
    temp.write_all(bytes).map_err(fail)?;
    temp.as_file().sync_all().map_err(fail)?;
    temp.persist(path).map_err(|error| fail(error.error))?;
    sync_dir(dir).map_err(fail)
}

/// Creates a file that must not be there yet, and syncs it.
///
/// # Errors
/// [`FileError::Write`], of kind `AlreadyExists` if it is there.
pub fn create(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let fail = |source| FileError::Write { path: path.to_owned(), source };
    let dir = folder_of(path);
    let mut temp = temp_beside(path)?;
    temp.write_all(bytes).map_err(fail)?;
    temp.as_file().sync_all().map_err(fail)?;
    temp.persist_noclobber(path).map_err(|error| fail(error.error))?;
    sync_dir(dir).map_err(fail)
}

/// Removes a file; one that is not there is fine.
///
/// # Errors
/// [`FileError::Write`].
pub fn remove(path: &Path) -> Result<(), FileError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(FileError::Write { path: path.to_owned(), source })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Removes a folder with everything in it; one that is not there is fine.
///
/// # Errors
/// [`FileError::Write`].
pub fn remove_dir(path: &Path) -> Result<(), FileError> {
    match fs::remove_dir_all(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(FileError::Write { path: path.to_owned(), source })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        Some(_) | None => Path::new("."),
    }
}

/// A rename is durable once its directory is synced. Only Unix can open a directory for that.
fn sync_dir(dir: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(dir)?.sync_all() } else { Ok(()) }
}

/// Appends lines to a file; each is on the disk when the call comes back.
#[derive(Debug)]
pub struct Appender {
    path: PathBuf,
    file: File,
    broken: bool,
}

impl Appender {
    /// Opens a file for appending; creates it, readable by its owner alone.
    ///
    /// # Errors
    /// [`FileError::Write`].
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let fail = |source| FileError::Write { path: path.to_owned(), source };
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(fail)?;
        sync_dir(folder_of(path)).map_err(fail)?;
        Ok(Self { path: path.to_owned(), file, broken: false })
    }

    /// Appends `line` and a line feed in one write, and waits until it is on the disk.
    ///
    /// # Errors
    /// [`FileError::Write`]; then the end of the file may be torn, and every later call answers
    /// [`FileError::Broken`] without writing.
    pub fn append_synced(&mut self, line: &str) -> Result<(), FileError> {
        if self.broken {
            return Err(FileError::Broken { path: self.path.clone() });
        }
        let mut bytes = Vec::with_capacity(line.len() + 1);
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        self.file.write_all(&bytes).and_then(|()| self.file.sync_data()).map_err(|source| {
            self.broken = true;
            FileError::Write { path: self.path.clone(), source }
        })
    }
}

/// Cuts a file to `len` bytes and syncs it.
///
/// # Errors
/// [`FileError::Write`].
pub fn truncate(path: &Path, len: u64) -> Result<(), FileError> {
    let fail = |source| FileError::Write { path: path.to_owned(), source };
    let file = OpenOptions::new().write(true).open(path).map_err(fail)?;
    file.set_len(len).and_then(|()| file.sync_all()).map_err(fail)
}

/// A lock on a file that ends with the process, however it ends.
#[derive(Debug)]
pub struct Lock {
    // Held open: closing it gives the lock up.
    _file: File,
}

impl Lock {
    /// Takes the lock without waiting, and writes `holder` (who and which process) into the file.
    ///
    /// # Errors
    /// [`FileError::Locked`] with the holder's words, [`FileError::Write`].
    pub fn acquire(path: &Path, holder: &str) -> Result<Self, FileError> {
        let fail = |source| FileError::Write { path: path.to_owned(), source };
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(fail)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(FileError::Locked { path: path.to_owned(), holder: holder_of(file) });
            }
            Err(TryLockError::Error(source)) => return Err(fail(source)),
        }
        file.set_len(0).map_err(fail)?;
        file.seek(SeekFrom::Start(0)).map_err(fail)?;
        file.write_all(holder.as_bytes()).map_err(fail)?;
        Ok(Self { _file: file })
    }

    /// What the holder of a lock wrote into it; none if nobody holds it now.
    ///
    /// # Errors
    /// [`FileError::Read`].
    pub fn holder(path: &Path) -> Result<Option<String>, FileError> {
        let fail = |source| FileError::Read { path: path.to_owned(), source };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(fail(source)),
        };
        // A shared lock, so that two who look do not take each other for a holder.
        match file.try_lock_shared() {
            Ok(()) => Ok(None),
            Err(TryLockError::WouldBlock) => Ok(Some(holder_of(file))),
            Err(TryLockError::Error(source)) => Err(fail(source)),
        }
    }
}

/// The holder's words are a help, not a condition.
fn holder_of(file: File) -> String {
    let mut text = String::new();
    let _ = file.take(1024).read_to_string(&mut text);
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_is_whole_and_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plan.json");
        replace(&path, b"one").unwrap();
        replace(&path, b"two").unwrap();
        assert_eq!(read_text(&path, 10).unwrap(), "two");
        assert_eq!(list(dir.path()).unwrap(), [path]);
    }

    #[test]
    fn create_does_not_overwrite() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plan.json");
        create(&path, b"one").unwrap();
        assert!(matches!(create(&path, b"two"), Err(FileError::Write { .. })));
        assert_eq!(read_text(&path, 10).unwrap(), "one");
    }

    #[test]
    fn the_limit_is_inclusive_and_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.yaml");
        replace(&path, b"12345").unwrap();
        assert_eq!(read_bytes(&path, 5).unwrap(), b"12345");
        let error = read_bytes(&path, 4).unwrap_err().to_string();
        assert!(error.ends_with("a.yaml is longer than 4 bytes"), "{error}");
    }

    #[test]
    fn text_that_is_not_utf8_names_the_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.yaml");
        replace(&path, b"kind: x\n\xc3\xa4b: \xff\n").unwrap();
        let error = read_text(&path, 100).unwrap_err().to_string();
        assert!(error.ends_with("a.yaml:2:5: the file is not UTF-8"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn what_may_never_end_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("socket");
        let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for (path, what) in [(Path::new("/dev/zero"), "a device"), (&socket, "a socket")] {
            let error = read_bytes(path, 10).unwrap_err().to_string();
            assert_eq!(error, format!("{} is {what} and not a file", path.display()));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn after_a_full_disk_the_appender_writes_nothing_more() {
        let mut full = Appender::open(Path::new("/dev/full")).unwrap();
        assert!(matches!(full.append_synced("{}"), Err(FileError::Write { .. })));
        assert!(matches!(full.append_synced("{}"), Err(FileError::Broken { .. })));
    }

    #[test]
    fn lines_are_appended_in_order_and_cut_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        Appender::open(&path).unwrap().append_synced("one").unwrap();
        Appender::open(&path).unwrap().append_synced("two").unwrap();
        assert_eq!(read_text(&path, 100).unwrap(), "one\ntwo\n");
        truncate(&path, 4).unwrap();
        assert_eq!(read_text(&path, 100).unwrap(), "one\n");
    }

    #[test]
    fn a_lock_names_its_holder_and_ends_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let held = Lock::acquire(&path, "process 17").unwrap();
        let error = Lock::acquire(&path, "process 18").unwrap_err().to_string();
        assert!(error.ends_with("lock is locked by process 17"), "{error}");
        assert_eq!(Lock::holder(&path).unwrap().as_deref(), Some("process 17"));
        drop(held);
        assert_eq!(Lock::holder(&path).unwrap(), None);
        Lock::acquire(&path, "process 18").unwrap();
    }
}
