//! The shells of a Site's hosts: who logs in where, and by which keys hosts are known.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use secrecy::SecretString;

use crate::base::files::{self, FileError};
use crate::base::net::Dial;
use crate::base::secret::{SecretError, SecretRef, SecretRefError};
use crate::inventory::{self, CredentialRef, ShellUser};
use crate::model::{At, Fact, HostKeyPin, Place, ShellLogin, ShellWay};
use crate::shell::{Access, Credential, KnownHosts, KnownHostsError, PORT, Shell, ShellError};

/// A `known_hosts` file of a fleet has some lines of 800 bytes per host.
const LONGEST_FILE: u64 = 16 << 20;

/// The shells of a Site that are reached by SSH.
#[derive(Debug)]
pub struct Shells {
    users: Vec<User>,
    pins: BTreeMap<String, HostKeyPin>,
    known: KnownHosts,
    /// Hosts whose shell is not used any more.
    ended: Mutex<BTreeSet<String>>,
}

#[derive(Debug)]
struct User {
    of_site: ShellUser,
    /// None: only who logs in is of interest.
    by: Option<By>,
}

#[derive(Debug)]
enum By {
    Password(SecretString),
    Key(SecretString),
}

/// Why shells cannot be used at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShellsError {
    /// The file of host keys could not be read.
    #[error("cannot read the host keys ({place})")]
    File {
        /// Where its path stands.
        place: Place,
        /// Why.
        #[source]
        source: FileError,
    },
    /// It is no such file.
    #[error("cannot use the host keys of {path}")]
    KnownHosts {
        /// Its path.
        path: String,
        /// Why.
        #[source]
        source: KnownHostsError,
    },
    /// A reference is none.
    #[error("cannot get the credential of {user} for the shell of hosts ({place})")]
    Reference {
        /// The user.
        user: String,
        /// Where the reference stands.
        place: Place,
        /// Why.
        #[source]
        source: SecretRefError,
    },
    /// A credential could not be had.
    #[error("cannot get the credential of {user} for the shell of hosts ({place})")]
    Credential {
        /// The user.
        user: String,
        /// Where the reference stands.
        place: Place,
        /// Why.
        #[source]
        source: SecretError,
    },
}

/// Why the shell of one host is not used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoShell {
    /// Nobody of the Site logs in there.
    #[error("no user of the Site's `shell` logs in to {host}")]
    NoUser {
        /// The host.
        host: String,
    },
    /// This command was not to log in: it asked for no credentials.
    #[error("no credential for {host} was asked for, so it is not logged in to")]
    NoCredential {
        /// The host.
        host: String,
    },
    /// A login was refused before.
    #[error("a login to {host} failed before in this run, and another could lock the account")]
    Ended {
        /// The host.
        host: String,
    },
    /// The shell itself.
    #[error(transparent)]
    Shell(#[from] ShellError),
}

impl Shells {
    /// Who logs in where, and by which keys hosts are known; no credential is asked for. None if a
    /// person does what a shell is needed for.
    ///
    /// # Errors
    /// The file of host keys cannot be used.
    pub fn of(shell: &inventory::Shell) -> Result<Option<Self>, ShellsError> {
        let inventory::Shell { way, users, host_keys } = shell;
        if way.value == ShellWay::Handoff {
            return Ok(None);
        }
        let known = match &host_keys.file {
            None => KnownHosts::default(),
            Some(path) => {
                let text = files::read_text(Path::new(&path.value), LONGEST_FILE)
                    .map_err(|source| ShellsError::File { place: path.place.clone(), source })?;
                let wrong = |source| ShellsError::KnownHosts { path: path.value.clone(), source };
                KnownHosts::parse(&text).map_err(wrong)?
            }
        };
        let users = users.iter().map(|user| User { of_site: user.clone(), by: None }).collect();
        let pins = host_keys.pins.iter().map(|(host, key)| (host.to_lowercase(), key.value.0.clone())).collect();
        Ok(Some(Self { users, pins, known, ended: Mutex::default() }))
    }

    /// With the credentials: without them nobody is logged in.
    ///
    /// Must not be called in a paused runtime, as [`SecretRef::resolve`].
    ///
    /// # Errors
    /// A credential cannot be had.
    pub async fn with_credentials(mut self) -> Result<Self, ShellsError> {
        for user in &mut self.users {
            user.by = Some(resolve(&user.of_site).await?);
        }
        Ok(self)
    }

    /// Who would log in to this host; absent if nobody.
    pub fn login(&self, host: &str) -> Fact<ShellLogin> {
        let login = |user: &User| {
            Fact::Known(ShellLogin { user: user.of_site.user.value.clone(), pinned: !self.pins(host).is_empty() })
        };
        self.user(host).map_or(Fact::Absent, login)
    }

    /// The keys that this host may have. Without one it is not logged in to.
    pub fn pins(&self, host: &str) -> Vec<HostKeyPin> {
        match self.pins.get(&host.to_lowercase()) {
            Some(pin) => vec![pin.clone()],
            None => self.known.pins(host, PORT),
        }
    }

    fn user(&self, host: &str) -> Option<&User> {
        self.users.iter().find(|user| user.of_site.hosts.as_ref().is_none_or(|hosts| hosts.matches(host)))
    }

    /// Logs in to a host, with one try. A host that has refused one is not asked again.
    ///
    /// # Errors
    /// [`NoShell`].
    pub async fn open(&self, dial: &dyn Dial, host: &str) -> Result<Shell, NoShell> {
        if self.ended().contains(host) {
            return Err(NoShell::Ended { host: host.to_owned() });
        }
        let user = self.user(host).ok_or_else(|| NoShell::NoUser { host: host.to_owned() })?;
        let credential = match &user.by {
            Some(By::Password(password)) => Credential::Password(password.clone()),
            Some(By::Key(key)) => Credential::Key(key.clone()),
            None => return Err(NoShell::NoCredential { host: host.to_owned() }),
        };
        let (host, user) = (host.to_owned(), user.of_site.user.value.clone());
        let access = Access { pins: self.pins(&host), host, port: PORT, user, credential };
        let opened = Shell::open(dial, &access).await;
        if opened.as_ref().is_err_and(ShellError::ends_shell_use) {
            self.end(&access.host);
        }
        Ok(opened?)
    }

    /// Ends the use of a host's shell: a login of this run failed there, as a journal says.
    pub fn end(&self, host: &str) {
        self.ended().insert(host.to_owned());
    }

    fn ended(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        // A panic while the lock is held leaves a set of names, which is still one.
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn resolve(user: &ShellUser) -> Result<By, ShellsError> {
    let name = &user.user.value;
    let reference = |at: &At<CredentialRef>| {
        let wrong = |source| ShellsError::Reference { user: name.clone(), place: at.place.clone(), source };
        at.value.as_str().parse::<SecretRef>().map_err(wrong)
    };
    let failed = |at: &At<CredentialRef>, source| ShellsError::Credential {
        user: name.clone(),
        place: at.place.clone(),
        source,
    };
    match (&user.password, &user.key) {
        (_, Some(key)) => Ok(By::Key(reference(key)?.resolve_text().await.map_err(|source| failed(key, source))?)),
        (Some(password), None) => {
            Ok(By::Password(reference(password)?.resolve().await.map_err(|source| failed(password, source))?))
        }
        (None, None) => unreachable!("a Site whose user has no credential is not read"),
    }
}
