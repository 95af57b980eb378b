//! The fleet as it is read: from a recorded host, from scripted servers, from the simulator.

mod around;
mod reading;
mod recorded;
mod simulated;

use std::sync::Arc;

use futures::future::BoxFuture;
use poolwright::base::clock::Clock;
use poolwright::base::net::{Dial, DialError, Duplex, Endpoint, Exchange, NetError, Network};
use poolwright::inventory::Site;
use poolwright::model::{HostName, HostRef, MoRef};
use poolwright::observe::{ConnectError, Fleet};
use secrecy::SecretString;

use crate::vim25::script::{Server, Way};

/// The scripted server, on a network of its own.
struct Scripted(Arc<Server>);

impl Dial for Scripted {
    fn dial(&self, host: &str, _: u16) -> BoxFuture<'static, Result<Box<dyn Duplex>, DialError>> {
        let (host, source) = (host.to_owned(), std::io::ErrorKind::NotFound.into());
        Box::pin(async { Err(DialError::NameNotFound { host, source }) })
    }
}

impl Network for Scripted {
    fn open(&self, _: &Endpoint) -> Result<Arc<dyn Exchange>, NetError> {
        Ok(Arc::new(Way(Arc::clone(&self.0))))
    }
}

/// Instance UUID of the scripted server.
const INSTANCE: &str = "6f0e0000-0000-4000-8000-000000000001";

async fn connect(server: &Arc<Server>, pin: &str) -> Result<Fleet, ConnectError> {
    let text = format!(
        "apiVersion: poolwright/v1\nkind: Site\nmetadata: {{name: lab}}\nspec:\n  vcenter: {{address: vc.test, \
         instanceUuid: {pin}, credentials: {{user: pw@vsphere.local, password: \"env:LAB\"}}}}\n"
    );
    let loaded = poolwright::profile::load(&[("site.yaml".to_owned(), text.into_bytes())]);
    let site: &Site = &loaded.sites[0].spec;
    let clock = Clock::starting_at("2026-11-30T20:00:00Z".parse().unwrap());
    let password = SecretString::from("marked-pa55<word>");
    Fleet::connect("lab", site, "pw@vsphere.local", password, &Scripted(Arc::clone(server)), clock).await
}

fn host_ref(id: &str, name: &str) -> HostRef {
    HostRef {
        moref: MoRef::new("HostSystem", id),
        name: HostName::from(name),
        path: format!("/DC/host/c/{name}"),
        cluster: "/DC/host/c".to_owned(),
    }
}
