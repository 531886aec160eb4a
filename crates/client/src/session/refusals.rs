//! What a single refusal means.

use polyclave_api::{Reason, Refusal};
use polyclave_protocol::Party;

/// Whether the node itself will not, or cannot, do this, whatever others do.
pub(crate) fn is_own(refusal: &Refusal) -> bool {
    match refusal.reason {
        Reason::Denied
        | Reason::Key
        | Reason::NoSuchKey
        | Reason::NotForThis
        | Reason::Spent
        | Reason::Internal
        | Reason::Quarantined => true,
        // The node may be of another version. If the request is malformed, all nodes say so.
        Reason::Malformed => true,
        Reason::Busy
        | Reason::OutOfMaterial
        | Reason::Unavailable
        | Reason::Disagreement
        | Reason::Unauthentic => false,
    }
}

/// Whether a refusal says only that other nodes did not, or could not, serve.
pub(crate) fn is_vague(refusal: &Refusal) -> bool {
    matches!(refusal.reason, Reason::Disagreement | Reason::Unavailable)
}

/// The most informative refusal; the first of several.
pub(crate) fn most_telling(refused: &[(Party, Refusal)]) -> Option<&(Party, Refusal)> {
    // A node that could not serve says why. A node that disagrees may only say that another node refused.
    let vagueness = |refusal: &Refusal| match refusal.reason {
        Reason::Disagreement => 2,
        _ => u8::from(is_vague(refusal)),
    };
    refused.iter().min_by_key(|(party, refusal)| (vagueness(refusal), *party))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_of_its_own_tells_more_than_that_others_failed() {
        let said = |party, reason, words: &str| (Party(party), Refusal::new(reason, words));
        let (spent, vague) = (said(1, Reason::Spent, "spent"), |party| said(party, Reason::Unavailable, ""));
        assert_eq!(most_telling(&[vague(0), spent.clone()]), Some(&spent));
        let refused_by_other = said(0, Reason::Disagreement, "node-2 did not accept this step");
        assert_eq!(most_telling(&[refused_by_other.clone(), vague(1)]), Some(&vague(1)));
        assert_eq!(most_telling(&[refused_by_other.clone(), spent.clone()]), Some(&spent));
        assert_eq!(most_telling(std::slice::from_ref(&refused_by_other)), Some(&refused_by_other));
    }
}
