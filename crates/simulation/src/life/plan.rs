//! What a life is to be, and what it was.

use std::time::Duration;

use crate::cluster::Kind;

/// What may go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Disaster {
    /// A node crashes.
    Crash,
    /// A node crashes at one of its next syncs.
    CrashAtSync,
    /// A link is cut.
    Cut,
    /// A link is slow.
    Slow,
    /// All nodes lose power.
    PowerLoss,
    /// A node is stopped and started.
    Restart,
    /// A clock is wrong by minutes.
    WrongClock,
    /// A disk is full.
    FullDisk,
    /// All operators order a refresh.
    Refresh,
    /// A disk is copied, or those of all nodes.
    Copy,
    /// Nodes run from old copies of their disks.
    OldCopies,
    /// A node cheats.
    Cheat,
    /// A clock jumps by days.
    ClockJump,
    /// All keys move to another cluster of the same nodes.
    Move,
    /// A node crashes as soon as a use is answered, and runs from the copy from before.
    OldCopyAfterUse,
    /// A node crashes at a sync of a deletion.
    CrashInDeletion,
    /// A node crashes at a sync of a refresh.
    CrashInRefresh,
    /// A node gets its next certificate.
    NewCertificate,
    /// A node's disk is lost, and the node is restored from its backup.
    LostDisk,
    /// Nothing: all that was wrong is mended.
    None,
}

/// What happens in a life.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The cluster.
    pub kind: Kind,
    /// How long it lasts.
    pub length: Duration,
    /// How many nights are in it, at equal distances: all machines are suspended then, and all clocks go on
    /// by a day.
    pub nights: u32,
    /// Clients that work at the same time.
    pub clients: u16,
    /// The longest pause of a client, and between two disasters.
    pub pause: Duration,
    /// Whether anything goes wrong.
    pub disasters: bool,
    /// What goes wrong more often than anything else.
    pub favoured: Option<Disaster>,
    /// Whether syncs of disks do nothing: then something must not hold.
    pub disks_lie: bool,
}

/// What a life was.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Requests that were answered.
    pub answered: u64,
    /// Requests that failed, as they may when nodes are away, and keys are gone or used up.
    pub failed: u64,
    /// Crashes of nodes, as the simulator counts them.
    pub crashes: u64,
    /// Links that were cut.
    pub cuts: u64,
    /// Disks that were full for a while.
    pub full: u64,
    /// Nodes that cheated for a while.
    pub cheats: u64,
    /// Nodes that got another certificate.
    pub renewed: u64,
    /// Nodes that were restored from a backup and readmitted.
    pub restored: u64,
    /// Reshares: all keys moved to the nodes of another cluster.
    pub moves: u64,
    /// Times that all operators ordered a refresh, and it was done.
    pub refreshed: u64,
    /// Old copies of disks with which nodes were started.
    pub old_copies: u64,
    /// Versions of keys that were retired or deleted.
    pub ended: u64,
}
