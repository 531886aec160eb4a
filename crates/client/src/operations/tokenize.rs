//! Tokenization with FF1 (SP 800-38G): a string of digits or letters becomes another one of the same length,
//! and back.
//!
//! The client does the arithmetic of the Feistel network, and the nodes compute its rounds: each gets a
//! number under a mask and gives a sum, ten times. They see how many values there are, their length, the
//! alphabet's size and the tweaks, and nothing of the values. All values of one length are in one
//! conversation.
//!
//! Equal values under equal tweaks have equal tokens. Whoever may make tokens may invert them.

mod alphabet;
mod card;
mod feistel;

use std::collections::BTreeMap;

use polyclave_api::{End, MAX_VALUES, Use, operations};
use polyclave_cipher::ff1::{Ff1, MAX_TWEAK, ROUNDS};
use zeroize::Zeroizing;

use crate::client::Client;
use crate::operations::encrypt::KeyHandle;
use crate::session::first::{First, Masked};
use crate::{Error, Result};

pub use alphabet::Alphabet;
pub use card::{Card, CardTemplate};
pub use feistel::Feistel;

/// A value, or a token, and the tweak that belongs to it.
#[derive(Clone, Copy)]
pub struct Tweaked<'a> {
    /// What is tokenized, or was.
    pub value: &'a str,
    /// What distinguishes it from others, and need not be secret: equal values have other tokens under
    /// another tweak. At most 64 bytes.
    pub tweak: &'a [u8],
}

/// Which characters are tokenized.
#[derive(Clone, Copy)]
pub struct Tokenization<'a> {
    /// The characters of values and of tokens.
    pub alphabet: &'a Alphabet,
    /// Whether other characters stay where they are. Otherwise a value with one is an error.
    pub keeps_others: bool,
}

impl Tokenization<'_> {
    /// The digits of a value that FF1 can tokenize, as long as it is and under its tweak; or what is wrong
    /// with it.
    fn digits(&self, Tweaked { value, tweak }: &Tweaked<'_>) -> Result<Zeroizing<Vec<u8>>> {
        let digits = self.alphabet.digits(value, self.keeps_others)?;
        if tweak.len() > MAX_TWEAK {
            let message = format!("a tweak of {} bytes; {MAX_TWEAK} are allowed", tweak.len());
            return Err(Error::Misuse(message));
        }
        Ff1::new(self.alphabet.radix(), digits.len() as u32).map_err(Error::Misuse)?;
        Ok(digits)
    }

    /// What is wrong with a value or a token, before the nodes are asked: in a batch, one that is wrong is an
    /// error for all.
    pub fn check(&self, value: &Tweaked<'_>) -> Result<()> {
        self.digits(value).map(drop)
    }
}

impl Client {
    /// The tokens of some values, in the order of the values.
    pub fn tokenize(
        &self,
        key: &str,
        how: Tokenization<'_>,
        values: &[Tweaked<'_>],
    ) -> Result<Vec<Zeroizing<String>>> {
        self.exchange(key, how, values, false)
    }

    /// The values of some tokens, in the order of the tokens. Any string of the alphabet is the token of some
    /// value: nothing shows that it was never made.
    pub fn detokenize(
        &self,
        key: &str,
        how: Tokenization<'_>,
        tokens: &[Tweaked<'_>],
    ) -> Result<Vec<Zeroizing<String>>> {
        self.exchange(key, how, tokens, true)
    }

    /// The tokens of some numbers of cards. The digits that a template keeps become a part of the tweak,
    /// behind the given one.
    pub fn tokenize_cards(
        &self,
        key: &str,
        template: CardTemplate,
        cards: &[Tweaked<'_>],
    ) -> Result<Vec<Zeroizing<String>>> {
        self.exchange_cards(key, template, cards, false)
    }

    /// The numbers of cards that some tokens are for.
    pub fn detokenize_cards(
        &self,
        key: &str,
        template: CardTemplate,
        tokens: &[Tweaked<'_>],
    ) -> Result<Vec<Zeroizing<String>>> {
        self.exchange_cards(key, template, tokens, true)
    }

    fn exchange_cards(
        &self,
        key: &str,
        template: CardTemplate,
        cards: &[Tweaked<'_>],
        inverse: bool,
    ) -> Result<Vec<Zeroizing<String>>> {
        let mut apart = Vec::with_capacity(cards.len());
        for (i, card) in cards.iter().enumerate() {
            let parts = template.take_apart(card.value).map_err(|e| of_value(i, e))?;
            apart.push((parts.tweak(card.tweak), parts));
        }
        let inner: Vec<Tweaked<'_>> =
            apart.iter().map(|(tweak, parts)| Tweaked { value: parts.free_digits(), tweak }).collect();
        let alphabet = Alphabet::of_radix(10)?;
        let how = Tokenization { alphabet: &alphabet, keeps_others: false };
        let exchanged = self.exchange(key, how, &inner, inverse)?;
        apart.iter().zip(exchanged).map(|((_, parts), digits)| parts.with(&digits)).collect()
    }

    fn exchange(
        &self,
        key: &str,
        how: Tokenization<'_>,
        values: &[Tweaked<'_>],
        inverse: bool,
    ) -> Result<Vec<Zeroizing<String>>> {
        let (alphabet, key) = (how.alphabet, self.key(key)?);
        let mut digits = Vec::with_capacity(values.len());
        // Values that can be in one conversation: of one length, under tweaks of one length.
        let mut alike: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for (i, value) in values.iter().enumerate() {
            let of_value_i = how.digits(value).map_err(|e| of_value(i, e))?;
            alike.entry((of_value_i.len(), value.tweak.len())).or_default().push(i);
            digits.push(of_value_i);
        }
        for ((length, _), which) in alike {
            let ff1 = Ff1::new(alphabet.radix(), length as u32).map_err(Error::Misuse)?;
            for which in which.chunks(MAX_VALUES) {
                let mut feistel = Feistel::new(ff1, inverse, which.iter().map(|i| digits[*i].as_slice()));
                let mut tweaks: Vec<Vec<u8>> = which.iter().map(|i| values[*i].tweak.to_vec()).collect();
                if tweaks.windows(2).all(|pair| pair[0] == pair[1]) {
                    tweaks.truncate(1);
                }
                compute_rounds(&key, &mut feistel, tweaks)?;
                which.iter().zip(feistel.digits()).for_each(|(i, exchanged)| digits[*i] = exchanged);
            }
        }
        let texts = values.iter().zip(&digits);
        Ok(texts.map(|(value, digits)| alphabet.text(value.value, digits)).collect())
    }
}

fn compute_rounds(key: &KeyHandle<'_>, feistel: &mut Feistel, tweaks: Vec<Vec<u8>>) -> Result<()> {
    let ff1 = feistel.ff1();
    let (radix, length, inverse) = (ff1.radix(), ff1.length(), feistel.is_inverse());
    let values = feistel.values() as u32;
    let how = Use::Tokenize(operations::Tokenize { radix, length, tweaks, values, inverse });
    let mut numbers = feistel.numbers();
    let bytes = numbers.len();
    // There is no mask behind the last round.
    let next = |round: u8| if round + 1 == ROUNDS { 0 } else { bytes };
    let first = Masked { data: &numbers, next: next(0), end: End::No };
    let (mut conversation, _) = key.begin(how, First::Masked(first))?;
    for round in 0..ROUNDS {
        let (sums, mask) = conversation.bytes_and_mask(Some(feistel.sum_bytes()), next(round))?;
        feistel.advance(&sums);
        if next(round) > 0 {
            numbers = feistel.numbers();
            let masked = Masked { data: &numbers, next: next(round + 1), end: End::No };
            conversation.step(&masked.under(&mask)?)?;
        }
    }
    conversation.finish()
}

/// An error about one of the values, which are counted from 1 and never shown.
fn of_value(i: usize, error: Error) -> Error {
    match error {
        Error::Misuse(message) => Error::Misuse(format!("value {}: {message}", i + 1)),
        other => other,
    }
}
