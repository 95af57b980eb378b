//! The values of an endpoint: address, pin, thumbprint, reference to a credential.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A type that is written as text: reads by `FromStr`, writes by `Display`.
macro_rules! text_value {
    ($name:ident, $schema:expr) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}

/// Where a vCenter listens: `vc.example.net`, `vc.example.net:8443`, `[2001:db8::1]:443`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(String);

/// Why a text is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an address of a vCenter: {reason}")]
pub struct AddressError {
    /// The text as given.
    pub text: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl Address {
    /// Host, or host and port.
    pub fn authority(&self) -> &str {
        &self.0
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let fail = |reason| AddressError { text: text.to_owned(), reason };
        if text.contains('@') {
            // The text may hold a password.
            return Err(AddressError {
                text: "…@…".to_owned(),
                reason: "it holds a user; credentials have their own field",
            });
        }
        let authority = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => rest.strip_suffix('/').unwrap_or(rest),
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("http") => {
                return Err(fail("it asks for http, and credentials are sent over HTTPS only"));
            }
            Some(_) => return Err(fail("its scheme is not https")),
            None => text,
        };
        if authority.contains('/') {
            return Err(fail("it has a path; write the host, or host:port"));
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or_else(|| fail("`[` without `]`"))?;
                host.parse::<Ipv6Addr>().map_err(|_| fail("there is no IPv6 address in the brackets"))?;
                (host, port)
            }
            None if authority.parse::<Ipv6Addr>().is_ok() => {
                return Err(fail("an IPv6 address is written in brackets"));
            }
            None => {
                let (host, port) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
                if !is_host(host) {
                    return Err(fail("the host is no DNS name and no IP address"));
                }
                (host, port)
            }
        };
        if host.is_empty() {
            return Err(fail("the host is missing"));
        }
        match port.strip_prefix(':').map(str::parse::<u16>) {
            None if port.is_empty() => {}
            Some(Ok(1..)) if !port.contains('+') => {}
            _ => return Err(fail("the port is no number from 1 to 65535")),
        }
        Ok(Self(authority.to_owned()))
    }
}

/// A DNS name in ASCII (others are written in their `xn--` form) or an IPv4 address.
fn is_host(host: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let numeric = host.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let name = host.strip_suffix('.').unwrap_or(host);
    host.len() <= 253 && name.split('.').all(label) && (!numeric || host.parse::<Ipv4Addr>().is_ok())
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

text_value!(
    Address,
    json_schema!({
        "type": "string",
        "examples": ["vc.example.net", "vc.example.net:8443"],
        "pattern": "^(https://)?[^/@\\s]+/?$",
    })
);

/// `about.instanceUuid` of a vCenter, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceUuid(String);

impl InstanceUuid {
    /// The text, in lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for InstanceUuid {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('-').collect();
        let hex = |part: &&str| part.bytes().all(|b| b.is_ascii_hexdigit());
        if parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12]) && parts.iter().all(hex) {
            Ok(Self(text.to_ascii_lowercase()))
        } else {
            Err(format!("`{text}` is not an instance UUID like `6f0e1c52-9de0-40cb-9c47-61d494229f4f`"))
        }
    }
}

impl fmt::Display for InstanceUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

text_value!(
    InstanceUuid,
    json_schema!({ "type": "string", "pattern": "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$" })
);

/// The SHA-256 thumbprint of a certificate, printed as `AB:CD:…`; read with or without colons, in
/// either case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Thumbprint(pub [u8; 32]);

/// Why a text is no thumbprint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ThumbprintError {
    /// 20 bytes: SHA-1, as older vSphere Clients show it.
    #[error(
        "this is a SHA-1 thumbprint, and certificates that collide in SHA-1 can be made: give the SHA-256 one \
         (a connection that is refused for its certificate shows it)"
    )]
    Sha1,
    /// Something else.
    #[error("this is not a SHA-256 thumbprint: it must have 64 hex digits, with or without colons between the bytes")]
    Other,
}

impl FromStr for Thumbprint {
    type Err = ThumbprintError;

    fn from_str(text: &str) -> Result<Self, ThumbprintError> {
        let digits = if text.contains(':') {
            let bytes: Vec<&str> = text.split(':').collect();
            if bytes.iter().any(|byte| byte.len() != 2) {
                return Err(ThumbprintError::Other);
            }
            bytes.concat()
        } else {
            text.to_owned()
        };
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(ThumbprintError::Other);
        }
        match digits.len() {
            64 => {
                let mut bytes = [0; 32];
                for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
                    *byte = u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| ThumbprintError::Other)?;
                }
                Ok(Self(bytes))
            }
            40 => Err(ThumbprintError::Sha1),
            _ => Err(ThumbprintError::Other),
        }
    }
}

impl fmt::Display for Thumbprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: Vec<String> = self.0.iter().map(|byte| format!("{byte:02X}")).collect();
        f.pad(&bytes.join(":"))
    }
}

text_value!(
    Thumbprint,
    json_schema!({
        "type": "string",
        "description": "SHA-256 of the certificate, with or without colons.",
        "pattern": "^([0-9A-Fa-f]{2}:?){31}[0-9A-Fa-f]{2}$",
    })
);

/// Where a credential comes from: `env:NAME`, `file:PATH`, `exec:COMMAND`. Never the credential.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CredentialRef(String);

/// Why a text is no reference. The text is not shown: it may be the password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialRefError {
    /// None of the known forms.
    #[error("a credential is given by reference: `env:NAME`, `file:PATH` or `exec:COMMAND`, never written here")]
    NoReference,
    /// Nothing after the prefix.
    #[error("nothing follows `{scheme}:`: a credential is given as `env:NAME`, `file:PATH` or `exec:COMMAND`")]
    Nothing {
        /// The prefix.
        scheme: &'static str,
    },
    /// What only a shell reads, and `base::secret` runs none.
    #[error("`exec:` runs no shell: words are split at blanks, so put what needs `{character}` into a script")]
    Quote {
        /// The sign.
        character: char,
    },
    /// A variable that no environment can have.
    #[error("`env:` takes the name of a variable, without blanks and `=`: `env:VC_PASSWORD`")]
    Variable,
}

impl CredentialRef {
    /// The reference, as `base::secret` reads it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for CredentialRef {
    type Err = CredentialRefError;

    fn from_str(text: &str) -> Result<Self, CredentialRefError> {
        let known = ["env", "file", "exec"].into_iter();
        let split = |scheme| Some((scheme, text.strip_prefix(scheme)?.strip_prefix(':')?));
        let Some((scheme, rest)) = known.filter_map(split).next() else {
            return Err(CredentialRefError::NoReference);
        };
        match scheme {
            _ if rest.trim().is_empty() => Err(CredentialRefError::Nothing { scheme }),
            "env" if rest.contains(|c: char| c.is_whitespace() || c == '=') => Err(CredentialRefError::Variable),
            "exec" => match rest.chars().find(|character| matches!(character, '"' | '\'' | '\\')) {
                Some(character) => Err(CredentialRefError::Quote { character }),
                None => Ok(Self(text.to_owned())),
            },
            _ => Ok(Self(text.to_owned())),
        }
    }
}

impl fmt::Display for CredentialRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

text_value!(
    CredentialRef,
    json_schema!({
        "type": "string",
        "examples": ["env:VC_PASSWORD", "file:/run/secrets/vc", "exec:pass show vc"],
        "pattern": "^(env|file|exec):.+",
    })
);
