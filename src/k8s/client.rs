//! The client: what is asked of one cluster.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use kube::Resource;
use kube::api::GetParams;
use kube::core::Request;
use serde::Deserialize;

use super::access::Access;
use super::error::Error;
use super::transport::Transport;
use crate::base::net::Network;
use crate::model::GuestView;

/// The API server of one guest cluster. Copies share their connections.
///
/// Reads are repeated after a lost connection or while the server starts; writes are sent once, and
/// what an [`Error`] of a write says about its effect is in [`Error::may_have_acted`].
#[derive(Clone)]
pub struct Client {
    transport: Arc<Transport>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("cluster", &self.transport.cluster).finish_non_exhaustive()
    }
}

impl Client {
    /// Opens the way to a cluster, which the Site calls `name`. Nothing is sent yet.
    ///
    /// # Errors
    /// [`Error::Net`] if the trust material or the client certificate cannot be used.
    pub async fn connect(name: &str, access: &Access, network: &dyn Network) -> Result<Self, Error> {
        let exchange = network.open(&access.endpoint).map_err(|source| Error::Net {
            cluster: name.to_owned(),
            call: "open a connection".into(),
            source,
        })?;
        Ok(Self { transport: Arc::new(Transport::new(name, access, exchange)) })
    }

    /// Name of the cluster in the Site.
    pub fn name(&self) -> &str {
        &self.transport.cluster
    }

    /// Which cluster it is. Its nodes are not counted yet: see [`Client::nodes`].
    ///
    /// # Errors
    /// [`Error`].
    pub async fn describe(&self) -> Result<GuestView, Error> {
        let call = "ask for the version";
        let version: Version = self
            .transport
            .contact(call, || {
                http::Request::get("/version").body(Vec::new()).map_err(kube::core::request::Error::BuildRequest)
            })
            .await?;
        let call = "read namespace kube-system";
        let namespaces = Request::new(Namespace::url_path(&(), None));
        let system: Namespace =
            self.transport.contact(call, || namespaces.get("kube-system", &GetParams::default())).await?;
        let uid = system.metadata.uid.filter(|uid| !uid.is_empty());
        let uid = uid.ok_or_else(|| self.transport.decode(call, "it has no uid"))?;
        Ok(GuestView {
            version: version.git_version,
            uid,
            nodes: 0,
            unidentified: BTreeMap::new(),
            elsewhere: Vec::new(),
        })
    }

    pub(super) fn transport(&self) -> &Transport {
        &self.transport
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    git_version: String,
}
