//! The CMAC (SP 800-38B, section 6.2) of messages of one length, each in a lane, under a shared key. Blocks
//! may be public or shared, and the codes stay shared.

use polyclave_cipher::Compiled;
use polyclave_protocol::Error;
use polyclave_protocol::any::{AnyServiceSession, AnyShared};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Session};

use crate::Result;
use crate::computation::circuits::Circuits;
use crate::computation::key::ExpandedKey;
use crate::computation::pieces::{reborrow, run};

/// What a code is computed with.
pub(crate) struct Coding<'a> {
    pub(crate) key: &'a ExpandedKey,
    pub(crate) of_key: &'a Circuits,
    /// The circuits of a block and of the last one, the latter with the views that the codes are to have.
    pub(crate) chain: &'a Compiled,
    pub(crate) last: &'a Compiled,
}

impl Coding<'_> {
    /// The codes of messages that everybody knows.
    pub(crate) fn of_public(
        &self,
        mut messages: Vec<Vec<u8>>,
        protocol: &mut AnyServiceSession,
        net: &mut dyn Net,
    ) -> Result<AnyShared> {
        let (block, lanes) = (self.of_key.cipher.block_bytes, messages.len());
        let whole = |message: &Vec<u8>| !message.is_empty() && message.len().is_multiple_of(block);
        let is_whole = messages.iter().all(whole);
        if !is_whole {
            for message in &mut messages {
                message.push(0x80);
                message.resize(message.len().next_multiple_of(block), 0);
            }
        }
        let count = messages.first().map_or(0, Vec::len) / block;
        let mut blocks = Vec::new();
        for i in 0..count {
            let of_all: Vec<u8> =
                messages.iter().flat_map(|message| &message[i * block..][..block]).copied().collect();
            blocks.push(self.of_key.blocks(&of_all)?);
        }
        let blocks: Vec<Input<'_, AnyShared>> = blocks.iter().map(Input::Public).collect();
        self.of_blocks(&blocks, (lanes, is_whole), protocol, net)
    }

    /// The codes of blocks. `is_whole` says whether the last block is whole or was filled up.
    pub(crate) fn of_blocks(
        &self,
        blocks: &[Input<'_, AnyShared>],
        (lanes, is_whole): (usize, bool),
        protocol: &mut AnyServiceSession,
        net: &mut dyn Net,
    ) -> Result<AnyShared> {
        let Some((k1, k2)) = &self.key.subkeys else {
            return Err(Error::misuse("the key has no subkeys of CMAC"));
        };
        let Some((last, others)) = blocks.split_last() else {
            return Err(Error::misuse("a message without a block"));
        };
        let zero = self.of_key.blocks(&vec![0; lanes * self.of_key.cipher.block_bytes])?;
        let round_keys = Input::Shared(&self.key.round_keys);
        let mut link: Option<AnyShared> = None;
        for block in others {
            let chain = link.as_ref().map_or(Input::Public(&zero), Input::Shared);
            let inputs = [reborrow(block), chain, reborrow(&round_keys)];
            let next = run(protocol, net, self.chain, lanes, &inputs)?.remove(0);
            link = Some(next);
        }
        let subkey = protocol.select_lanes(if is_whole { k1 } else { k2 }, &vec![0; lanes]);
        let chain = link.as_ref().map_or(Input::Public(&zero), Input::Shared);
        let inputs = [reborrow(last), chain, Input::Shared(&subkey), round_keys];
        Ok(run(protocol, net, self.last, lanes, &inputs)?.remove(0))
    }
}
