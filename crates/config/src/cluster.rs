//! The cluster file: which nodes work together, where they are, and how. All nodes and clients have the same
//! file.
//!
//! A field that an older program does not know is an error there: what it stands for would be missing. So a
//! file with a field that came later says which version it has, and which release brought that
//! ([`CLUSTER_FILES`]). Programs look at this first.

use std::path::Path;

use polyclave_protocol::descriptor::Threshold;
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::session::random_bytes;
use polyclave_protocol::versions::{self, CLUSTER_FILES};
use polyclave_protocol::{Party, PartySet, catalog};
use polyclave_transport::CertificateDer;
use serde::{Deserialize, Serialize};

use crate::{Card, Error, Fingerprint, Result, Role, Roles, check_name, private, text};

/// A cluster of nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// Which fields there can be.
    #[serde(default = "first_version", skip_serializing_if = "is_first_version")]
    version: u8,
    /// The release that brought this version, for programs that do not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    release: Option<String>,
    #[serde(with = "hex::serde")]
    id: [u8; 16],
    protocol: String,
    threshold: usize,
    /// The cluster whose keys move to this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replaces: Option<Replaced>,
    /// The workers that only serve, or only make material.
    #[serde(default, rename = "workers", skip_serializing_if = "Roles::is_empty")]
    roles: Roles,
    /// Whether two nodes go on while a third one is away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    standby: bool,
    #[serde(rename = "node")]
    cards: Vec<Card>,
    /// Which workers of the nodes are meant.
    #[serde(skip)]
    worker_group: u16,
    /// Which nodes of the file this is about, if it is a standby pair.
    #[serde(skip)]
    pair: Option<PartySet>,
}

/// The version of a file that does not say which one it has.
const FIRST_VERSION: u8 = 1;

fn first_version() -> u8 {
    FIRST_VERSION
}

fn is_first_version(version: &u8) -> bool {
    *version == FIRST_VERSION
}

/// What a program reads first: it can, whatever else there is.
#[derive(Deserialize)]
struct Head {
    version: Option<u64>,
    release: Option<String>,
}

impl Head {
    /// Refuses a version that this program does not know.
    fn check(&self) -> Result<()> {
        let Some(version) = self.version.filter(|version| !CLUSTER_FILES.spoken().contains(*version)) else {
            return Ok(());
        };
        let is_shown = |release: &&String| check_name("release", release).is_ok();
        let to = self.release.as_ref().filter(is_shown).map_or("the release that wrote it", String::as_str);
        Err(Error::misuse(format!(
            "the cluster file has version {version}, and this program ({}) knows {}. Nothing was changed. Upgrade this program to {to}, or \
             a later one",
            versions::release(),
            CLUSTER_FILES.spoken()
        )))
    }
}

/// The cluster that another one replaces: all its keys move to the new one (`polyclave node reshare`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replaced {
    /// The id of the old cluster.
    #[serde(with = "hex::serde")]
    pub id: [u8; 16],
    /// The fingerprint of the old cluster's file.
    pub fingerprint: String,
    /// The old nodes that are gone. They take no part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
}

/// What is to change in a cluster.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// Old nodes that are gone: they take no part any more.
    pub lost: Vec<String>,
    /// Old nodes that hand their shares over and leave.
    pub removed: Vec<String>,
    /// New nodes.
    pub added: Vec<Card>,
    /// The new threshold; the old one if absent, or the nearest that the protocol allows if there is another
    /// protocol or no choice.
    pub threshold: Option<usize>,
    /// The new protocol; the old one if absent.
    pub protocol: Option<String>,
}

/// What the person who gives a directory a cluster file has confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Consent {
    /// Nothing. It must be the first file, or a file of the same cluster in which every node keeps a
    /// certificate.
    None,
    /// The person confirmed that the certificates in the file are the right ones.
    Certificates,
    /// The person accepts that the file may be another cluster's.
    Cluster,
}

impl Cluster {
    /// A new cluster, with an id of its own. The cards are in the order of party numbers. `threshold` nodes
    /// together learn nothing.
    pub fn define(protocol: &str, threshold: usize, cards: Vec<Card>) -> Result<Cluster> {
        let mut id = [0; 16];
        random_bytes(&mut id).map_err(|e| Error::misuse(e.to_string()))?;
        let protocol = protocol.into();
        let (roles, worker_group) = (Roles::default(), 0);
        let (replaces, standby, pair) = (None, false, None);
        let (version, release) = (FIRST_VERSION, None);
        let cluster = Cluster {
            version,
            release,
            id,
            protocol,
            threshold,
            replaces,
            roles,
            standby,
            cards,
            worker_group,
            pair,
        };
        cluster.check()?;
        Ok(cluster)
    }

    /// A new cluster that takes the keys of this one over. Nodes that stay keep their order, and new ones
    /// follow.
    pub fn reshaped(&self, change: &Change) -> Result<Cluster> {
        let gone: Vec<&String> = change.lost.iter().chain(&change.removed).collect();
        for (i, name) in gone.iter().enumerate() {
            if self.card_named(name).is_none() {
                return Err(Error::Misuse(format!("the cluster has no node {name}, which is to leave it")));
            }
            if gone[..i].contains(name) {
                return Err(Error::Misuse(format!(
                    "{name} is named twice; a node is lost, or it is removed"
                )));
            }
        }
        let stays = |card: &&Card| !gone.contains(&&card.name);
        let cards: Vec<Card> = self.cards.iter().filter(stays).chain(&change.added).cloned().collect();
        let protocol = change.protocol.as_deref().unwrap_or(&self.protocol);
        let threshold = change.threshold.unwrap_or_else(|| self.threshold_under(protocol, cards.len()));
        let mut cluster = Cluster::define(protocol, threshold, cards)?;
        let fingerprint = self.fingerprint().to_string();
        cluster.replaces = Some(Replaced { id: self.id, fingerprint, lost: change.lost.clone() });
        cluster.standby = self.standby && cluster.can_have_standby();
        cluster.check()?;
        Ok(cluster)
    }

    /// The threshold of a successor if nobody has chosen it.
    fn threshold_under(&self, protocol: &str, nodes: usize) -> usize {
        let threshold = catalog::find(protocol).map(|descriptor| descriptor.threshold);
        match threshold {
            Some(Threshold::AllButOne) => Threshold::AllButOne.most(nodes),
            Some(threshold) if protocol != self.protocol => self.threshold.min(threshold.most(nodes)),
            _ => self.threshold,
        }
    }

    /// The cluster that this one replaces.
    pub fn replaces(&self) -> Option<&Replaced> {
        self.replaces.as_ref()
    }

    /// Whether this cluster takes the keys of the other one over.
    pub fn is_successor_of(&self, other: &Cluster) -> bool {
        self.replaces.as_ref().is_some_and(|replaced| replaced.id == other.id)
    }

    /// Reads a cluster file, if this program knows its version.
    pub fn parse(text: &str) -> Result<Cluster> {
        if let Ok(head) = text::parse::<Head>(text) {
            head.check()?;
        }
        let cluster: Cluster = text::parse(text)?;
        cluster.check()?;
        Ok(cluster)
    }

    /// The file as text, to be given to all nodes and clients.
    pub fn to_text(&self) -> String {
        text::render("A cluster of Polyclave: the same file at all nodes and clients.", self)
    }

    /// Reads a cluster from a file.
    pub fn load(path: &Path) -> Result<Cluster> {
        Cluster::parse(&private::read_public(path)?).map_err(|e| e.in_file(path))
    }

    /// Writes it to a file.
    pub fn save(&self, path: &Path) -> Result<()> {
        private::write_public(path, self.to_text().as_bytes())
    }

    /// The id of the cluster, which no other cluster has.
    pub fn id(&self) -> [u8; 16] {
        self.id
    }

    /// How many workers every node has. The workers of one number at all nodes serve together: a worker
    /// group. While workers are added, a node may have more than others.
    pub fn worker_groups(&self) -> usize {
        self.cards.iter().map(|card| 1 + card.workers.len()).min().unwrap_or(1)
    }

    /// The number of the workers that this file is about: 0 as it is read.
    pub fn worker_group(&self) -> u16 {
        self.worker_group
    }

    /// What the workers of the nodes do, by their numbers.
    pub fn roles(&self) -> &Roles {
        &self.roles
    }

    /// What the workers do that this file is about.
    pub fn role(&self) -> Role {
        self.roles.of(self.worker_group)
    }

    /// Changes what the workers do.
    pub fn set_roles(&mut self, roles: Roles) -> Result<()> {
        let changed = Cluster { roles, ..self.clone() };
        changed.check_duties()?;
        *self = changed;
        Ok(())
    }

    fn check_duties(&self) -> Result<()> {
        // Nodes refuse a protocol that they do not know.
        let config = catalog::service(&self.protocol, self.nodes(), self.threshold).ok();
        if !self.roles.is_empty() && config.is_some_and(|config| !config.keeps_stock()) {
            return Err(Error::Misuse(format!(
                "{} takes no material that is made ahead, so all workers serve; name none that only serve or only make material",
                self.protocol
            )));
        }
        self.roles.check(self.worker_groups())
    }

    /// Whether two nodes go on while a third one is away.
    pub fn has_standby(&self) -> bool {
        self.standby
    }

    /// Lets two nodes go on while a third one is away, or not.
    pub fn set_standby(&mut self, standby: bool) -> Result<()> {
        let changed = Cluster { standby, ..self.clone() };
        changed.check_standby()?;
        *self = changed;
        Ok(())
    }

    /// Whether nodes of this protocol can have standby pairs.
    pub fn can_have_standby(&self) -> bool {
        standby_protocol(&self.protocol).is_some() && self.worker_groups() == 1
    }

    fn check_standby(&self) -> Result<()> {
        if !self.standby {
            return Ok(());
        }
        if self.cards.iter().any(|card| !card.workers.is_empty()) {
            return Err(Error::misuse(
                "nodes of several workers cannot have standby pairs: leave out `standby`, or the further workers",
            ));
        }
        // Nodes refuse a protocol that they do not know.
        match catalog::find(&self.protocol).is_some() && standby_protocol(&self.protocol).is_none() {
            true => Err(Error::Misuse(format!(
                "{} has no standby pairs: leave out `standby`, or choose replicated-active",
                self.protocol
            ))),
            false => Ok(()),
        }
    }

    /// The standby pairs: any two of the nodes, as a cluster of their own that goes on with the keys while
    /// the third node is away. None if the cluster has no standby.
    pub fn pairs(&self) -> Vec<Cluster> {
        let Some(protocol) = standby_protocol(&self.protocol).filter(|_| self.standby && self.pair.is_none())
        else {
            return Vec::new();
        };
        let threshold = Threshold::AllButOne.most(2);
        let of = |first: usize, second: usize| Cluster {
            protocol: protocol.into(),
            threshold,
            replaces: None,
            standby: false,
            cards: [first, second].map(|at| self.cards[at].clone()).to_vec(),
            pair: Some([first, second].map(|at| Party(at as u8)).into_iter().collect()),
            ..self.clone()
        };
        (0..self.nodes())
            .flat_map(|first| (first + 1..self.nodes()).map(move |second| (first, second)))
            .map(|(first, second)| of(first, second))
            .collect()
    }

    /// Which nodes of the cluster's file these are, if they are a standby pair.
    pub fn pair(&self) -> Option<PartySet> {
        self.pair
    }

    /// The same cluster as the workers of this number see it: with their addresses. `None` if the nodes have
    /// fewer workers.
    pub fn of_worker_group(&self, worker_group: u16) -> Option<Cluster> {
        let mut seen = Cluster { worker_group, ..self.clone() };
        for (card, before) in seen.cards.iter_mut().zip(&self.cards) {
            let place = before.places().nth(worker_group.into())?;
            (card.address, card.client_address) = (place.address, place.client_address);
            card.workers.clear();
        }
        Some(seen)
    }

    /// What connections with these workers begin with: the id of the cluster, and for all but the first
    /// workers an id that is made of it and of their number. So nobody takes one worker for another.
    pub fn connection_id(&self) -> [u8; 16] {
        let mut id = self.id;
        if self.worker_group > 0 {
            let named = [&self.id[..], &self.worker_group.to_be_bytes()].concat();
            let digest = blake3::derive_key("polyclave 2026 connections of a clique", &named);
            id.copy_from_slice(&digest[..16]);
        }
        id
    }

    /// Name of the protocol between the nodes.
    pub fn protocol(&self) -> &str {
        &self.protocol
    }

    /// How many nodes together learn nothing.
    pub fn threshold(&self) -> usize {
        self.threshold
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.cards.len()
    }

    /// The nodes, in order of party numbers.
    pub fn cards(&self) -> &[Card] {
        &self.cards
    }

    /// The node that a certificate belongs to.
    pub fn party_of(&self, certificate: &CertificateDer<'_>) -> Option<Party> {
        let known = |card: &Card| card.certificates.iter().any(|c| c == certificate);
        self.cards.iter().zip(0..).find(|(card, _)| known(card)).map(|(_, number)| Party(number))
    }

    /// The node with this name.
    pub fn party_named(&self, name: &str) -> Option<Party> {
        self.cards.iter().zip(0..).find(|(card, _)| card.name == name).map(|(_, number)| Party(number))
    }

    /// The fingerprint, which people compare. It covers the whole file.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(self)
    }

    /// A digest of what lasts as long as the cluster. Running nodes compare it. It does not cover
    /// certificates and addresses, which change at one node after the other. That these are the right ones
    /// depends on each node's own file, whose [`fingerprint`](Cluster::fingerprint) its operator has
    /// compared: TLS accepts no certificate that is not in that file.
    pub fn lasting_digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 what lasts of a cluster");
        let mut text = |t: &str| {
            hasher.update(&(t.len() as u64).to_le_bytes()).update(t.as_bytes());
        };
        text(&hex::encode(self.id));
        text(&self.protocol);
        text(&self.threshold.to_string());
        text(&self.cards.len().to_string());
        self.cards.iter().for_each(|card| text(&card.name));
        if self.worker_group > 0 {
            text(&self.worker_group.to_string());
        }
        if let Some(pair) = self.pair {
            text(&format!("standby {pair}"));
        }
        *hasher.finalize().as_bytes()
    }

    /// Refuses a changed file in which a node has lost all of its earlier certificates. In a rotation, old
    /// and new certificates are in the file together for a while. So in such a file somebody replaced them,
    /// rightly or wrongly.
    pub(crate) fn refuse_replaced(&self, before: &Cluster) -> Result<()> {
        let pairs = self.cards.iter().filter_map(|card| Some((card, before.card_named(&card.name)?)));
        let replaced: Vec<String> = pairs
            .filter(|(card, old)| !card.overlaps(old))
            .map(|(card, old)| {
                let (was, is) = (old.certificate_fingerprints(), card.certificate_fingerprints());
                format!("{}\n  was {was}\n  is  {is}\n", card.name)
            })
            .collect();
        if replaced.is_empty() {
            return Ok(());
        }
        Err(Error::misuse(format!(
            "the file has other certificates than the one before; nothing was changed\n{}Another machine may have taken a node's \
             place. Compare the file's fingerprint with the nodes' operators, and give it with --expect:\n  {}",
            replaced.concat(),
            self.fingerprint()
        )))
    }

    /// The card of the node with this name.
    pub fn card_named(&self, name: &str) -> Option<&Card> {
        self.cards.iter().find(|card| card.name == name)
    }

    /// Replaces the card of the node of that name by one that shares a certificate with it, as in a rotation.
    pub fn update(&mut self, card: Card) -> Result<()> {
        match self.card_named(&card.name) {
            Some(old) if !card.overlaps(old) => Err(Error::misuse(format!(
                "{} is known by another certificate; nothing was changed\n  the cluster's: {}\n  this card's:   {}\nIf its operator \
                 made a new one without `node rotate`, compare this with him, and give --replace",
                card.name,
                old.certificate_fingerprints(),
                card.certificate_fingerprints()
            ))),
            _ => self.replace(card),
        }
    }

    /// Replaces the card of the node of that name by any other.
    pub fn replace(&mut self, card: Card) -> Result<()> {
        let mut changed = self.clone();
        let name = &card.name;
        let Some(party) = self.party_named(name) else {
            return Err(Error::misuse(format!(
                "the cluster has no node {name}; a card replaces one of the same name"
            )));
        };
        changed.cards[party.index()] = card;
        changed.check()?;
        *self = changed;
        Ok(())
    }

    fn check(&self) -> Result<()> {
        if let Some(release) = &self.release {
            check_name("release", release)?;
        }
        let n = self.cards.len();
        if !(2..=PartySet::MAX).contains(&n) {
            return Err(Error::misuse(format!("a cluster of {n} nodes; it takes 2 to {}", PartySet::MAX)));
        }
        if !(1..n).contains(&self.threshold) {
            let threshold = self.threshold;
            return Err(Error::misuse(format!(
                "a threshold of {threshold} of {n} nodes; it takes 1 to {}",
                n - 1
            )));
        }
        if let Some(replaced) = &self.replaces {
            replaced.lost.iter().try_for_each(|name| check_name("node", name))?;
            let digits = replaced.fingerprint.bytes().all(|b| b.is_ascii_hexdigit());
            if replaced.fingerprint.len() != 64 || !digits || replaced.lost.len() > PartySet::MAX {
                return Err(Error::misuse(
                    "what the cluster file says of the cluster that it replaces is not what `cluster reshape` writes",
                ));
            }
        }
        if self.protocol.is_empty() {
            return Err(Error::misuse("the cluster names no protocol"));
        }
        for (i, card) in self.cards.iter().enumerate() {
            card.check()?;
            self.cards[..i].iter().try_for_each(|other| distinct(card, other))?;
        }
        self.check_standby()?;
        self.check_duties()
    }
}

/// What two nodes go on with while the third one is away.
fn standby_protocol(protocol: &str) -> Option<&'static str> {
    catalog::find(protocol)?.serving.as_ref()?.standby
}

fn distinct(one: &Card, other: &Card) -> Result<()> {
    let both = format!("{} and {}", other.name, one.name);
    if one.name == other.name {
        return Err(Error::misuse(format!("two nodes are called {}; give each a name of its own", one.name)));
    }
    let of = |card: &Card| card.places().flat_map(|place| [place.address, place.client_address]).collect();
    let (taken, wanted): (Vec<String>, Vec<String>) = (of(other), of(one));
    if wanted.iter().any(|address| taken.contains(address)) {
        return Err(Error::misuse(format!("{both} have one address; give each its own")));
    }
    if one.certificates.iter().any(|c| other.certificates.contains(c)) {
        return Err(Error::misuse(format!("{both} have one certificate; each node makes its own identity")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Place;
    use crate::card::tests::{card, certificate};
    use crate::certificate_fingerprint;

    fn three() -> Vec<Card> {
        vec![card("a", 1), card("b", 2), card("c", 3)]
    }

    fn cluster() -> Cluster {
        Cluster::define("shamir", 1, three()).expect("it fits")
    }

    #[test]
    fn a_cluster_comes_back_and_knows_its_nodes() {
        let dir = tempfile::tempdir().expect("a directory");
        let (file, cluster) = (dir.path().join("cluster.toml"), cluster());
        cluster.save(&file).expect("saved");
        assert_eq!(Cluster::load(&file).expect("loaded"), cluster);
        assert_eq!(cluster.party_of(&certificate(2)), Some(Party(1)));
        assert_eq!(cluster.party_of(&certificate(9)), None);
    }

    #[test]
    fn a_file_of_a_later_version_is_refused_with_the_release_to_upgrade_to() {
        let (first, text) = (cluster(), cluster().to_text());
        assert!(!text.contains("version"), "programs of 0.3.0 read it: {text}");
        assert_eq!(Cluster::parse(&text.replace("id =", "version = 1\nid =")).expect("the same").id, {
            Cluster::parse(&text).expect("parsed").id
        });
        // Whatever else is in it.
        let later = |head: &str| {
            let text = first.to_text().replace("id =", &format!("{head}\nflies = true\nid ="));
            Cluster::parse(&text).expect_err("too new").to_string()
        };
        let message = later("version = 2\nrelease = \"0.9.0\"");
        assert!(message.contains("has version 2") && message.contains("knows version 1"), "{message}");
        assert!(message.contains("Nothing was changed. Upgrade this program to 0.9.0"), "{message}");
        let message = later("version = 300\nrelease = \"a\\nb\"");
        assert!(message.contains("Upgrade this program to the release that wrote it"), "{message}");
        assert!(later("version = 0").contains("has version 0"));
        assert!(!later("version = -1").is_empty(), "it is no version");
        assert!(later("").contains("flies"));
    }

    #[test]
    fn standby_pairs_are_clusters_of_two_nodes_that_no_other_can_be_mistaken_for() {
        let mut cluster = Cluster::define("replicated-active", 1, three()).expect("it fits");
        let before = cluster.fingerprint();
        assert!(cluster.pairs().is_empty() && cluster.can_have_standby());
        cluster.set_standby(true).expect("it can have them");
        assert_ne!(cluster.fingerprint(), before);
        assert_eq!(Cluster::parse(&cluster.to_text()).expect("parsed"), cluster);
        let pairs = cluster.pairs();
        let names = |pair: &Cluster| pair.cards().iter().map(|card| card.name.clone()).collect::<Vec<_>>();
        assert_eq!(pairs.iter().map(names).collect::<Vec<_>>(), [["a", "b"], ["a", "c"], ["b", "c"]]);
        let numbers = |pair: &Cluster| pair.pair().expect("a pair").iter().map(|p| p.0).collect::<Vec<_>>();
        assert_eq!(pairs.iter().map(numbers).collect::<Vec<_>>(), [[0, 1], [0, 2], [1, 2]]);
        let digests: Vec<_> = [&cluster].into_iter().chain(&pairs).map(Cluster::lasting_digest).collect();
        assert!((1..digests.len()).all(|i| !digests[..i].contains(&digests[i])));
        for pair in &pairs {
            let (protocol, threshold) = (pair.protocol(), pair.threshold());
            assert!(catalog::service(protocol, pair.nodes(), threshold).is_ok());
            assert!(pair.pairs().is_empty(), "a pair has no pairs");
        }
        let refused = self::cluster().set_standby(true).expect_err("passive nodes cannot").to_string();
        assert!(refused.contains("shamir has no standby pairs"), "{refused}");
        let mut workers = with_workers([1, 1, 1]);
        workers.protocol = "replicated-active".into();
        workers.threshold = 1;
        assert!(workers.set_standby(true).is_err());
    }

    #[test]
    fn nodes_that_could_be_mistaken_for_another_are_refused() {
        let with = |change: &dyn Fn(&mut Card)| {
            let mut cards = three();
            change(&mut cards[2]);
            Cluster::define("shamir", 1, cards)
        };
        assert!(with(&|_| {}).is_ok());
        assert!(with(&|c| c.name = "a".into()).is_err());
        assert!(with(&|c| c.address = "a.example:7001".into()).is_err());
        assert!(with(&|c| c.client_address = "a.example:7001".into()).is_err());
        assert!(with(&|c| c.certificates.push(certificate(1))).is_err());
        assert!(with(&|c| c.certificates.clear()).is_err());
        assert!(with(&|c| c.certificates.push(certificate(3))).is_err());
    }

    /// Three nodes with so many further workers each.
    fn with_workers(further: [u8; 3]) -> Cluster {
        let place = |node: u8, number: u8| Place {
            address: format!("{node}-{number}.example:7000"),
            client_address: format!("{node}-{number}.example:7001"),
        };
        let mut cards = three();
        for ((card, node), further) in cards.iter_mut().zip(1..).zip(further) {
            card.workers = (1..=further).map(|number| place(node, number)).collect();
        }
        Cluster::define("spdz-tower", 2, cards).expect("it fits")
    }

    #[test]
    fn each_clique_is_seen_with_its_own_addresses_and_connects_under_an_id_of_its_own() {
        let cluster = with_workers([2, 2, 2]);
        assert_eq!(Cluster::parse(&cluster.to_text()).expect("parsed"), cluster);
        assert_eq!(
            (
                cluster.worker_groups(),
                with_workers([2, 1, 2]).worker_groups(),
                self::cluster().worker_groups()
            ),
            (3, 2, 1)
        );
        let worker_groups: Vec<Cluster> =
            (0..3).map(|number| cluster.of_worker_group(number).expect("there")).collect();
        assert!(cluster.of_worker_group(3).is_none() && with_workers([2, 1, 2]).of_worker_group(2).is_none());
        assert_eq!(worker_groups[0].cards()[1].address, cluster.cards()[1].address);
        assert_eq!(worker_groups[2].cards()[1].address, "2-2.example:7000");
        assert_eq!(worker_groups[2].cards()[1].client_address, "2-2.example:7001");
        assert_eq!(
            (worker_groups[0].connection_id(), worker_groups[0].lasting_digest()),
            (cluster.id(), cluster.lasting_digest())
        );
        for (one, other) in [(0, 1), (0, 2), (1, 2)] {
            assert_ne!(worker_groups[one].connection_id(), worker_groups[other].connection_id());
            assert_ne!(worker_groups[one].lasting_digest(), worker_groups[other].lasting_digest());
            assert_eq!(worker_groups[one].id(), worker_groups[other].id());
        }
        // Workers may come and go while the cluster lasts, and whoever compares fingerprints sees it.
        let mut more = cluster.clone();
        more.cards[0].workers.pop();
        assert!(
            more.lasting_digest() == cluster.lasting_digest() && more.fingerprint() != cluster.fingerprint()
        );
        let mut moved = cluster.clone();
        moved.cards[2].workers[0].client_address = "elsewhere:1".into();
        assert_ne!(moved.fingerprint(), cluster.fingerprint());
        let mut divided = cluster.clone();
        let roles = Roles { serve_only: vec![0], make_only: vec![1, 2] };
        divided.set_roles(roles.clone()).expect("they fit");
        assert_eq!(Cluster::parse(&divided.to_text()).expect("parsed"), divided);
        assert_eq!(divided.of_worker_group(2).expect("there").role(), Role::Make);
        assert!(
            divided.lasting_digest() == cluster.lasting_digest()
                && divided.fingerprint() != cluster.fingerprint()
        );
        let others = [(vec![], vec![1, 2]), (vec![0], vec![2]), (vec![0, 1], vec![2])];
        let others = others.map(|(serve_only, make_only)| Roles { serve_only, make_only });
        for roles in others {
            let mut other = divided.clone();
            other.set_roles(roles).expect("they fit");
            assert_ne!(other.fingerprint(), divided.fingerprint());
        }
        assert!(
            cluster.of_worker_group(0).expect("there").set_roles(roles.clone()).is_err(),
            "there are no such workers"
        );
        let mut passive = Cluster::define("shamir", 1, cluster.cards.clone()).expect("it fits");
        let refused = passive.set_roles(roles).expect_err("it takes no material").to_string();
        assert!(refused.contains("shamir takes no material"), "{refused}");
        let mut taken = three();
        taken[0].workers = vec![Place { address: taken[1].address.clone(), client_address: "x:1".into() }];
        assert!(Cluster::define("shamir", 1, taken).expect_err("taken").to_string().contains("one address"));
        let mut twice = three();
        let (address, client_address) = (twice[0].address.clone(), "x:1".into());
        twice[0].workers = vec![Place { address, client_address }];
        assert!(Cluster::define("shamir", 1, twice).expect_err("twice").to_string().contains("twice"));
    }

    #[test]
    fn one_node_and_seventeen_nodes_and_silly_thresholds_are_refused() {
        let nodes = |n: u8| (0..n).map(|i| card(&format!("n{i}"), i)).collect::<Vec<_>>();
        assert!(Cluster::define("shamir", 1, nodes(1)).is_err());
        assert!(Cluster::define("shamir", 1, nodes(17)).is_err());
        assert!(Cluster::define("shamir", 5, nodes(16)).is_ok());
        assert!(Cluster::define("shamir", 0, nodes(3)).is_err());
        assert!(Cluster::define("shamir", 3, nodes(3)).is_err());
        assert!(Cluster::define("", 1, nodes(3)).is_err());
    }

    #[test]
    fn what_nodes_compare_lasts_over_rotations_and_is_no_other_cluster_s() {
        let before = cluster();
        let same = |change: &dyn Fn(&mut Cluster)| {
            let mut after = before.clone();
            change(&mut after);
            after.lasting_digest() == before.lasting_digest()
        };
        assert!(same(&|c| c.cards[0].certificates.push(certificate(9))));
        assert!(same(&|c| c.cards[0].address = "elsewhere:1".into()));
        assert!(!same(&|c| c.id[0] ^= 1));
        assert!(!same(&|c| c.protocol.push('x')));
        assert!(!same(&|c| c.threshold += 1));
        assert!(!same(&|c| c.cards.swap(0, 1)));
        assert!(!same(&|c| drop(c.cards.pop())));
    }

    #[test]
    fn a_reshaped_cluster_is_another_one_that_names_the_one_before() {
        let before = cluster();
        let change = |change: Change| before.reshaped(&change);
        let after = change(Change {
            lost: vec!["b".into()],
            removed: vec!["a".into()],
            added: vec![card("b", 7), card("d", 4)],
            ..Change::default()
        });
        let after = after.expect("it fits");
        let names: Vec<&str> = after.cards().iter().map(|card| card.name.as_str()).collect();
        assert_eq!((names, after.threshold(), after.protocol()), (vec!["c", "b", "d"], 1, "shamir"));
        assert!(
            after.id() != before.id() && after.is_successor_of(&before) && !before.is_successor_of(&after)
        );
        let replaced = after.replaces().expect("it names it");
        assert_eq!((replaced.lost.clone(), replaced.id), (vec!["b".to_owned()], before.id()));
        before.fingerprint().check(&replaced.fingerprint).expect("of the file before");
        assert_eq!(Cluster::parse(&after.to_text()).expect("parsed"), after);
        for (lost, removed) in [(vec!["x"], vec![]), (vec!["a"], vec!["a"]), (vec![], vec!["a", "a"])] {
            let names = |of: Vec<&str>| of.into_iter().map(String::from).collect();
            assert!(
                change(Change { lost: names(lost), removed: names(removed), ..Change::default() }).is_err()
            );
        }
        let twice = Change { added: vec![card("b", 7)], ..Change::default() };
        assert!(change(twice).expect_err("b is still there").to_string().contains("called b"));
        let mut spoilt = after.clone();
        spoilt.replaces.as_mut().expect("there").fingerprint.pop();
        assert!(Cluster::parse(&spoilt.to_text()).is_err());
    }

    #[test]
    fn a_successor_with_another_protocol_or_number_of_nodes_has_a_threshold_that_fits() {
        let successor = |protocol: &str, threshold: usize, nodes: u8, to: Option<&str>, more: u8| {
            let cards = |from: u8, to: u8| (from..to).map(|i| card(&format!("n{i}"), i)).collect();
            let change = Change {
                added: cards(nodes, nodes + more),
                protocol: to.map(String::from),
                ..Change::default()
            };
            let old = Cluster::define(protocol, threshold, cards(0, nodes)).expect("it fits");
            let new = old.reshaped(&change).expect("it fits");
            (new.protocol().to_owned(), new.threshold())
        };
        assert_eq!(successor("spdz-lt", 1, 2, None, 1), ("spdz-lt".into(), 2));
        assert_eq!(successor("shamir", 1, 3, Some("spdz-lt"), 0), ("spdz-lt".into(), 2));
        assert_eq!(successor("spdz-lt", 4, 5, Some("shamir"), 0), ("shamir".into(), 2));
        assert_eq!(successor("shamir", 1, 5, Some("shamir-active"), 2), ("shamir-active".into(), 1));
        assert_eq!(successor("shamir", 1, 3, None, 2), ("shamir".into(), 1), "nobody has chosen another");
    }

    #[test]
    fn an_update_replaces_a_card_or_changes_nothing() {
        let mut cluster = cluster();
        let mut new = card("b", 7);
        new.certificates.push(certificate(2));
        cluster.update(new).expect("it fits");
        assert_eq!(cluster.party_of(&certificate(7)), Some(Party(1)));
        assert_eq!(cluster.party_of(&certificate(2)), Some(Party(1)));
        let before = cluster.clone();
        assert!(cluster.update(card("d", 4)).is_err());
        assert!(cluster.replace(card("b", 1)).is_err());
        assert_eq!(cluster, before);
    }

    #[test]
    fn a_card_with_none_of_the_certificates_from_before_is_refused_and_both_are_shown() {
        let (mut cluster, before) = (cluster(), cluster());
        let mut same = before.clone();
        same.id = cluster.id;
        let other = card("b", 7);
        let error = cluster.update(other.clone()).expect_err("another identity").to_string();
        for certificate in [certificate(2), certificate(7)] {
            assert!(error.contains(&certificate_fingerprint(&certificate)), "{error}");
        }
        assert_eq!(cluster, same);
        cluster.replace(other).expect("wanted");
        assert!(cluster.refuse_replaced(&same).is_err() && same.refuse_replaced(&same).is_ok());
    }
}
