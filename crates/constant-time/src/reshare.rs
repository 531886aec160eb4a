//! Stored values move to other parties. What a party deals stays secret on its way; what it opens for the check is taken for public when it
//! is sent.

use polyclave_cipher::{Builder, compile};
use polyclave_kernels::secret::is_secret;
use polyclave_protocol::Error;
use polyclave_protocol::catalog;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::ProtocolConfig;
use polyclave_protocol::service::{ServiceConfig, ServiceSession, Stored};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::shamir::reshare::{Move, Shapes};

use crate::Subject;
use crate::net::run_parties;

pub const SUBJECTS: &[Subject] =
    &[("reshare: shamir", || moved("shamir", 3)), ("reshare: shamir-active", || moved("shamir-active", 4))];

fn moved(protocol: &str, parties: usize) {
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
        let stored = [Stored::Value(&value), Stored::Elements(&elements)];

        let sharing = config.sharing().expect("it moves");
        let movement = Move::new(sharing, sharing, net.members())?;
        let public: Vec<Vec<u8>> =
            stored.iter().map(|stored| sharing.public_part(net.me(), *stored)).collect::<Result<_, _>>()?;
        let shapes = Shapes::parse(&[Stored::Value(&public[0]), Stored::Elements(&public[1])])?;
        let me = net.me();
        let mut mine = movement.deal(&config.save_setup(&setup), me, &session.stream(), &stored)?;
        let own = std::mem::take(&mut mine[me.index()]);
        // Of the lengths that are due: what arrives takes its place.
        let mut dealt = mine.clone();
        let out: Vec<&[u8]> = mine.iter().map(|message| &message[..]).collect();
        net.in_private = true;
        net.exchange(&out, &mut dealt.iter_mut().map(|message| &mut message[..]).collect::<Vec<_>>())?;
        net.in_private = false;
        dealt[me.index()] = own;
        let moved =
            movement.take(&shapes, &dealt, net).map_err(|fault| Error::System(format!("{fault:?}")))?;
        assert!(moved.iter().all(|shares| is_secret(shares)), "the new shares are secret to memcheck");
        Ok(())
    });
}
