//! The directory of a client: `client.toml` (its name), `identity.key`, `identity.crt` and, once it knows
//! one, `cluster.toml`. If its key is sealed under PINs, `identity.pins` takes the place of `identity.key`.
//! While its certificate changes, also `identity-next.key` and `identity-next.crt`. If an agent renews its
//! certificate, there is none of these, and `client.toml` says where the agent writes.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use polyclave_transport::Identity;

use crate::{
    ClientCard, ClientSuccession, Cluster, Consent, Error, RenewedFiles, Result, SealedClient,
    StoredIdentity, check_name, private, rotation, text,
};

const SETTINGS: &str = "client.toml";
const CLUSTER: &str = "cluster.toml";

/// A client's directory.
#[derive(Debug)]
pub struct ClientDir {
    path: PathBuf,
    settings: ClientSettings,
    identity: StoredIdentity,
    next: Option<StoredIdentity>,
}

/// `client.toml`.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientSettings {
    /// Its name. Nodes know a client of an authority by its identity, whatever its name is.
    pub(crate) name: String,
    /// Where an agent writes its certificate and key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) renewed: Option<RenewedFiles>,
}

impl ClientDir {
    /// Makes the directory of a new client with the identity that it is given. Returns the client's card.
    pub fn init(path: &Path, name: &str, certificate: &[u8], key: &[u8]) -> Result<ClientCard> {
        check_name("client", name)?;
        let identity = StoredIdentity::new(certificate, key)?;
        private::make_dir(path)?;
        identity.save(&path.join(rotation::KEY), &path.join(rotation::CERTIFICATE))?;
        let settings = ClientSettings { name: name.into(), renewed: None };
        // Last, since without it nothing is a client's directory.
        settings.save(path)?;
        Ok(ClientDir { path: path.into(), settings, identity, next: None }.card())
    }

    /// Makes the directory of a client whose certificate and key an agent writes into files, and renews.
    pub fn init_renewed(path: &Path, name: &str, files: &RenewedFiles) -> Result<ClientDir> {
        check_name("client", name)?;
        files.load()?;
        private::make_dir(path)?;
        ClientSettings { name: name.into(), renewed: Some(files.clone()) }.save(path)?;
        ClientDir::open(path)
    }

    /// Opens a client's directory.
    pub fn open(path: &Path) -> Result<ClientDir> {
        let settings = ClientSettings::load(path)?;
        if let Some(files) = &settings.renewed {
            let identity = files.within(path).load()?;
            let identity = StoredIdentity::new(&identity.certificate(), &identity.reveal_private_key())?;
            return Ok(ClientDir { path: path.into(), settings, identity, next: None });
        }
        if SealedClient::is_sealed(path) {
            let detail = "has its key sealed under PINs, for PKCS#11; other programs can use it after `polyclave client unseal`";
            return Err(Error::malformed(path, detail));
        }
        let (identity, next) = rotation::recover(path)?;
        Ok(ClientDir { path: path.into(), settings, identity, next })
    }

    /// The directory with an identity that is not in the clear in it.
    pub(crate) fn with_identity(path: &Path, identity: StoredIdentity) -> Result<ClientDir> {
        let settings = ClientSettings::load(path)?;
        Ok(ClientDir { path: path.into(), settings, identity, next: None })
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The client's name.
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// Where an agent writes the client's certificate and key, if one does.
    pub fn renewed(&self) -> Option<RenewedFiles> {
        self.settings.renewed.as_ref().map(|files| files.within(&self.path))
    }

    /// Refuses what is for clients with keys of their own.
    pub fn refuse_renewed(&self) -> Result<()> {
        refuse_renewed(&self.settings)
    }

    /// The client's identity; of a client whose certificate is renewed, that of the moment when this was
    /// opened.
    pub fn identity(&self) -> &StoredIdentity {
        &self.identity
    }

    /// What nodes need to know of it.
    pub fn card(&self) -> ClientCard {
        ClientCard { name: self.settings.name.clone(), certificate: self.identity.certificate.clone() }
    }

    /// What nodes need to know of it, with its next certificate while that changes.
    pub fn succession(&self) -> Result<ClientSuccession> {
        let Some(next) = &self.next else { return Ok(ClientSuccession::of(self.card())) };
        let current = Identity::from_der(&self.identity.certificate, &self.identity.key)
            .map_err(|e| Error::misuse(e.to_string()))?;
        ClientSuccession::vouch(self.name(), &current, &next.certificate)
    }

    /// The same client with its next identity, to try whether nodes know it; `None` if its identity does not
    /// change.
    pub fn with_next_identity(&self) -> Option<ClientDir> {
        let settings = ClientSettings { name: self.settings.name.clone(), renewed: None };
        Some(ClientDir { path: self.path.clone(), settings, identity: self.next.clone()?, next: None })
    }

    /// Begins to change the client's identity. All nodes have to know the next certificate before
    /// [`ClientDir::finish_rotation`].
    pub fn begin_rotation(&mut self, certificate: &[u8], key: &[u8]) -> Result<()> {
        self.refuse_renewed()?;
        if self.next.is_some() {
            return Err(Error::misuse(
                "the client's certificate is already being changed; finish that first",
            ));
        }
        let next = StoredIdentity::new(certificate, key)?;
        rotation::begin(&self.path, &next)?;
        self.next = Some(next);
        Ok(())
    }

    /// Makes the next identity the client's only one.
    pub fn finish_rotation(&mut self) -> Result<()> {
        let Some(next) = self.next.take() else {
            return Err(Error::misuse("the client's certificate is not being changed; begin that first"));
        };
        rotation::finish(&self.path, &next)?;
        self.identity = next;
        Ok(())
    }

    /// The cluster that it uses, if it knows one.
    pub fn cluster(&self) -> Result<Option<Cluster>> {
        cluster_of(&self.path)
    }

    /// Accepts the file of a cluster, or a changed file of the same cluster.
    pub fn set_cluster(&self, cluster: &Cluster, consent: Consent) -> Result<()> {
        set_cluster(&self.path, self.name(), cluster, consent)
    }

    /// The same for the client of a directory whose key may be sealed: this needs no key.
    pub fn set_cluster_of(path: &Path, cluster: &Cluster, consent: Consent) -> Result<()> {
        set_cluster(path, &ClientDir::name_of(path)?, cluster, consent)
    }

    /// The name of the client of a directory whose key may be sealed.
    pub fn name_of(path: &Path) -> Result<String> {
        ClientSettings::load(path).map(|settings| settings.name)
    }
}

impl ClientSettings {
    fn load(path: &Path) -> Result<ClientSettings> {
        let file = path.join(SETTINGS);
        if !file.is_file() {
            let detail = format!(
                "is not the directory of a client: it has no {SETTINGS}; make one with `client init`"
            );
            return Err(Error::malformed(path, detail));
        }
        parse_settings(&private::read_public(&file)?).map_err(|e| e.in_file(&file))
    }

    fn save(&self, path: &Path) -> Result<()> {
        private::write_public(&path.join(SETTINGS), settings_to_text(self).as_bytes())
    }
}

/// Refuses to seal or change the key of a client that has none of its own.
pub(crate) fn refuse_renewed_at(path: &Path) -> Result<()> {
    refuse_renewed(&ClientSettings::load(path)?)
}

fn refuse_renewed(settings: &ClientSettings) -> Result<()> {
    match &settings.renewed {
        None => Ok(()),
        Some(files) => Err(Error::misuse(format!(
            "the client {} has no key of its own: an agent renews its certificate in {}. This is for clients that `client init` made a key for",
            settings.name,
            files.certificate.display()
        ))),
    }
}

fn cluster_of(path: &Path) -> Result<Option<Cluster>> {
    let path = path.join(CLUSTER);
    path.exists().then(|| Cluster::load(&path)).transpose()
}

fn set_cluster(path: &Path, name: &str, cluster: &Cluster, consent: Consent) -> Result<()> {
    // With consent to another cluster, the file of the former cluster need not be readable.
    let before = if consent == Consent::Cluster { None } else { cluster_of(path)? };
    if let Some(before) = before {
        let succeeds = consent >= Consent::Certificates && cluster.is_successor_of(&before);
        if cluster.is_successor_of(&before) && !succeeds {
            return Err(Error::misuse(format!(
                "the file is of a cluster that says that it took over the keys of the one that {} uses; nothing was changed. Compare \
                     its fingerprint with the operators of the nodes, and give it with --expect:\n  {}",
                name,
                cluster.fingerprint()
            )));
        }
        if before.lasting_digest() != cluster.lasting_digest() && !succeeds {
            return Err(Error::misuse(format!(
                "{} uses another cluster; nothing was changed. Make a directory of its own for this one with `client init`, or \
                     give --replace, after which the keys of the other cluster are out of its reach",
                name
            )));
        }
        if consent == Consent::None {
            cluster.refuse_replaced(&before)?;
        }
    }
    cluster.save(&path.join(CLUSTER))
}

pub(crate) fn parse_settings(text: &str) -> Result<ClientSettings> {
    let settings: ClientSettings = text::parse(text)?;
    check_name("client", &settings.name)?;
    Ok(settings)
}

pub(crate) fn settings_to_text(settings: &ClientSettings) -> String {
    text::render("A client of Polyclave.", settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PinOwner;
    use crate::card::tests::{card, certificate};
    use crate::identity::tests::identity;

    #[test]
    fn a_client_comes_back_and_is_never_made_over_another() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("alice");
        let made = ClientDir::init(&path, "alice", &identity(1).certificate, &identity(1).key).expect("made");
        let client = ClientDir::open(&path).expect("opened");
        assert_eq!(client.card(), made);
        assert_eq!(client.identity(), &identity(1));
        assert!(ClientDir::init(&path, "bob", &identity(2).certificate, &identity(2).key).is_err());
        assert!(ClientDir::open(dir.path()).is_err());
    }

    #[test]
    fn a_client_whose_key_is_sealed_takes_another_file_of_its_cluster() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("alice");
        ClientDir::init(&path, "alice", &identity(1).certificate, &identity(1).key).expect("made");
        SealedClient::at(&path).seal(&identity(1), b"officer", Some(b"1234")).expect("sealed");
        assert!(ClientDir::open(&path).is_err());
        assert_eq!(ClientDir::name_of(&path).expect("read"), "alice");
        let cards = |n: u8| vec![card("a", n), card("b", 2)];
        let [cluster, other] = [1, 3].map(|n| Cluster::define("shamir", 1, cards(n)).expect("it fits"));
        ClientDir::set_cluster_of(&path, &cluster, Consent::None).expect("the first");
        assert!(ClientDir::set_cluster_of(&path, &other, Consent::None).is_err(), "another cluster");
        let opened = SealedClient::at(&path).unseal(PinOwner::User, b"1234").expect("its PIN");
        assert_eq!(opened.cluster().expect("read"), Some(cluster));
        assert!(ClientDir::set_cluster_of(dir.path(), &other, Consent::Cluster).is_err(), "no client's");
    }

    #[test]
    fn a_client_goes_from_one_certificate_over_two_to_one() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("alice");
        let [current, next] = [(); 2].map(|()| crate::succession::tests::identity());
        let (certificate, key) = (current.certificate(), current.reveal_private_key());
        ClientDir::init(&path, "alice", &certificate, &key).expect("made");
        let mut client = ClientDir::open(&path).expect("opened");
        assert!(client.finish_rotation().is_err() && client.with_next_identity().is_none());
        client.begin_rotation(&next.certificate(), &next.reveal_private_key()).expect("begun");
        assert!(client.begin_rotation(&certificate, &key).is_err());
        let mut client = ClientDir::open(&path).expect("opened");
        let card = client.succession().expect("signed");
        assert_eq!((card.card(), card.next()), (client.card(), Some(&next.certificate())));
        let after = client.with_next_identity().expect("it changes");
        assert_eq!((after.name(), &after.identity().certificate), ("alice", &next.certificate()));
        client.finish_rotation().expect("finished");
        let client = ClientDir::open(&path).expect("opened");
        assert_eq!(client.card().certificate, next.certificate());
        assert_eq!(client.succession().expect("none is changing").next(), None);
    }

    #[test]
    fn a_client_keeps_its_cluster_and_its_card_travels() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("alice");
        let made = ClientDir::init(&path, "alice", &identity(1).certificate, &identity(1).key).expect("made");
        assert_eq!(ClientCard::parse(&made.to_text()).expect("parsed"), made);
        let client = ClientDir::open(&path).expect("opened");
        assert_eq!(client.cluster().expect("none is no error"), None);
        let cluster = Cluster::define("shamir", 1, vec![card("a", 1), card("b", 2)]).expect("it fits");
        client.set_cluster(&cluster, Consent::None).expect("saved");
        assert_eq!(client.cluster().expect("read"), Some(cluster));
    }

    #[test]
    fn a_client_follows_its_cluster_to_new_nodes_once_a_person_has_compared_the_fingerprint() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("alice");
        ClientDir::init(&path, "alice", &identity(1).certificate, &identity(1).key).expect("made");
        let client = ClientDir::open(&path).expect("opened");
        let first = Cluster::define("shamir", 1, vec![card("a", 1), card("b", 2)]).expect("it fits");
        client.set_cluster(&first, Consent::None).expect("the first");
        let change =
            crate::Change { lost: vec!["b".into()], added: vec![card("b", 3)], ..Default::default() };
        let second = first.reshaped(&change).expect("it fits");
        let message = client.set_cluster(&second, Consent::None).expect_err("in silence").to_string();
        assert!(
            message.contains("--expect") && message.contains(&second.fingerprint().to_string()),
            "{message}"
        );
        client.set_cluster(&second, Consent::Certificates).expect("compared");
        let third = second.reshaped(&crate::Change::default()).expect("it fits");
        let fourth = third.reshaped(&crate::Change::default()).expect("it fits");
        assert!(
            client.set_cluster(&fourth, Consent::Certificates).is_err(),
            "of a cluster that it does not know"
        );
    }

    #[test]
    fn neither_another_cluster_nor_another_certificate_takes_the_place_of_one_in_silence() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("alice");
        ClientDir::init(&path, "alice", &identity(1).certificate, &identity(1).key).expect("made");
        let client = ClientDir::open(&path).expect("opened");
        let cards = || vec![card("a", 1), card("b", 2)];
        let first = Cluster::define("shamir", 1, cards()).expect("it fits");
        client.set_cluster(&first, Consent::None).expect("the first");
        let is_still =
            |cluster: &Cluster| assert_eq!(client.cluster().expect("read").as_ref(), Some(cluster));

        let mut rotating = card("b", 2);
        rotating.certificates.push(certificate(3));
        let mut second = first.clone();
        second.update(rotating).expect("it fits");
        client.set_cluster(&second, Consent::None).expect("both certificates");
        let mut third = second.clone();
        third.update(card("b", 3)).expect("it fits");
        client.set_cluster(&third, Consent::None).expect("the new one");

        let mut forged = third.clone();
        forged.replace(card("a", 9)).expect("it fits");
        assert_eq!(forged.lasting_digest(), third.lasting_digest());
        let error = client.set_cluster(&forged, Consent::None).expect_err("another certificate").to_string();
        assert!(error.contains("--expect") && error.contains(&forged.fingerprint().to_string()), "{error}");
        is_still(&third);
        client.set_cluster(&forged, Consent::Certificates).expect("compared");
        is_still(&forged);

        let other = Cluster::define("shamir", 1, cards()).expect("it fits");
        for consent in [Consent::None, Consent::Certificates] {
            let error = client.set_cluster(&other, consent).expect_err("another cluster").to_string();
            assert!(error.contains("--replace"), "{error}");
        }
        is_still(&forged);
        client.set_cluster(&other, Consent::Cluster).expect("wanted");
        is_still(&other);
    }
}
