//! Clients who hold no share, whatever the protocol: here every node plays the client too.

use polyclave_field::Gf128;
use polyclave_protocol::net::Net;
use polyclave_protocol::service::{Element, ServiceConfig};
use polyclave_protocol::{PartySet, Result};

/// Pseudorandom bytes that follow from a seed.
pub fn noise(seed: &str, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(seed.as_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// All serving nodes' messages to a client.
pub fn client_hears(message: &[u8], net: &mut dyn Net) -> Result<Vec<Vec<u8>>> {
    let (me, members) = (net.me(), net.members());
    for p in members.iter().filter(|p| *p != me) {
        net.send(p, message)?;
    }
    let mut all = Vec::new();
    for p in members.iter() {
        let mut heard = message.to_vec();
        if p != me {
            net.recv(p, &mut heard)?;
        }
        all.push(heard);
    }
    Ok(all)
}

/// What the client makes of these messages.
pub fn combined(config: &impl ServiceConfig, serving: PartySet, messages: &[Vec<u8>]) -> Result<Vec<u8>> {
    let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    Ok(config.combine(serving, &messages)?.to_vec())
}

/// The same of elements.
pub fn combined_elements(
    config: &impl ServiceConfig,
    serving: PartySet,
    messages: &[Vec<u8>],
) -> Result<Vec<Element>> {
    let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    config.combine_elements(serving, &messages)
}

/// The value that the client learns.
pub fn client_learns(config: &impl ServiceConfig, message: &[u8], net: &mut dyn Net) -> Result<Vec<u8>> {
    let messages = client_hears(message, net)?;
    combined(config, net.members(), &messages)
}

/// chi^1 r_1 + chi^2 r_2 .. + r_0, as a client computes it.
pub fn mask_check(r: &[u8], blind: Element, chi: Element) -> Element {
    let chi = Gf128::from_bytes(chi);
    let (mut sum, mut power) = (Gf128::from_bytes(blind), Gf128::ONE);
    for bytes in r.chunks(16) {
        let mut element = [0; 16];
        element[..bytes.len()].copy_from_slice(bytes);
        power *= chi;
        sum += power * Gf128::from_bytes(element);
    }
    sum.to_bytes()
}
