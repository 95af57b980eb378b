//! Reading properties: of many objects page by page, or of one.

use std::collections::BTreeSet;
use std::time::Duration;

use super::client::{Client, decode};
use super::error::Error;
use super::transport::DEADLINE;
use super::wire::decode::{reference, required};
use super::wire::names::{fault, method};
use super::wire::{Call, Fault, Missing, MissingWhy, ObjectContent, ObjectSet, Page, PropertySet, calls};
use crate::model::MoRef;

/// Objects a page. A host with its devices, passthrough and graphics is some 50 to 100 KB of XML, so
/// a page stays below 10 MB.
const PAGE: u32 = 100;

/// How often one reading starts anew before it gives up: after a lost session, a lost connection, or
/// an object that went away. Each new start goes on with the objects that were not read yet.
const RESTARTS: u32 = 20;

/// How long giving something back may take: nobody waits for its answer.
const DISPOSAL: Duration = Duration::from_secs(10);

/// Which objects [`Client::retrieve`] reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Everything of the asked types below this container.
    Below(MoRef),
    /// These objects.
    Objects(Vec<MoRef>),
}

/// What was read, beside the pages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retrieved {
    /// How many objects were given to the callback.
    pub objects: usize,
    /// Objects that were deleted while we read, or before.
    pub gone: Vec<MoRef>,
}

impl Client {
    /// Reads properties of many objects and gives them to `on_page`, one page at a time: only one
    /// page is held in memory. Each object is given once.
    ///
    /// An object that is deleted meanwhile is skipped and noted. A path that the negotiated version
    /// or the server does not know is not sent, and is missing in each object with the reason.
    ///
    /// # Errors
    /// [`Error`]; pages that were given before are good.
    pub async fn retrieve(
        &self,
        scope: &Scope,
        sets: &[PropertySet],
        mut on_page: impl FnMut(Vec<ObjectContent>),
    ) -> Result<Retrieved, Error> {
        let mut reading = Reading::new(self, sets);
        let mut restarts = 0;
        loop {
            let epoch = self.epoch();
            let Err(error) = self.retrieve_once(scope, &mut reading, &mut on_page).await else {
                return Ok(reading.finish(scope));
            };
            restarts += 1;
            if restarts > RESTARTS || !reading.can_go_on(&error) {
                return Err(match error {
                    Error::SessionRenewed { call, authority } => Error::SessionRefused { call, authority },
                    other => other,
                });
            }
            // A 503 or a lost connection: wait for the server on a call that is repeated by the policy.
            if error.is_retriable() && epoch == self.epoch() {
                self.current_time().await?;
            }
            tracing::debug!(%error, read = reading.seen.len(), "the reading of the inventory starts anew");
        }
    }

    /// Reads properties of one object.
    ///
    /// # Errors
    /// [`Error`]; a fault `ManagedObjectNotFound` if the object does not exist any more.
    pub async fn properties(&self, object: &MoRef, paths: &[&'static str]) -> Result<ObjectContent, Error> {
        let mut found = None;
        let sets = [PropertySet::new(object.kind.clone(), paths)];
        let scope = Scope::Objects(vec![object.clone()]);
        self.retrieve(&scope, &sets, |page| found = page.into_iter().find(|content| content.object == *object)).await?;
        found.ok_or_else(|| {
            let fault = Fault { object: Some(object.clone()), ..Fault::plain(fault::MANAGED_OBJECT_NOT_FOUND) };
            Error::Fault { call: method::RETRIEVE_PROPERTIES_EX, object: object.clone(), fault: Box::new(fault) }
        })
    }

    async fn retrieve_once(
        &self,
        scope: &Scope,
        reading: &mut Reading,
        on_page: &mut impl FnMut(Vec<ObjectContent>),
    ) -> Result<(), Error> {
        let (objects, view) = match scope {
            Scope::Objects(all) => (ObjectSet::Objects(reading.left(all)), None),
            Scope::Below(container) => {
                let view = self.create_view(container, &reading.sets).await?;
                (ObjectSet::View(view.clone()), Some(view))
            }
        };
        if objects == ObjectSet::Objects(Vec::new()) {
            return Ok(());
        }
        let result = self.pages(&objects, reading, on_page).await;
        if let Some(view) = view {
            self.dispose(&calls::destroy_view(&view)).await;
        }
        result
    }

    async fn create_view(&self, container: &MoRef, sets: &[PropertySet]) -> Result<MoRef, Error> {
        let kinds: Vec<&str> = sets.iter().map(|set| set.kind.as_str()).collect();
        let call = calls::create_container_view(&self.service.view_manager, container, &kinds);
        let response = self.read(&call).await?;
        required(&response, "returnval").and_then(reference).map_err(|source| decode(&call, source))
    }

    async fn pages(
        &self,
        objects: &ObjectSet,
        reading: &mut Reading,
        on_page: &mut impl FnMut(Vec<ObjectContent>),
    ) -> Result<(), Error> {
        let collector = &self.service.property_collector;
        let epoch = self.epoch();
        let call = calls::retrieve_properties(collector, &reading.sets, objects, PAGE);
        let mut page = self.page(&call, true).await?;
        loop {
            let lost = page.objects.iter().any(ObjectContent::lost_session);
            if !lost {
                on_page(reading.take(std::mem::take(&mut page.objects)));
            }
            let Some(token) = page.token.take() else {
                return if lost { Err(self.lost_page(&call, epoch, reading).await) } else { Ok(()) };
            };
            let next = match lost {
                true => Err(self.lost_page(&call, epoch, reading).await),
                // Not repeated: the server may have gone on to the page after it.
                false => self.page(&calls::continue_retrieve(collector, &token), false).await,
            };
            match next {
                Ok(next) => page = next,
                Err(error) => {
                    self.dispose(&calls::cancel_retrieve(collector, &token)).await;
                    return Err(error);
                }
            }
        }
    }

    /// A page says that there is no session.
    async fn lost_page(&self, call: &Call, epoch: u64, reading: &Reading) -> Error {
        if reading.renewed { self.refused_session(call) } else { self.lost_session(call, epoch).await }
    }

    async fn page(&self, call: &Call, repeat: bool) -> Result<Page, Error> {
        let response = if repeat { self.read(call).await? } else { self.attempt(call, DEADLINE).await? };
        Page::decode(&response).map_err(|source| decode(call, source))
    }

    /// Gives back something on the server that lives no longer than the session anyway: tried once,
    /// and a failure changes nothing.
    pub(super) async fn dispose(&self, call: &Call) {
        if let Err(error) = self.attempt(call, DISPOSAL).await {
            tracing::debug!(%error, "left behind on the server until the session ends");
        }
    }
}

/// One reading over all its starts.
struct Reading {
    sets: Vec<PropertySet>,
    /// Paths that are not sent, by managed type, with the reason.
    unsent: Vec<(String, Missing)>,
    seen: BTreeSet<MoRef>,
    gone: BTreeSet<MoRef>,
    /// The session was renewed for this reading; once is enough for any.
    renewed: bool,
}

impl Reading {
    fn new(client: &Client, sets: &[PropertySet]) -> Self {
        let mut unsent = Vec::new();
        let mut sets = sets.to_vec();
        for set in &mut sets {
            let kind = set.kind.clone();
            set.paths.retain(|path| {
                let known = client.version.knows(path);
                if !known {
                    let why = format!("vim25 {} does not have {path}", client.version);
                    let missing = Missing { path: (*path).to_owned(), why: MissingWhy::Version(why) };
                    unsent.push((kind.clone(), missing));
                }
                known
            });
        }
        Self { sets, unsent, seen: BTreeSet::new(), gone: BTreeSet::new(), renewed: false }
    }

    /// Objects that were not read yet.
    fn left(&self, all: &[MoRef]) -> Vec<MoRef> {
        all.iter().filter(|object| !self.seen.contains(object) && !self.gone.contains(object)).cloned().collect()
    }

    /// The objects of a page that were not given before, with what is known to be missing in them.
    fn take(&mut self, objects: Vec<ObjectContent>) -> Vec<ObjectContent> {
        let mut fresh = Vec::new();
        for mut content in objects {
            if content.is_gone() {
                self.gone.insert(content.object);
            } else if self.seen.insert(content.object.clone()) {
                let kind = &content.object.kind;
                content.missing.extend(self.unsent.iter().filter(|(of, _)| of == kind).map(|(_, m)| m.clone()));
                fresh.push(content);
            }
        }
        fresh
    }

    /// Whether a new start can get further: the cause is dealt with, or goes away by itself.
    fn can_go_on(&mut self, error: &Error) -> bool {
        match error.fault() {
            Some(fault) if fault.kind == fault::MANAGED_OBJECT_NOT_FOUND => match &fault.object {
                Some(object) => self.gone.insert(object.clone()),
                None => false,
            },
            Some(fault) if fault.kind == fault::INVALID_PROPERTY => self.give_up_path(fault),
            Some(_) => false,
            None if matches!(error, Error::SessionRenewed { .. }) => !std::mem::replace(&mut self.renewed, true),
            None => error.is_retriable(),
        }
    }

    /// The server does not know a path: the others are still read.
    fn give_up_path(&mut self, fault: &Fault) -> bool {
        let Some(name) = fault.field("name") else { return false };
        let mut found = false;
        for set in &mut self.sets {
            if let Some(at) = set.paths.iter().position(|path| *path == name) {
                let path = set.paths.remove(at);
                let missing = Missing { path: path.to_owned(), why: MissingWhy::Fault(fault.clone()) };
                self.unsent.push((set.kind.clone(), missing));
                found = true;
            }
        }
        found
    }

    fn finish(mut self, scope: &Scope) -> Retrieved {
        if let Scope::Objects(all) = scope {
            // Asked for and not answered: a server may also leave out what does not exist any more.
            self.gone.extend(self.left(all));
        }
        Retrieved { objects: self.seen.len(), gone: self.gone.into_iter().collect() }
    }
}
