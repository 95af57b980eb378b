//! The client of vCenter, judged by recordings, by golden requests, and by scripted servers.

mod golden;
mod inventory;
mod net;
pub mod recordings;
mod retries;
pub mod script;
mod session;
mod tasks;
mod tolerance;
