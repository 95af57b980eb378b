//! Waking early: a watch on what a drain waits for. It tells nothing but that it is worth looking again.

use std::time::Duration;

use futures::StreamExt;
use futures::future::{Either, select};
use k8s_openapi::api::core::v1::Pod as RawPod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Resource;
use kube::api::WatchParams;
use kube::core::{Request, WatchEvent};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep_until};

use super::client::Client;
use super::pods::pods;
use super::transport::Made;

/// The least time between two looks: what happens to the pods of a node comes in bursts.
const BURST: Duration = Duration::from_secs(1);

/// A server ends watches after a random time of 5 to 10 minutes by itself (kubernetes §2.14: at most
/// 295 s are asked for).
const LONGEST_WATCH: u64 = 290;

impl Client {
    /// Waits until something happens to the pods of a node or to a disruption budget after the version
    /// `since`, or until `most` is over. A watch that cannot be opened, ends or breaks wakes nobody.
    pub async fn changed(&self, node: &str, since: &str, most: Duration) {
        let start = Instant::now();
        let seconds = u32::try_from(most.as_secs().clamp(1, LONGEST_WATCH)).unwrap_or(1);
        let params = WatchParams::default().timeout(seconds);
        let of_node = params.clone().fields(&format!("spec.nodeName={node}"));
        let pods = self.event::<RawPod>(pods(None).watch(&of_node, since));
        let budgets = Request::new(PodDisruptionBudget::url_path(&(), None)).watch(&params, since);
        let budgets = self.event::<PodDisruptionBudget>(budgets);
        let (pods, budgets) = (std::pin::pin!(pods), std::pin::pin!(budgets));
        let events = std::pin::pin!(select(pods, budgets));
        if let Either::Left(_) = select(events, std::pin::pin!(sleep_until(start + most))).await {
            sleep_until(start + BURST.min(most)).await;
        }
    }

    /// Ends at the first event; never, where there will be none.
    async fn event<T: DeserializeOwned + Clone>(&self, request: Made) {
        match self.transport().watch::<T>(request).await {
            Ok(stream) => {
                let mut stream = std::pin::pin!(stream);
                while let Some(next) = stream.next().await {
                    match next {
                        Ok(WatchEvent::Added(_) | WatchEvent::Modified(_) | WatchEvent::Deleted(_)) => return,
                        // Only a newer version to watch from.
                        Ok(WatchEvent::Bookmark(_)) => {}
                        // 410: the version is too old. The next list has a new one.
                        Ok(WatchEvent::Error(status)) => tracing::debug!(code = status.code, "the watch ends"),
                        Err(error) => {
                            tracing::debug!(%error, "the watch breaks");
                            break;
                        }
                    }
                }
            }
            Err(error) => tracing::debug!(%error, "there is no watch"),
        }
        std::future::pending().await
    }
}
