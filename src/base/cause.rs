//! Errors as text.

/// An error and its causes on one line, to the deepest: for what is kept as data, and can't be followed
/// later.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        said.push_str(": ");
        said.push_str(&source.to_string());
        next = source.source();
    }
    said
}
