//! Versions of ESXi, as hosts print them (`8.0.3`) and as people write them (`8.0U3`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A version of ESXi: major, minor, update. Patches and builds are not part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EsxiVersion {
    /// 8 in 8.0 Update 3.
    pub major: u16,
    /// 0 in 8.0 Update 3.
    pub minor: u16,
    /// 3 in 8.0 Update 3.
    pub update: u16,
}

/// Why a text is no version of ESXi.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an ESXi version (expected `8.0.3` or `8.0U3`)")]
pub struct EsxiVersionError(pub String);

impl FromStr for EsxiVersion {
    type Err = EsxiVersionError;

    fn from_str(text: &str) -> Result<Self, EsxiVersionError> {
        let parts: Vec<Option<u16>> = text.split(['.', 'U', 'u']).map(|part| part.parse().ok()).collect();
        match *parts.as_slice() {
            [Some(major), Some(minor)] => Ok(Self { major, minor, update: 0 }),
            [Some(major), Some(minor), Some(update)] => Ok(Self { major, minor, update }),
            _ => Err(EsxiVersionError(text.to_owned())),
        }
    }
}

impl fmt::Display for EsxiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.update)
    }
}

impl Serialize for EsxiVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EsxiVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_one_version_and_order_is_numeric() {
        let read = |text: &str| text.parse::<EsxiVersion>();
        assert_eq!(read("8.0U3"), read("8.0.3"));
        assert_eq!(read("9.0"), read("9.0.0"));
        assert!(read("8.0.3").unwrap() < read("9.0.0").unwrap());
        assert!(read("8.0.10").unwrap() > read("8.0.9").unwrap());
        for text in ["", "8", "8.0.3.1", "8.0U3 P06", "8.0.x", "-8.0"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
