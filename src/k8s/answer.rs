//! Reading answers: bytes in, values out.

use std::time::Duration;

use http::header::{LOCATION, RETRY_AFTER};
use http::{HeaderMap, StatusCode};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ListMeta, Time};
use kube::core::Status;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer};

use super::error::Refusal;

/// Longest part of a text of somebody else that is shown, in characters: a web page is not.
const SHOWN: usize = 300;

/// What an answer is.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    /// It succeeded, and its body is this.
    Body,
    /// It sends us elsewhere.
    Elsewhere(String),
    /// It does not know us.
    Unauthorized,
    /// It refuses.
    Refused(Refusal),
}

/// What an answer is, by its head, and its body if it refuses.
pub(super) fn read(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Answer {
    if status.is_success() {
        return Answer::Body;
    }
    if status.is_redirection() {
        let location = headers.get(LOCATION).and_then(|location| location.to_str().ok());
        return Answer::Elsewhere(location.unwrap_or("nowhere").to_owned());
    }
    if status == StatusCode::UNAUTHORIZED {
        return Answer::Unauthorized;
    }
    let header = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()).and_then(|text| text.parse().ok());
    let said: Status = match serde_json::from_slice(body) {
        Ok(said) => said,
        // Something in between, which speaks HTML or plain text.
        Err(_) => Status::failure(&String::from_utf8_lossy(body), ""),
    };
    let details = said.details.as_ref();
    let seconds = details.map(|details| u64::from(details.retry_after_seconds)).filter(|seconds| *seconds > 0);
    Answer::Refused(Refusal {
        code: status.as_u16(),
        reason: shown(&said.reason),
        message: shown(&said.message),
        after: header.or(seconds).map(Duration::from_secs),
        causes: details.map_or_else(Vec::new, |details| {
            details.causes.iter().map(|cause| (cause.reason.clone(), shown(&cause.message))).collect()
        }),
    })
}

/// A text of somebody else in one bounded line, without characters that act on a terminal.
pub(super) fn shown(text: &str) -> String {
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty()).collect();
    let line = words.join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// A value of a body.
pub(super) fn value<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| shown(&error.to_string()))
}

/// A page of a list.
#[derive(Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
pub(super) struct Page<T> {
    pub(super) metadata: ListMeta,
    /// Go writes a list that is nothing as null; a list that is missing is no list.
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) items: Vec<T>,
}

fn null_is_empty<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    Option::<Vec<T>>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// A name, as objects of Kubernetes have: it is part of paths and selectors, so what is none is not used.
pub(super) fn name(text: Option<String>, what: &str) -> Result<String, String> {
    match text {
        Some(text) if is_name(&text) => Ok(text),
        Some(text) if !text.is_empty() => Err(format!("`{}` is no {what}", shown(&text))),
        _ => Err(format!("it has no {what}")),
    }
}

/// An RFC 1123 subdomain.
pub(super) fn is_name(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    text.chars().all(inner) && !text.split('.').any(|label| label.is_empty())
}

/// A time in our own type: the generated one holds another version of it.
pub(super) fn time(time: &Time) -> Result<jiff::Timestamp, String> {
    jiff::Timestamp::new(time.0.as_second(), time.0.subsec_nanosecond()).map_err(|error| error.to_string())
}
