//! An exchange in which every node sends the same message to all others.

use polyclave_protocol::Party;
use polyclave_protocol::net::Net;

use crate::Result;

/// Sends the same to every other serving node, and returns what each has sent.
pub(crate) fn tell_all<const N: usize>(
    message: &[u8; N],
    net: &mut dyn Net,
) -> Result<Vec<(Party, [u8; N])>> {
    tell_and_hear(message, &[], net)
}

/// The same, when the messages of some nodes have been received already.
pub(crate) fn tell_and_hear<const N: usize>(
    message: &[u8; N],
    early: &[(Party, [u8; N])],
    net: &mut dyn Net,
) -> Result<Vec<(Party, [u8; N])>> {
    let (me, members) = (net.me(), net.members());
    let mut theirs = vec![[0; N]; net.parties()];
    let is_peer = |p: Party| p != me && members.contains(p);
    let is_due = |p: Party| is_peer(p) && early.iter().all(|(heard, _)| *heard != p);
    let out: Vec<&[u8]> =
        Party::all(net.parties()).map(|p| if is_peer(p) { &message[..] } else { &[][..] }).collect();
    let mut into: Vec<&mut [u8]> = Party::all(net.parties())
        .zip(&mut theirs)
        .map(|(p, buffer)| if is_due(p) { &mut buffer[..] } else { &mut [][..] })
        .collect();
    net.exchange(&out, &mut into)?;
    early.iter().for_each(|(peer, said)| theirs[peer.index()] = *said);
    Ok(Party::all(theirs.len()).zip(theirs).filter(|(p, _)| is_peer(*p)).collect())
}
