//! Tokens: what Python gives for them, and one request for each call.

use polyclave_client::{Alphabet, CardTemplate, Client, Error, Tokenization, Tweaked};
use pyo3::prelude::*;
use zeroize::Zeroizing;

/// One value, or several.
#[derive(FromPyObject)]
pub(crate) enum Values {
    /// One.
    One(String),
    /// Several, in one request.
    Several(Vec<String>),
}

/// What came of them: as many as were given.
#[derive(IntoPyObject)]
pub(crate) enum Exchanged {
    /// One.
    One(String),
    /// Several, in the order of the values.
    Several(Vec<String>),
}

/// Which way values are exchanged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Values for tokens.
    ToTokens,
    /// Tokens for values.
    ToValues,
}

/// Of which characters values are made.
pub(crate) fn alphabet(radix: u32, characters: Option<&str>) -> Result<Alphabet, Error> {
    characters.map_or_else(|| Alphabet::of_radix(radix), Alphabet::new)
}

/// What is exchanged, and how.
pub(crate) enum Format {
    /// Strings of an alphabet.
    Strings {
        /// Their characters.
        alphabet: Alphabet,
        /// Whether other characters stay in place.
        keeps_others: bool,
    },
    /// Numbers of cards.
    Cards(CardTemplate),
}

impl Format {
    pub(crate) fn exchange(
        &self,
        client: &Client,
        (key, tweak): (&str, &[u8]),
        values: &Values,
        direction: Direction,
    ) -> Result<Exchanged, Error> {
        let values = match values {
            Values::One(value) => std::slice::from_ref(value),
            Values::Several(values) => values,
        };
        let values: Vec<Tweaked<'_>> = values.iter().map(|value| Tweaked { value, tweak }).collect();
        let to_tokens = direction == Direction::ToTokens;
        match self {
            Format::Strings { alphabet, keeps_others } => {
                let how = Tokenization { alphabet, keeps_others: *keeps_others };
                let exchange = if to_tokens { Client::tokenize } else { Client::detokenize };
                exchange(client, key, how, &values)
            }
            Format::Cards(template) => {
                let exchange = if to_tokens { Client::tokenize_cards } else { Client::detokenize_cards };
                exchange(client, key, *template, &values)
            }
        }
        .map(Exchanged::of)
    }
}

impl Exchanged {
    fn of(all: Vec<Zeroizing<String>>) -> Exchanged {
        Exchanged::Several(all.iter().map(|one| one.as_str().to_owned()).collect())
    }

    /// In the form of what was given: one for one.
    pub(crate) fn like(self, values: &Values) -> Exchanged {
        match (self, values) {
            (Exchanged::Several(mut all), Values::One(_)) => Exchanged::One(all.pop().unwrap_or_default()),
            (all, _) => all,
        }
    }
}
