//! Open files: how many the process may have, and how they are shared, so that no kind of connection takes
//! the files of another.
//!
//! Every connection is an open file. Each kind has its own limit: HTTP
//! ([`crate::operator::http::connections`]), unknown callers at the two listening ports ([`STRANGERS`]),
//! clients (`connections` in `node.toml`), channels that this node leads (`channels`), and channels of each
//! peer. Their sum must be less than what the operating system allows the process. A node raises that limit
//! as far as it may. If it is still too low, the node gives clients fewer connections: without its peers it
//! can serve nobody.

use polyclave_config::NodeLimits;
use polyclave_transport::STRANGERS;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::operator::http;
use crate::requests::channels::SETS;

/// Files of the store and the logs, listeners, and files that libraries keep open.
const OWN: usize = 64;

/// The most channels of a peer that are followed at a time: more than the peer opens by its settings, which
/// may differ from ours.
const MAX_FOLLOWED: usize = 1024;

/// How many files each kind of connection gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Files {
    /// Connections of all clients together.
    pub(crate) clients: usize,
    /// Channels of one peer.
    pub(crate) followed: usize,
}

/// Raises the limit of this process as far as possible, and shares it.
pub(crate) fn share(limits: &NodeLimits, nodes: usize) -> Files {
    let limit = raise();
    let (files, needed) = share_of(limit, limits, nodes);
    if limit < needed {
        tracing::warn!(
            limit,
            needed,
            clients = files.clients,
            "this process may have too few open files for its limits, so clients get fewer connections: let it have as many as are \
             needed (`ulimit -n`, or LimitNOFILE of the service), or lower `connections` or `channels` under [limits] in node.toml"
        );
    }
    files
}

/// The limit after it was raised.
fn raise() -> usize {
    let before = getrlimit(Resource::Nofile);
    if before.current != before.maximum {
        let raised = Rlimit { current: before.maximum, maximum: before.maximum };
        if let Err(e) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(error = %e, "the limit of open files could not be raised");
        }
    }
    let now = getrlimit(Resource::Nofile).current;
    now.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX))
}

/// What each kind gets, and how many files are needed for all to have what the settings say.
fn share_of(limit: usize, limits: &NodeLimits, nodes: usize) -> (Files, usize) {
    let peers = nodes - 1;
    // A channel takes one connection with each other node.
    let led = SETS.saturating_mul(limits.channels);
    let fixed = OWN + http::connections::MAX + 2 * STRANGERS + 2 * peers;
    let reserved = fixed.saturating_add(led.saturating_mul(peers));
    let followed = led.saturating_mul(peers).saturating_mul(peers);
    let needed = reserved.saturating_add(followed).saturating_add(limits.connections);
    let files = if limit >= needed {
        let more = (limit - reserved - limits.connections) / (peers * peers).max(1);
        Files { clients: limits.connections, followed: more.min(MAX_FOLLOWED.max(led)) }
    } else {
        let left = limit.saturating_sub(reserved).saturating_sub(followed);
        // Clients get at least a few: the node exists for them.
        Files { clients: limits.connections.min(left.max(limit / 4)).max(1), followed: led }
    };
    (files, needed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_may_have_together_is_no_more_than_the_limit() {
        let limits = NodeLimits::default();
        for nodes in 2..=9 {
            let (_, needed) = share_of(0, &limits, nodes);
            for limit in [needed, needed + 1, 2 * needed, 20_000, 1 << 20] {
                let (files, _) = share_of(limit, &limits, nodes);
                let peers = nodes - 1;
                let fixed = OWN + http::connections::MAX + 2 * STRANGERS + 2 * peers;
                let led = SETS * limits.channels * peers;
                let all = fixed + led + files.clients + files.followed * peers * peers;
                assert!(limit < needed || all <= limit, "{nodes} nodes, {limit}: {files:?}");
                assert!(files.followed >= SETS * limits.channels, "an honest peer gets its channels");
            }
        }
    }

    #[test]
    fn with_too_few_files_clients_get_fewer_connections_and_never_none() {
        let limits = NodeLimits::default();
        let (files, needed) = share_of(1024, &limits, 3);
        assert!(needed > 1024 && files.clients < limits.connections && files.clients >= 256, "{files:?}");
        for limit in [0, 10, 256] {
            assert!(share_of(limit, &limits, 9).0.clients >= 1);
        }
    }

    #[test]
    fn the_limit_is_raised_to_the_highest_allowed() {
        let raised = raise();
        let now = getrlimit(Resource::Nofile);
        assert_eq!((now.current, raised as u64), (now.maximum, now.maximum.unwrap_or(u64::MAX)));
    }
}
