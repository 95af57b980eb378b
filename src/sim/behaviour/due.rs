//! What will happen, and when.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::sim::cluster::GuestDue;
use crate::sim::document::Connection;

/// Something that is due at a time of the world's clock.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::sim) struct Due {
    pub at: Timestamp,
    pub what: Transition,
}

/// A change that comes with time.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::sim) enum Transition {
    /// A task leaves the queue.
    TaskStarts(u64),
    /// A task has run its time.
    TaskEnds(u64),
    /// A task has run out of the time that its caller gave it.
    TaskExpires(u64),
    /// A host stops answering, on its way to a reboot.
    GoesDown { host: u32 },
    /// The host has booted: configuration takes effect. vCenter does not see it yet.
    Boots { host: u32 },
    /// vCenter's view of the connection changes.
    Connects { host: u32, connection: Connection },
    /// vCenter's graphics and PCI state catch up.
    CatchesUp { host: u32 },
    /// The datastores are back.
    StorageBack { host: u32 },
    /// The HA agent is connected.
    AgentBack { host: u32 },
    /// The guest of a VM has shut down, as it was asked at its so manyth start.
    ShutsDown { vm: u32, start: u32 },
    /// A compute policy tries to power its VM on.
    PolicyPowersOn { vm: u32 },
    /// DRS looks at the host that this task closes.
    DrsPasses { task: u64 },
    /// Something is due in a guest cluster.
    Guest { cluster: String, what: GuestDue },
    /// An actor acts: its place in the document.
    Acts { actor: usize },
}
