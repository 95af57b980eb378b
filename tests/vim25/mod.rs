//! The client of vCenter, judged by recordings, by golden requests, and by scripted servers.

mod golden;
mod recordings;
