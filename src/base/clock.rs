//! The time: the machine's, or a virtual one that passes with tokio's clock.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// Tells the time. Copies of a clock tell the same time.
///
/// Waiting is always tokio's business; a clock only says what time it is. A virtual one follows
/// tokio's clock, so in a paused runtime a whole night passes in milliseconds.
#[derive(Debug, Clone, Copy)]
pub struct Clock(Kind);

#[derive(Debug, Clone, Copy)]
enum Kind {
    System,
    Virtual { base: Timestamp, start: Instant, speed: u32 },
}

impl Clock {
    /// The clock of this machine.
    pub fn system() -> Self {
        Self(Kind::System)
    }

    /// A virtual clock that shows `base` now and goes on with tokio's clock.
    pub fn starting_at(base: Timestamp) -> Self {
        Self(Kind::Virtual { base, start: Instant::now(), speed: 1 })
    }

    /// The same clock running `speed` times as fast as tokio's from now on; the clock of the machine
    /// and a speed of 0 stay as they are.
    #[must_use]
    pub fn at_speed(self, speed: u32) -> Self {
        match self.0 {
            Kind::Virtual { .. } if speed > 0 => Self(Kind::Virtual { base: self.now(), start: Instant::now(), speed }),
            _ => self,
        }
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        match self.0 {
            // The one place that reads the machine's clock.
            #[allow(clippy::disallowed_methods)]
            Kind::System => Timestamp::now(),
            Kind::Virtual { base, start, speed } => {
                let passed = start.elapsed().checked_mul(speed).unwrap_or(Duration::MAX);
                base.checked_add(passed).unwrap_or(Timestamp::MAX)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_virtual_clock_follows_tokio() {
        let base: Timestamp = "2026-11-30T20:00:00Z".parse().unwrap();
        let clock = Clock::starting_at(base);
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(clock.now().to_string(), "2026-11-30T21:00:00Z");
        let fast = clock.at_speed(60);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(fast.now().to_string(), "2026-11-30T22:00:00Z");
        assert_eq!(clock.now().to_string(), "2026-11-30T21:01:00Z");
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_time_is_not_a_panic() {
        let clock = Clock::starting_at(Timestamp::MAX).at_speed(u32::MAX);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(clock.now(), Timestamp::MAX);
    }
}
