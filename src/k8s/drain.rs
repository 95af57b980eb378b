//! Draining one node: the loop without its waits, so that its caller owns deadlines, signals and what is
//! written down.
//!
//! Level-triggered: each round reads what is there and acts on that. What it remembers is by UID, and
//! only makes it ask more seldom; a new `Drain` over the same node comes to the same end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use super::client::Client;
use super::error::Error;
use super::evict::{Blocked, Evicted};
use super::pods::{Pod, Pods, Why};
use crate::model::{Fact, NodeMark, NodeRef, NodeView, counted};

/// Waits between two tries against one disruption budget (kubernetes §6.7).
const BUDGET: Waits = Waits { first: Duration::from_secs(5), longest: Duration::from_secs(60) };

/// Waits after a failure of the server, or where it says "later" without saying when (kubernetes §6.7).
const LATER: Waits = Waits { first: Duration::from_secs(1), longest: Duration::from_secs(30) };

/// How long what cannot be evicted is left alone: as it is it never can, but a person who reads of it
/// may change that.
const NEVER: Duration = Duration::from_secs(60);

/// How long after the end of its grace a pod is called stuck: the kubelet kills at that end, and then
/// has its volumes and its network to take down.
const SLACK: Duration = Duration::from_secs(30);

/// From this priority on a pod serves the whole cluster (DNS, storage; `system-cluster-critical`): it is
/// evicted when nothing else is left that may need it to end in peace.
const CRITICAL: i32 = 2_000_000_000;

struct Waits {
    first: Duration,
    longest: Duration,
}

/// A drain of one node by one visit.
pub struct Drain {
    client: Client,
    node: NodeRef,
    mark: NodeMark,
    /// What kept a pod at the last try, by its UID.
    kept: BTreeMap<String, Kept>,
    /// When a budget is asked again, by its namespace and name.
    budgets: BTreeMap<String, Again>,
    /// What was evicted, by UID.
    evicted: BTreeMap<String, String>,
    /// Of those, what nothing starts again and nobody has asked for yet.
    ended: Vec<String>,
    /// The UIDs of the first list; none before it.
    first: Option<BTreeSet<String>>,
    /// The first that was evicted of those that came later, by who started it.
    came: BTreeMap<String, String>,
    /// Version of the last list.
    version: Option<String>,
    /// Whether pods did not end in time.
    stuck: bool,
}

enum Kept {
    Budget { key: String, blocked: Blocked },
    Later { again: Again, said: String },
    Never { at: Timestamp, said: String },
}

#[derive(Clone, Copy)]
struct Again {
    wait: Duration,
    at: Timestamp,
}

/// How a drain stands after a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Round {
    /// Still cordoned with our mark, no pod due or ending, no volume attached. It counts when it is
    /// found twice, some time apart (kubernetes §6.7).
    Empty {
        /// What was read.
        evidence: Vec<String>,
    },
    /// Something is still there.
    Busy {
        /// Each thing by name, in an order and in words that change only when it does.
        waiting_for: Vec<String>,
    },
    /// The node is not ours any more: a person or a program has taken it back. Nothing was evicted.
    Lost {
        /// What was found.
        found: String,
    },
}

impl Drain {
    /// A drain of a node that carries our `mark`.
    pub fn new(client: Client, node: NodeRef, mark: NodeMark) -> Self {
        Self {
            client,
            node,
            mark,
            kept: BTreeMap::new(),
            budgets: BTreeMap::new(),
            evicted: BTreeMap::new(),
            ended: Vec::new(),
            first: None,
            came: BTreeMap::new(),
            version: None,
            stuck: false,
        }
    }

    /// Looks, and asks for the evictions that are due. `now` is our clock.
    ///
    /// # Errors
    /// [`Error`] if something could not be read, so that nothing is concluded; the next round looks anew.
    pub async fn round(&mut self, now: Timestamp) -> Result<Round, Error> {
        let view = match self.ours().await? {
            Ok(view) => view,
            Err(found) => return Ok(Round::Lost { found }),
        };
        let pods = self.client.pods_on(&self.node.name).await?;
        self.version = Some(pods.version.clone());
        self.forget(&pods);
        self.first.get_or_insert_with(|| {
            let all = pods.due.iter().chain(&pods.ending);
            all.map(|pod| pod.pod.uid.clone()).collect()
        });
        self.stuck = pods.ending.iter().any(|pod| is_stuck(pod, now));
        if pods.due.is_empty() && pods.ending.is_empty() {
            return self.emptied(&pods.staying).await;
        }
        let accepted = self.evict(&pods, now).await?;
        let mut waiting_for = self.waiting_for(&pods, Some(&accepted), now);
        if self.stuck && view.ready != Fact::Known(true) {
            waiting_for.push(format!("the node {} is not Ready: its kubelet may not end them", self.node));
        }
        Ok(Round::Busy { waiting_for })
    }

    /// Pods whose eviction was accepted since this was last asked, and that nothing starts again.
    pub fn take_ended(&mut self) -> Vec<String> {
        std::mem::take(&mut self.ended)
    }

    /// Whether pods did not end in time, by the last round.
    pub fn is_stuck(&self) -> bool {
        self.stuck
    }

    /// Looks, and asks for nothing: the look just before the VM of the node is stopped.
    ///
    /// # Errors
    /// As [`Drain::round`].
    pub async fn look(&self, now: Timestamp) -> Result<Round, Error> {
        if let Err(found) = self.ours().await? {
            return Ok(Round::Lost { found });
        }
        let pods = self.client.pods_on(&self.node.name).await?;
        if pods.due.is_empty() && pods.ending.is_empty() {
            return self.emptied(&pods.staying).await;
        }
        Ok(Round::Busy { waiting_for: self.waiting_for(&pods, None, now) })
    }

    /// Waits until something happens on the node, or until `most` is over.
    pub async fn wait(&self, most: Duration) {
        match &self.version {
            Some(version) => self.client.changed(&self.node.name, version, most).await,
            None => tokio::time::sleep(most).await,
        }
    }

    /// The node, if it is still the one that we have closed; else what was found.
    async fn ours(&self) -> Result<Result<NodeView, String>, Error> {
        let Some(view) = self.client.node(&self.node.name).await? else {
            return Ok(Err("the node is gone".to_owned()));
        };
        let lost = if view.node.uid != self.node.uid {
            Some("there is another node of this name".to_owned())
        } else if view.deleting {
            Some("the node is being deleted".to_owned())
        } else if !view.unschedulable {
            // By whom it does not say: a field that was taken away has no owner among `managedFields`.
            Some("the node was uncordoned".to_owned())
        } else {
            self.not_our_mark(&view)
        };
        Ok(lost.map_or(Ok(view), Err))
    }

    /// Its phase and its times may have been written anew meanwhile.
    fn not_our_mark(&self, view: &NodeView) -> Option<String> {
        let ours =
            |mark: &NodeMark| (&mark.run, &mark.host, &mark.vm) == (&self.mark.run, &self.mark.host, &self.mark.vm);
        match view.marked() {
            Fact::Known(mark) if ours(&mark) => None,
            Fact::Known(mark) => Some(format!("the node carries the mark of run {}", mark.run)),
            Fact::Absent => Some("our mark was taken off the node".to_owned()),
            Fact::Unknown { why } => Some(why),
        }
    }

    /// Forgets what is no longer there: a pod that comes again under its name is a new pod.
    fn forget(&mut self, pods: &Pods) {
        let there: BTreeSet<&str> = pods.due.iter().map(|pod| pod.pod.uid.as_str()).collect();
        self.kept.retain(|uid, _| there.contains(uid.as_str()));
        let used: BTreeSet<&str> = self.kept.values().filter_map(Kept::budget).collect();
        self.budgets.retain(|key, _| used.contains(key.as_str()));
    }

    /// Asks for the evictions that are due, the least important pod first; answers who was accepted.
    async fn evict(&mut self, pods: &Pods, now: Timestamp) -> Result<BTreeSet<String>, Error> {
        self.look_at_budgets(now).await;
        let critical_wait = others_left(pods);
        let (mut accepted, mut closed) = (BTreeSet::new(), BTreeSet::new());
        for pod in &pods.due {
            if !self.kept.contains_key(&pod.pod.uid)
                && let Some(kept) = self.twin(pod, &pods.due)
            {
                self.kept.insert(pod.pod.uid.clone(), kept);
            }
            let waits = match self.kept.get(&pod.pod.uid) {
                None => false,
                Some(Kept::Never { at, .. }) => *at > now,
                Some(Kept::Later { again, .. }) => again.at > now,
                // One try a round for all pods of a budget that refuses.
                Some(Kept::Budget { key, .. }) => {
                    closed.contains(key) || self.budgets.get(key).is_some_and(|again| again.at > now)
                }
            };
            if waits || (critical_wait && pod.priority >= CRITICAL) {
                continue;
            }
            match self.client.evict(&pod.pod).await {
                Ok(evicted) => {
                    if evicted == Evicted::Accepted {
                        accepted.insert(pod.pod.uid.clone());
                    }
                    self.note(pod, evicted, now, &mut closed);
                }
                // The server failed at this pod; it may do better at the next.
                Err(Error::Refused { refusal, .. }) if refusal.code >= 500 || refusal.code == 408 => {
                    self.later(&pod.pod.uid, None, refusal.to_string(), now);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(accepted)
    }

    /// What a budget said to a pod that it cannot tell from this one: budgets choose pods by namespace and
    /// labels.
    fn twin(&self, pod: &Pod, due: &[Pod]) -> Option<Kept> {
        let alike = |other: &&Pod| other.pod.namespace == pod.pod.namespace && other.labels == pod.labels;
        due.iter().filter(alike).find_map(|other| match self.kept.get(&other.pod.uid) {
            Some(Kept::Budget { key, blocked }) => Some(Kept::Budget { key: key.clone(), blocked: blocked.clone() }),
            _ => None,
        })
    }

    /// Remembers an answer, and which budgets are `closed` in this round.
    fn note(&mut self, pod: &Pod, evicted: Evicted, now: Timestamp, closed: &mut BTreeSet<String>) {
        let uid = &pod.pod.uid;
        match evicted {
            Evicted::Accepted => {
                if let Some(Kept::Budget { key, .. }) = self.kept.remove(uid) {
                    self.budgets.remove(&key);
                }
                // However often it comes again, it is told once.
                let again = self.comes_again(pod);
                let key = if again { starter(pod) } else { uid.clone() };
                let first = self.evicted.insert(key, self.words(pod)).is_none();
                if first && !again && pod.owner.is_none() {
                    self.ended.push(words(pod));
                }
                if self.is_later(pod) {
                    self.came.entry(starter(pod)).or_insert_with(|| uid.clone());
                }
            }
            Evicted::Gone => drop(self.kept.remove(uid)),
            Evicted::Blocked(blocked) => {
                let key = blocked.budget.clone().unwrap_or_else(|| format!("{}/?{uid}", pod.pod.namespace));
                // Pods that are not alike may find one budget closed, each for itself.
                if closed.insert(key.clone()) {
                    let again = BUDGET.after(self.budgets.get(&key), None, now);
                    self.budgets.insert(key.clone(), again);
                }
                self.kept.insert(uid.clone(), Kept::Budget { key, blocked });
            }
            Evicted::Later { after, said } => self.later(uid, after, said, now),
            Evicted::Never { said } => {
                let at = now.checked_add(NEVER).unwrap_or(Timestamp::MAX);
                self.kept.insert(uid.clone(), Kept::Never { at, said });
            }
        }
    }

    fn later(&mut self, uid: &str, after: Option<Duration>, said: String, now: Timestamp) {
        let before = match self.kept.get(uid) {
            Some(Kept::Later { again, .. }) => Some(again),
            _ => None,
        };
        let again = LATER.after(before, after, now);
        self.kept.insert(uid.to_owned(), Kept::Later { again, said });
    }

    /// Asks a budget again at once if it allows something meanwhile; one that cannot be read is asked
    /// when its wait is over.
    async fn look_at_budgets(&mut self, now: Timestamp) {
        for (key, again) in self.budgets.iter_mut().filter(|(key, again)| again.at > now && !key.contains('?')) {
            match self.client.allowed(key).await {
                Ok(Some(allowed)) if allowed > 0 => again.at = now,
                Ok(_) => {}
                Err(error) => tracing::debug!(%error, "the budget cannot be read"),
            }
        }
    }

    async fn emptied(&self, staying: &[(Pod, Why)]) -> Result<Round, Error> {
        let mut volumes = self.client.attachments(&self.node.name).await?;
        // Read after the pods: who has uncordoned it meanwhile may have had pods placed on it.
        let view = match self.ours().await? {
            Ok(view) => view,
            Err(found) => return Ok(Round::Lost { found }),
        };
        volumes.extend(view.attached.iter().map(|name| format!("{name} (in status.volumesAttached)")));
        if !volumes.is_empty() {
            let waiting_for = volumes.iter().map(|volume| format!("volume {volume}")).collect();
            return Ok(Round::Busy { waiting_for });
        }
        let count = |why| staying.iter().filter(|(_, of)| *of == why).count();
        let mut evidence = vec![
            "cordoned, with our mark".to_owned(),
            format!(
                "no pods but {}, {} of DaemonSets and {} finished",
                counted(count(Why::Mirror), "static one"),
                count(Why::DaemonSet),
                count(Why::Finished)
            ),
            "no volume is attached".to_owned(),
        ];
        evidence.extend(self.evicted.values().map(|pod| format!("evicted: {pod}")));
        // Nothing of it runs, so it keeps nobody; somebody should know that it does not go.
        let finished = staying.iter().filter(|(_, why)| *why == Why::Finished).map(|(pod, _)| pod);
        evidence.extend(finished.filter(|pod| pod.ends.is_some() && !pod.finalizers.is_empty()).map(|pod| {
            format!("left: pod {}, which has ended, kept by its finalizers {}", pod.pod, pod.finalizers.join(", "))
        }));
        Ok(Round::Empty { evidence })
    }

    /// What a node waits for. `accepted`: UIDs of the pods whose eviction was accepted in this round; none if
    /// nobody asks for evictions.
    fn waiting_for(&self, pods: &Pods, accepted: Option<&BTreeSet<String>>, now: Timestamp) -> Vec<String> {
        let mut budgets: BTreeMap<&str, (String, Vec<String>)> = BTreeMap::new();
        let mut single = Vec::new();
        let critical_wait = others_left(pods);
        let mut again: BTreeSet<String> = BTreeSet::new();
        for pod in &pods.due {
            let name = self.words(pod);
            match self.kept.get(&pod.pod.uid) {
                Some(Kept::Budget { key, blocked }) => {
                    budgets.entry(key).or_insert_with(|| (says(blocked), Vec::new())).1.push(name);
                }
                Some(Kept::Later { said, .. }) => single.push(format!("{name}: {said}")),
                Some(Kept::Never { said, .. }) => single.push(format!("{name} cannot be evicted: {said}")),
                None if self.comes_again(pod) => drop(again.insert(name)),
                None if accepted.is_some_and(|accepted| accepted.contains(&pod.pod.uid)) => {
                    single.push(format!("{name}: its eviction is accepted"));
                }
                None if critical_wait && pod.priority >= CRITICAL => {
                    single.push(format!("{name}: it serves the cluster, so it goes last"));
                }
                None if accepted.is_some() => {
                    single.push(format!("{name}: Poolwright asks for its eviction in its next round"));
                }
                None => single.push(format!("{name}: it runs there")),
            }
        }
        let budgets = budgets.into_values().map(|(said, pods)| format!("{said}: {}", pods.join(", ")));
        let mut ending = Vec::new();
        for pod in &pods.ending {
            match self.comes_again(pod) && !is_stuck(pod, now) && pod.finalizers.is_empty() {
                true => drop(again.insert(self.words(pod))),
                false => ending.push(self::ending(pod, now)),
            }
        }
        budgets.chain(single).chain(again).chain(ending).collect()
    }

    fn is_later(&self, pod: &Pod) -> bool {
        self.first.as_ref().is_some_and(|first| !first.contains(&pod.pod.uid))
    }

    /// Whether it is there in place of another that had come after the cordon and was evicted. The first that comes
    /// may have been bound just before the cordon.
    fn comes_again(&self, pod: &Pod) -> bool {
        self.is_later(pod) && self.came.get(&starter(pod)).is_some_and(|first| *first != pod.pod.uid)
    }

    /// A pod in words; one that comes again, in words that are the next one's too.
    fn words(&self, pod: &Pod) -> String {
        if !self.comes_again(pod) {
            return words(pod);
        }
        let starter = starter(pod);
        let why = if pod.tolerates { "it tolerates the cordon" } else { "it is pinned there by nodeName" };
        format!(
            "a pod of {starter} comes again on the cordoned node as often as it is evicted ({why}); whoever looks after \
             {starter} has to end that"
        )
    }
}

impl std::fmt::Debug for Drain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drain").field("node", &self.node).finish_non_exhaustive()
    }
}

impl Kept {
    fn budget(&self) -> Option<&str> {
        match self {
            Self::Budget { key, .. } => Some(key),
            _ => None,
        }
    }
}

impl Waits {
    /// The next wait: what the server asks for, else twice the last one.
    fn after(&self, before: Option<&Again>, asked: Option<Duration>, now: Timestamp) -> Again {
        let doubled = before.map_or(self.first, |before| (before.wait * 2).min(self.longest));
        let wait = asked.unwrap_or(doubled);
        Again { wait: doubled, at: now.checked_add(wait).unwrap_or(Timestamp::MAX) }
    }
}

/// Whether something is left that may need the pods that serve the cluster.
fn others_left(pods: &Pods) -> bool {
    pods.due.iter().chain(&pods.ending).any(|pod| pod.priority < CRITICAL)
}

/// Who starts it again, by name; the pod itself, if its name is all that is known.
fn starter(pod: &Pod) -> String {
    pod.owner.clone().unwrap_or_else(|| format!("pod {}", pod.pod))
}

/// A pod, with what its eviction costs.
fn words(pod: &Pod) -> String {
    let costs = match (pod.owner.is_none(), pod.scratch) {
        (true, true) => " (nothing starts it again; its emptyDir is lost)",
        (true, false) => " (nothing starts it again)",
        (false, true) => " (its emptyDir is lost)",
        (false, false) => "",
    };
    format!("pod {}{costs}", pod.pod)
}

fn says(blocked: &Blocked) -> String {
    match (&blocked.budget, blocked.needs, blocked.has) {
        (Some(budget), Some(needs), Some(has)) => {
            // What is healthy elsewhere is counted; who looks after the budget may lower it.
            format!(
                "PodDisruptionBudget {budget} needs {needs} healthy pods and has {has}, so it lets none go (one more \
                 that is healthy elsewhere unblocks it, or whoever looks after {budget})"
            )
        }
        (Some(budget), ..) => format!("PodDisruptionBudget {budget} ({})", blocked.said),
        (None, ..) => format!("a PodDisruptionBudget ({})", blocked.said),
    }
}

fn is_stuck(pod: &Pod, now: Timestamp) -> bool {
    pod.ends.is_some_and(|ends| ends.checked_add(SLACK).is_ok_and(|late| late < now))
}

fn ending(pod: &Pod, now: Timestamp) -> String {
    let name = words(pod);
    let held = match pod.finalizers.is_empty() {
        true => String::new(),
        false => format!(", finalizers {}", pod.finalizers.join(", ")),
    };
    match pod.ends {
        Some(ends) if is_stuck(pod, now) => format!("{name} is stuck: it should have ended by {ends}{held}"),
        Some(ends) => format!("{name} ends by {ends}{held}"),
        None => format!("{name} is ending{held}"),
    }
}
