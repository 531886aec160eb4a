//! What failed because of a node is done again.

use std::time::Duration;

use crate::{Client, Error};

/// Nodes may need a moment to notice that a node is gone or back.
const BETWEEN: Duration = Duration::from_millis(300);
/// How often to ask where all nodes are needed: for as long as a node takes to start again.
const FOR_ONE_TO_COME_BACK: usize = 15;

/// Decides whether something that failed is done again, a limited number of times. Only for what can be done
/// twice: the nodes may have done what they did not confirm.
pub struct Again {
    left: usize,
    may_pass: fn(&Error) -> bool,
}

impl Again {
    /// While other nodes can serve, each time without those that were suspected since. Where all nodes are
    /// needed, nothing is done again. Where two nodes go on without the third, until they do: they may have
    /// met again just now.
    pub fn without_failed_nodes(client: &Client) -> Again {
        if client.has_standby() {
            let may_pass = |e: &Error| e.may_be_repeated() || e.says_a_node_is_gone();
            return Again { left: FOR_ONE_TO_COME_BACK, may_pass };
        }
        let left = if client.spare_nodes() == 0 { 0 } else { client.cluster().nodes() };
        Again { left, may_pass: Error::may_be_repeated }
    }

    /// The same, but where all nodes are needed, until the one that is gone is back.
    pub fn until_a_node_is_back(client: &Client) -> Again {
        match client.spare_nodes() {
            0 => Again { left: FOR_ONE_TO_COME_BACK, may_pass: Error::says_a_node_is_gone },
            _ => Again::without_failed_nodes(client),
        }
    }

    /// Whether to do it again after this error. If so, waits a moment before.
    pub fn after(&mut self, error: &Error) -> bool {
        let again = self.left > 0 && (self.may_pass)(error);
        if again {
            self.left -= 1;
            std::thread::sleep(BETWEEN);
        }
        again
    }
}
