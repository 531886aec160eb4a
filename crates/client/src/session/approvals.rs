//! Whether requests are sent, and with which approval.

use std::sync::Arc;

use polyclave_api::{Approval, Statement};

use crate::Result;

/// What happens to the client's requests.
#[derive(Clone, Default)]
pub(crate) enum Approvals {
    /// They are sent without an approval.
    #[default]
    None,
    /// They are sent with this one.
    With(Approval),
    /// They are not sent: the first becomes a statement to be approved.
    Draft(Draft),
}

/// A statement that is being written.
#[derive(Clone)]
pub(crate) struct Draft {
    pub(crate) not_after: u64,
    pub(crate) purpose: String,
    pub(crate) take: Arc<dyn Fn(Statement) -> Result<()> + Send + Sync>,
}

impl Approvals {
    /// The approval that goes with a request.
    pub(crate) fn given(&self) -> Option<Approval> {
        match self {
            Approvals::With(approval) => Some(approval.clone()),
            Approvals::None | Approvals::Draft(_) => None,
        }
    }
}
