//! The API servers on real ports, and the kubeconfig that opens them.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::KubeFace;
use crate::sim::doors::Doors;
use crate::sim::server::{Served, listen};
use crate::sim::{ServeError, World};

/// A cluster's API server on a port; dropping it closes the port.
#[derive(Debug)]
pub struct ServedGuest {
    /// Name of the cluster.
    pub cluster: String,
    /// Where it listens, and its certificate.
    pub served: Served,
}

/// Serves the API of each guest cluster, on a port of its own: that of before, or a free one.
///
/// # Errors
/// [`ServeError`].
pub async fn serve_guests(world: &World, ip: IpAddr) -> Result<Vec<ServedGuest>, ServeError> {
    let mut doors = Doors::of(world.document())?;
    let mut all = Vec::new();
    for guest in &world.spec().guests {
        let authority = guest.authority().unwrap_or_default();
        let name = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        let face = Arc::new(KubeFace::new(world.clone(), guest.name.clone()));
        let served = listen(&mut doors, &format!("guest {}", guest.name), name, SocketAddr::new(ip, 0), face).await?;
        all.push(ServedGuest { cluster: guest.name.clone(), served });
    }
    doors.save()?;
    Ok(all)
}

/// A kubeconfig for the clusters of a world, as JSON, which is YAML: a context for each, by its name.
/// Clusters that are served are reached at their ports, others at the addresses of the document, where
/// `--world` finds them.
pub fn kubeconfig(world: &World, served: &[ServedGuest]) -> String {
    let (mut clusters, mut users, mut contexts) = (Vec::new(), Vec::new(), Vec::new());
    for guest in &world.spec().guests {
        let port = served.iter().find(|one| one.cluster == guest.name).map(|one| &one.served);
        let cluster: Value = match port {
            Some(served) => {
                let authority = ByteString(served.certificate.clone().into_bytes());
                json!({"server": format!("https://{}", served.addr), "certificate-authority-data": authority})
            }
            None => json!({"server": guest.address}),
        };
        clusters.push(json!({"name": guest.name, "cluster": cluster}));
        users.push(json!({"name": guest.name, "user": {"token": guest.token()}}));
        contexts.push(json!({"name": guest.name, "context": {"cluster": guest.name, "user": guest.name}}));
    }
    let current = world.spec().guests.first().map(|guest| guest.name.clone()).unwrap_or_default();
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "clusters": clusters, "users": users, "contexts": contexts,
        "current-context": current,
    });
    format!("{config:#}\n")
}
