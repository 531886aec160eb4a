//! Why the store refused or failed, and what to do.

use std::io;
use std::path::PathBuf;

/// Why the store refused or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file could not be used.
    #[error("cannot use {}: {cause}; see whether the disk is full or read-only", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        cause: io::Error,
    },
    /// The database failed. Nothing was changed.
    #[error(
        "the store failed ({0}); see whether its disk is full or broken; keys already made are not affected"
    )]
    Failed(String),
    /// Something exists there already.
    #[error("{} is there already; choose another place, or move it away if it is not needed", path.display())]
    Exists {
        /// Its path.
        path: PathBuf,
    },
    /// There is no store.
    #[error("there is no store {}; restore a backup, or make a new node", path.display())]
    Missing {
        /// Where it should be.
        path: PathBuf,
    },
    /// Another process has it.
    #[error("another process is using the store {path}; is the node already running?")]
    InUse {
        /// Its path.
        path: String,
    },
    /// The server of the store failed, or did not answer.
    #[error(
        "the store {place} failed: {detail}; see whether the server runs, can be reached, and has room. This node goes on once it answers"
    )]
    Server {
        /// The database and the hosts.
        place: String,
        /// What the server said.
        detail: String,
    },
    /// A server that cannot keep a store as it is.
    #[error("{place} {detail}")]
    Unusable {
        /// The database and the hosts.
        place: String,
        /// What is wrong, and what to do.
        detail: String,
    },
    /// Another process has opened the store since.
    #[error(
        "another process has taken the store {place} over; this one changes nothing any more. Find out which of both is to run, and end \
         the other one"
    )]
    TakenOver {
        /// The database and the hosts.
        place: String,
    },
    /// The store has forgotten changes while it was in use.
    #[error(
        "the store is at mark {found}, and was at mark {known} before: its server has lost changes that it had confirmed. Nothing is \
         changed any more. Restore this node from a backup, or readmit it at the others if the loss is known (`polyclave node readmit`), \
         and let the server replicate synchronously"
    )]
    Lost {
        /// The number of the latest change that was confirmed.
        known: u64,
        /// The number that is there now.
        found: u64,
    },
    /// A record is older than what this node wrote, or gone.
    #[error(
        "{what} in the store is not what this node wrote last: it was put back to an older state, removed or damaged. Nothing of the store \
         is used any more. Find out whether its disk is broken or who has written to it, and restore this node from a backup (`polyclave node \
         restore`). Without a backup, replace the node (`polyclave cluster reshape --lost`)"
    )]
    PutBack {
        /// The record; or the table, if the record is not known.
        what: String,
    },
    /// The store is sealed under another secret.
    #[error(
        "the store is sealed under another secret than this one; put back the secret.key that belongs to it"
    )]
    WrongSecret,
    /// A record, file or backup is damaged or was tampered with.
    #[error("{what} is damaged or was tampered with; restore this node from a backup")]
    Corrupt {
        /// The damaged thing.
        what: String,
    },
    /// A backup that cannot be opened.
    #[error(
        "the backup {} cannot be opened with this key. Give the key file that it was made with (`node backup --key`). If this is the right one, \
         the backup was cut or altered: take another backup",
        path.display()
    )]
    BadBackup {
        /// The file.
        path: PathBuf,
    },
    /// The file of the store is not what was written: nothing in it is used any more.
    #[error(
        "the store {file} is damaged ({detail}). Stop this node, see whether its disk is broken, and restore the node from a backup \
         (`polyclave node restore`)"
    )]
    Damaged {
        /// Where it is.
        file: String,
        /// What was found.
        detail: String,
    },
    /// There is an announced key of that name, or another key with that id.
    #[error("there is already a key {name}; choose another name, or delete that key first")]
    Taken {
        /// Its name.
        name: String,
    },
    /// There is no such key.
    #[error("there is no key {name} with this id here")]
    NoKey {
        /// The name that was asked for.
        name: String,
    },
    /// A key with that id was deleted; it does not come back.
    #[error("the key with the id {id} was deleted; make a new one")]
    Deleted {
        /// In hexadecimal.
        id: String,
    },
    /// The key's budget does not suffice.
    #[error("the key's budget does not suffice: {left} blocks are left; make a new key")]
    Spent {
        /// What is left of it.
        left: u64,
    },
    /// Verifications are under way, and if they fail no more may.
    #[error(
        "so many verifications under the key are under way that no more may fail in this hour; try again when they have ended"
    )]
    VerificationsUnderWay,
    /// More verifications under the key could fail in this hour than may.
    #[error(
        "at most {limit} verifications under the key may fail in an hour here, and with these it could be more; try again in the next hour"
    )]
    TooManyFailures {
        /// How many may fail in an hour.
        limit: u64,
    },
    /// A peer has forgotten what it had told this node: it runs on an old copy of its store.
    #[error(
        "its store is at mark {claimed}, which does not go on from mark {seen}, seen before: it runs on an old copy or a \
         restored backup, or two of it run; find out which, and if it is to go on like this, readmit it (`polyclave node readmit`)"
    )]
    RolledBack {
        /// The number of the latest change of its store that was seen.
        seen: u64,
        /// The number that it says now.
        claimed: u64,
    },
    /// Another worker of this party is making a key of that name.
    #[error("another request is making the key {name}; try again later")]
    Busy {
        /// Its name.
        name: String,
    },
    /// Another worker of this party refreshes all keys.
    #[error(
        "fresh common secrets are being made, and until then no key is made, changed or deleted; try again later"
    )]
    Refreshing,
    /// The common secrets in use are other ones than those of this process.
    #[error("another worker has taken fresh common secrets into use, and this one starts again with them")]
    Renewed,
    /// The setup is not one that was stored here, or it is older than the one agreed on.
    #[error("this setup is not the one that was proposed, or is older than the one in use; set up again")]
    NoSetup,
    /// The material was made under common secrets that have been renewed since.
    #[error(
        "this material was made before the nodes last renewed what they have in common; it is not used any more"
    )]
    OldMaterial,
    /// No refresh was prepared under this id, or it does not match the keys here.
    #[error(
        "no fresh common secrets were prepared that fit what is here; order the refresh again at every node"
    )]
    NoRefresh,
    /// No reshare was prepared under this id.
    #[error("no reshare was prepared that fits what is here; run the reshare again at every node")]
    NoReshare,
    /// A private file could not be used.
    #[error(transparent)]
    File(#[from] polyclave_config::Error),
    /// The operating system gives no randomness.
    #[error(transparent)]
    Random(#[from] polyclave_protocol::Error),
}

impl StoreError {
    pub(super) fn unusable(place: &str, detail: impl Into<String>) -> StoreError {
        StoreError::Unusable { place: place.into(), detail: detail.into() }
    }

    pub(super) fn corrupt(what: impl Into<String>) -> StoreError {
        StoreError::Corrupt { what: what.into() }
    }

    /// The reason, for clients and other nodes. It names no place on this machine and no server.
    pub fn reason(&self) -> String {
        match self {
            StoreError::Io { cause, .. } => {
                format!("its store failed ({cause}); is its disk full or read-only?")
            }
            StoreError::Failed(why) => format!("its store failed ({why}); is its disk full or broken?"),
            StoreError::Damaged { detail, .. } => format!("its store is damaged ({detail})"),
            StoreError::InUse { .. } | StoreError::TakenOver { .. } => {
                "another process has taken its store over".into()
            }
            StoreError::Unusable { detail, .. } => format!("its store cannot be used: it {detail}"),
            StoreError::Missing { .. } | StoreError::Exists { .. } | StoreError::File(_) => {
                "a file of its store cannot be used; see the log of that node".into()
            }
            other => format!("its store failed: {other}"),
        }
    }
}
