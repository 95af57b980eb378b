//! The `known_hosts` file of OpenSSH: which keys a host may have.

use hmac::{Hmac, KeyInit, Mac};
use russh::keys::ssh_key::PublicKey;
use sha1::Sha1;

use crate::model::HostKeyPin;

/// The lines of a `known_hosts` file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownHosts(Vec<Line>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    revoked: bool,
    hosts: Vec<String>,
    key: PublicKey,
}

/// Why a file is not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the known hosts: {reason}")]
pub struct KnownHostsError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl KnownHosts {
    /// Reads the text of a file, as `ssh-keyscan` and `ssh` write it.
    ///
    /// # Errors
    /// The first line that is no comment and no host key. Certificate authorities are refused, since
    /// we would not obey them.
    pub fn parse(text: &str) -> Result<Self, KnownHostsError> {
        let mut lines = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                lines.push(entry(line).map_err(|reason| KnownHostsError { line: index + 1, reason })?);
            }
        }
        Ok(Self(lines))
    }

    /// The keys that are pinned for a host; none if nobody pinned one, or what was pinned was revoked.
    pub fn pins(&self, host: &str, port: u16) -> Vec<HostKeyPin> {
        let name = if port == super::PORT { host.to_lowercase() } else { format!("[{}]:{port}", host.to_lowercase()) };
        let of_host = |revoked| move |line: &&Line| line.revoked == revoked && matches(&line.hosts, &name);
        let revoked: Vec<&Line> = self.0.iter().filter(of_host.clone()(true)).collect();
        let kept = |line: &&Line| !revoked.iter().any(|revoked| revoked.key.key_data() == line.key.key_data());
        let pins = self.0.iter().filter(of_host(false)).filter(kept);
        pins.map(|line| HostKeyPin::Key(Box::new(line.key.clone()))).collect()
    }
}

fn entry(line: &str) -> Result<Line, &'static str> {
    let mut words = line.split_whitespace().peekable();
    let revoked = match words.peek() {
        Some(&"@revoked") => words.next().is_some(),
        Some(&"@cert-authority") => return Err("certificate authorities are not supported, pin the hosts' own keys"),
        Some(marker) if marker.starts_with('@') => return Err("the marker is not known"),
        _ => false,
    };
    let (Some(hosts), Some(kind), Some(key)) = (words.next(), words.next(), words.next()) else {
        return Err("expected hosts, the kind of the key and the key");
    };
    let key = PublicKey::from_openssh(&format!("{kind} {key}")).map_err(|_| "it holds no OpenSSH public key")?;
    Ok(Line { revoked, hosts: hosts.split(',').map(str::to_owned).collect(), key })
}

/// A `!` before a pattern that matches keeps the whole line from matching (sshd(8), SSH_KNOWN_HOSTS).
fn matches(patterns: &[String], name: &str) -> bool {
    let not = |pattern: &String| pattern.strip_prefix('!').is_some_and(|pattern| glob(pattern, name));
    !patterns.iter().any(not) && patterns.iter().any(|pattern| hashed(pattern, name).unwrap_or(glob(pattern, name)))
}

/// `|1|salt|hash`, with HMAC-SHA1 and base64; none: it is no hashed name.
fn hashed(pattern: &str, name: &str) -> Option<bool> {
    let (salt, hash) = pattern.strip_prefix("|1|")?.split_once('|')?;
    let (Some(salt), Some(hash)) = (base64(salt), base64(hash)) else { return Some(false) };
    let mac = Hmac::<Sha1>::new_from_slice(&salt).ok()?;
    Some(mac.chain_update(name.as_bytes()).verify_slice(&hash).is_ok())
}

fn base64(text: &str) -> Option<Vec<u8>> {
    use russh::keys::ssh_encoding::base64::{Base64, Encoding};
    Base64::decode_vec(text).ok()
}

/// `*` and `?` as in a shell.
fn glob(pattern: &str, name: &str) -> bool {
    fn of(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, None) => true,
            (Some((b'*', rest)), _) => of(rest, name) || name.split_first().is_some_and(|(_, name)| of(pattern, name)),
            (Some((b'?', rest)), Some((_, name))) => of(rest, name),
            (Some((wanted, rest)), Some((found, name))) => wanted.eq_ignore_ascii_case(found) && of(rest, name),
            _ => false,
        }
    }
    of(pattern.as_bytes(), name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";
    const B: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILIG2T/B0l0gaqj3puu510tu9N1OkQ4znY3LYuEm5zCF";

    fn pins(text: &str, host: &str, port: u16) -> Vec<String> {
        KnownHosts::parse(text).unwrap().pins(host, port).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_host_has_the_keys_of_its_lines() {
        let text =
            format!("# scanned\nesx-01.lab,10.0.0.1 {A} root\n\nesx-0?.lab,!esx-02.lab {B}\n[esx-01.lab]:2222 {B}\n");
        assert_eq!(pins(&text, "esx-01.lab", 22), [A, B]);
        assert_eq!(pins(&text, "ESX-01.lab", 22), [A, B]);
        assert_eq!(pins(&text, "10.0.0.1", 22), [A]);
        assert_eq!(pins(&text, "esx-01.lab", 2222), [B]);
        assert_eq!(pins(&text, "esx-03.lab", 22), [B]);
        assert!(pins(&text, "esx-02.lab", 22).is_empty());
        assert!(pins(&text, "esx-01.lab.evil", 22).is_empty());
    }

    #[test]
    fn a_hashed_name_is_the_name() {
        let text = format!("|1|O33ESRMWPVkMYIwJ1Uw+n877jTo=|nuuC5vEqXlEZ/8BXQR7m619W6Ak= {B}\n");
        assert_eq!(pins(&text, "example.com", 22), [B]);
        assert!(pins(&text, "example.org", 22).is_empty());
    }

    #[test]
    fn a_revoked_key_is_no_pin() {
        let text = format!("esx-01 {A}\nesx-01 {B}\n@revoked * {A}\n");
        assert_eq!(pins(&text, "esx-01", 22), [B]);
    }

    #[test]
    fn what_is_no_known_host_is_named_by_its_line() {
        for (line, why) in [
            ("esx-01", "expected"),
            ("esx-01 ssh-ed25519", "expected"),
            ("esx-01 ssh-ed25519 AAAA", "no OpenSSH"),
            ("@cert-authority *.lab ssh-ed25519 AAAA", "authorities"),
            ("@other esx ssh-ed25519 AAAA", "marker"),
        ] {
            let error = KnownHosts::parse(&format!("\n{line}\n")).unwrap_err();
            assert!(error.line == 2 && error.reason.contains(why), "{line}: {error}");
        }
    }
}
