//! Durations as people write them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::SignedDuration;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A duration: `4m`, `90s`, `1h 30m`, `0s`. Never negative.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl Span {
    /// So many seconds.
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let signed: SignedDuration =
            text.parse().map_err(|_| format!("`{text}` is not a duration (expected `90s`, `4m`, `1h 30m`)"))?;
        Duration::try_from(signed).map(Self).map_err(|_| format!("`{text}` is negative"))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match SignedDuration::try_from(self.0) {
            Ok(signed) => write!(f, "{signed:#}"),
            Err(_) => write!(f, "{}s", self.0.as_secs()),
        }
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Span {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": "A duration: `90s`, `4m`, `1h 30m`.", "examples": ["4m"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_and_print_as_people_write_them() {
        for (text, seconds) in [("0s", 0), ("90s", 90), ("4m", 240), ("1h 30m", 5400)] {
            assert_eq!(text.parse::<Span>().unwrap(), Span::seconds(seconds), "{text}");
        }
        assert_eq!(Span::seconds(240).to_string(), "4m");
        for text in ["", "4", "-1m", "soon"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }
}
