//! Host keys: the same in each run, since they are made from names.

use russh::keys::PrivateKey;
use russh::keys::ssh_key::private::{Ed25519Keypair, KeypairData};

use crate::sim::World;

/// The key made from this seed.
pub(super) fn private(seed: &[u8; 32]) -> Result<PrivateKey, russh::keys::ssh_key::Error> {
    PrivateKey::new(KeypairData::Ed25519(Ed25519Keypair::from_seed(seed)), "")
}

impl World {
    /// The host keys of all hosts as a `known_hosts` file has them.
    pub fn known_hosts(&self) -> String {
        let keys = self.look(|moment| {
            let hosts = moment.state.hosts.values();
            hosts.map(|host| (host.name.clone(), host.shell.key)).collect::<Vec<_>>()
        });
        keys.iter().filter_map(|(host, seed)| Some(format!("{host} {}\n", public(seed)?))).collect()
    }
}

/// The public half in OpenSSH's format.
pub(super) fn public(seed: &[u8; 32]) -> Option<String> {
    private(seed).ok()?.public_key().to_openssh().ok()
}
