//! `FILE.served`: the ports and the certificates with which the fleet of a document was served, kept beside it.
//! Whoever starts the simulator again finds them as they were, and so do the Site and the kubeconfig that name
//! them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rcgen::{CertifiedKey, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::{Deserialize, Serialize};

use super::ServeError;
use crate::base::files;

/// Some thousand doors have less than 10 MB.
const LIMIT: u64 = 64 << 20;

/// The doors of a fleet by what is behind them: `vcenter`, `guest k8s-serve`, `shell esx-01`.
#[derive(Debug, Default)]
pub(super) struct Doors {
    /// None: a world without a file, of which nothing is kept.
    file: Option<PathBuf>,
    known: BTreeMap<String, Door>,
    changed: bool,
}

/// A port, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Door {
    port: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    identity: Option<Identity>,
}

/// A certificate with its key, both as PEM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Identity {
    /// The name that it is made for.
    name: String,
    pub certificate: String,
    key: String,
}

type Wrong = Box<dyn std::error::Error + Send + Sync>;

impl Doors {
    /// The doors of the world of this document, as they were left.
    pub fn of(document: Option<&Path>) -> Result<Self, ServeError> {
        let Some(document) = document else { return Ok(Self::default()) };
        let mut file = OsString::from(document);
        file.push(".served");
        let file = PathBuf::from(file);
        let wrong = |source: Wrong| ServeError::Kept { file: file.clone(), source };
        let known = match files::read_text(&file, LIMIT) {
            Ok(text) => serde_json::from_str(&text).map_err(|error| wrong(error.into()))?,
            Err(error) if error.is_missing() => BTreeMap::new(),
            Err(error) => return Err(wrong(error.into())),
        };
        Ok(Self { file: Some(file), known, changed: false })
    }

    /// The port of a door; 0 if it had none.
    pub fn port(&self, door: &str) -> u16 {
        self.known.get(door).map_or(0, |known| known.port)
    }

    /// The identity of a door that answers by this name: the one of before, or a new one.
    pub fn identity(&self, door: &str, name: &str) -> Result<Identity, ServeError> {
        match self.known.get(door).and_then(|known| known.identity.as_ref()).filter(|known| known.name == name) {
            Some(known) => Ok(known.clone()),
            None => Identity::new(name),
        }
    }

    /// Remembers where a door is.
    pub fn keep(&mut self, door: &str, port: u16, identity: Option<Identity>) {
        let door_now = Door { port, identity };
        self.changed |= self.known.get(door) != Some(&door_now);
        self.known.insert(door.to_owned(), door_now);
    }

    /// Writes what changed to the file, which only its owner may read.
    pub fn save(&self) -> Result<(), ServeError> {
        let Some(file) = self.file.as_ref().filter(|_| self.changed) else { return Ok(()) };
        let wrong = |source: Wrong| ServeError::Kept { file: file.clone(), source };
        let text = serde_json::to_vec_pretty(&self.known).map_err(|error| wrong(error.into()))?;
        files::replace(file, &text).map_err(|error| wrong(error.into()))
    }
}

impl Identity {
    fn new(name: &str) -> Result<Self, ServeError> {
        let names = vec![name.to_owned(), "localhost".to_owned(), "127.0.0.1".to_owned()];
        let made: CertifiedKey<KeyPair> = rcgen::generate_simple_self_signed(names)
            .map_err(|error| ServeError::Certificate { name: name.to_owned(), source: error.into() })?;
        Ok(Self { name: name.to_owned(), certificate: made.cert.pem(), key: made.signing_key.serialize_pem() })
    }

    /// Certificate and key as TLS takes them.
    pub fn read(&self) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), ServeError> {
        let wrong = |source: Wrong| ServeError::Certificate { name: self.name.clone(), source };
        let certificate =
            CertificateDer::from_pem_slice(self.certificate.as_bytes()).map_err(|error| wrong(error.into()))?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).map_err(|error| wrong(error.into()))?;
        Ok((certificate, key))
    }
}
