//! Events: what a controller says of an object that it cannot bring about.

use k8s_openapi::api::core::v1::Event;
use k8s_openapi::jiff::Timestamp;
use kube::Resource;
use kube::api::ListParams;
use kube::core::Request;

use super::answer::shown;
use super::client::Client;
use super::error::Error;
use super::nodes::PAGE;
use super::transport::Made;

impl Client {
    /// The last warning about the object of this UID, `FailedCreate: …`, if there is one. Events are kept for an
    /// hour (`--event-ttl`), and may be missing altogether: none says nothing.
    pub(super) async fn last_warning(&self, namespace: &str, uid: &str) -> Result<Option<String>, Error> {
        let call = format!("list the events in {namespace}");
        let page = |next: Option<&str>| -> Made {
            let mut params = ListParams::default().fields(&format!("involvedObject.uid={uid}")).limit(PAGE);
            params.continue_token = next.map(str::to_owned);
            Request::new(Event::url_path(&(), Some(namespace))).list(&params)
        };
        let (_, events) = self.transport().list::<Event>(&call, page).await?;
        let about = |event: &Event| event.involved_object.uid.as_deref() == Some(uid);
        let warnings = events.into_iter().filter(|event| about(event) && event.type_.as_deref() == Some("Warning"));
        Ok(warnings.max_by_key(last_seen).map(|event| {
            let said = [event.reason, event.message].into_iter().flatten();
            shown(&said.collect::<Vec<_>>().join(": "))
        }))
    }
}

/// When an event was last seen: one that comes again is counted in the same object.
fn last_seen(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref().and_then(|series| series.last_observed_time.as_ref()).map(|time| time.0);
    let counted = event.last_timestamp.as_ref().map(|time| time.0);
    series.max(counted).max(event.event_time.as_ref().map(|time| time.0))
}
