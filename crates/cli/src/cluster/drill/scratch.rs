//! The cluster of a drill: that of the backups, with the certificates and addresses of the restored nodes.
//! Nodes without a backup are there by name only.

use anyhow::{Result, bail, ensure};
use polyclave_config::{Card, Cluster, Place, Roles};
use polyclave_transport::Identity;

use super::part::VALID_DAYS;
use crate::protocols::{Properties, properties};

/// The cluster of a drill of these nodes.
pub fn cluster(real: &Cluster, cards: &[Card]) -> Result<Cluster> {
    for (number, card) in cards.iter().enumerate() {
        ensure!(
            real.card_named(&card.name).is_some(),
            "the cluster has no node {}; give cards of its nodes",
            card.name
        );
        ensure!(
            cards[..number].iter().all(|other| other.name != card.name),
            "{} is there twice; give one card of each node",
            card.name
        );
    }
    refuse_too_few(real, &cards.iter().map(|card| card.name.as_str()).collect::<Vec<_>>())?;
    let mut drill = real.clone();
    drill.set_roles(Roles::default())?;
    drill.set_standby(false)?;
    for (number, name) in (0..).zip(real.cards().iter().map(|card| &card.name)) {
        let card = match cards.iter().find(|card| card.name == *name) {
            Some(card) => card.clone(),
            None => absent(name, number)?,
        };
        drill.replace(card)?;
    }
    refuse_real_nodes(real, &drill)?;
    Ok(drill)
}

/// A node without a backup. Nobody has the key of its certificate, and nobody listens at its addresses.
fn absent(name: &str, number: u16) -> Result<Card> {
    Ok(Card {
        name: name.into(),
        address: format!("127.0.0.1:{}", 2 * number + 1),
        client_address: format!("127.0.0.1:{}", 2 * number + 2),
        certificates: vec![Identity::generate_named(name, VALID_DAYS)?.certificate()],
        workers: Vec::new(),
    })
}

/// Refuses fewer nodes than a request takes, with the names of those that are lacking.
pub fn refuse_too_few(real: &Cluster, names: &[&str]) -> Result<()> {
    let (protocol, nodes) = (real.protocol(), real.nodes());
    let Properties { quorum, keeps_stock, .. } = properties(protocol, nodes, real.threshold())?;
    // Material is made by all nodes, and a backup has none.
    let needed = if keeps_stock { nodes } else { quorum };
    if names.len() >= needed {
        return Ok(());
    }
    let lacking: Vec<&str> =
        real.cards().iter().map(|card| card.name.as_str()).filter(|name| !names.contains(name)).collect();
    bail!(
        "a drill under {protocol} takes backups of {needed} of the {nodes} nodes, and there are {}: of {}. Give backups of {} more, of {}",
        names.len(),
        names.join(", "),
        needed - names.len(),
        lacking.join(", ")
    )
}

/// Refuses a place at which a real node is.
pub fn refuse_real_place(real: &Cluster, place: &Place) -> Result<()> {
    for card in real.cards() {
        let taken: Vec<String> =
            card.places().flat_map(|place| [place.address, place.client_address]).collect();
        for address in [&place.address, &place.client_address] {
            ensure!(
                !taken.contains(address),
                "{address} is an address of the real node {}; a drill takes other machines or ports, so that the two never meet",
                card.name
            );
        }
    }
    Ok(())
}

/// Refuses the file of a drill in which a real node can be reached, or would be believed.
pub fn refuse_real_nodes(real: &Cluster, drill: &Cluster) -> Result<()> {
    ensure!(
        real.lasting_digest() == drill.lasting_digest(),
        "the file of the drill is of another cluster than the backup; make it from the file of the cluster of the backups"
    );
    for card in drill.cards() {
        card.places().try_for_each(|place| refuse_real_place(real, &place))?;
        let known = card.certificates.iter().find_map(|certificate| real.party_of(certificate));
        ensure!(
            known.is_none(),
            "the card of {} has a certificate of the real cluster; give the card that `polyclave cluster drill restore` made",
            card.name
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(name: &str, port: u16) -> Card {
        Card {
            name: name.into(),
            address: format!("{name}.example:{port}"),
            client_address: format!("{name}.example:{}", port + 1),
            certificates: vec![Identity::generate_named(name, 1).expect("made").certificate()],
            workers: Vec::new(),
        }
    }

    fn real(protocol: &str, nodes: usize) -> Cluster {
        let cards = ["a", "b", "c", "d", "e"].into_iter().take(nodes).map(|name| card(name, 7000)).collect();
        Cluster::define(protocol, 1, cards).expect("it fits")
    }

    #[test]
    fn a_quorum_is_enough_where_nodes_make_no_material() {
        let real = real("shamir", 5);
        let drill =
            cluster(&real, &[card("a", 8000), card("c", 8000), card("d", 8000)]).expect("three of five");
        assert_eq!(drill.lasting_digest(), real.lasting_digest());
        assert!(drill.cards().iter().all(|card| real.party_of(&card.certificates[0]).is_none()));
        assert!(drill.card_named("b").expect("by name").address.starts_with("127.0.0.1:"));
        let error = cluster(&real, &[card("a", 8000), card("e", 8000)]).expect_err("two").to_string();
        assert!(error.contains("3 of the 5 nodes") && error.contains("1 more, of b, c, d"), "{error}");
    }

    #[test]
    fn all_are_needed_where_nodes_make_material() {
        let real = real("shamir-active", 4);
        let error =
            cluster(&real, &[card("a", 8000), card("b", 8000), card("c", 8000)]).expect_err("no material");
        assert!(error.to_string().contains("4 of the 4 nodes"), "{error}");
    }

    #[test]
    fn a_real_node_is_not_in_a_drill() {
        let real = real("shamir", 3);
        let fresh = |name| card(name, 8000);
        let its_own = Card { certificates: real.cards()[0].certificates.clone(), ..fresh("a") };
        for (cards, message) in [
            ([its_own, fresh("b"), fresh("c")], "a certificate of the real cluster"),
            ([card("a", 7000), fresh("b"), fresh("c")], "a.example:7000 is an address of the real node a"),
            ([card("a", 6999), fresh("b"), fresh("c")], "a.example:7000 is an address of the real node a"),
            ([fresh("a"), fresh("a"), fresh("c")], "a is there twice"),
            ([fresh("a"), fresh("b"), fresh("x")], "no node x"),
        ] {
            let error = cluster(&real, &cards).expect_err(message).to_string();
            assert!(error.contains(message), "{error}");
        }
        let other = Cluster::define("shamir", 1, vec![fresh("a"), fresh("b"), fresh("c")]).expect("it fits");
        assert!(
            refuse_real_nodes(&real, &other).expect_err("another").to_string().contains("another cluster")
        );
    }
}
