//! Fresh shares of stored values. What a party deals to others is taken for public when it is sent; its
//! coefficients and its own shares stay secret.

use polyclave_cipher::{Builder, compile};
use polyclave_field::Gf2_64;
use polyclave_kernels::secret::{is_secret, mark_public};
use polyclave_protocol::any::AnyServiceConfig;
use polyclave_protocol::catalog;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::ProtocolConfig;
use polyclave_protocol::service::{ServiceConfig, ServiceSession, Stored};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::spdz::{LookupMethod, Packing, Preprocessing, Setup, SpdzConfig};
use polyclave_protocol::tinytable::ServedConfig;
use polyclave_protocol_lab::dealers::InsecureDealing;

use crate::Subject;
use crate::net::run_parties;

pub const SUBJECTS: &[Subject] = &[
    ("shamir: fresh shares of what is stored", || refreshed("shamir", 3)),
    ("shamir-active: fresh shares of what is stored", || refreshed("shamir-active", 4)),
    ("replicated-active: fresh shares of what is stored", || refreshed("replicated-active", 3)),
    ("replicated-four: fresh shares of what is stored", || refreshed("replicated-four", 4)),
    ("rotation of MAC keys: elements and cells, material dealt", || {
        let packing = Packing::of::<Gf2_64>(1).expect("it fits");
        let config = SpdzConfig::<Gf2_64>::new(
            2,
            LookupMethod::MaskedTables,
            Preprocessing::Dealt(&InsecureDealing),
            packing,
        );
        outputs_of_refresh(&AnyServiceConfig::new(config.expect("it is valid")), Fresh::Setup, BYTES);
    }),
    ("rotation of MAC keys: bits, material dealt", || {
        let config = ServedConfig::new(Preprocessing::Dealt(&InsecureDealing)).expect("it is valid");
        outputs_of_refresh(&AnyServiceConfig::new(config), Fresh::Setup, BITS);
    }),
    ("renewal: transfers under a stored key", || renewed(|_| ())),
];

/// Widths of cells.
const BYTES: u8 = 8;
const BITS: u8 = 1;

/// Under which common secrets values have their fresh shares.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fresh {
    Shares,
    Setup,
}

fn refreshed(protocol: &str, parties: usize) {
    let descriptor = catalog::find(protocol).expect("it is listed");
    let config = descriptor.service(parties, descriptor.threshold.most(parties)).expect("it serves");
    outputs_of_refresh(&config, Fresh::Shares, BYTES);
}

/// Transfers are made under a stored key, and what is made under them is bound to its anchor. Key and anchor
/// are dealt, so that transfers are made once; those of TinyOT, which are made in the same way as at first,
/// are not. Each party goes on with what it would store.
pub fn renewed(then: fn(&[u8])) {
    let packing = Packing::of::<Gf2_64>(1).expect("it fits");
    let (method, dealt) = (LookupMethod::MaskedTables, Preprocessing::Dealt(&InsecureDealing));
    let config = SpdzConfig::<Gf2_64>::new(2, method, dealt, packing).expect("it is valid");
    run_parties(2, |net| {
        net.in_private = true;
        let mut stored = config.setup(net)?.save();
        net.in_private = false;
        // As if they had come from transfers: without the dealer's seed.
        stored[FROM] = FROM_TRANSFERS;
        stored.truncate(HEAD + 3 * size_of::<u64>());
        assert!(is_secret(&stored), "key and anchor are secret to memcheck");
        let restored = Setup::<Gf2_64>::restore(net.me(), 2, &stored)?;
        let renewed = restored.renew(Preprocessing::Mascot { expansion: 2 }, None, net)?;
        then(&renewed.save()[HEAD..]);
        Ok(())
    });
}

/// Of a stored setup: bytes before the key, and which of them says where material comes from
/// (`spdz/setup.rs`).
const HEAD: usize = 6;
const FROM: usize = 4;
const FROM_TRANSFERS: u8 = 0;

fn outputs_of_refresh(config: &AnyServiceConfig, fresh: Fresh, bits: u8) {
    run_parties(config.parties(), |net| {
        net.in_private = true;
        let setup = config.setup(net)?;
        let new = (fresh == Fresh::Setup).then(|| config.setup(net)).transpose()?;
        net.in_private = false;
        let mut session = hello(&config.handshake(HandshakeParameters::new(config.parties())), net)?;
        let mut protocol = config.join(&setup, session.stream(), net.members())?;

        // A mask is a shared value that nobody knows.
        let mut b = Builder::new("two blocks");
        let block = b.input("block", 128 / usize::from(bits), bits);
        b.output("block", &block);
        let compiled = compile(&b.finish(), &protocol);
        let (mask, _) = protocol.mask_input(32, net)?;
        let value = protocol.unmask(&mask, 0, &[0; 32], &compiled.inputs()[0])?;
        let (value, elements) =
            (protocol.save(&value), protocol.save_elements(&protocol.mask_elements(&mask)));
        assert!(is_secret(&value) && is_secret(&elements), "stored shares are secret to memcheck");

        let stored = [Stored::Value(&value), Stored::Elements(&elements)];
        let new = new.as_ref().unwrap_or(&setup);
        let fresh = config.refresh(&setup, new, session.stream(), &stored, net)?.stored;
        assert!(fresh.iter().all(|shares| is_secret(shares)), "fresh shares are secret to memcheck");
        // Only for the comparison, after all that is watched.
        [&value, &fresh[0]].into_iter().for_each(|shares| mark_public(shares));
        assert!(*fresh[0] != *value, "the shares are others");
        Ok(())
    });
}
