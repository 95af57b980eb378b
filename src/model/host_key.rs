//! The key by which an SSH host is known.

use std::fmt;
use std::str::FromStr;

use russh::keys::ssh_key::{Fingerprint, HashAlg, PublicKey};

/// What a host's key must be: the key itself, or its fingerprint.
///
/// Written as a line of `ssh-keyscan` without the host (`ssh-ed25519 AAAA…`), or as `ssh-keygen -l`
/// shows it (`SHA256:…`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostKeyPin {
    /// The key, without its comment.
    Key(Box<PublicKey>),
    /// The SHA-256 of the key.
    Fingerprint([u8; 32]),
}

/// Why a text is no pin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a host key: {reason} (expected `ssh-ed25519 AAAA…`, or `SHA256:…` as `ssh-keygen -l` shows it)"
)]
pub struct HostKeyPinError {
    /// The text as given.
    pub text: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl HostKeyPin {
    /// Whether this is the key that was pinned.
    pub fn is(&self, shown: &PublicKey) -> bool {
        match self {
            Self::Key(key) => key.key_data() == shown.key_data(),
            Self::Fingerprint(pin) => shown.fingerprint(HashAlg::Sha256).sha256() == Some(*pin),
        }
    }
}

impl FromStr for HostKeyPin {
    type Err = HostKeyPinError;

    fn from_str(text: &str) -> Result<Self, HostKeyPinError> {
        let text = text.trim();
        let fail = |reason| HostKeyPinError { text: text.to_owned(), reason };
        if text.starts_with("SHA256:") {
            let fingerprint = text.parse::<Fingerprint>().ok().and_then(Fingerprint::sha256);
            return fingerprint.map(Self::Fingerprint).ok_or_else(|| fail("a SHA-256 has 43 letters of base64"));
        }
        if text.starts_with("MD5:") || text.len() == 47 && text.matches(':').count() == 15 {
            return Err(fail("an MD5 fingerprint can be forged"));
        }
        if text.contains("PRIVATE KEY") {
            return Err(HostKeyPinError { text: "…".to_owned(), reason: "this is a private key" });
        }
        match PublicKey::from_openssh(text) {
            Ok(key) => Ok(Self::Key(Box::new(PublicKey::new(key.key_data().clone(), "")))),
            Err(_) => Err(fail("it is no OpenSSH public key")),
        }
    }
}

impl fmt::Display for HostKeyPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // A key that was read can be written: only a comment with a line end could not.
            Self::Key(key) => f.pad(&key.to_openssh().unwrap_or_default()),
            Self::Fingerprint(pin) => f.pad(&Fingerprint::Sha256(*pin).to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key that nobody holds the private half of in earnest.
    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";

    #[test]
    fn a_key_and_its_fingerprint_pin_the_same() {
        let key: HostKeyPin = format!(" {KEY} root@esx-01\n").parse().unwrap();
        let HostKeyPin::Key(public) = &key else { panic!("{key:?}") };
        let print = public.fingerprint(HashAlg::Sha256).to_string();
        let pin: HostKeyPin = print.parse().unwrap();
        assert!(key.is(public) && pin.is(public));
        assert_eq!((key.to_string(), pin.to_string()), (KEY.to_owned(), print));
        let other = KEY.replace("dD7y", "dD7z").parse::<HostKeyPin>();
        assert!(other.is_err() || !other.unwrap().is(public));
    }

    #[test]
    fn what_a_pin_cannot_be() {
        for (text, why) in [
            ("", "OpenSSH"),
            ("ssh-ed25519", "OpenSSH"),
            ("ssh-ed25519 AAAA", "OpenSSH"),
            ("SHA256:abc", "43 letters"),
            ("SHA256:", "43 letters"),
            ("16:27:ac:a5:76:28:2d:36:63:1b:56:4d:eb:df:a6:48", "MD5"),
            ("MD5:16:27:ac:a5:76:28:2d:36:63:1b:56:4d:eb:df:a6:48", "MD5"),
            ("-----BEGIN OPENSSH PRIVATE KEY----- c2VjcmV0", "private key"),
        ] {
            let error = text.parse::<HostKeyPin>().unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains("c2VjcmV0"), "{text}: {error}");
        }
    }
}
