//! YAML that is part of the program: data, not documents of users.

use serde::de::DeserializeOwned;

/// Why embedded data does not parse. A test of the data sees it first.
#[derive(Debug, thiserror::Error)]
#[error("embedded data: {message}")]
pub struct EmbeddedError {
    /// What the parser says, with line and column.
    pub message: String,
}

/// Parses data that is compiled in: one YAML document, keys not repeated, without the limits that
/// documents of users have.
pub fn embedded<T: DeserializeOwned>(text: &str) -> Result<T, EmbeddedError> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_events: 1_000_000, max_nodes: 1_000_000 },
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::Error,
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| EmbeddedError { message: error.to_string() })
}
