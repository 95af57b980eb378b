//! The fleet of one site: a session on its vCenter, and the names of what is there.

use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use secrecy::SecretString;

use super::guests::Guests;
use super::shells::{NoShell, Shells};
use super::tree::{self, Entity};
use crate::base::clock::Clock;
use crate::base::net::{Dial, Endpoint, NetError, Network, Trust};
use crate::inventory::{self, Site};
use crate::model::{Fact, HostName, MoRef, Roster, ShellLogin, SiteIdentity};
use crate::shell::Shell;
use crate::vim25::wire::decode;
use crate::vim25::wire::names::{managed, path};
use crate::vim25::{Client, Error, ObjectContent, PropertySet, Scope};

/// The managed types that make paths.
const TREE: [&str; 5] =
    [managed::FOLDER, managed::DATACENTER, managed::COMPUTE_RESOURCE, managed::CLUSTER, managed::HOST_SYSTEM];

/// Why there is no fleet to observe.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// There is no way to the vCenter, or none to be trusted: nothing was sent.
    #[error("cannot connect to site {site}")]
    Way {
        /// Site.
        site: String,
        /// Why.
        #[source]
        source: NetError,
    },
    /// It does not answer as a vCenter does, is another one than pinned, or refuses the login.
    #[error("cannot connect to site {site}")]
    Vcenter {
        /// Site.
        site: String,
        /// Why.
        #[source]
        source: Error,
    },
}

/// The hosts of one site, as its vCenter shows them, and the ways to their shells.
///
/// It reads; changes go through [`Fleet::vcenter`] and [`Fleet::open_shell`]. Close it on every way out.
pub struct Fleet {
    identity: SiteIdentity,
    vcenter: Client,
    clock: Clock,
    /// None: no shell is reached by SSH.
    shells: Option<(Shells, Arc<dyn Dial>)>,
    /// Guest clusters whose nodes run on the hosts.
    pub(super) guests: Guests,
    /// Key of the field of markers, once it was seen: it is asked for with every host that is read,
    /// and a server never gives the key of a field to another one.
    pub(super) marker_key: OnceLock<i32>,
}

impl std::fmt::Debug for Fleet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fleet").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl Fleet {
    /// Opens a session on the vCenter of this site. A pinned instance UUID is compared before the
    /// password is sent.
    ///
    /// # Errors
    /// [`ConnectError`], with what the server or the network says.
    pub async fn connect(
        name: &str,
        site: &Site,
        user: &str,
        password: SecretString,
        network: &dyn Network,
        clock: Clock,
    ) -> Result<Self, ConnectError> {
        let address = site.vcenter.address.value.to_string();
        let authority = site.vcenter.address.authority().to_owned();
        let endpoint = Endpoint::new(authority.clone(), trust(&site.vcenter.trust));
        let exchange: Arc<_> =
            network.open(&endpoint).map_err(|source| ConnectError::Way { site: name.to_owned(), source })?;
        let pin = site.vcenter.instance_uuid.as_ref().map(|pin| pin.value.as_str());
        let vcenter =
            Client::connect(exchange, authority, pin, user, password, clock).await.map_err(|error| match error {
                // What was to be sent says nothing of why it was not.
                Error::Net { source, .. } if source.not_sent() => ConnectError::Way { site: name.to_owned(), source },
                source => ConnectError::Vcenter { site: name.to_owned(), source },
            })?;
        let about = vcenter.about();
        let identity = SiteIdentity {
            name: name.to_owned(),
            address,
            instance_uuid: about.instance_uuid.clone(),
            version: about.version.clone(),
            api_version: vcenter.version().to_string(),
        };
        Ok(Self { identity, vcenter, clock, shells: None, guests: Guests::new(), marker_key: OnceLock::new() })
    }

    /// With the shells of its hosts, and the way to them.
    pub fn with_shells(self, shells: Shells, dial: Arc<dyn Dial>) -> Self {
        Self { shells: Some((shells, dial)), ..self }
    }

    /// With the guest clusters whose nodes run on its hosts.
    pub fn with_guests(self, guests: Guests) -> Self {
        Self { guests, ..self }
    }

    /// Logs in to the shell of a host, with one try. A host that has refused one is not asked again.
    ///
    /// # Errors
    /// [`NoShell`]; also where shells are reached by a person.
    pub async fn open_shell(&self, host: &HostName) -> Result<Shell, NoShell> {
        match &self.shells {
            Some((shells, dial)) => shells.open(dial.as_ref(), host.as_str()).await,
            None => Err(NoShell::NoUser { host: host.to_string() }),
        }
    }

    /// Ends the use of a host's shell: a login of this run failed there, as its journal says.
    pub fn end_shell(&self, host: &HostName) {
        if let Some((shells, _)) = &self.shells {
            shells.end(host.as_str());
        }
    }

    /// Who would log in to the shell of a host.
    pub(super) fn shell_login(&self, host: &HostName) -> Fact<ShellLogin> {
        self.shells.as_ref().map_or(Fact::Absent, |(shells, _)| shells.login(host.as_str()))
    }

    /// Which vCenter answers.
    pub fn identity(&self) -> &SiteIdentity {
        &self.identity
    }

    /// The client, for calls that change something and for waiting.
    pub fn vcenter(&self) -> &Client {
        &self.vcenter
    }

    /// The time by the server's clock, as far as it was ahead of ours at the login.
    pub fn now(&self) -> Timestamp {
        let ours = self.clock.now();
        ours.checked_add(self.vcenter.clock_difference()).unwrap_or(ours)
    }

    /// Names, paths and ids of all clusters and hosts. What can't be placed is noted and left out.
    ///
    /// # Errors
    /// If the inventory can't be read.
    pub async fn roster(&self) -> Result<Roster, Error> {
        let root = self.vcenter.root_folder();
        let sets = TREE.map(|kind| PropertySet::new(kind, &[path::NAME, path::PARENT]));
        let mut entities = Vec::new();
        let mut notes = Vec::new();
        let read = self
            .vcenter
            .retrieve(&Scope::Below(root.clone()), &sets, |page| {
                for content in page {
                    match entity(&content) {
                        Some(entity) => entities.push(entity),
                        None => notes.push(format!("{} does not show its name", content.object)),
                    }
                }
            })
            .await?;
        notes.extend(read.gone.iter().map(|gone| format!("{gone} went away while the inventory was read")));
        Ok(tree::roster(root, entities, notes))
    }

    /// Ends the session.
    ///
    /// # Errors
    /// If the server could not be told; the session then ends by itself when it is idle.
    pub async fn close(&self) -> Result<(), Error> {
        self.vcenter.logout().await
    }
}

pub(super) fn entity(content: &ObjectContent) -> Option<Entity> {
    let name = content.fact(path::NAME, decode::string).known().cloned()?;
    let parent: Option<MoRef> = content.fact(path::PARENT, decode::reference).known().cloned();
    Some(Entity { moref: content.object.clone(), name, parent })
}

fn trust(trust: &inventory::Trust) -> Trust {
    match trust {
        inventory::Trust::System => Trust::System,
        inventory::Trust::CaFile(path) => Trust::CaFile(path.value.clone().into()),
        inventory::Trust::Thumbprint(pin) => Trust::Thumbprint(pin.value.0),
    }
}
