//! Lists the keys: fetches all pages from each node, then determines which nodes list which key.

use std::collections::BTreeMap;

use polyclave_api::{KEYS, KeyInfo, Operation, Reply, operations};
use polyclave_protocol::{Party, PartySet};

use crate::client::Client;
use crate::{Error, Result};

/// The most keys that a client accepts from a node: a cheating node could otherwise continue for ever.
const MAX_LISTED: usize = 1_000_000;

/// A key as the nodes list it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The key.
    pub info: KeyInfo,
    /// The nodes that list it.
    pub at: PartySet,
}

/// The versions of keys that some nodes list, and the nodes that could not be asked.
#[derive(Debug)]
pub struct Listing {
    /// In the order of their names and versions.
    pub keys: Vec<Listed>,
    /// Nodes that did not answer, and the reasons.
    pub missing: Vec<(Party, Error)>,
}

/// A page: its keys, and whether more come after them.
type Page = (Vec<KeyInfo>, bool);

impl Client {
    /// All keys that this client may see, however many pages that takes.
    pub fn keys(&self) -> Result<Listing> {
        let mut listing = Listing { keys: Vec::new(), missing: Vec::new() };
        let mut found = Found::new();
        for (party, first) in
            self.ask_each(&Operation::List(operations::List { after: String::new(), version: 0 }), page)
        {
            match first.and_then(|first| self.all_pages(party, first)) {
                Ok(keys) => keys.into_iter().for_each(|info| add(&mut found, party, info)),
                Err(e) => listing.missing.push((party, e)),
            }
        }
        if listing.missing.len() == self.cluster().nodes() {
            return Err(self.none_listed(listing.missing));
        }
        listing.keys = found.into_values().flatten().collect();
        Ok(listing)
    }

    /// All keys of a node that has sent the first page.
    fn all_pages(&self, party: Party, (mut keys, mut more): Page) -> Result<Vec<KeyInfo>> {
        let wrong = |what: &str| Error::Answers(format!("{} lists {what}", self.node_name(party)));
        while more {
            if keys.len() > MAX_LISTED {
                return Err(wrong("keys without end"));
            }
            let Some(last) = keys.last() else { return Err(wrong("nothing, and says that there is more")) };
            let next = Operation::List(operations::List {
                after: last.properties.name.clone(),
                version: last.version,
            });
            let answers = self.ask([party].into_iter().collect(), &next, page, |answers| !answers.is_empty());
            let Some((_, answer)) = answers.into_iter().next() else { return Err(wrong("no more keys")) };
            let (of_page, after) = answer?;
            // So that every page has new keys.
            let goes_on = |(next, last): (&KeyInfo, &KeyInfo)| place(next) > place(last);
            if !of_page.first().zip(keys.last()).map_or(!after, goes_on) {
                return Err(wrong("the same keys again"));
            }
            keys.extend(of_page);
            more = after;
        }
        if keys.windows(2).any(|pair| place(&pair[0]) >= place(&pair[1])) {
            return Err(wrong("its keys in disorder"));
        }
        Ok(keys)
    }

    fn none_listed(&self, mut missing: Vec<(Party, Error)>) -> Error {
        let is_strange = |(_, e): &(Party, Error)| matches!(e, Error::NotAdmitted { .. });
        if missing.len() > 1 && missing.iter().all(is_strange) {
            let node = missing.iter().map(|(party, _)| self.node_name(*party)).collect::<Vec<_>>().join(", ");
            return Error::NotAdmitted { node };
        }
        missing.remove(0).1
    }
}

fn page(reply: Reply) -> Option<Page> {
    match reply {
        Reply::Keys { keys, more } if keys.len() <= KEYS => Some((keys, more)),
        _ => None,
    }
}

fn place(info: &KeyInfo) -> (&str, u32) {
    (&info.properties.name, info.version)
}

/// By name and version: each node should have the same there.
type Found = BTreeMap<(String, u32), Vec<Listed>>;

fn add(found: &mut Found, party: Party, info: KeyInfo) {
    let alike = found.entry((info.properties.name.clone(), info.version)).or_default();
    match alike.iter_mut().find(|listed| listed.info == info) {
        Some(listed) => listed.at = listed.at.iter().chain([party]).collect(),
        None => alike.push(Listed { info, at: [party].into_iter().collect() }),
    }
}
