//! What nodes do for clients, and what clients make of it: every node here plays the client too. What goes to
//! a client, and what it makes of it, stays secret; what it sends under a mask is public.

use polyclave_cipher::key_wrap::{self, Padding};
use polyclave_cipher::{Builder, Cells, Circuit, Compiled, Matrix, Table, compile, compile_with_views};
use polyclave_kernels::secret::{is_secret, mark_public, mark_secret};
use polyclave_protocol::Result;
use polyclave_protocol::any::{AnyServiceConfig, AnyServiceSession, AnyShared};
use polyclave_protocol::catalog;
use polyclave_protocol::dealt::{DealtMask, HeldSeeds};
use polyclave_protocol::evaluate::{evaluate, prepare};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, ProtocolConfig};
use polyclave_protocol::service::{ELEMENT_BYTES, Elements, ServiceConfig, ServiceSession};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::spdz::Preprocessing;
use polyclave_protocol::tinytable::ServedConfig;
use polyclave_protocol_lab::dealers::InsecureDealing;

use crate::Subject;
use crate::net::{Watched, run_parties};

/// How wide the cells of the circuit are: a byte, or a bit where tables of a byte would take a lot of
/// material.
const BYTES: u8 = 8;
const BITS: u8 = 1;

pub const SUBJECTS: &[Subject] = &[
    ("client: shamir", || served("shamir", 3, true)),
    ("client: shamir-active", || served("shamir-active", 4, true)),
    ("client: replicated", || served("replicated", 3, true)),
    ("client: replicated-active", || served("replicated-active", 3, true)),
    ("client: replicated-four", || served("replicated-four", 4, true)),
    ("client: shamir, a key wrapped and unwrapped", || {
        serve(&of("shamir", 3), true, &wrapped_and_unwrapped);
    }),
    // Its setup is of oblivious transfers, which are watched as subjects of their own.
    ("client: spdz, material from mascot", || served("spdz-lt", 2, false)),
    ("client: tinytable, material dealt", || {
        let config = ServedConfig::new(Preprocessing::Dealt(&InsecureDealing)).expect("it is valid");
        serve(&AnyServiceConfig::new(config), true, &|config, protocol, net| {
            one_client(config, protocol, BITS, net)
        });
    }),
];

fn served(protocol: &str, parties: usize, private: bool) {
    serve(&of(protocol, parties), private, &|config, protocol, net| one_client(config, protocol, BYTES, net));
}

pub fn of(protocol: &str, parties: usize) -> AnyServiceConfig {
    let descriptor = catalog::find(protocol).expect("it is listed");
    let threshold = descriptor.threshold.most(parties);
    descriptor.service(parties, threshold).expect("it serves")
}

/// What a node does in a session.
pub type Work<'w> =
    &'w (dyn Fn(&AnyServiceConfig, &mut AnyServiceSession, &mut Watched) -> Result<()> + Sync);

pub fn serve(config: &AnyServiceConfig, private: bool, work: Work<'_>) {
    run_parties(config.parties(), |net| {
        net.in_private = private;
        let setup = config.setup(net)?;
        let stored = config.save_setup(&setup);
        net.in_private = false;
        // What a stored setup says of itself is public; what follows from it need not be followed again.
        mark_public(&stored);
        config.restore_setup(net.me(), &stored)?;
        let mut session = hello(&config.handshake(HandshakeParameters::new(config.parties())), net)?;
        let mut protocol = config.join(&setup, session.stream(), net.members())?;
        work(config, &mut protocol, net)
    });
}

/// Blocks from a client through one mask, one lookup, and back; and elements.
fn one_client(
    config: &AnyServiceConfig,
    protocol: &mut AnyServiceSession,
    bits: u8,
    net: &mut Watched,
) -> Result<()> {
    let circuit = blocks(bits);
    let compiled = compile(&circuit, protocol);
    let mut plain: Vec<u8> = (0..2 * ELEMENT_BYTES as u8).collect();
    mark_secret(&mut plain);

    let (mask, message) = protocol.mask_input(plain.len(), net)?;
    let messages = client_hears(&message, net)?;
    let r = config.combine(net.members(), &slices(&messages))?;
    assert!(is_secret(&r), "what a client learns is secret to memcheck");
    let masked: Vec<u8> = plain.iter().zip(r.iter()).map(|(x, r)| x ^ r).collect();
    // The client sends it to all nodes.
    mark_public(&masked);
    let (blind, message) = protocol.arithmetic().random_for_client(net)?;
    let messages = client_hears(&message, net)?;
    config.combine_elements(net.members(), &slices(&messages))?;
    protocol.open_mask_check(&mask, &blind, [3; ELEMENT_BYTES], net)?;
    let value = protocol.unmask(&mask, 0, &masked, &compiled.inputs()[0])?;

    let batch = prepare(protocol, &compiled, 2, net)?;
    let output = evaluate(protocol, &compiled, 2, &[Input::Shared(&value)], batch, net)?.remove(0);
    let message = protocol.reveal_to_client(&output, net)?;
    let messages = client_hears(&message, net)?;
    let learnt = config.combine(net.members(), &slices(&messages))?;
    assert!(learnt.len() == plain.len() && is_secret(&learnt), "a client learns whole blocks");

    let elements = protocol.elements(&value, net)?;
    let products = protocol.arithmetic().multiply_elements(&elements, &elements, net)?;
    let sum = protocol.arithmetic().inner_product(&elements, &products, net)?;
    assert!(!protocol.arithmetic().is_zero(&sum, net)?, "the sum of some products");
    let message = protocol.reveal_elements(&products, net)?;
    let messages = client_hears(&message, net)?;
    config.combine_elements(net.members(), &slices(&messages))?;
    dealt_by_the_client(config, protocol, &compiled, net)?;
    beginning_of_an_element(protocol, &sum, net)
}

/// A node takes its part of a mask that a client deals, where clients deal masks. Each node plays another
/// client here, so nothing is opened.
fn dealt_by_the_client(
    config: &AnyServiceConfig,
    protocol: &mut AnyServiceSession,
    compiled: &Compiled,
    net: &mut Watched,
) -> Result<()> {
    let components = config.components();
    if components.is_empty() {
        return Ok(());
    }
    let dealt = DealtMask::draw(&components)?;
    let mut seeds = dealt.seeds_of(net.me());
    mark_secret(&mut seeds);
    let held = HeldSeeds::checked(&components, net.me(), &dealt.commitments(), &seeds)?;
    let mask = protocol.dealt_mask(&held, 2 * ELEMENT_BYTES)?;
    let elements = protocol.mask_elements(&mask);
    assert!(is_secret(&protocol.save_elements(&elements)), "a node's part of a mask is secret");
    protocol.unmask(&mask, 0, &[7; 2 * ELEMENT_BYTES], &compiled.inputs()[0]).map(drop)
}

/// What a short tag of GCM, and its secret counters, go through: an element becomes a block under a mask, and
/// the block's first bytes are compared.
fn beginning_of_an_element(
    protocol: &mut AnyServiceSession,
    element: &Elements,
    net: &mut Watched,
) -> Result<()> {
    let aes = protocol.form(polyclave_cipher::catalog::find("aes-128").expect("the catalog has it"));
    let compiled = compile(&polyclave_cipher::modes::beginning(&aes, 12), protocol);
    let (mask, _) = protocol.mask_input(ELEMENT_BYTES, net)?;
    let masked = element.add(&protocol.mask_elements(&mask));
    let opened = protocol.arithmetic().open_elements(&masked, net)?;
    let block = protocol.unmask(&mask, 0, opened.as_flattened(), &compiled.inputs()[0])?;
    let port = &compiled.inputs()[1];
    let tag = Cells::from_blocks(port.cells.len(), port.bits, &[7; ELEMENT_BYTES]).expect("a block");
    let batch = prepare(protocol, &compiled, 1, net)?;
    let inputs = [Input::Shared(&block), Input::Public(&tag)];
    let difference = evaluate(protocol, &compiled, 1, &inputs, batch, net)?.remove(0);
    let difference = protocol.elements(&difference, net)?;
    assert!(!protocol.arithmetic().is_zero(&difference, net)?, "a guessed tag");
    Ok(())
}

/// One key under another by RFC 3394, and back, as keys that nobody holds leave one cluster and enter
/// another.
fn wrapped_and_unwrapped(
    config: &AnyServiceConfig,
    protocol: &mut AnyServiceSession,
    net: &mut Watched,
) -> Result<()> {
    let aes = protocol.form(polyclave_cipher::catalog::find("aes-128").expect("the catalog has it"));
    let port = &aes.key_schedule.inputs()[0];
    let shape = (port.cells.len(), port.bits);
    let wrap = compile(&key_wrap::wrap(&aes, Padding::None, aes.key_bytes, shape), protocol);
    let unwrap = key_wrap::unwrap(&aes, Padding::None, aes.key_bytes).expect("AES decrypts");
    let unwrap = compile(&unwrap, protocol);
    let mut views = wrap.inputs()[1].views();
    views.extend(unwrap.inputs()[1].views());
    let schedule = compile_with_views(&aes.key_schedule, protocol, |_| views.clone());

    // Masks are shared values that nobody knows: two keys.
    let (mask, _) = protocol.mask_input(2 * aes.key_bytes, net)?;
    let nothing = vec![0; aes.key_bytes];
    let kek = protocol.unmask(&mask, 0, &nothing, &schedule.inputs()[0])?;
    let key = protocol.unmask(&mask, aes.key_bytes, &nothing, &wrap.inputs()[0])?;
    let round_keys = one(protocol, &schedule, &[Input::Shared(&kek)], net)?.remove(0);
    let wrapped = one(protocol, &wrap, &[Input::Shared(&key), Input::Shared(&round_keys)], net)?.remove(0);
    let message = protocol.reveal_to_client(&wrapped, net)?;
    let wrapped = config.combine(net.members(), &slices(&client_hears(&message, net)?))?;
    // It goes to another cluster.
    mark_public(&wrapped);
    let port = &unwrap.inputs()[0];
    let wrapped = Cells::from_blocks(port.cells.len(), port.bits, &wrapped).expect("a wrapped key");
    let mut unwrapped = one(protocol, &unwrap, &[Input::Public(&wrapped), Input::Shared(&round_keys)], net)?;
    let check = protocol.elements(&unwrapped.remove(0), net)?;
    assert!(protocol.arithmetic().is_zero(&check, net)?, "the key comes back");
    Ok(())
}

pub fn one(
    protocol: &mut AnyServiceSession,
    circuit: &Compiled,
    inputs: &[Input<'_, AnyShared>],
    net: &mut Watched,
) -> Result<Vec<AnyShared>> {
    let batch = prepare(protocol, circuit, 1, net)?;
    evaluate(protocol, circuit, 1, inputs, batch, net)
}

/// All nodes' messages to a client, each over a channel of its own.
pub fn client_hears(message: &[u8], net: &mut Watched) -> Result<Vec<Vec<u8>>> {
    net.in_private = true;
    let (me, members) = (net.me(), net.members());
    let peers = || members.iter().filter(|p| *p != me);
    peers().try_for_each(|p| net.send(p, message))?;
    let mut all = vec![message.to_vec(); members.iter().count()];
    for p in peers() {
        net.recv(p, &mut all[p.index()])?;
    }
    net.in_private = false;
    for message in all.iter().filter(|message| message.len() >= size_of::<u32>()) {
        // What verifies says first how much there is.
        mark_public(&message[..size_of::<u32>()]);
    }
    Ok(all)
}

pub fn slices(messages: &[Vec<u8>]) -> Vec<&[u8]> {
    messages.iter().map(Vec::as_slice).collect()
}

/// Blocks of 16 bytes in cells of so many bits, one of which goes through a table.
fn blocks(bits: u8) -> Circuit {
    let mut b = Builder::new("blocks");
    let x = b.input("x", 128 / usize::from(bits), bits);
    let mut y = x.clone();
    if bits == 1 {
        let and = b.table(&std::sync::Arc::new(Table::new("AND", 2, 1, vec![0, 0, 0, 1])));
        let pair = b.linear(vec![(x[0], Matrix::place(2, 0)), (x[1], Matrix::place(2, 1))], 0);
        y[0] = b.lookup(and, pair);
    } else {
        let table = b.table(&std::sync::Arc::new(polyclave_cipher::aes::s_box()));
        y[0] = b.lookup(table, x[0]);
    }
    b.output("y", &y);
    b.finish()
}
