//! The cellar: what every floor stands on, and which knows nothing of GPUs.
//!
//! ```text
//!   net       the seam to the outside: HTTP exchanges, real or simulated, and TLS trust
//!   cause     an error and its causes as one line
//!   clock     the time, real or virtual
//!   retry     the one retry policy
//!   files     atomic replace, append and sync, locks
//!   secret    credentials by reference, resolved into secrecy types
//!   logging   tracing set-up and redaction
//! ```

pub mod cause;
pub mod clock;
pub mod files;
pub mod logging;
pub mod net;
pub mod retry;
pub mod secret;
