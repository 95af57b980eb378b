//! What is wrong with the sense of profiles, without any live system.
//!
//! ```text
//!   check ──► documents   names, sites, hosts that two pools list
//!         └─► check_pool ──► numbers  counts and limits
//!                        ├─► groups   which GPUs each group takes, what it cannot use
//!                        ├─► guests   guest clusters, what is expected of nodes, selectors of them
//!                        ├─► offers   vGPU types and combinations, by the catalogue
//!                        └─► accept   acceptances
//! ```
//!
//! Says *unknown* where the catalogue does not know; never lets it pass in silence.

mod accept;
mod documents;
mod groups;
mod guests;
mod numbers;
mod offers;
mod pool;

pub use documents::check;
pub(super) use documents::claimed_twice;
pub use pool::check_pool;
