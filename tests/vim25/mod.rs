//! The client of vCenter, judged by recordings, by golden requests, and by scripted servers.

mod golden;
mod inventory;
mod recordings;
mod retries;
mod script;
mod session;
