//! Unwrapping a key on shares (RFC 3394, RFC 5649). The wrapped key is public among the nodes; what it holds
//! is not.
//!
//! The beginning of the register, and under KWP its length and padding too, are compared with what they must
//! be before anything else is done with it: the nodes open a random multiple of the difference, as for the
//! tag of GCM. So a wrapped key that was altered tells nobody more than that, and no key is ever made of it.

use polyclave_api::{Reason, Refusal, Wrapping};
use polyclave_cipher::Cells;
use polyclave_protocol::any::{AnyServiceSession, AnyShared};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::Input;
use polyclave_protocol::service::ServiceSession;
use polyclave_protocol::{Error, Result};

use crate::computation::circuits::Circuits;
use crate::computation::key::ExpandedKey;
use crate::computation::pieces::run;

/// One answer for every wrapped key that is not authentic.
pub(crate) fn unauthentic() -> Refusal {
    Refusal::new(
        Reason::Unauthentic,
        "the wrapped key does not authenticate: it was altered or cut, or it was wrapped under another key, in another way, or for \
         another cipher",
    )
}

/// The key in a wrapped key of the right length; `None` if it does not authenticate.
pub(crate) fn unwrap(
    (wrapped, how): (&[u8], Wrapping),
    kek: &ExpandedKey,
    (of_kek, of_new): (&Circuits, &Circuits),
    protocol: &mut AnyServiceSession,
    net: &mut dyn Net,
) -> Result<Option<AnyShared>> {
    let circuits = of_kek.keys.unwrap(&of_kek.cipher, how, of_new, protocol)?;
    let port = &circuits.unwrap.inputs()[0];
    let wrapped = Cells::from_blocks(port.cells.len(), port.bits, wrapped)
        .map_err(|e| Error::misuse(format!("a wrapped key of another length: {e}")))?;
    let inputs = [Input::Public(&wrapped), Input::Shared(&kek.round_keys)];
    let mut outputs = run(protocol, net, &circuits.unwrap, 1, &inputs)?;
    let (bytes, check) = (outputs.remove(1), outputs.remove(0));
    let check = protocol.elements(&check, net)?;
    if !protocol.arithmetic().is_zero(&check, net)? {
        return Ok(None);
    }
    Ok(Some(run(protocol, net, &circuits.key, 1, &[Input::Shared(&bytes)])?.remove(0)))
}
