//! Fresh shares of stored values. What a party deals to others is taken for public when it is sent; its coefficients and its own shares stay
//! secret.

use polyclave_cipher::{Builder, compile};
use polyclave_kernels::secret::{is_secret, mark_public};
use polyclave_protocol::catalog;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::ProtocolConfig;
use polyclave_protocol::service::{ServiceConfig, ServiceSession, Stored};
use polyclave_protocol::session::{HandshakeParameters, hello};

use crate::Subject;
use crate::net::run_parties;

pub const SUBJECTS: &[Subject] = &[
    ("shamir: fresh shares of what is stored", || refreshed("shamir", 3)),
    ("shamir-active: fresh shares of what is stored", || refreshed("shamir-active", 4)),
    ("replicated-active: fresh shares of what is stored", || refreshed("replicated-active", 3)),
];

fn refreshed(protocol: &str, parties: usize) {
    let descriptor = catalog::find(protocol).expect("it is listed");
    let config = descriptor.service(parties, descriptor.threshold.most(parties)).expect("it serves");
    run_parties(parties, |net| {
        net.in_private = true;
        let setup = config.set_up(net)?;
        net.in_private = false;
        let mut session = hello(&config.handshake(HandshakeParameters::new(parties)), net)?;
        let mut protocol = config.join(&setup, session.stream(), net.members())?;

        // A mask is a shared value that nobody knows.
        let mut b = Builder::new("two blocks");
        let block = b.input("block", 16, 8);
        b.output("block", &block);
        let compiled = compile(&b.finish(), &protocol);
        let (mask, _) = protocol.mask_input(32, net)?;
        let value = protocol.unmask(&mask, 0, &[0; 32], &compiled.inputs()[0])?;
        let (value, elements) =
            (protocol.save(&value), protocol.save_elements(&protocol.mask_elements(&mask)));
        assert!(is_secret(&value) && is_secret(&elements), "stored shares are secret to memcheck");

        let stored = [Stored::Value(&value), Stored::Elements(&elements)];
        let fresh = config.carry_over(&setup, &setup, session.stream(), &stored, net)?.stored;
        assert!(fresh.iter().all(|shares| is_secret(shares)), "fresh shares are secret to memcheck");
        // Only for the comparison, after all that is watched.
        [&value, &fresh[0]].into_iter().for_each(|shares| mark_public(shares));
        assert!(*fresh[0] != *value, "the shares are others");
        Ok(())
    });
}
