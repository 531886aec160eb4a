//! Texts for people in which parties appear by the names of their nodes.
//!
//! Protocols know parties by number, and their errors say `party 2`. Operators and clients know nodes by
//! name. This module puts the names into everything that a node or a client shows to people.

use crate::Cluster;

impl Cluster {
    /// A text in which nodes have their names. `reader` is what the text calls `this party`: a node or a
    /// client.
    pub fn in_names(&self, text: &str, reader: &str) -> String {
        let names: Vec<&str> = self.cards().iter().map(|card| card.name.as_str()).collect();
        in_names(text, &names, reader)
    }
}

/// `party 2` becomes the name of the second node, `parties 1, 3` the names of two nodes, `party n + 1` the
/// client. Any other party is a node; only `this party` is the reader. Names of keys and clients have no
/// spaces, so they are not taken for these words.
pub fn in_names(text: &str, names: &[&str], reader: &str) -> String {
    let mut message: Vec<String> = Vec::new();
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        let (start, of_word, end) = parts(word, char::is_alphabetic);
        let mut listed = 0;
        if matches!(of_word, "party" | "parties") {
            while let Some((name, last)) = words.peek().and_then(|next| numbered(next, names)) {
                let start = if listed == 0 { start } else { "" };
                message.push(format!("{start}{name}"));
                words.next();
                listed += 1;
                if of_word == "party" || last {
                    break;
                }
            }
        }
        match of_word {
            _ if listed > 0 => {}
            "party" if message.last().is_some_and(|word| word == "this") => {
                message.push(format!("{start}{reader}{end}"));
            }
            "party" => message.push(format!("{start}node{end}")),
            "parties" => message.push(format!("{start}nodes{end}")),
            _ => message.push(word.to_owned()),
        }
    }
    message.join(" ")
}

/// The name for a number, with the text that follows it; and whether no comma follows, which would continue a
/// list.
fn numbered(word: &str, names: &[&str]) -> Option<(String, bool)> {
    let (start, number, end) = parts(word, char::is_numeric);
    let number: usize = number.parse().ok().filter(|_| start.is_empty())?;
    let name = if number == names.len() + 1 { "the client" } else { names.get(number.checked_sub(1)?)? };
    Some((format!("{name}{end}"), !end.starts_with(',')))
}

/// The text before the first run of these characters, the run, and the text behind it; all of it before, if
/// there are quotes.
fn parts(word: &str, is_of_it: impl Fn(char) -> bool) -> (&str, &str, &str) {
    if word.contains('\'') && !word.contains("'s") {
        return (word, "", "");
    }
    let from = word.find(&is_of_it).unwrap_or(word.len());
    let to = word[from..].find(|c| !is_of_it(c)).map_or(word.len(), |to| from + to);
    (&word[..from], &word[from..to], &word[to..])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use polyclave_protocol::{Error, Party, PartySet};

    use super::*;

    const NAMES: [&str; 3] = ["alpha", "beta", "node-3"];

    #[test]
    fn every_error_of_the_protocols_names_nodes() {
        let (peer, detail) = (Party(1), "party 3 (10.0.0.3:7000) did not come".to_owned());
        let errors = [
            Error::Closed { peer, detail: detail.clone() },
            Error::Timeout { peer, waited: Duration::from_secs(5) },
            Error::Peer { peer, detail: detail.clone() },
            Error::OutOfStep { peer, detail: detail.clone() },
            Error::Disagreement { peer, field: "cluster file" },
            Error::Equivocation { what: "keys" },
            Error::Unanswered { peer, detail: detail.clone() },
            Error::CheckFailed { what: "an opening" },
            Error::Disputed { dealer: peer, receiver: Party(2) },
            Error::OneOfTwo { first: peer, second: Party(2), what: "shares" },
            Error::SharesDiffer { first: peer, second: Party(2), values: vec![0, 3] },
            Error::Missing { there: PartySet::all(3), needed: 4, purpose: "serve" },
            Error::OutOfMaterial { detail: format!("{} holds nothing", Party(0)) },
            Error::Misuse(detail.clone()),
            Error::System(format!("{} and others", PartySet::all(2))),
        ];
        for error in errors {
            let message = in_names(&error.to_string(), &NAMES, "node");
            assert!(!message.contains("party") && !message.contains("parties"), "{message}");
        }
    }

    #[test]
    fn numbers_become_names_and_everything_else_stays() {
        for (text, message) in [
            ("party 2 closed the connection", "beta closed the connection"),
            ("of party 1: it fell silent (party 3)", "of alpha: it fell silent (node-3)"),
            ("parties 1, 2, 3 serve", "alpha, beta, node-3 serve"),
            ("parties 1, 3, but 7 came", "alpha, node-3, but 7 came"),
            ("party 4 sent nothing", "the client sent nothing"),
            ("this party's certificate expired", "this node's certificate expired"),
            ("there is no key 'party' and no 'party-1'", "there is no key 'party' and no 'party-1'"),
            ("party 9 is nobody", "node 9 is nobody"),
            ("3 parties are needed", "3 nodes are needed"),
            ("no party here", "no node here"),
        ] {
            assert_eq!(in_names(text, &NAMES, "node"), message);
        }
        assert_eq!(in_names("other keys than this party", &NAMES, "client"), "other keys than this client");
    }
}
