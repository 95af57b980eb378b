//! Properties of managed objects as values. One function per kind of object; what a function does not
//! name, the object does not have (an absent optional property is not in an answer at all).

mod cluster;
mod entity;
mod host;
mod host_config;
mod managers;
mod read;
mod task;
#[cfg(test)]
mod tests;
mod vgpu;
mod vm;

pub(super) use host::software;
pub(super) use managers::{option, service_content, user_session};
pub(super) use read::{Source, property};
pub(super) use task::task_info;
pub(super) use vgpu::{devices, profiles};
