//! Coins that no party can steer, as long as one is honest: commit and open (Keller et al. 2017 call it F_Rand).
//!
//! Tossed after everything they decide on is fixed. A cheater can refuse to open when it dislikes the outcome, which is an
//! abort, and can make parties see different coins, which must then make the check that uses them fail; the users
//! say why it does.

use zeroize::Zeroizing;

use crate::Result;
use crate::commitment::commit_and_open;
use crate::net::Net;
use crate::session::random_bytes;

/// A seed of 32 bytes, uniform even if all parties but one cheat. `context` says what for; parties that see different
/// contexts get no coins. Two rounds.
pub fn toss(context: &[u8], net: &mut dyn Net) -> Result<[u8; 32]> {
    let mut mine = Zeroizing::new([0; 32]);
    random_bytes(&mut *mine)?;
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 coins");
    for part in commit_and_open(context, &*mine, net)? {
        hasher.update(&part);
    }
    Ok(*hasher.finalize().as_bytes())
}
