//! The Job controller.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Cluster;
use super::control::GuestDue;
use super::pods::{active, condition, finished};
use crate::sim::world::guest::{deleting, items, number, set, text, time};

/// Keeps a pod of a Job until it is counted.
pub(super) const TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// How long the controller waits with another pod after the first that failed; after each further one twice as long
/// (`DefaultJobPodFailureBackOff`; Kubernetes, "Jobs", "Pod backoff failure policy": 10 s, 20 s, 40 s, ...).
const BACKOFF: Duration = Duration::from_secs(10);
/// The longest of these (`MaxJobPodFailureBackOff`).
const BACKOFF_MOST: Duration = Duration::from_secs(600);

impl Cluster<'_> {
    pub(super) fn keep_jobs(&mut self) {
        let jobs: Vec<String> = self.guest.all("jobs").map(|(key, _)| key.clone()).collect();
        for at in jobs {
            self.keep_job(&at);
        }
        // A pod that has ended is counted, and is not kept for that any more.
        let counted = |(_, pod): &(&String, &Value)| {
            items(pod, "/metadata/finalizers").contains(&json!(TRACKING)) && (finished(pod) || self.orphan_of_job(pod))
        };
        let pods: Vec<String> = self.guest.all("pods").filter(counted).map(|(key, _)| key.clone()).collect();
        for at in pods {
            self.guest.edit(&at, self.now, |pod| {
                let left: Vec<Value> =
                    items(pod, "/metadata/finalizers").iter().filter(|one| *one != TRACKING).cloned().collect();
                set(pod, &["metadata", "finalizers"], json!(left));
            });
        }
    }

    fn orphan_of_job(&self, pod: &Value) -> bool {
        let owner = super::pods::controller(pod).map(|owner| text(owner, "/uid"));
        !self.guest.all("jobs").any(|(_, job)| owner == Some(text(job, "/metadata/uid")))
    }

    fn keep_job(&mut self, at: &str) {
        let Some(job) = self.guest.get(at).filter(|job| !deleting(job)).cloned() else { return };
        if ["Complete", "Failed"].iter().any(|kind| condition(&job, kind).is_some()) {
            return;
        }
        let uid = text(&job, "/metadata/uid").to_owned();
        let mut new = job.clone();
        // It has no pods and no time of its own until it is resumed (Kubernetes, "Suspending a Job").
        if job["spec"]["suspend"] == json!(true) {
            if condition(&job, "Suspended").is_none() {
                self.condition(&mut new, "Suspended", "True", "JobSuspended", "Job suspended");
                self.guest.put(at, new, self.now);
            }
            return;
        }
        if job.pointer("/status/startTime").is_none() {
            set(&mut new, &["status", "startTime"], json!(time(self.now)));
            if let Some(seconds) = number(&job, "/spec/activeDeadlineSeconds") {
                let after = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
                self.later(after, GuestDue::JobDeadline { job: at.to_owned(), uid: uid.clone() });
            }
        }
        let pods = self.pods_of(&job);
        let count = |is: &dyn Fn(&Value) -> bool| {
            let found = pods.iter().filter_map(|key| self.guest.get(key)).filter(|pod| is(pod)).count();
            i64::try_from(found).unwrap_or(i64::MAX)
        };
        let running = count(&active);
        let succeeded = count(&|pod| text(pod, "/status/phase") == "Succeeded" && !deleting(pod));
        let failed = count(&|pod| text(pod, "/status/phase") == "Failed");
        let wanted = number(&job, "/spec/completions").unwrap_or(1);
        let retries = number(&job, "/spec/backoffLimit").unwrap_or(6);
        if succeeded >= wanted {
            self.finish_job(at, new, "Complete", "CompletionsReached", "Reached expected number of succeeded pods");
        } else if failed > retries || self.restarted_too_often(&pods, retries) {
            let said = "Job has reached the specified backoff limit";
            self.finish_job(at, new, "Failed", "BackoffLimitExceeded", said);
        } else {
            let most = number(&job, "/spec/parallelism").unwrap_or(1);
            let wanted = if self.may_retry(at, &uid, failed) { most.min(wanted - succeeded) } else { running };
            for _ in running..wanted {
                let (namespace, name) = (text(&job, "/metadata/namespace"), text(&job, "/metadata/name"));
                let pod = format!("{name}-{}", self.guest.suffix());
                let mut template = job["spec"]["template"].clone();
                set(&mut template, &["metadata", "finalizers"], json!([TRACKING]));
                self.create_pod(namespace, &pod, &template, Some(&job));
            }
            let count = i64::max(running, wanted);
            set(&mut new, &["status", "active"], json!(count));
            set(&mut new, &["status", "succeeded"], json!(succeeded));
            set(&mut new, &["status", "failed"], json!(failed));
            self.guest.put(at, new, self.now);
        }
    }

    /// Whether the containers of its pods have been started anew as often as they may: those of a pod with
    /// `restartPolicy: OnFailure` (`pastBackoffLimitOnFailure` of the Job controller). The limit is reached with
    /// its last restart, not after it.
    fn restarted_too_often(&self, pods: &[String], limit: i64) -> bool {
        let pods = pods.iter().filter_map(|key| self.guest.get(key));
        let counts = pods.filter(|pod| !finished(pod) && text(pod, "/spec/restartPolicy") == "OnFailure");
        let statuses = counts.flat_map(|pod| items(pod, "/status/containerStatuses"));
        statuses.filter_map(|status| number(status, "/restartCount")).sum::<i64>() >= limit.max(1)
    }

    /// Whether the controller makes another pod of a Job of which so many have failed: it waits a while after each.
    fn may_retry(&mut self, at: &str, uid: &str, failed: i64) -> bool {
        let failed = u32::try_from(failed).unwrap_or(0);
        let (known, until) = self.guest.retries.get(uid).copied().unwrap_or((0, Timestamp::MIN));
        if failed <= known {
            return self.now >= until;
        }
        let wait = BACKOFF.saturating_mul(2_u32.saturating_pow(failed - 1)).min(BACKOFF_MOST);
        self.guest.retries.insert(uid.to_owned(), (failed, self.now.saturating_add(wait).unwrap_or(Timestamp::MAX)));
        self.later(wait, GuestDue::JobRetries { job: at.to_owned(), uid: uid.to_owned() });
        false
    }

    /// A Job is at its end; what still runs of it is deleted.
    fn finish_job(&mut self, at: &str, mut job: Value, kind: &str, reason: &str, message: &str) {
        let pods = self.pods_of(&job);
        let all: Vec<&Value> = pods.iter().filter_map(|key| self.guest.get(key)).collect();
        let count = |phase: &str| all.iter().filter(|pod| text(pod, "/status/phase") == phase).count();
        let (succeeded, failed) = (count("Succeeded"), count("Failed"));
        set(&mut job, &["status", "active"], json!(0));
        set(&mut job, &["status", "succeeded"], json!(succeeded));
        set(&mut job, &["status", "failed"], json!(failed));
        if kind == "Complete" {
            self.condition(&mut job, "SuccessCriteriaMet", "True", reason, message);
            set(&mut job, &["status", "completionTime"], json!(time(self.now)));
        } else {
            self.condition(&mut job, "FailureTarget", "True", reason, message);
        }
        self.condition(&mut job, kind, "True", reason, message);
        let uid = text(&job, "/metadata/uid").to_owned();
        if let Some(seconds) = number(&job, "/spec/ttlSecondsAfterFinished") {
            let after = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
            self.later(after, GuestDue::JobExpires { job: at.to_owned(), uid });
        }
        self.guest.put(at, job, self.now);
        for pod in pods {
            if self.guest.get(&pod).is_some_and(active) {
                self.begin_deletion(&pod, None);
            }
        }
    }

    pub(super) fn job_deadline(&mut self, at: &str) {
        let Some(job) = self.guest.get(at).cloned() else { return };
        if ["Complete", "Failed"].iter().all(|kind| condition(&job, kind).is_none()) {
            self.finish_job(at, job, "Failed", "DeadlineExceeded", "Job was active longer than specified deadline");
        }
    }

    pub(super) fn job_expires(&mut self, at: &str) {
        self.begin_deletion(at, None);
    }
}
