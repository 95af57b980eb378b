//! Calls on VMs. Each is sent once; what an error says about its effect is in
//! [`Error::may_have_acted`].

use super::client::Client;
use super::error::Error;
use super::wire::calls;
use crate::model::MoRef;

impl Client {
    /// Starts to power a VM on, on this host and no other; without one DRS chooses.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn power_on(&self, vm: &MoRef, host: Option<&MoRef>) -> Result<MoRef, Error> {
        self.start(&calls::power_on(vm, host)).await
    }

    /// Starts to cut the power of a VM.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn power_off(&self, vm: &MoRef) -> Result<MoRef, Error> {
        self.start(&calls::power_off(vm)).await
    }

    /// Asks the guest of a VM to shut down. Success means asked: the power state says when it is off.
    ///
    /// # Errors
    /// [`Error`]; a fault `ToolsUnavailable` if nobody in the guest listens.
    pub async fn shutdown_guest(&self, vm: &MoRef) -> Result<(), Error> {
        self.write(&calls::shutdown_guest(vm)).await.map(drop)
    }
}
