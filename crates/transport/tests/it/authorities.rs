//! Certificates of clients that an authority has signed: what is accepted, and what is refused and why.

use std::time::{Duration, SystemTime};

use polyclave_harness::authority::{Authority, svid, uri, within};
use polyclave_transport::{Anchors, CertificateDer, Identity, identity_of};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, GeneralSubtree, IsCa,
    KeyUsagePurpose, NameConstraints, SanType,
};

const HOUR: Duration = Duration::from_secs(3600);
const ID: &str = "spiffe://corp.example/web";

fn anchors(authorities: &[&Authority]) -> Anchors {
    let pem: String = authorities.iter().map(|authority| authority.pem()).collect();
    Anchors::from_pem(pem.as_bytes()).expect("certificates of authorities")
}

/// Until when a client's certificate that `by` signs is accepted under `top`, in seconds from now.
fn verify(top: &Anchors, by: &Authority, params: &CertificateParams) -> Result<u64, String> {
    let signed = by.sign(params);
    let chain = pem(&signed.chain);
    let until = top.verify(&chain, 24 * HOUR, SystemTime::now())?;
    Ok(until.duration_since(SystemTime::now()).expect("later").as_secs())
}

fn pem(chain: &str) -> Vec<CertificateDer<'static>> {
    use rustls::pki_types::pem::PemObject;
    CertificateDer::pem_slice_iter(chain.as_bytes()).map(|c| c.expect("PEM")).collect()
}

fn changed(change: impl FnOnce(&mut CertificateParams)) -> CertificateParams {
    let mut params = svid(ID);
    change(&mut params);
    params
}

#[test]
fn a_certificate_that_an_authority_signed_for_a_client_is_accepted_until_the_first_of_its_chain_ends() {
    let root = Authority::new("root");
    let until = verify(&anchors(&[&root]), &root, &svid(ID)).expect("signed");
    assert!((3590..=3600).contains(&until), "{until}");
    let others = [&Authority::new("other"), &root];
    verify(&anchors(&others), &root, &svid(ID)).expect("one of several has signed it");

    // One between them that ends first.
    let mut params = Authority::params("between");
    within(&mut params, -60, 600);
    let between = root.below(params);
    let until = verify(&anchors(&[&root]), &between, &svid(ID)).expect("signed over one");
    assert!((590..=600).contains(&until), "{until}");
    // One below the root can be named as the authority, and then the root need not be known.
    let until = verify(&anchors(&[&between]), &between, &svid(ID)).expect("signed");
    assert!((590..=600).contains(&until), "the authority's own certificate ends: {until}");
    assert!(verify(&anchors(&[&between]), &root, &svid(ID)).is_err());
}

#[test]
fn every_certificate_that_is_not_fit_for_a_client_is_refused_and_says_why() {
    let root = Authority::new("root");
    let top = anchors(&[&root]);
    let refused: [(&str, CertificateParams); 12] = [
        ("at most 24 are allowed", changed(|p| within(p, -60, 26 * 3600))),
        ("has ended", changed(|p| within(p, -3600, -5))),
        ("valid only from", changed(|p| within(p, 60, 3600))),
        ("clientAuth", changed(|p| p.extended_key_usages.clear())),
        ("clientAuth", changed(|p| p.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth])),
        ("clientAuth", changed(|p| p.extended_key_usages = vec![ExtendedKeyUsagePurpose::Any])),
        ("digitalSignature", changed(|p| p.key_usages.clear())),
        ("digitalSignature", changed(|p| p.key_usages = vec![KeyUsagePurpose::KeyAgreement])),
        ("may sign", changed(|p| p.key_usages.push(KeyUsagePurpose::KeyCertSign))),
        ("may sign", changed(|p| p.key_usages.push(KeyUsagePurpose::CrlSign))),
        ("of an authority itself", changed(|p| p.is_ca = IsCa::Ca(BasicConstraints::Unconstrained))),
        ("of an authority itself", changed(|p| p.is_ca = IsCa::Ca(BasicConstraints::Constrained(0)))),
    ];
    for (says, params) in refused {
        let why = verify(&top, &root, &params).expect_err(says);
        assert!(why.contains(says), "{why}");
    }
    let why = verify(&top, &Authority::new("root"), &svid(ID)).expect_err("another of its name");
    assert!(why.contains("authority"), "{why}");
    let why = verify(&top, &Authority::new("other"), &svid(ID)).expect_err("another");
    assert!(why.contains("none of the authority's certificates"), "{why}");
    // An hour beyond the limit is for authorities that date certificates back.
    verify(&top, &root, &changed(|p| within(p, -3600, 24 * 3600 - 10))).expect("dated back");
}

#[test]
fn what_stands_between_has_to_be_an_authority_that_may_sign_such_a_name_and_there_is_little_of_it() {
    let root = Authority::new("root");
    let top = anchors(&[&root]);
    let between = |change: &dyn Fn(&mut CertificateParams)| {
        let mut params = Authority::params("between");
        change(&mut params);
        verify(&top, &root.below(params), &svid(ID))
    };
    between(&|_| ()).expect("signed over one");
    assert!(between(&|p| p.is_ca = IsCa::NoCa).is_err(), "a client signs for another");
    assert!(between(&|p| within(p, -3600, -5)).is_err(), "it has ended");
    let constrained = |subtree: GeneralSubtree| {
        between(&|p| {
            let (permitted_subtrees, excluded_subtrees) = (vec![subtree.clone()], Vec::new());
            p.name_constraints = Some(NameConstraints { permitted_subtrees, excluded_subtrees });
        })
    };
    constrained(GeneralSubtree::DnsName("corp.example".into())).expect("it has no DNS name");
    let mut deep = Authority::new("root");
    let top = anchors(&[&deep]);
    for depth in 1..=4 {
        deep = deep.below(Authority::params(&format!("depth {depth}")));
        let verified = verify(&top, &deep, &svid(ID));
        assert_eq!(verified.is_ok(), depth <= 3, "{depth}: {verified:?}");
    }
}

#[test]
fn an_authority_whose_own_certificate_has_ended_vouches_for_nobody() {
    let root = Authority::new("root");
    let mut params = Authority::params("below");
    within(&mut params, -3600, -5);
    let ended = root.below(params);
    let why = verify(&anchors(&[&ended]), &ended, &svid(ID)).expect_err("ended");
    assert!(why.contains("no certificate that is valid now"), "{why}");
}

#[test]
fn a_certificate_names_one_identity_or_none() {
    let root = Authority::new("root");
    let dns = |name: &str| SanType::DnsName(name.try_into().expect("ASCII"));
    let of = |names: Vec<SanType>| {
        let signed = root.sign(&changed(|p| p.subject_alt_names = names));
        identity_of(&CertificateDer::from(signed.certificate))
    };
    assert_eq!(of(vec![uri(ID)]).as_deref(), Ok(ID));
    assert_eq!(of(vec![dns("a.example"), uri(ID), dns("b.example")]).as_deref(), Ok(ID));
    assert_eq!(of(vec![dns("web.example")]).as_deref(), Ok("dns:web.example"));
    let refused = [
        ("2 URIs", vec![uri(ID), uri("spiffe://corp.example/other")]),
        ("2 URIs", vec![uri(ID), uri("https://corp.example/web")]),
        ("not the SPIFFE ID", vec![uri("https://corp.example/web")]),
        ("2 DNS names", vec![dns("a.example"), dns("b.example")]),
        ("neither", Vec::new()),
        ("no DNS name", vec![dns("*.example")]),
    ];
    for (says, names) in refused {
        let why = of(names).expect_err(says);
        assert!(why.contains(says), "{why}");
    }
    // A name in the subject means nothing.
    let subject = changed(|p| {
        p.subject_alt_names.clear();
        p.distinguished_name.push(DnType::CommonName, "spiffe://corp.example/web");
    });
    assert!(identity_of(&CertificateDer::from(root.sign(&subject).certificate)).is_err());
}

#[test]
fn a_file_of_an_authority_has_certificates_of_authorities_alone() {
    let root = Authority::new("root");
    let leaf = root.sign(&svid(ID));
    let refused = [
        ("0 certificates", String::new()),
        ("0 certificates", "a text".into()),
        ("not one of an authority", leaf.chain.clone()),
        ("certificate 2 is not one of an authority", root.pem() + &leaf.chain),
        ("private key", root.pem() + &leaf.key),
        ("33 certificates", root.pem().repeat(33)),
    ];
    for (says, text) in refused {
        let why = Anchors::from_pem(text.as_bytes()).expect_err(says).to_string();
        assert!(why.contains(says), "{why}");
    }
    let cut = &root.pem()[..200];
    assert!(Anchors::from_pem(cut.as_bytes()).is_err());
}

#[test]
fn an_identity_comes_from_the_pem_files_of_an_agent_and_only_with_its_own_key() {
    let root = Authority::new("root");
    let [mine, other] = [(); 2].map(|()| root.sign(&svid(ID)));
    let identity = Identity::from_pem(mine.chain.as_bytes(), mine.key.as_bytes()).expect("they fit");
    assert_eq!(identity.certificate().as_ref(), &mine.certificate[..]);
    assert!(Identity::from_pem(mine.chain.as_bytes(), other.key.as_bytes()).is_err());
    assert!(Identity::from_pem(b"", mine.key.as_bytes()).is_err());
    assert!(Identity::from_pem(mine.chain.as_bytes(), b"").is_err());
}
