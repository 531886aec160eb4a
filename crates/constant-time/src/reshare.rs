//! Stored values move to other parties. What a party deals stays secret on its way; what it opens for the
//! check is taken for public when it is sent.

use polyclave_cipher::{Builder, Matrix, compile};
use polyclave_field::Gf2_64;
use polyclave_kernels::secret::is_secret;
use polyclave_protocol::among::Among;
use polyclave_protocol::any::{AnyServiceConfig, AnyServiceSession};
use polyclave_protocol::handover::{Handover, Leaving, Sessions, Shape, Side, Sums};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{ProtocolConfig, SharedValue};
use polyclave_protocol::service::{ServiceConfig, ServiceSession, Stored};
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::shamir::reshare::{Move, Shapes};
use polyclave_protocol::{Error, Party, Result, catalog, spdz};
use polyclave_protocol_lab::dealers::InsecureDealing;

use crate::Subject;
use crate::net::run_parties;

pub const SUBJECTS: &[Subject] = &[
    ("reshare: shamir", || moved("shamir", 3)),
    ("reshare: shamir-active", || moved("shamir-active", 4)),
    ("handover: shamir to authenticated sharing", || {
        handed_over([|| service("shamir", 3), authenticated], [&[0, 1, 2], &[3, 1]]);
    }),
    ("handover: authenticated sharing to shamir-active", || {
        handed_over([authenticated, || service("shamir-active", 4)], [&[0, 1], &[0, 1, 2, 3]]);
    }),
];

fn service(protocol: &str, parties: usize) -> AnyServiceConfig {
    let descriptor = catalog::find(protocol).expect("it is listed");
    descriptor.service(parties, descriptor.threshold.most(parties)).expect("it serves")
}

fn authenticated() -> AnyServiceConfig {
    let packing = spdz::Packing::of::<Gf2_64>(1).expect("it fits");
    let (method, dealt) = (spdz::LookupMethod::MaskedTables, spdz::Preprocessing::Dealt(&InsecureDealing));
    AnyServiceConfig::new(spdz::SpdzConfig::<Gf2_64>::new(2, method, dealt, packing).expect("it fits"))
}

/// A block moves from one set to another through masks.
fn handed_over(configs: [fn() -> AnyServiceConfig; 2], places: [&[u8]; 2]) {
    let places = places.map(|places| places.iter().map(|place| Some(Party(*place))).collect::<Vec<_>>());
    let parties = places.concat().iter().flatten().map(|place| place.index() + 1).max().unwrap_or(0);
    run_parties(parties, |net| {
        let configs = configs.map(|config| config());
        let [from, to] = [0, 1].map(|i| Side { config: &configs[i], places: &places[i] });
        let mut joined = |side: &Side<'_>| -> Result<Option<AnyServiceSession>> {
            if !side.places.contains(&Some(net.me())) {
                return Ok(None);
            }
            net.in_private = true;
            let mut among = Among::with_absent(&mut *net, side.places)?;
            let setup = side.config.setup(&mut among)?;
            let members = among.members();
            net.in_private = false;
            let mut among = Among::with_absent(&mut *net, side.places)?;
            let parameters = HandshakeParameters::new(side.places.len());
            let mut session = hello(&side.config.handshake(parameters), &mut among)?;
            side.config.join(&setup, session.stream(), members).map(Some)
        };
        let (mut old, mut new) = (joined(&from)?, joined(&to)?);
        let mut value = None;
        if let Some(session) = &mut old {
            let mut among = Among::with_absent(&mut *net, from.places)?;
            let mut b = Builder::new("a block");
            let block = b.input("block", 16, 8);
            b.output("block", &block);
            let compiled = compile(&b.finish(), session);
            let (mask, _) = session.mask_input(16, &mut among)?;
            value = Some(session.unmask(&mask, 0, &[0; 16], &compiled.inputs()[0])?);
        }
        let handover = Handover { from, to, len: 16 };
        let mut sessions = Sessions { old: old.as_mut(), new: new.as_mut() };
        let failed = |fault| Error::System(format!("{fault:?}"));
        let drawn = handover.draw(&mut sessions, net).map_err(failed)?;
        let shape = Shape { count: 16, bits: 8, lanes: 1 };
        let leaving: Vec<Leaving> = value.into_iter().map(|value| Leaving { value, shape }).collect();
        let arrived = handover.complete(drawn, &leaving, &mut sessions, net).map_err(failed)?;
        if let Some(session) = &mut new {
            let mut among = Among::with_absent(net, to.places)?;
            let value = arrived.value(
                (0, shape),
                &[Matrix::identity(8)],
                &mut Sums::default(),
                session,
                &mut among,
            )?;
            assert!(is_secret(value.reveal_own_shares()), "the new shares are secret to memcheck");
        }
        Ok(())
    });
}

fn moved(protocol: &str, parties: usize) {
    let config = service(protocol, parties);
    run_parties(parties, |net| {
        net.in_private = true;
        let setup = config.setup(net)?;
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
            stored.iter().map(|stored| sharing.public_part(net.me(), *stored)).collect::<Result<_>>()?;
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
