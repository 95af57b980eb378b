//! Signals as the engine sees them (FORMATS rule 16).
//!
//! ```text
//!   first:  the running step ends (entering maintenance is cancelled), HostLeft, no new host
//!   second: no more effects; the journal is whole; the caller logs out
//! ```

use tokio::sync::watch;

use super::Signal;

/// The end that is raised: by the signal handler of the program, or by a test.
#[derive(Debug, Clone)]
pub struct Raise(watch::Sender<Raised>);

/// The end that the engine looks at.
#[derive(Debug, Clone)]
pub struct Interrupt(watch::Receiver<Raised>);

#[derive(Debug, Clone, Copy, Default)]
struct Raised {
    first: Option<Signal>,
    times: u32,
}

/// A pair of ends. Nothing is raised yet.
pub fn interrupt() -> (Raise, Interrupt) {
    let (sender, receiver) = watch::channel(Raised::default());
    (Raise(sender), Interrupt(receiver))
}

impl Raise {
    /// A signal came.
    pub fn raise(&self, signal: Signal) {
        self.0.send_modify(|raised| {
            raised.first.get_or_insert(signal);
            raised.times += 1;
        });
    }
}

impl Interrupt {
    /// The first signal, if one came: no new step and no new host.
    pub fn raised(&self) -> Option<Signal> {
        self.0.borrow().first
    }

    /// Waits for the first signal; forever if none comes.
    pub async fn first(&self) {
        self.wait(1).await;
    }

    /// Waits for the second signal; forever if none comes.
    pub async fn second(&self) {
        self.wait(2).await;
    }

    async fn wait(&self, times: u32) {
        let mut receiver = self.0.clone();
        if receiver.wait_for(|raised| raised.times >= times).await.is_err() {
            // The other end is gone: no signal can come any more.
            std::future::pending::<()>().await;
        }
    }
}
