//! Why there is no world.

use crate::document::Problem;

/// Why a world could not be made, saved or loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// The document is wrong.
    #[error("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Document {
        /// What is wrong with it.
        problems: Vec<Problem>,
    },
    /// The document reads well and describes no possible world.
    #[error("{at}: {what}")]
    Impossible {
        /// Where in the document, `datacenters[0].clusters[1].hosts[0]`.
        at: String,
        /// What is wrong.
        what: String,
    },
    /// The saved state does not belong to the document.
    #[error("the saved state belongs to another version of the world's document")]
    OtherDocument,
    /// The saved state cannot be read.
    #[error("the saved state cannot be read")]
    State(#[source] serde_json::Error),
    /// A file could not be read or written.
    #[error("the world's files")]
    Files(#[source] crate::base::files::FileError),
}
