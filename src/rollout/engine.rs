//! The ways into a run: apply a plan, resume it, from its journal or from the live markers, retry a
//! host, abort.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher, RandomState};

use jiff::Timestamp;

use super::journal::Journal;
use super::marker;
use super::record::Recorder;
use super::run::Run;
use super::{
    Event, Exit, Handoff, HostPhase, HostState, Interrupt, Resumed, RunDir, RunError, RunState, Sink, Spent, StateDir,
    StateError, fold,
};
use crate::base::clock::Clock;
use crate::model::{HostName, HostRef, RunId};
use crate::observe::Fleet;
use crate::plan::Plan;

/// What a run needs of the world.
pub struct Engine<'a> {
    /// The fleet, logged in. The caller closes it.
    pub fleet: &'a Fleet,
    /// Our clock.
    pub clock: Clock,
    /// Where plans and journals are kept.
    pub state: &'a StateDir,
    /// Who watches.
    pub sink: &'a mut dyn Sink,
    /// Signals.
    pub interrupt: Interrupt,
    /// How long a person is waited for who switches MIG.
    pub handoff: Handoff,
    /// Version of the program.
    pub tool: &'a str,
    /// Who takes the lock of the run: program and process, for people.
    pub holder: &'a str,
}

/// Applies a plan: spends it, and visits its hosts.
///
/// # Errors
/// [`RunError::Spent`], [`RunError::Expired`], [`RunError::OtherSite`] before anything is done;
/// [`RunError::Journal`] as soon as the journal cannot be written. What happens to hosts is no error:
/// see [`RunState::exit`].
pub async fn apply(engine: Engine<'_>, plan: &Plan) -> Result<RunState, RunError> {
    let now = engine.clock.now();
    engine.check_site(plan)?;
    if now > plan.expires {
        return Err(RunError::Expired { plan: plan.id.clone(), at: plan.expires });
    }
    // The state directory may be gone, as it is after a CI job: the hosts remember. A run whose plan is
    // spent here is found by its journal.
    if engine.state.spent(&plan.id)?.is_none()
        && let Some(run) = live_run(engine.fleet, plan).await?
    {
        return Err(RunError::UnderWay { plan: plan.id.clone(), run });
    }
    let spent = Spent { run: new_run(now), at: now };
    engine.state.keep(plan)?;
    if let Err(before) = engine.state.spend(&plan.id, &spent)? {
        let open = is_open(engine.state, &before.run)?;
        return Err(RunError::Spent { plan: plan.id.clone(), run: before.run, at: before.at, open });
    }
    let dir = engine.state.lock(&spent.run, engine.holder)?;
    let (_, journal) = dir.journal()?;
    apply_into(engine, plan, dir, journal).await
}

/// As [`apply`], for a plan that is spent for the run of `dir`, with a journal that has no line yet.
///
/// # Errors
/// As [`apply`].
pub async fn apply_into(engine: Engine<'_>, plan: &Plan, dir: RunDir, journal: Journal) -> Result<RunState, RunError> {
    let started = engine.started(plan, dir.run());
    let rec = Recorder::begin(journal, started, engine.sink, engine.clock)?;
    run(engine.fleet, engine.clock, engine.interrupt, engine.handoff, plan, dir, rec).go().await
}

/// Takes a run up again: hosts that were left first, then those that wait.
///
/// # Errors
/// As [`apply`], and [`StateError::NoSuchRun`].
pub async fn resume(engine: Engine<'_>, id: &RunId) -> Result<RunState, RunError> {
    again(engine, id, Way::GoOn).await
}

/// As [`resume`], and visits a host whose visit failed once more.
///
/// # Errors
/// As [`resume`], and [`RunError::NotFailed`].
pub async fn retry(engine: Engine<'_>, id: &RunId, host: &HostName) -> Result<RunState, RunError> {
    again(engine, id, Way::Retry(host.clone())).await
}

/// As [`resume`], after a person has typed at the shell of a host what they were asked for.
///
/// # Errors
/// As [`resume`], and [`RunError::NotAwaited`].
pub async fn confirm(engine: Engine<'_>, id: &RunId, host: &HostName) -> Result<RunState, RunError> {
    again(engine, id, Way::Confirm(host.clone())).await
}

/// Gives back the hosts that are under way and not changed yet; says how the others are left.
///
/// # Errors
/// As [`resume`].
pub async fn abort(engine: Engine<'_>, id: &RunId) -> Result<RunState, RunError> {
    again(engine, id, Way::GoBack).await
}

/// Leaves a host whose visit cannot go on to somebody, as it stands: what can be put back is, and the
/// marker goes. The host stays as it is, in maintenance mode if it is.
///
/// # Errors
/// As [`resume`], and [`RunError::NotFailed`].
pub async fn give_up(engine: Engine<'_>, id: &RunId, host: &HostName) -> Result<RunState, RunError> {
    again(engine, id, Way::GiveUp(host.clone())).await
}

/// Takes the run of a plan up again from the markers on its hosts: journal and state are gone.
///
/// # Errors
/// As [`apply`]; [`RunError::JournalIsHere`] if they are not gone; [`RunError::SeveralRuns`].
pub async fn resume_from_live(engine: Engine<'_>, plan: &Plan) -> Result<RunState, RunError> {
    engine.check_site(plan)?;
    let now = engine.clock.now();
    let run_id = live_run(engine.fleet, plan).await?.unwrap_or_else(|| new_run(now));
    let spent = Spent { run: run_id.clone(), at: now };
    engine.state.keep(plan)?;
    match engine.state.spend(&plan.id, &spent)? {
        Err(before) if !is_missing(engine.state, &before.run)? => {
            return Err(RunError::JournalIsHere { run: before.run });
        }
        Ok(()) | Err(_) => {}
    }
    let dir = engine.state.lock(&run_id, engine.holder)?;
    let (entries, journal) = dir.journal()?;
    if !entries.is_empty() {
        return Err(RunError::JournalIsHere { run: run_id });
    }
    let started = engine.started(plan, &run_id);
    let resumed = engine.resumed(Resumed::Live);
    let mut rec = Recorder::begin(journal, started, engine.sink, engine.clock)?;
    rec.run(resumed)?;
    run(engine.fleet, engine.clock, engine.interrupt, engine.handoff, plan, dir, rec).go().await
}

/// What a run has come to, from its journal; reads only.
///
/// # Errors
/// [`RunError::State`], [`RunError::Fold`].
pub fn status(state: &StateDir, id: &RunId) -> Result<RunState, RunError> {
    Ok(fold(&state.entries(id)?)?)
}

/// How a run is taken up again from its journal.
enum Way {
    GoOn,
    Retry(HostName),
    Confirm(HostName),
    GoBack,
    GiveUp(HostName),
}

async fn again(engine: Engine<'_>, id: &RunId, way: Way) -> Result<RunState, RunError> {
    let no_such_run = || StateError::NoSuchRun { run: id.clone(), dir: engine.state.path().to_owned() };
    if !engine.state.runs()?.contains(id) && engine.state.plan_of(id)?.is_none() {
        return Err(no_such_run().into());
    }
    let dir = engine.state.lock(id, engine.holder)?;
    let (entries, journal) = dir.journal()?;
    let how = match &way {
        Way::GoOn | Way::Confirm(_) => Resumed::Journal,
        Way::Retry(host) => Resumed::Retry { host: host.clone() },
        Way::GoBack => Resumed::Abort,
        Way::GiveUp(host) => Resumed::GiveUp { host: host.clone() },
    };
    if entries.is_empty() {
        // The process died between spending the plan and the first line: nothing was done.
        let plan = engine.state.plan_of(id)?.ok_or_else(no_such_run)?;
        let plan = engine.state.plan(&plan)?;
        engine.check_site(&plan)?;
        return match way {
            Way::GoOn => apply_into(engine, &plan, dir, journal).await,
            Way::Retry(host) | Way::GiveUp(host) => Err(RunError::NotFailed { host, run: id.clone() }),
            Way::Confirm(host) => Err(RunError::NotAwaited { host, run: id.clone() }),
            // To give back what was never taken starts nothing.
            Way::GoBack => {
                let (started, resumed) = (engine.started(&plan, id), engine.resumed(how));
                let mut rec = Recorder::begin(journal, started, engine.sink, engine.clock)?;
                rec.run(resumed)?;
                run(engine.fleet, engine.clock, engine.interrupt, engine.handoff, &plan, dir, rec).go_back().await
            }
        };
    }
    let state = fold(&entries)?;
    let plan = engine.state.plan(&state.plan)?;
    engine.check_site(&plan)?;
    match &way {
        Way::Retry(host) => {
            let failed = state.hosts.get(host).is_some_and(|host| matches!(host.phase, HostPhase::Failed { .. }));
            if !failed {
                return Err(RunError::NotFailed { host: host.clone(), run: id.clone() });
            }
        }
        Way::Confirm(host) if !state.hosts.get(host).is_some_and(HostState::is_awaited) => {
            return Err(RunError::NotAwaited { host: host.clone(), run: id.clone() });
        }
        Way::GiveUp(host) if !state.hosts.get(host).is_some_and(HostState::is_on_our_hands) => {
            return Err(RunError::NotFailed { host: host.clone(), run: id.clone() });
        }
        Way::Confirm(_) | Way::GoOn | Way::GoBack | Way::GiveUp(_) => {}
    }
    let resumed = engine.resumed(how);
    let mut rec = Recorder::go_on(journal, state, engine.sink, engine.clock);
    rec.run(resumed)?;
    if let Way::Confirm(host) = &way {
        rec.host(host, Event::HandoffConfirmed)?;
    }
    let run = run(engine.fleet, engine.clock, engine.interrupt, engine.handoff, &plan, dir, rec);
    match way {
        Way::GoOn | Way::Confirm(_) => run.go().await,
        Way::Retry(host) => run.go_retrying(&host).await,
        Way::GoBack => run.go_back().await,
        Way::GiveUp(host) => run.go_giving_up(&host).await,
    }
}

fn run<'a>(
    fleet: &'a Fleet,
    clock: Clock,
    interrupt: Interrupt,
    handoff: Handoff,
    plan: &'a Plan,
    dir: RunDir,
    rec: Recorder<'a>,
) -> Run<'a> {
    // A login that failed in this run is never tried again.
    rec.state.hosts.iter().filter(|(_, host)| host.shell_ended.is_some()).for_each(|(name, _)| fleet.end_shell(name));
    Run {
        fleet,
        plan,
        pace: plan.desired.pace,
        clock,
        interrupt,
        dir,
        rec,
        markers: BTreeMap::new(),
        field: None,
        shells: BTreeMap::new(),
        said: None,
        handoff,
        proven: BTreeMap::new(),
        restarted: BTreeSet::new(),
        retrying: None,
        again: BTreeSet::new(),
        nodes_before: BTreeMap::new(),
        recordoned: BTreeMap::new(),
    }
}

impl Engine<'_> {
    fn check_site(&self, plan: &Plan) -> Result<(), RunError> {
        let found = &self.fleet.identity().instance_uuid;
        if *found == plan.site.instance_uuid {
            return Ok(());
        }
        Err(RunError::OtherSite { expected: plan.site.instance_uuid.clone(), found: found.clone() })
    }

    fn started(&self, plan: &Plan, run: &RunId) -> Event {
        Event::RunStarted {
            run: run.clone(),
            tool: self.tool.to_owned(),
            plan: plan.id.clone(),
            inputs: plan.inputs.clone(),
            site_uuid: plan.site.instance_uuid.clone(),
            user: self.fleet.vcenter().session_user(),
            hosts: plan.hosts.iter().map(|host| host.host.name.clone()).collect(),
        }
    }

    fn resumed(&self, how: Resumed) -> Event {
        Event::RunResumed { tool: self.tool.to_owned(), user: self.fleet.vcenter().session_user(), how }
    }
}

/// The run whose markers stand on the plan's hosts, if any do.
async fn live_run(fleet: &Fleet, plan: &Plan) -> Result<Option<RunId>, RunError> {
    let hosts: Vec<HostRef> = plan.hosts.iter().map(|host| host.host.clone()).collect();
    let observed = fleet.facts(&hosts).await;
    let ours: BTreeSet<RunId> = observed
        .hosts
        .values()
        .filter_map(|record| record.view.as_ref().ok())
        .filter_map(|view| marker::read(view))
        .filter(|marker| marker.plan == plan.id.short())
        .map(|marker| marker.run)
        .collect();
    if ours.len() > 1 {
        return Err(RunError::SeveralRuns { runs: ours.into_iter().collect() });
    }
    Ok(ours.into_iter().next())
}

/// Whether the run has work left: then it is resumed, not applied again.
fn is_open(state: &StateDir, run: &RunId) -> Result<bool, RunError> {
    match state.entries(run) {
        Ok(entries) if entries.is_empty() => Ok(true),
        Ok(entries) => Ok(fold(&entries)?.exit() != Exit::Done),
        Err(StateError::NoSuchRun { .. }) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Whether a run left nothing but its mark on the plan.
fn is_missing(state: &StateDir, run: &RunId) -> Result<bool, RunError> {
    match state.entries(run) {
        Ok(entries) => Ok(entries.is_empty()),
        Err(StateError::NoSuchRun { .. }) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// A new run's id: 48 bits of milliseconds and 80 bits that nobody else has, in the layout and
/// alphabet of a ULID. The standard library seeds its hashers from the system's randomness.
fn new_run(now: Timestamp) -> RunId {
    let noise = || RandomState::new().build_hasher().finish();
    let millis = u128::from(now.as_millisecond().unsigned_abs()) & ((1 << 48) - 1);
    let bits = millis << 80 | (u128::from(noise()) << 64 | u128::from(noise())) & ((1 << 80) - 1);
    const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let digit = |at: u32| ALPHABET[(bits >> (5 * at) & 31) as usize] as char;
    RunId((0..26).rev().map(digit).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_sort_by_time_and_differ() {
        let at = |text: &str| new_run(text.parse().unwrap());
        let [first, second] = ["2026-11-30T22:00:00.001Z", "2026-11-30T22:00:00.002Z"].map(at);
        assert!(first < second);
        assert_eq!(first.as_str().len(), 26);
        assert!(first.as_str().starts_with("01M8Q7HMR1"), "{first}");
        assert_ne!(at("2026-11-30T22:00:00Z"), at("2026-11-30T22:00:00Z"));
    }
}
