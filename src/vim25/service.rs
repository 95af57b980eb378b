//! What the server says that it is, and where its managers are.

use super::wire::decode::{reference, required, text};
use super::wire::{DecodeError, Node};
use crate::model::MoRef;

/// `AboutInfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// `VMware vCenter Server 8.0.3 build-24022515`.
    pub full_name: String,
    /// `8.0.3`.
    pub version: String,
    /// Build number.
    pub build: String,
    /// `VirtualCenter`, or `HostAgent` of a host.
    pub api_type: String,
    /// Version of its interface, as it says; what is spoken is negotiated.
    pub api_version: String,
    /// Identity of this vCenter.
    pub instance_uuid: String,
}

/// `ServiceContent`, the part that is used. Ids are read, never assumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Service {
    pub(super) about: About,
    pub(super) root_folder: MoRef,
    pub(super) property_collector: MoRef,
    pub(super) view_manager: MoRef,
    pub(super) session_manager: MoRef,
    pub(super) task_manager: MoRef,
    pub(super) event_manager: MoRef,
    pub(super) custom_fields_manager: MoRef,
    /// `setting`: the options of the vCenter.
    pub(super) option_manager: MoRef,
}

impl Service {
    /// Decodes the body of `RetrieveServiceContent`'s answer.
    pub(super) fn decode(response: &Node) -> Result<Self, DecodeError> {
        let content = required(response, "returnval")?;
        let manager = |name| reference(required(content, name)?);
        Ok(Self {
            about: about(required(content, "about")?)?,
            root_folder: manager("rootFolder")?,
            property_collector: manager("propertyCollector")?,
            view_manager: manager("viewManager")?,
            session_manager: manager("sessionManager")?,
            task_manager: manager("taskManager")?,
            event_manager: manager("eventManager")?,
            custom_fields_manager: manager("customFieldsManager")?,
            option_manager: manager("setting")?,
        })
    }
}

/// Only of a vCenter: a host has no custom fields, and no instance UUID.
pub(super) fn about(node: &Node) -> Result<About, DecodeError> {
    Ok(About {
        full_name: text(node, "fullName")?,
        version: text(node, "version")?,
        build: text(node, "build")?,
        api_type: text(node, "apiType")?,
        api_version: text(node, "apiVersion")?,
        instance_uuid: node.text_of("instanceUuid").unwrap_or_default().to_owned(),
    })
}
