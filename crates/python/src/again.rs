//! What is asked again after a node failed: as `polyclave encrypt` does.

use polyclave_client::{Again, Client, Result};

/// Does something, and repeats it while other nodes can serve, each time without those that failed. Only for
/// what can be done twice. Where all nodes are needed, the error is the program's to wait for.
pub(crate) fn persist<T>(client: &Client, mut work: impl FnMut() -> Result<T>) -> Result<T> {
    let mut again = Again::without_failed_nodes(client);
    loop {
        match work() {
            Err(e) if again.after(&e) => {}
            outcome => return outcome,
        }
    }
}
