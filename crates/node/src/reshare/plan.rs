//! Which nodes take part in the move of keys from one cluster to another, and under which numbers.
//!
//! Old nodes that are not lost come first, in their order. The nodes that are new follow. A node that stays
//! is in both clusters with the same name and a certificate in common.

use polyclave_config::{Card, Cluster, NodeDir, in_names};
use polyclave_protocol::any::AnyServiceConfig;
use polyclave_protocol::protocol::ProtocolConfig;
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::service::Sharing;
use polyclave_protocol::shamir::reshare::Move;
use polyclave_protocol::{Error, Party, PartySet, catalog};
use polyclave_transport::Node as Address;

use crate::Result;

/// The parameter of the hello round that says how keys move: nodes of two versions of the program may do that
/// differently.
pub(super) const VERSION_OF_RESHARE: &str = "version of the reshare";

/// The most nodes that take part, old and new ones together.
const MAX: usize = PartySet::MAX - 1;

/// The move from one cluster to another.
pub(crate) struct Plan {
    pub(crate) old: Cluster,
    pub(crate) new: Cluster,
    pub(crate) from: AnyServiceConfig,
    pub(crate) to: AnyServiceConfig,
    pub(crate) way: Way,
    /// The old nodes that take part, by their numbers in the old cluster.
    pub(crate) dealers: PartySet,
    nodes: Vec<(Card, Role)>,
}

/// How keys move.
pub(crate) enum Way {
    /// Old nodes deal their shares to the new ones, which get shares of all that was stored.
    Shares(Sharing, Move),
    /// Keys and round keys are opened under masks that the new nodes share, and the new nodes compute the
    /// rest anew.
    Masks,
}

/// A node's numbers in the two clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Role {
    /// In the old one, if it takes part as an old node.
    pub(crate) old: Option<Party>,
    /// In the new one.
    pub(crate) new: Option<Party>,
}

impl Plan {
    /// Checks that the new cluster can take the keys of the old one over.
    pub(crate) fn new(old: Cluster, new: Cluster) -> Result<Plan> {
        let replaced = new.replaces().cloned().filter(|replaced| replaced.id == old.id());
        let replaced = replaced.ok_or_else(|| Error::misuse("the reshare file is of another cluster"))?;
        if old.fingerprint().check(&replaced.fingerprint).is_err() {
            return Err(Error::Misuse(format!(
                "the reshare file was made from another file of the old cluster (with the fingerprint\n  {}\n) than the one here\n  {}\nSomebody \
                 changed a card since: make the reshare file again from the file that the nodes have now (`cluster reshape`)",
                replaced.fingerprint,
                old.fingerprint()
            )));
        }
        if let Some(unknown) = replaced.lost.iter().find(|name| old.card_named(name).is_none()) {
            return Err(Error::Misuse(format!(
                "the old cluster has no node {unknown}, which is said to be lost"
            )));
        }
        let from = catalog::service(old.protocol(), old.nodes(), old.threshold())?;
        let to = catalog::service(new.protocol(), new.nodes(), new.threshold())?;
        let is_dealer = |(card, _): &(&Card, Party)| !replaced.lost.contains(&card.name);
        let dealing: Vec<(&Card, Party)> =
            old.cards().iter().zip(Party::all(old.nodes())).filter(is_dealer).collect();
        let dealers: PartySet = dealing.iter().map(|(_, party)| *party).collect();
        let way = Way::of(&from, &to, dealers)?;
        let lost = old.nodes() - dealers.len();
        if lost >= from.quorum() {
            return Err(Error::Misuse(format!(
                "{lost} old nodes are said to be lost, and {} can serve alone under {}: the old cluster could go on beside the new one. Let \
                 more of them take part",
                from.quorum(),
                from.name()
            )));
        }
        let mut nodes: Vec<(Card, Role)> = Vec::new();
        for (card, party) in dealing {
            let stays = new.card_named(&card.name);
            let shares_one = |other: &Card| card.certificates.iter().any(|c| other.certificates.contains(c));
            if new.cards().iter().any(|other| (other.name == card.name) != shares_one(other)) {
                return Err(Error::Misuse(format!(
                    "{} is in both clusters with another name or other certificates. A node that stays keeps them; otherwise remove the old \
                     one (--remove), and call the new one by another name",
                    card.name
                )));
            }
            let role = Role { old: Some(party), new: new.party_named(&card.name) };
            nodes.push((stays.unwrap_or(card).clone(), role));
        }
        for (card, party) in new.cards().iter().zip(Party::all(new.nodes())) {
            if nodes.iter().all(|(_, role)| role.new != Some(party)) {
                nodes.push((card.clone(), Role { old: None, new: Some(party) }));
            }
        }
        if nodes.len() > MAX {
            let all = nodes.len();
            return Err(Error::Misuse(format!(
                "{all} nodes would take part, old and new ones together; {MAX} can. Move in two steps"
            )));
        }
        Ok(Plan { old, new, from, to, way, dealers, nodes })
    }

    /// Which of the nodes a directory belongs to.
    pub(crate) fn place_of(&self, dir: &NodeDir) -> Result<usize> {
        let (name, certificate) = (&dir.settings().name, &dir.identity().certificate);
        let is_it = |(card, _): &(Card, Role)| card.name == *name && card.certificates.contains(certificate);
        self.nodes.iter().position(is_it).ok_or_else(|| {
            Error::Misuse(format!(
                "the node {name} with this certificate is in neither cluster, or is named as lost; make the reshare file with its card"
            ))
        })
    }

    pub(crate) fn role(&self, place: usize) -> Role {
        self.nodes[place].1
    }

    /// A node's number on the common network.
    pub(crate) fn place(&self, place: usize) -> Party {
        Party(place as u8)
    }

    /// The roles of all nodes, in the order of their numbers on the common network.
    pub(crate) fn roles(&self) -> impl Iterator<Item = (Party, Role)> + '_ {
        (0..).map(Party).zip(self.nodes.iter().map(|(_, role)| *role))
    }

    /// The new nodes' numbers on the common network, in the order of their numbers in the new cluster.
    pub(crate) fn new_places(&self) -> Vec<Party> {
        let mut places: Vec<(Party, Party)> =
            self.roles().filter_map(|(place, role)| Some((role.new?, place))).collect();
        places.sort();
        places.into_iter().map(|(_, place)| place).collect()
    }

    /// The old nodes' numbers on the common network, in the order of their numbers in the old cluster; none
    /// for a lost node.
    pub(crate) fn old_places(&self) -> Vec<Option<Party>> {
        let place = |number: Party| self.roles().find(|(_, role)| role.old == Some(number));
        Party::all(self.old.nodes()).map(|number| place(number).map(|(place, _)| place)).collect()
    }

    pub(crate) fn everybody(&self) -> PartySet {
        PartySet::all(self.nodes.len())
    }

    pub(crate) fn addresses(&self) -> Vec<Address> {
        let address =
            |card: &Card| Address { address: card.address.clone(), certificates: card.certificates.clone() };
        self.nodes.iter().map(|(card, _)| address(card)).collect()
    }

    /// What only nodes that take part in this move have in common.
    pub(crate) fn mesh_id(&self) -> [u8; 16] {
        let both = [self.old.fingerprint().to_string(), self.new.fingerprint().to_string()].concat();
        let digest = blake3::derive_key("polyclave 2026 mesh of a reshare", both.as_bytes());
        let mut id = [0; 16];
        id.copy_from_slice(&digest[..16]);
        id
    }

    pub(crate) fn name(&self, place: Party) -> &str {
        self.nodes.get(place.index()).map_or("?", |(card, _)| &card.name)
    }

    /// The names of the others.
    pub(crate) fn others(&self, me: usize) -> String {
        let others = self.nodes.iter().enumerate().filter(|(place, _)| *place != me);
        others.map(|(_, (card, _))| card.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// An error that refers to nodes by name. Parties are those of the common network.
    pub(crate) fn in_names(&self, error: &Error) -> String {
        if let Error::Disagreement { peer, field: "cluster" } = error {
            return format!(
                "{} was given another reshare file, or another file of the old cluster, than this node: compare their fingerprints \
                 (`polyclave cluster show`)",
                self.name(*peer)
            );
        }
        if let Error::Disagreement { peer, field: VERSION_OF_RESHARE } = error {
            return format!(
                "{} runs another version of the program: upgrade all nodes first",
                self.name(*peer)
            );
        }
        let names: Vec<&str> = self.nodes.iter().map(|(card, _)| card.name.as_str()).collect();
        in_names(&error.to_string(), &names, "node")
    }

    /// The names of some old nodes, by their numbers in the old cluster.
    pub(crate) fn old_names(&self, nodes: PartySet) -> String {
        names(&self.old, nodes)
    }

    /// The names of some new nodes.
    pub(crate) fn new_names(&self, nodes: PartySet) -> String {
        names(&self.new, nodes)
    }
}

fn names(cluster: &Cluster, nodes: PartySet) -> String {
    let names = nodes.iter().filter_map(|node| cluster.cards().get(node.index()));
    names.map(|card| card.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// What all have told, in the order of their numbers.
pub(crate) fn in_order<const N: usize>(
    me: Party,
    mine: [u8; N],
    mut theirs: Vec<(Party, [u8; N])>,
) -> Vec<[u8; N]> {
    theirs.push((me, mine));
    theirs.sort_by_key(|(party, _)| *party);
    theirs.into_iter().map(|(_, said)| said).collect()
}

impl Way {
    fn of(from: &AnyServiceConfig, to: &AnyServiceConfig, dealers: PartySet) -> Result<Way> {
        let sharings = from.sharing().zip(to.sharing()).filter(|(one, other)| one.is_like(other));
        let needed = sharings.map_or(from.quorum(), |(one, _)| one.dealers_needed());
        let (there, name) = (dealers.len(), from.name());
        match sharings {
            _ if there >= needed => {}
            None if from.sharing().is_some() => {
                return Err(Error::Misuse(format!(
                    "{there} of the old nodes would take part, and {needed} are needed to move keys from {name} to {}. Move them to other \
                     nodes under {name} first, which takes fewer",
                    to.name()
                )));
            }
            _ => {
                return Err(Error::Misuse(format!(
                    "{there} of the old nodes would take part, and {needed} are needed under {name}. Restore the backup of a node that is lost"
                )));
            }
        }
        match sharings {
            Some((one, other)) => Ok(Way::Shares(one, Move::new(one, other, dealers)?)),
            None => Ok(Way::Masks),
        }
    }
}
