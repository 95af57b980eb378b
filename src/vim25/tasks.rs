//! Tasks: waiting for one to end, whatever happens on the way; cancelling; finding past ones.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::client::{Client, decode};
use super::error::Error;
use super::transport::DEADLINE;
use super::wire::decode::{reference, required};
use super::wire::names::{fault, managed, method, path};
use super::wire::{DecodeError, Node, ObjectContent, PropertySet, TaskInfo, TaskState, Updates, calls};
use crate::base::retry::{Policy, retry};
use crate::model::MoRef;

/// One wait on the server, in seconds. Short enough that a dead connection is noticed soon and that
/// every proxy on the way keeps quiet (the shortest idle limits known are one minute).
const SLICE_S: u64 = 30;

/// What the answer of a wait may take beyond the wait itself.
const SLICE_GRACE: Duration = Duration::from_secs(30);

/// Tasks a page of the history.
const HISTORY_PAGE: u32 = 100;

/// How a wait ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskEnd {
    /// The task ended well.
    Success(TaskInfo),
    /// The task failed; why is in [`TaskInfo::error`].
    Failed(TaskInfo),
    /// Our deadline passed; this is what the task was when it was read after that. It goes on.
    Deadline(TaskInfo),
    /// The server does not know the task any more: what became of it must be read on its object.
    Gone,
}

/// How a wait for a change ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waited {
    /// The condition holds for this state.
    Done(ObjectContent),
    /// The deadline passed; the state as last reported, if any was.
    Deadline(Option<ObjectContent>),
    /// The object does not exist any more.
    Gone,
}

/// What became of a request to cancel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cancel {
    /// The server took it; the task still has to end.
    Asked,
    /// The task says that it cannot be cancelled; nothing was sent.
    NotCancelable(TaskInfo),
    /// It had ended before.
    Ended(TaskInfo),
}

impl Client {
    /// The task as it is now.
    ///
    /// # Errors
    /// [`Error`]; a fault `ManagedObjectNotFound` if the server does not know it any more.
    pub async fn task_info(&self, task: &MoRef) -> Result<TaskInfo, Error> {
        let content = self.properties(task, &[path::TASK_INFO]).await?;
        let source = match content.get(path::TASK_INFO).map(TaskInfo::decode) {
            Some(Ok(info)) => return Ok(info),
            Some(Err(source)) => source,
            None => {
                DecodeError { element: path::TASK_INFO.to_owned(), what: "the task does not say what it is".to_owned() }
            }
        };
        Err(Error::Decode { call: method::RETRIEVE_PROPERTIES_EX, source })
    }

    /// Waits until a task has ended, at most `deadline`. A lost connection or session, a restart of
    /// the server or HTTP 408 on the way only make it attach again to the same task. How it ended is
    /// read afresh, never taken from the wait.
    ///
    /// `on_progress` is told of each change.
    ///
    /// # Errors
    /// [`Error`] if the state of the task cannot be read in the end; the task may still run.
    pub async fn wait_task(
        &self,
        task: &MoRef,
        deadline: Duration,
        mut on_progress: impl FnMut(TaskProgress),
    ) -> Result<TaskEnd, Error> {
        let paths = [path::TASK_STATE, path::TASK_PROGRESS, path::TASK_ERROR, path::TASK_RESULT];
        let mut told = None;
        let waited = self
            .wait_for_change(task, &paths, deadline, |content| {
                let state = content.get(path::TASK_STATE).map(|node| TaskState::from(node.text.as_str()));
                let percent = content.get(path::TASK_PROGRESS).and_then(|node| node.text.trim().parse().ok());
                let ended = state.as_ref().is_some_and(TaskState::ended);
                if let Some(state) = state {
                    let progress = TaskProgress { state, percent };
                    if told.as_ref() != Some(&progress) {
                        on_progress(progress.clone());
                        told = Some(progress);
                    }
                }
                ended
            })
            .await?;
        if waited == Waited::Gone {
            return Ok(TaskEnd::Gone);
        }
        match self.task_info(task).await {
            Ok(info) if info.state == TaskState::Success => Ok(TaskEnd::Success(info)),
            Ok(info) if info.state == TaskState::Error => Ok(TaskEnd::Failed(info)),
            Ok(info) => Ok(TaskEnd::Deadline(info)),
            Err(error) if error.is_fault(fault::MANAGED_OBJECT_NOT_FOUND) => Ok(TaskEnd::Gone),
            Err(error) => Err(error),
        }
    }

    /// Waits until the properties of an object meet a condition, at most `deadline`. The condition is
    /// asked about the first state and after each change; it may be asked twice about the same state.
    ///
    /// One wait at a time goes on for a client; a second one waits for the first.
    ///
    /// # Errors
    /// [`Error`], if it is none that passes by itself.
    pub async fn wait_for_change(
        &self,
        object: &MoRef,
        paths: &[&'static str],
        deadline: Duration,
        done: impl FnMut(&ObjectContent) -> bool,
    ) -> Result<Waited, Error> {
        let until = Instant::now() + deadline;
        let Ok(_one_at_a_time) = tokio::time::timeout_at(until, self.waiting.lock()).await else {
            return Ok(Waited::Deadline(None));
        };
        let paths: Vec<&'static str> = paths.iter().copied().filter(|path| self.version.knows(path)).collect();
        let set = PropertySet::new(object.kind.clone(), &paths);
        let policy = Policy {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(30),
            total: until.saturating_duration_since(Instant::now()),
        };
        let watch = Mutex::new(Watch { last: None, done });
        let renewed = AtomicBool::new(false);
        let attach = || async {
            let watched = self.watch(object, &set, until, &watch, &renewed).await;
            watched.map_err(|error| Self::only_one_renewal(error, &renewed))
        };
        let passes = |error: &Error| error.is_retriable() || error.is_fault(fault::INVALID_COLLECTOR_VERSION);
        let result = retry(policy, passes, attach).await;
        let last = held(&watch).last.take();
        match result {
            Ok(Some(waited)) => Ok(waited),
            Ok(None) => Ok(Waited::Deadline(last)),
            // The policy ends with the deadline: the way was lost, and the time is over.
            Err(error) if passes(&error) => Ok(Waited::Deadline(last)),
            Err(error) => Err(error),
        }
    }

    /// Attaches to an object and follows it until the condition holds.
    async fn watch<D: FnMut(&ObjectContent) -> bool>(
        &self,
        object: &MoRef,
        set: &PropertySet,
        until: Instant,
        watch: &Mutex<Watch<D>>,
        renewed: &AtomicBool,
    ) -> Result<Option<Waited>, Error> {
        let create = calls::create_filter(&self.service.property_collector, set, object);
        let made = match self.attempt(&create, DEADLINE).await {
            Err(error) if error.is_fault(fault::MANAGED_OBJECT_NOT_FOUND) => return Ok(Some(Waited::Gone)),
            other => other?,
        };
        let filter = required(&made, "returnval").and_then(reference).map_err(|source| decode(&create, source))?;
        let result = self.follow(object, until, watch, renewed).await;
        self.dispose(&calls::destroy_filter(&filter)).await;
        result
    }

    async fn follow<D: FnMut(&ObjectContent) -> bool>(
        &self,
        object: &MoRef,
        until: Instant,
        watch: &Mutex<Watch<D>>,
        renewed: &AtomicBool,
    ) -> Result<Option<Waited>, Error> {
        let mut content = ObjectContent::empty(object.clone());
        let mut version = String::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            // Whole seconds, rounded up: 0 would ask for no wait at all, again and again.
            let slice = (left.as_millis().div_ceil(1000) as u64).min(SLICE_S);
            let epoch = self.epoch();
            let call = calls::wait_for_updates(&self.service.property_collector, &version, slice);
            let response = self.attempt(&call, Duration::from_secs(slice) + SLICE_GRACE).await?;
            let Some(updates) = Updates::decode(&response).map_err(|source| decode(&call, source))? else {
                continue;
            };
            version = updates.version;
            for update in updates.objects.into_iter().filter(|update| update.object == *object) {
                if update.left {
                    return Ok(Some(Waited::Gone));
                }
                update.apply(&mut content);
            }
            if content.lost_session() {
                return Err(self.lost_session(&call, epoch).await);
            }
            if content.is_gone() {
                return Ok(Some(Waited::Gone));
            }
            let mut watch = held(watch);
            // News came: the session is accepted, and may end again another day.
            renewed.store(false, Ordering::Relaxed);
            watch.last = Some(content.clone());
            // A truncated set is only a part of the state: the rest comes at once.
            if !updates.truncated && (watch.done)(&content) {
                return Ok(Some(Waited::Done(content)));
            }
        }
    }

    /// Cancels a task, if it says that it can be cancelled.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn cancel_task(&self, task: &MoRef) -> Result<Cancel, Error> {
        let info = self.task_info(task).await?;
        if info.state.ended() {
            return Ok(Cancel::Ended(info));
        }
        if !info.cancelable {
            return Ok(Cancel::NotCancelable(info));
        }
        self.write(&calls::cancel_task(task)).await.map(|_| Cancel::Asked)
    }

    /// Tasks of an entity that a user (none: anybody) queued at or after a time, oldest first; also
    /// those that left `recentTask`. The user as the server writes it: [`Client::session_user`].
    ///
    /// # Errors
    /// [`Error`].
    pub async fn tasks_since(
        &self,
        entity: &MoRef,
        since: Timestamp,
        user: Option<&str>,
    ) -> Result<Vec<TaskInfo>, Error> {
        let policy =
            Policy { first: Duration::from_secs(1), longest: Duration::from_secs(30), total: Duration::from_secs(120) };
        let renewed = AtomicBool::new(false);
        let attempt = || async {
            let read = self.read_history(entity, since, user).await;
            read.map_err(|error| Self::only_one_renewal(error, &renewed))
        };
        retry(policy, Error::is_retriable, attempt).await
    }

    async fn read_history(&self, entity: &MoRef, since: Timestamp, user: Option<&str>) -> Result<Vec<TaskInfo>, Error> {
        let create = calls::create_task_collector(&self.service.task_manager, entity, since, user);
        let made = self.attempt(&create, DEADLINE).await?;
        let collector = required(&made, "returnval").and_then(reference).map_err(|source| decode(&create, source))?;
        let result = self.read_collector(&collector).await;
        self.dispose(&calls::destroy_collector(&collector)).await;
        result
    }

    async fn read_collector(&self, collector: &MoRef) -> Result<Vec<TaskInfo>, Error> {
        let call = calls::read_next_tasks(collector, HISTORY_PAGE);
        let mut tasks = Vec::new();
        loop {
            let response = self.attempt(&call, DEADLINE).await?;
            let before = tasks.len();
            for node in response.all("returnval") {
                tasks.push(TaskInfo::decode(node).map_err(|source| decode(&call, source))?);
            }
            if tasks.len() == before {
                return Ok(tasks);
            }
        }
    }
}

/// One wait over all its attachments.
struct Watch<D> {
    last: Option<ObjectContent>,
    done: D,
}

fn held<D>(watch: &Mutex<Watch<D>>) -> MutexGuard<'_, Watch<D>> {
    watch.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a wait reports on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskProgress {
    /// State.
    pub state: TaskState,
    /// Percent, if the task says so.
    pub percent: Option<u32>,
}

/// The reference of a started task.
pub(super) fn started(response: &Node) -> Result<MoRef, DecodeError> {
    let task = reference(required(response, "returnval")?)?;
    if task.kind == managed::TASK {
        Ok(task)
    } else {
        Err(DecodeError { element: "returnval".to_owned(), what: format!("a `{}` and no task", task.kind) })
    }
}
