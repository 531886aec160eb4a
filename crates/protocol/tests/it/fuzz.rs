//! Foreign bytes at what every protocol gives to nodes and clients: setups that are read back, and messages
//! of nodes to a client.

use polyclave_harness::{fuzz, within_memory};
use polyclave_protocol::any::AnyServiceConfig;
use polyclave_protocol::mesh::run_parties;
use polyclave_protocol::protocol::ProtocolConfig;
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::{Party, PartySet, catalog};

/// Every protocol that nodes serve with, at its usual size, and at the largest where that is another
/// computation.
fn configs() -> Vec<AnyServiceConfig> {
    let usual = catalog::serving().map(|descriptor| {
        let nodes = descriptor.usual_parties;
        catalog::service(descriptor.name, nodes, descriptor.threshold.most(nodes)).expect("it serves")
    });
    usual.collect()
}

/// The first byte chooses a protocol.
fn chosen<'a, 'b, T>(of: &'a [T], bytes: &'b [u8]) -> Option<(&'a T, &'b [u8])> {
    let (first, rest) = bytes.split_first()?;
    Some((&of[usize::from(*first) % of.len()], rest))
}

#[test]
fn no_stored_setup_panics_and_what_is_read_comes_back() {
    let configs = configs();
    let made = configs.iter().zip(0u8..).map(|(config, number)| {
        let setups = run_parties(config.parties(), |net| Ok(config.save_setup(&config.setup(net)?).to_vec()));
        [&[number][..], setups[0].as_ref().expect("honest nodes agree")].concat()
    });
    fuzz!("stored-setups", &[], made.collect(), |bytes: &[u8]| {
        let Some((config, stored)) = chosen(&configs, bytes) else { return };
        within_memory((64 << 10) + 16 * stored.len(), || {
            if let Ok(setup) = config.restore_setup(Party(0), stored) {
                assert_eq!(&**config.save_setup(&setup), stored);
            }
        });
    });
}

/// Behind the protocol: which nodes serve, and whether it is about elements; then a message of each, with its
/// length.
#[test]
fn no_message_of_a_node_to_a_client_panics_or_takes_memory_on_its_word() {
    let configs = configs();
    let valid = configs.iter().zip(0u8..).flat_map(|(config, number)| {
        let nodes = config.quorum();
        let serving = PartySet::all(nodes).bits().to_le_bytes();
        // What a protocol that verifies sends of 16 bytes, and what one does that does not.
        let verified = [&16u32.to_le_bytes()[..], &[7; 80]].concat();
        [verified, vec![7; 16], vec![7; 32]].map(|message| {
            let one = [&(message.len() as u16).to_le_bytes()[..], &message].concat();
            [&[number][..], &serving, &[number % 2], &one.repeat(nodes)].concat()
        })
    });
    let valid = valid.collect();
    fuzz!("client-messages", &[], valid, |bytes: &[u8]| {
        let Some((config, rest)) = chosen(&configs, bytes) else { return };
        let &[low, high, elements, ref rest @ ..] = rest else { return };
        let serving = PartySet::from_bits(u16::from_le_bytes([low, high]));
        let (mut messages, mut rest) = (Vec::new(), rest);
        while let Some((len, behind)) = rest.split_first_chunk() {
            let (message, behind) = behind.split_at(behind.len().min(usize::from(u16::from_le_bytes(*len))));
            messages.push(message);
            rest = behind;
        }
        within_memory((64 << 10) + 64 * bytes.len(), || match elements % 2 {
            0 => drop(config.combine(serving, &messages)),
            _ => drop(config.combine_elements(serving, &messages)),
        });
    });
}
