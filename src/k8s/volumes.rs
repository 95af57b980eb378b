//! Volumes that are attached to a node: its VM must not be stopped while there are any (kubernetes
//! §0.11).

use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::Resource;
use kube::api::ListParams;
use kube::core::Request;

use super::client::Client;
use super::error::Error;
use super::nodes::PAGE;

impl Client {
    /// The volumes that the cluster has attached to a node, or has not yet detached from it:
    /// `pvc-1 (attached)`, `pvc-2 (detaching)`.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn attachments(&self, node: &str) -> Result<Vec<String>, Error> {
        let call = "list the volume attachments";
        let page = |next: Option<&str>| {
            let mut params = ListParams::default().limit(PAGE);
            params.continue_token = next.map(str::to_owned);
            Request::new(VolumeAttachment::url_path(&(), None)).list(&params)
        };
        let (_, all) = self.transport().list::<VolumeAttachment>(call, page).await?;
        let mut found: Vec<String> = all.iter().filter(|one| one.spec.node_name == node).map(words).collect();
        // One that does not say whose it is may be of this node.
        if all.iter().any(|one| one.spec.node_name.is_empty()) {
            return Err(self.transport().decode(call, "one does not say on which node it is"));
        }
        found.sort();
        Ok(found)
    }
}

fn words(one: &VolumeAttachment) -> String {
    let volume =
        one.spec.source.persistent_volume_name.as_deref().or(one.metadata.name.as_deref()).unwrap_or("a volume");
    let state = match (&one.metadata.deletion_timestamp, one.status.as_ref().map(|status| status.attached)) {
        (Some(_), _) => "detaching",
        (None, Some(true)) => "attached",
        (None, _) => "attaching",
    };
    format!("{volume} ({state})")
}
