//! Watches: what changes, as a stream of lines.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde_json::{Value, json};
use tokio::sync::watch::Receiver;
use tokio::time::Instant;

use super::read::{View, Wanted, version};
use super::resources::Resource;
use super::route::Ask;
use super::status::ApiError;
use super::table;
use crate::sim::World;
use crate::sim::answer::{Body, Dropped};
use crate::sim::faults::Struck;
use crate::sim::world::guest::{Guest, set};

/// `--min-request-timeout`: how long a watch lives at least where the client does not say.
const LIVES: Duration = Duration::from_secs(1800);
/// How often a bookmark comes (storage/cacher, `bookmarkFrequency`).
const BOOKMARKS: Duration = Duration::from_secs(60);

/// A watch that goes on.
struct Watching {
    world: World,
    cluster: String,
    resource: &'static Resource,
    wanted: Wanted,
    /// As `kubectl get -w` wants it.
    table: bool,
    /// Everything up to this revision was told.
    told: u64,
    lines: VecDeque<Bytes>,
    until: Instant,
    /// When the next bookmark is due.
    bookmark: Option<Instant>,
    changes: Receiver<u64>,
    /// It ends once its lines are told.
    over: bool,
    /// The connection breaks then.
    breaks: bool,
}

/// The stream for a watch, or why there is none.
pub(super) fn begin(world: &World, cluster: &str, ask: &Ask, table: bool, struck: &Struck) -> Result<Body, ApiError> {
    let wanted = Wanted::of(ask)?;
    let query = |name: &str| ask.query.get(name).map(String::as_str).filter(|value| !value.is_empty());
    let seconds = query("timeoutSeconds").and_then(|text| text.parse().ok());
    let now = Instant::now();
    let mut watching = Watching {
        world: world.clone(),
        cluster: cluster.to_owned(),
        resource: ask.resource,
        wanted,
        table,
        told: 0,
        lines: VecDeque::new(),
        until: now + seconds.map_or(LIVES, Duration::from_secs),
        bookmark: ask.flag("allowWatchBookmarks").then(|| now + BOOKMARKS),
        changes: world.changes(),
        over: false,
        breaks: struck.drop_after,
    };
    let from = query("resourceVersion").map(version).transpose()?.filter(|from| *from > 0);
    world.look(|moment| {
        let now = moment.state.time;
        let Some(guest) = moment.state.guests.get(cluster) else { return };
        watching.told = guest.revision;
        match from {
            // One that is not there yet is waited for.
            Some(from) => watching.told = from,
            // Without a revision to go on from, a watch begins with what there is.
            None if query("sendInitialEvents") != Some("false") => {
                let view = View { guest, now, cluster, stale: &struck.stale };
                for (key, object) in guest.all(ask.resource.plural) {
                    if watching.wanted.takes(key, object) {
                        watching.event("ADDED", view.shown(key, object));
                    }
                }
            }
            None => {}
        }
        if ask.flag("sendInitialEvents") {
            let annotations = json!({"k8s.io/initial-events-end": "true"});
            watching.mark(Some(annotations));
        }
    });
    // A rule may break it off at once.
    watching.over = struck.drop_after;
    let frames = stream::unfold(watching, |mut watching| async move {
        let line = watching.next().await?;
        Some((line.map(Frame::data), watching))
    });
    Ok(StreamBody::new(frames).boxed_unsync())
}

impl Watching {
    /// The next line; none: it has ended.
    async fn next(&mut self) -> Option<Result<Bytes, Dropped>> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Some(Ok(line));
            }
            if std::mem::take(&mut self.breaks) {
                return Some(Err(Dropped));
            }
            if self.over || Instant::now() >= self.until {
                return None;
            }
            self.changes.borrow_and_update();
            let world = self.world.clone();
            let cluster = self.cluster.clone();
            world.look(|moment| {
                if let Some(guest) = moment.state.guests.get(&cluster) {
                    self.look(guest);
                }
            });
            if !self.lines.is_empty() || self.over {
                continue;
            }
            if let Some(due) = self.bookmark.filter(|due| *due <= Instant::now()) {
                self.mark(None);
                self.bookmark = Some(due + BOOKMARKS);
                continue;
            }
            let mut wake = self.bookmark.map_or(self.until, |due| due.min(self.until));
            if let Some(due) = self.world.next_due() {
                wake = wake.min(Instant::now() + due.max(Duration::from_millis(1)));
            }
            tokio::select! {
                _ = self.changes.changed() => {}
                () = tokio::time::sleep_until(wake) => {}
            }
        }
    }

    /// Takes what has changed since.
    fn look(&mut self, guest: &Guest) {
        if self.told < guest.compacted {
            // A stream that is under way says so in an event (apiserver, storage/cacher).
            let oldest = guest.compacted;
            let error = ApiError::expired(format!("too old resource version: {} ({oldest})", self.told));
            self.line(&json!({"type": "ERROR", "object": error.body()}));
            self.over = true;
            return;
        }
        let told = self.told;
        for change in guest.changes.iter().filter(|change| change.revision > told) {
            let takes = |object: &Option<_>| {
                object.as_ref().is_some_and(|object: &std::sync::Arc<Value>| self.wanted.takes(&change.key, object))
            };
            let (was, is) = (takes(&change.before), takes(&change.after));
            let kind = match (was, is) {
                (false, true) => "ADDED",
                (true, true) => "MODIFIED",
                (true, false) => "DELETED",
                (false, false) => continue,
            };
            let object = if is { &change.after } else { &change.before };
            let mut object = object.as_deref().cloned().unwrap_or_default();
            set(&mut object, &["metadata", "resourceVersion"], json!(change.revision.to_string()));
            self.event(kind, object);
        }
        self.told = self.told.max(guest.revision);
    }

    fn event(&mut self, kind: &str, object: Value) {
        let object = if self.table { table::of(self.resource, &[object], "", None) } else { object };
        self.line(&json!({"type": kind, "object": object}));
    }

    /// A bookmark: everything up to here was told.
    fn mark(&mut self, annotations: Option<Value>) {
        let mut object = json!({
            "kind": self.resource.kind, "apiVersion": self.resource.api_version(),
            "metadata": {"resourceVersion": self.told.to_string(), "creationTimestamp": null},
        });
        if let Some(annotations) = annotations {
            set(&mut object, &["metadata", "annotations"], annotations);
        }
        self.line(&json!({"type": "BOOKMARK", "object": object}));
    }

    fn line(&mut self, event: &Value) {
        self.lines.push_back(Bytes::from(format!("{event}\n")));
    }
}
