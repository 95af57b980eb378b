//! Writing the marker: written, read back equal within `pace.readBack`, or the host is not touched.

use std::time::Duration;

use super::marker::{self, Owner};
use super::run::{Deadline, Run};
use super::visit::view_of;
use super::{Compensation, Event, Held, RunError, chain};
use crate::model::{Fact, HostView, LastReboot, Marker, MarkerPhase};
use crate::plan::{self, HostPlan, Memory, Step, Visit};
use crate::vim25::Error;
use crate::vim25::wire::names::{fault, managed};

/// Between two looks at a value that was written: an attribute is a row in vCenter's database.
const LOOK: Duration = Duration::from_secs(1);

/// Why a marker does not stand on the host as written.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotMarked {
    /// It cannot be made.
    #[error("{0}")]
    Unwritable(String),
    /// The server refused it.
    #[error("the server refuses it: {0}")]
    Refused(String),
    /// Something else was read until the deadline.
    #[error("within {seconds} s it did not read back as written; found {found}")]
    NotReadBack {
        /// `pace.readBack`.
        seconds: u32,
        /// What was read last.
        found: String,
    },
    /// Another run's marker was read.
    #[error("{0}")]
    Foreign(Held),
}

impl Run<'_> {
    /// Whose marker the host carries.
    pub(super) fn owner(&self, host: &HostPlan, view: &HostView) -> Owner {
        let known = self.markers.get(&host.host.name).map(Vec::as_slice).unwrap_or_default();
        marker::owner(view, self.run_id(), known)
    }

    /// Writes the marker in this phase, unless `view`, read just now, shows another run's.
    pub(super) async fn mark(
        &mut self,
        host: &HostPlan,
        view: &HostView,
        phase: MarkerPhase,
    ) -> Result<Result<(), NotMarked>, RunError> {
        let memory = self.memory_of(host);
        self.mark_as(host, view, phase, &memory).await
    }

    /// As [`Run::mark`], with what the visit is about to remember.
    async fn mark_as(
        &mut self,
        host: &HostPlan,
        view: &HostView,
        phase: MarkerPhase,
        memory: &Memory,
    ) -> Result<Result<(), NotMarked>, RunError> {
        if let Owner::Other(held) = self.owner(host, view) {
            return Ok(Err(NotMarked::Foreign(held)));
        }
        let at = match self.server_time().await {
            Ok(at) => at,
            Err(error) => return Ok(Err(NotMarked::Unwritable(chain(&error)))),
        };
        let state = self.state_of(host);
        let Some(base) = memory.baseline.clone() else {
            return Ok(Err(NotMarked::Unwritable("the state before the visit is not known".to_owned())));
        };
        let (arm, nodes) = marker::lists(&state.armed);
        let wanted = Marker {
            v: Marker::VERSION,
            run: self.run_id().clone(),
            plan: self.plan.id.short().to_owned(),
            host: host.uuid.clone(),
            phase,
            at,
            reboots: [memory.reboots, host.reboots.most],
            last: marker::last(memory, state.reboot_asked.unwrap_or(at)),
            arm,
            nodes,
            base,
        };
        let text = match marker::text(&wanted) {
            Ok(text) => text,
            Err(why) => return Ok(Err(NotMarked::Unwritable(why))),
        };
        // Whatever becomes of the write: what may stand there now is ours.
        self.markers.entry(host.host.name.clone()).or_default().push(wanted.clone());
        if let Err(why) = Box::pin(self.put(host, Fact::Known(text))).await {
            return Ok(Err(why));
        }
        self.rec.host(&host.host.name, Event::MarkerWritten { marker: Some(Box::new(wanted)) })?;
        Ok(Ok(()))
    }

    /// Whether the longest marker of a visit can be written: found out before the first is, since a visit
    /// whose marker grows too long stands still with VMs off.
    pub(super) fn marker_fits(
        &self,
        host: &HostPlan,
        view: &HostView,
        visit: &Visit,
        memory: &Memory,
    ) -> Result<(), String> {
        let mut arm = vec![Compensation::Maintenance, Compensation::Ssh, Compensation::Monitor];
        arm.extend(memory.vms.iter().cloned().map(Compensation::Vm));
        let mut pend: &[String] = &[];
        for step in &visit.steps {
            match step {
                Step::StopVm { vm, .. } if !memory.vms.contains(vm) => arm.push(Compensation::Vm(vm.clone())),
                Step::CordonNode { node, .. } => arm.push(Compensation::Node(node.clone())),
                Step::Reboot { pending, .. } if pending.len() > pend.len() => pend = pending,
                _ => {}
            }
        }
        let now = self.clock.now();
        let (arm, nodes) = marker::lists(&arm);
        let longest = Marker {
            v: Marker::VERSION,
            run: self.run_id().clone(),
            plan: self.plan.id.short().to_owned(),
            host: host.uuid.clone(),
            // The longest word for a phase.
            phase: MarkerPhase::Prechecking,
            at: now,
            reboots: [host.reboots.most, host.reboots.most],
            last: Some(LastReboot { asked: Some(now), boot: now, pend: marker::by_words(pend) }),
            arm,
            nodes,
            base: memory.baseline.clone().unwrap_or_else(|| plan::baseline(host, view)),
        };
        marker::text(&longest).map(drop)
    }

    /// Writes the phase of a step, if the marker does not say it already.
    pub(super) async fn mark_step(&mut self, host: &HostPlan, step: &Step) -> Result<Result<(), NotMarked>, RunError> {
        let stands = self.state_of(host).marker.as_ref().map(|marker| marker.phase);
        let phase = marker::phase_of(step).or(stands).unwrap_or(MarkerPhase::Prechecking);
        let lists = marker::lists(&self.state_of(host).armed);
        let mut memory = self.memory_of(host);
        if matches!(step, Step::Reboot { .. }) {
            // It is known by the boot time before it, and has to stand on the host before it is sent.
            memory.started(step);
        }
        let same_reboot = |marker: &Marker| match (step, &marker.last) {
            (Step::Reboot { boot_before, pending }, Some(last)) => {
                let same_boot = last.boot.duration_since(*boot_before).abs() <= Memory::BOOT_TOLERANCE;
                last.asked.is_some() && same_boot && last.pend == marker::by_words(pending)
            }
            (Step::Reboot { .. }, None) => false,
            _ => true,
        };
        let stands = |marker: &Marker| {
            marker.phase == phase && (&marker.arm, &marker.nodes) == (&lists.0, &lists.1) && same_reboot(marker)
        };
        if self.state_of(host).marker.as_ref().is_some_and(stands) {
            return Ok(Ok(()));
        }
        let record = self.read(host).await;
        match view_of(&record) {
            Ok(view) if self.owner(host, view) == Owner::Nobody => {
                Ok(Err(NotMarked::Unwritable("somebody removed ours".to_owned())))
            }
            Ok(view) => self.mark_as(host, view, phase, &memory).await,
            Err(why) => Ok(Err(NotMarked::Unwritable(why))),
        }
    }

    /// Clears the marker, unless it is another run's. What cannot be seen yet may still come, so it is
    /// cleared even where none is seen.
    pub(super) async fn unmark(&mut self, host: &HostPlan) -> Result<Result<(), NotMarked>, RunError> {
        let record = self.read(host).await;
        if let Ok(view) = view_of(&record)
            && let Owner::Other(held) = self.owner(host, view)
        {
            return Ok(Err(NotMarked::Foreign(held)));
        }
        if let Err(why) = Box::pin(self.put(host, Fact::Absent)).await {
            return Ok(Err(why));
        }
        self.rec.host(&host.host.name, Event::MarkerWritten { marker: None })?;
        Ok(Ok(()))
    }

    /// Writes a value and waits until it reads back. It is written again only after a look that
    /// found another value and a write that is known to have failed.
    async fn put(&mut self, host: &HostPlan, value: Fact<String>) -> Result<(), NotMarked> {
        let deadline = Deadline::of(Duration::from_secs(self.pace.read_back_s.into()));
        let key = self.field_key().await?;
        let text = value.known().cloned().unwrap_or_default();
        let mut stored = false;
        loop {
            if !stored {
                match self.vcenter().set_custom_field(&host.host.moref, key, &text).await {
                    Ok(()) => stored = true,
                    Err(error) if error.may_have_acted() || error.is_retriable() => {
                        tracing::warn!(host = %host.host.name, "{}", chain(&error));
                    }
                    Err(error) => return Err(NotMarked::Refused(chain(&error))),
                }
            }
            let record = self.read(host).await;
            let found = match view_of(&record) {
                Ok(view) if view.marker == value => return Ok(()),
                Ok(view) => match self.owner(host, view) {
                    Owner::Other(held @ (Held::ForeignMarker { .. } | Held::OtherProcess { .. })) => {
                        return Err(NotMarked::Foreign(held));
                    }
                    Owner::Other(_) | Owner::Ours(_) | Owner::Nobody => words(&view.marker),
                },
                Err(why) => why,
            };
            if deadline.passed() {
                return Err(NotMarked::NotReadBack { seconds: self.pace.read_back_s, found });
            }
            self.tell(host, None, &["the marker to read back as written".to_owned()], deadline, None);
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The key of the custom field; the field is defined where it is missing (the plan says so).
    async fn field_key(&mut self) -> Result<i32, NotMarked> {
        if let Some(key) = self.field {
            return Ok(key);
        }
        let deadline = Deadline::of(Duration::from_secs(self.pace.read_back_s.into()));
        loop {
            if let Some(key) = self.find_field().await.map_err(|error| NotMarked::Unwritable(chain(&error)))? {
                self.field = Some(key);
                return Ok(key);
            }
            // Defined by somebody meanwhile, or lost on the way: the next look tells, and what was lost is
            // sent again.
            match self.vcenter().add_custom_field(Marker::FIELD, managed::HOST_SYSTEM).await {
                Ok(field) => {
                    self.field = Some(field.key);
                    return Ok(field.key);
                }
                Err(error) if error.is_fault(fault::DUPLICATE_NAME) => {}
                Err(error) if !(error.may_have_acted() || error.is_retriable()) => {
                    return Err(NotMarked::Refused(chain(&error)));
                }
                Err(error) if deadline.passed() => return Err(NotMarked::Unwritable(chain(&error))),
                Err(error) => tracing::warn!("{}", chain(&error)),
            }
            if deadline.passed() {
                return Err(NotMarked::Unwritable(format!("the custom field {} does not come up", Marker::FIELD)));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn find_field(&self) -> Result<Option<i32>, Error> {
        let fields = self.vcenter().custom_fields().await?;
        let ours = |kind: &Fact<String>| match kind {
            Fact::Known(kind) => kind == managed::HOST_SYSTEM,
            Fact::Absent => true,
            Fact::Unknown { .. } => false,
        };
        Ok(fields.iter().find(|field| field.name == Marker::FIELD && ours(&field.kind)).map(|field| field.key))
    }
}

fn words(marker: &Fact<String>) -> String {
    match marker {
        Fact::Known(text) => format!("`{text}`"),
        Fact::Absent => "none".to_owned(),
        Fact::Unknown { why } => why.clone(),
    }
}
