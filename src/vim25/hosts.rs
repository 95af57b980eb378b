//! Calls on hosts, settings, custom fields and events. Each is sent once; what an error says about its effect is
//! in [`Error::may_have_acted`].

use super::client::{Client, decode};
use super::error::Error;
use super::tasks::started;
use super::wire::decode::{CustomField, array, custom_field, package, required};
use super::wire::names::{fault, method, path};
use super::wire::vm::option_value;
use super::wire::{ApiVersion, Call, PassthruEntry, calls};
use crate::model::{GraphicsConfig, MoRef, Package};

impl Client {
    /// Starts to enter maintenance mode. The server gives up after `timeout_s` seconds. Its 0 means
    /// never (vsphere-gpu §1.0), which nobody wants.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn enter_maintenance(&self, host: &MoRef, timeout_s: std::num::NonZeroU32) -> Result<MoRef, Error> {
        self.start(&calls::enter_maintenance(host, timeout_s.get())).await
    }

    /// Starts to exit maintenance mode, with the server's own limit in seconds.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn exit_maintenance(&self, host: &MoRef, timeout_s: std::num::NonZeroU32) -> Result<MoRef, Error> {
        self.start(&calls::exit_maintenance(host, timeout_s.get())).await
    }

    /// Starts a reboot, not forced. The task says nothing about the reboot itself: that is proven by
    /// the boot time (vsphere-gpu §1.7).
    ///
    /// # Errors
    /// [`Error`].
    pub async fn reboot_host(&self, host: &MoRef) -> Result<MoRef, Error> {
        self.start(&calls::reboot_host(host)).await
    }

    /// Stores a passthrough configuration for these functions; others are left alone. Success means
    /// stored, not active.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn update_passthru(&self, system: &MoRef, entries: &[PassthruEntry]) -> Result<(), Error> {
        self.write(&calls::update_passthru(system, entries)).await.map(drop)
    }

    /// Stores a graphics configuration: the whole one, as read, with changes. Success means stored,
    /// not active.
    ///
    /// # Errors
    /// [`Error`]; [`Error::TooOld`] if it names a size mode and the server has none.
    pub async fn update_graphics(&self, manager: &MoRef, config: &GraphicsConfig) -> Result<(), Error> {
        if !self.version.has_vgpu_mode() && config.devices.iter().any(|device| device.vgpu_mode.known().is_some()) {
            return Err(Error::TooOld {
                authority: self.transport.authority.clone(),
                what: "the size mode of a vGPU device",
                needs: ApiVersion::V8_0_3.to_string(),
                speaks: self.version.to_string(),
            });
        }
        self.write(&calls::update_graphics(manager, config, self.version)).await.map(drop)
    }

    /// Has the host read its graphics state again.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn refresh_graphics(&self, manager: &MoRef) -> Result<(), Error> {
        self.read(&calls::refresh_graphics(manager)).await.map(drop)
    }

    /// Has the host read its passthrough state again.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn refresh_passthru(&self, system: &MoRef) -> Result<(), Error> {
        self.read(&calls::refresh_passthru(system)).await.map(drop)
    }

    /// Packages installed on the host of this image manager.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn fetch_packages(&self, manager: &MoRef) -> Result<Vec<Package>, Error> {
        let call = calls::fetch_packages(manager);
        let response = self.read(&call).await?;
        let packages = response.all("returnval").map(package).collect::<Result<_, _>>();
        packages.map_err(|source| decode(&call, source))
    }

    /// Starts a service of a host, `TSM-SSH`.
    ///
    /// # Errors
    /// [`Error`]; a fault `InvalidState` if it runs already, `NotFound` if there is none.
    pub async fn start_service(&self, system: &MoRef, id: &str) -> Result<(), Error> {
        self.write(&calls::start_service(system, id)).await.map(drop)
    }

    /// Stops a service of a host.
    ///
    /// # Errors
    /// [`Error`]; a fault `InvalidState` if it does not run, `NotFound` if there is none.
    pub async fn stop_service(&self, system: &MoRef, id: &str) -> Result<(), Error> {
        self.write(&calls::stop_service(system, id)).await.map(drop)
    }

    /// A setting of this vCenter, as text whatever its type; none if it has no such setting.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn query_option(&self, name: &str) -> Result<Option<String>, Error> {
        let call = calls::query_options(&self.service.option_manager, name);
        let response = match self.read(&call).await {
            // A name that it does not know is a fault, not an empty answer (vsphere-gpu §1.10).
            Err(error) if error.is_fault(fault::INVALID_NAME) => return Ok(None),
            other => other?,
        };
        let options = response.all("returnval").map(option_value).collect::<Result<Vec<_>, _>>();
        let options = options.map_err(|source| decode(&call, source))?;
        Ok(options.into_iter().find(|(key, _)| key == name).map(|(_, value)| value))
    }

    /// The custom fields that are defined.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn custom_fields(&self) -> Result<Vec<CustomField>, Error> {
        let content = self.properties(&self.service.custom_fields_manager, &[path::FIELD]).await?;
        let Some(fields) = content.get(path::FIELD) else { return Ok(Vec::new()) };
        array(fields, custom_field).map_err(|source| Error::Decode { call: method::RETRIEVE_PROPERTIES_EX, source })
    }

    /// Defines a custom field for one managed type.
    ///
    /// # Errors
    /// [`Error`]; a fault `DuplicateName` if it exists.
    pub async fn add_custom_field(&self, name: &str, kind: &str) -> Result<CustomField, Error> {
        let call = calls::add_custom_field(&self.service.custom_fields_manager, name, kind);
        let response = self.write(&call).await?;
        let field = required(&response, "returnval").and_then(custom_field);
        field.map_err(|source| decode(&call, source))
    }

    /// Sets the value of a custom field; empty clears it.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn set_custom_field(&self, entity: &MoRef, key: i32, value: &str) -> Result<(), Error> {
        self.write(&calls::set_field(&self.service.custom_fields_manager, entity, key, value)).await.map(drop)
    }

    /// Writes a line into the events of an entity.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn log_user_event(&self, entity: &MoRef, message: &str) -> Result<(), Error> {
        self.write(&calls::log_user_event(&self.service.event_manager, entity, message)).await.map(drop)
    }

    pub(super) async fn start(&self, call: &Call) -> Result<MoRef, Error> {
        let response = self.write(call).await?;
        started(&response).map_err(|source| decode(call, source))
    }
}
