//! The messages of one call of the network, by peer: what to send, and where to put what arrives.

use polyclave_protocol::Party;

/// What to send.
pub(crate) enum Out<'a> {
    Nothing,
    One(Party, &'a [u8]),
    Each(&'a [&'a [u8]]),
}

/// Where to put what arrives.
pub(crate) enum In<'a, 'b> {
    Nothing,
    One(Party, &'a mut [u8]),
    Each(&'a mut [&'b mut [u8]]),
}

impl Out<'_> {
    pub(crate) fn has(&self, peer: Party) -> bool {
        match self {
            Out::Nothing => false,
            Out::One(to, _) => *to == peer,
            Out::Each(messages) => !messages[peer.index()].is_empty(),
        }
    }

    pub(crate) fn of(&self, peer: Party) -> &[u8] {
        match self {
            Out::One(to, message) if *to == peer => message,
            Out::Each(messages) => messages[peer.index()],
            _ => &[],
        }
    }
}

impl In<'_, '_> {
    pub(crate) fn has(&self, peer: Party) -> bool {
        match self {
            In::Nothing => false,
            In::One(from, _) => *from == peer,
            In::Each(buffers) => !buffers[peer.index()].is_empty(),
        }
    }

    pub(crate) fn of(&mut self, peer: Party) -> &mut [u8] {
        match self {
            In::One(from, buffer) if *from == peer => buffer,
            In::Each(buffers) => buffers[peer.index()],
            _ => &mut [],
        }
    }
}
