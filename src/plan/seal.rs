//! Digests, and the plan as bytes.

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::Plan;
use crate::catalog;
use crate::model::PlanId;

/// Why bytes are no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanFileError {
    /// Not JSON, cut short, or with fields of another program.
    #[error("it is not a whole plan")]
    Json(#[source] serde_json::Error),
    /// Another version of the format.
    #[error("its schema is `{found}`, this program reads `{}`", Plan::SCHEMA)]
    Schema {
        /// What it says.
        found: String,
    },
    /// Made with another catalogue.
    #[error("it was made with another catalogue ({found}), this program has {here}")]
    Catalog {
        /// Digest in the plan.
        found: String,
        /// Ours.
        here: String,
    },
    /// Changed after it was made.
    #[error("its content does not have the id {}: it was changed after it was made", id.short())]
    Id {
        /// The id that it claims.
        id: PlanId,
    },
}

impl Plan {
    /// The format that this program writes, and the only one it reads.
    pub const SCHEMA: &str = "poolwright.plan/v1";

    /// The file: JSON in struct order, indented, with a newline at the end.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = json(self, true);
        bytes.push(b'\n');
        bytes
    }

    /// Reads a file and proves that it is what was made.
    ///
    /// # Errors
    /// [`PlanFileError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PlanFileError> {
        #[derive(serde::Deserialize)]
        struct Head {
            schema: String,
        }
        let head: Head = serde_json::from_slice(bytes).map_err(PlanFileError::Json)?;
        if head.schema != Self::SCHEMA {
            return Err(PlanFileError::Schema { found: head.schema });
        }
        let plan: Self = serde_json::from_slice(bytes).map_err(PlanFileError::Json)?;
        if plan.content_id() != plan.id {
            return Err(PlanFileError::Id { id: plan.id });
        }
        let here = catalog::digest();
        if plan.catalog != here {
            return Err(PlanFileError::Catalog { found: plan.catalog, here: here.to_owned() });
        }
        Ok(plan)
    }

    /// SHA-256 of the content with an empty id.
    pub fn content_id(&self) -> PlanId {
        let unsealed = Self { id: PlanId(String::new()), ..self.clone() };
        PlanId(digest(&unsealed))
    }

    /// The plan with its id. Its id is empty before.
    pub(super) fn sealed(self) -> Self {
        Self { id: PlanId(digest(&self)), ..self }
    }
}

/// SHA-256 of the compact JSON of `value`, in lower-case hex.
pub(super) fn digest<T: Serialize>(value: &T) -> String {
    Sha256::digest(json(value, false)).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// JSON of a type of the plan.
fn json<T: Serialize>(value: &T, pretty: bool) -> Vec<u8> {
    let bytes = if pretty { serde_json::to_vec_pretty(value) } else { serde_json::to_vec(value) };
    match bytes {
        Ok(bytes) => bytes,
        // serde_json fails on maps whose keys are no strings and on writers that fail; the types of a
        // plan have string keys only, and a Vec takes all bytes.
        Err(error) => unreachable!("a plan is JSON by construction: {error}"),
    }
}
