//! Certificates: what they are made of, how long they hold, and how they are replaced.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::common::cluster::{CLUSTER, Cluster, LONG, certificate, open, set};
use crate::common::{HASTY, PATIENT};
use polyclave_protocol::{Error, Party};
use polyclave_transport::{
    Endpoint, Halt, Identity, Limits, Mesh, PeerAddress, Reception, call, expiry, verify_signature,
};
use rcgen::{CertificateParams, KeyPair};
use time::OffsetDateTime;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Valid from then until then.
fn identity(not_before: OffsetDateTime, not_after: OffsetDateTime) -> Identity {
    let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("key");
    let mut parameters = CertificateParams::default();
    (parameters.not_before, parameters.not_after) = (not_before, not_after);
    let certificate = parameters.self_signed(&key).expect("certificate");
    Identity::from_der(certificate.der(), &key.serialize_der()).expect("they fit")
}

fn expired() -> Identity {
    identity(rcgen::date_time_ymd(2019, 1, 1), rcgen::date_time_ymd(2020, 2, 29))
}

#[test]
fn a_named_certificate_is_valid_from_a_little_before_now_for_so_many_days() {
    let identity = Identity::generate_named("node 1 of Käfer & Co", 30).expect("identity");
    let now = SystemTime::now();
    let (not_before, not_after) = expiry(&identity.certificate()).expect("dates");
    assert!(not_before < now && not_before > now - DAY);
    assert!(not_after > now + 30 * DAY - Duration::from_secs(3600) && not_after <= now + 30 * DAY);
    let name = "node 1 of Käfer & Co".as_bytes();
    assert!(identity.certificate().windows(name.len()).any(|window| window == name));
}

#[test]
fn names_and_days_that_no_certificate_can_have_are_misuse() {
    for (name, days) in [("", 1), (&*"x".repeat(65), 1), ("x", 0), ("x", u32::MAX)] {
        let made = Identity::generate_named(name, days);
        assert!(matches!(made.err(), Some(Error::Misuse(_))), "{name:?} for {days} days");
    }
}

#[test]
fn an_identity_comes_back_from_its_bytes_and_only_with_its_own_key() {
    let made = [(); 2].map(|()| Identity::generate_named("x", 1).expect("identity"));
    let [mine, other] = &made;
    let back = Identity::from_der(&mine.certificate(), &mine.reveal_private_key()).expect("they fit");
    assert!(back.certificate() == mine.certificate());
    assert!(back.reveal_private_key() == mine.reveal_private_key());
    let wrongs = [
        (&*mine.certificate(), &**other.reveal_private_key()),
        (&*mine.certificate(), b"no key"),
        (b"no certificate", &**mine.reveal_private_key()),
    ];
    for (certificate, key) in wrongs {
        let message = Identity::from_der(certificate, key).err();
        assert!(matches!(message, Some(Error::Misuse(_))), "{message:?}");
    }
    assert!(expiry(&b"nothing"[..].into()).is_err());
}

#[test]
fn a_signature_is_of_one_key_and_one_message() {
    let [mine, other] = [(); 2].map(|()| Identity::generate().expect("identity"));
    let signature = mine.sign(b"a message").expect("signed");
    let verify = |certificate: &Identity, message: &[u8], signature: &[u8]| {
        verify_signature(&certificate.certificate(), message, signature).is_ok()
    };
    assert!(verify(&mine, b"a message", &signature));
    assert!(!verify(&other, b"a message", &signature) && !verify(&mine, b"another", &signature));
    let flipped = |at: usize| signature.iter().enumerate().map(move |(i, b)| b ^ u8::from(i == at)).collect();
    assert!((0..signature.len()).all(|at| !verify(&mine, b"a message", &flipped(at) as &Vec<u8>)));
    assert!(!verify(&mine, b"a message", &signature[1..]) && !verify(&mine, b"a message", &[]));
    assert!(verify_signature(&b"nothing"[..].into(), b"a message", &signature).is_err());
}

#[test]
fn nobody_starts_with_a_certificate_outside_its_time() {
    let early = identity(rcgen::date_time_ymd(2999, 1, 1), rcgen::date_time_ymd(3000, 1, 1));
    for (identity, date) in
        [(expired(), "expired on 2020-02-29, and by the clock here it is 20"), (early, "before 2999-01-01")]
    {
        let cluster = Cluster::of(vec![identity.clone(), Identity::generate().expect("identity")]);
        let endpoint = Endpoint::bind("127.0.0.1:0", identity.clone(), PATIENT).expect("a free port");
        let list = [identity.certificate(), certificate()];
        let list = list.map(|certificate| PeerAddress { address: "127.0.0.1:1".into(), certificate });
        let admits = Arc::new(|_: &[polyclave_transport::CertificateDer<'_>]| true);
        let ends = [
            cluster.try_start(0).err(),
            endpoint.join(Party(0), &list).err(),
            Reception::start("127.0.0.1:0", identity.clone(), PATIENT, Party(0), 2, CLUSTER, admits).err(),
            call(&identity, PATIENT, &cluster.nodes, (CLUSTER, None), set(&[1]), &Halt::default())
                .pop()
                .and_then(|(_, line)| line.err()),
        ];
        for end in ends {
            assert!(matches!(&end, Some(Error::Misuse(message)) if message.contains(date)), "{end:?}");
        }
    }
}

#[test]
fn a_certificate_that_expires_while_its_node_runs_is_refused_with_its_date_both_ways() {
    for short_lived in [0, 1] {
        let end = OffsetDateTime::now_utc() + time::Duration::seconds(3);
        let mut identities: Vec<_> = (0..2).map(|_| Identity::generate().expect("identity")).collect();
        identities[short_lived] = identity(end - time::Duration::DAY, end);
        let cluster = Cluster::of(identities);
        let meshes = cluster.start_all();
        let both: Vec<(u8, &Mesh)> = (0..).zip(&meshes).collect();
        assert!(open(&both, "in time", LONG).iter().all(Result::is_ok));
        while OffsetDateTime::now_utc() <= end + time::Duration::SECOND {
            std::thread::sleep(Duration::from_millis(50));
        }
        let ends = open(&both, "too late", Duration::from_secs(2));
        let message: Vec<_> = ends.into_iter().map(|end| end.err().expect("expired").to_string()).collect();
        let dated = format!("its certificate expired on {}, and by the clock here it is", end.date());
        // The dialling side has the lower number.
        let (sees, is_told) =
            if short_lived == 1 { (&message[0], None) } else { (&message[1], Some(&message[0])) };
        assert!(sees.contains(&dated), "{message:?}");
        assert!(
            is_told
                .is_none_or(|message| message.contains("by its clock this party's certificate has expired")),
            "{message:?}"
        );
    }
}

#[test]
fn a_node_with_two_listed_certificates_may_use_either() {
    for rotating in [0, 1, 2] {
        let before = Cluster::new(3);
        let mut after = before.clone();
        after.identities[rotating] = Identity::generate_named("anew", 30).expect("identity");
        let new = after.identities[rotating].certificate();
        let both = vec![before.nodes[rotating].certificates[0].clone(), new];
        let [before, after] = [before, after].map(|mut cluster| {
            cluster.nodes[rotating].certificates.clone_from(&both);
            cluster
        });
        let mut meshes: Vec<Option<Mesh>> = before.start_all().into_iter().map(Some).collect();
        for restart in [false, true] {
            if restart {
                meshes[rotating] = None;
                meshes[rotating] = Some(after.start(rotating as u8));
            }
            let all: Vec<(u8, &Mesh)> = (0..).zip(meshes.iter().flatten()).collect();
            for net in open(&all, "x", LONG) {
                net.expect("either certificate is as good");
            }
        }
    }
}

#[test]
fn a_certificate_that_is_not_listed_is_refused_at_both_ends() {
    let cluster = Cluster { limits: Limits { connect: HASTY, ..PATIENT }, ..Cluster::new(2) };
    for impostor in [0, 1] {
        let mut other = cluster.clone();
        other.identities[impostor] = Identity::generate().expect("identity");
        other.nodes[impostor].certificates = vec![other.identities[impostor].certificate()];
        let meshes = [0, 1].map(|me| {
            let cluster = if usize::from(me) == impostor { &other } else { &cluster };
            (me, cluster.start(me))
        });
        let ends = open(&meshes.each_ref().map(|(me, mesh)| (*me, mesh)), "x", Duration::from_secs(2));
        let message: Vec<_> = ends.into_iter().map(|end| end.err().expect("refused").to_string()).collect();
        assert!(message[0].contains("party 2") && message[0].contains("certificate"), "{message:?}");
        assert!(message[1].contains("party 1"), "{message:?}");
        assert!(impostor == 1 || message[1].contains("certificate"), "{message:?}");
    }
}
