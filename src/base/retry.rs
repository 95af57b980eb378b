//! The one retry policy. Only what may be repeated comes here: reads.
//!
//! The `backoff` crate is named by the owner of the project; it is used in this file alone.

use std::time::Duration;

use backoff::exponential::ExponentialBackoff;

/// How long and how often something is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Wait before the second attempt; each further wait is twice as long.
    pub first: Duration,
    /// Longest wait between two attempts.
    pub longest: Duration,
    /// No attempt starts later than this after the first.
    pub total: Duration,
}

/// tokio's clock for `backoff`, whose own ignores a paused runtime.
#[derive(Debug, Clone, Copy, Default)]
struct TokioClock;

impl backoff::Clock for TokioClock {
    fn now(&self) -> std::time::Instant {
        tokio::time::Instant::now().into_std()
    }
}

/// A wait that people should know of: with waits that double, the tries before it lasted as long. What
/// is over sooner is nothing to be told.
const WORTH_SAYING: Duration = Duration::from_secs(4);

/// Tries until it succeeds, fails for good, or the policy ends; then the last error is returned.
///
/// Waits have no jitter: one run has one client for one server, so there is nobody to fall into step
/// with, and rehearsals and tests stay repeatable.
///
/// # Errors
/// The first error for which `transient` is false, or the last one.
pub async fn retry<T, E, F>(
    policy: Policy,
    transient: impl Fn(&E) -> bool,
    mut attempt: impl FnMut() -> F,
) -> Result<T, E>
where
    E: std::fmt::Display,
    F: Future<Output = Result<T, E>>,
{
    let waits = ExponentialBackoff::<TokioClock> {
        current_interval: policy.first,
        initial_interval: policy.first,
        randomization_factor: 0.0,
        multiplier: 2.0,
        max_interval: policy.longest,
        start_time: backoff::Clock::now(&TokioClock),
        max_elapsed_time: Some(policy.total),
        clock: TokioClock,
    };
    let said = |error: E, wait: Duration| {
        if wait >= WORTH_SAYING {
            tracing::warn!("{error}; trying again in {} s", wait.as_secs());
        } else {
            tracing::info!("{error}; trying again in {} ms", wait.as_millis());
        }
    };
    let operation = || {
        let running = attempt();
        let transient = &transient;
        async move {
            running.await.map_err(|error| match transient(&error) {
                true => backoff::Error::transient(error),
                false => backoff::Error::permanent(error),
            })
        }
    };
    backoff::future::retry_notify(waits, operation, said).await
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::time::Instant;

    use super::*;

    const POLICY: Policy =
        Policy { first: Duration::from_secs(1), longest: Duration::from_secs(8), total: Duration::from_secs(60) };

    #[tokio::test(start_paused = true)]
    async fn waits_double_up_to_the_longest_and_end_with_the_policy() {
        let start = Instant::now();
        let at = std::cell::RefCell::new(Vec::new());
        let attempt = || async {
            at.borrow_mut().push(start.elapsed().as_secs());
            Err::<(), _>("busy".to_owned())
        };
        let result = retry(POLICY, |_| true, attempt).await;
        assert_eq!(result, Err("busy".to_owned()));
        assert_eq!(at.into_inner(), [0, 1, 3, 7, 15, 23, 31, 39, 47, 55]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_transient_is_tried_once() {
        let tries = Cell::new(0);
        let result: Result<(), &str> = retry(
            POLICY,
            |error| *error != "denied",
            || {
                tries.set(tries.get() + 1);
                async { Err("denied") }
            },
        )
        .await;
        assert_eq!((result, tries.get()), (Err("denied"), 1));
    }

    #[tokio::test(start_paused = true)]
    async fn success_ends_it() {
        let tries = Cell::new(0);
        let result = retry(
            POLICY,
            |_: &&str| true,
            || {
                tries.set(tries.get() + 1);
                let done = tries.get() == 3;
                async move { if done { Ok(7) } else { Err("busy") } }
            },
        )
        .await;
        assert_eq!((result, tries.get()), (Ok(7), 3));
    }
}
