//! The vim25 face: SOAP over HTTP, as vCenter speaks it, for many clients at once.
//!
//! ```text
//!   HTTP request ──► face ──► session (cookie) ──► request (checked by shape) ──► faults (counted rules)
//!                                                        │
//!                    dispatch: method ──► behaviour (writes) · collector, updates (reads)
//!                                                        │ properties: object, path ──► Value
//!   HTTP answer ◄── face ◄───────────────────────── value ──► elements, by shape and version
//! ```
//!
//! `shape.txt` holds VMware's own type tables; `esxcli` is what they do not have. Knows the world only through `behaviour` and its state.

mod collector;
mod dispatch;
mod esxcli;
mod face;
mod filter;
mod lists;
mod objects;
mod properties;
mod request;
mod select;
mod session;
mod shape;
mod value;
mod versions;
mod vms;

pub(in crate::sim) use face::Face;
