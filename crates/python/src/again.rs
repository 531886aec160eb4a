//! What is asked again after a node failed: as `polyclave encrypt` does.

use std::time::Duration;

use polyclave_client::{Client, Result};

/// Nodes may need a moment to notice that a node is gone.
const BETWEEN: Duration = Duration::from_millis(300);

/// Does something, and repeats it while other nodes can serve, each time without those that failed. Only for
/// what can be done twice. Where all nodes are needed, the error is the program's to wait for.
pub(crate) fn persist<T>(client: &Client, mut work: impl FnMut() -> Result<T>) -> Result<T> {
    let mut left = if client.spare_nodes() == 0 { 0 } else { client.cluster().nodes() };
    loop {
        match work() {
            Err(e) if left > 0 && e.may_be_repeated() => {
                std::thread::sleep(BETWEEN);
                left -= 1;
            }
            outcome => return outcome,
        }
    }
}
