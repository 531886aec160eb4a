//! `polyclave tokenize` and `polyclave detokenize`: values of one format for others of the same, and back.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use polyclave_client::{Alphabet, CardTemplate, Client, Tokenization, Tweaked};
use zeroize::Zeroizing;

use crate::client_option::{ClientOption, persist};
use crate::files::Source;
use crate::options::hexadecimal;
use crate::say;

/// Options and arguments of both commands.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave key generate customers --modes ff1\n  \
    polyclave tokenize --key customers --tweak 73686f70 4929123456\n  \
    polyclave detokenize --key customers --tweak 73686f70 --in tokens.txt\n  \
    polyclave tokenize --key cards --card --in numbers.txt\n\n\
    FF1 (SP 800-38G) under a key made for ff1: a token has the length and the alphabet of its value, and equal values under equal tweaks have \
    equal tokens. This program does the arithmetic and sees the values; the nodes see how many there are, their lengths and the tweak. A \
    client with the right tokenize may do both commands. Tokens do not say which version of the key they were made with: after `key rotate`, \
    give --key-version. Other users of this machine see values that are given as arguments; with none, they are read from standard input. \
    docs/use/tokens.md has more.")]
pub struct Arguments {
    /// The key's name
    #[arg(long, value_name = "N")]
    key: String,

    /// The version of the key [default: the current one]
    #[arg(long, value_name = "N")]
    key_version: Option<u32>,

    /// How many characters the alphabet has, of the digits and the letters a to z: 10 for decimal digits, 36
    /// for all
    #[arg(long, value_name = "R", default_value_t = 10, conflicts_with_all = ["alphabet", "card"])]
    radix: u32,

    /// The characters of the alphabet, 2 to 36, in an order that is always the same
    #[arg(long, value_name = "CHARACTERS", conflicts_with = "card")]
    alphabet: Option<String>,

    /// What need not be secret and gives equal values other tokens, in hexadecimal: at most 64 bytes
    /// [default: empty]
    #[arg(long, value_name = "HEX")]
    tweak: Option<String>,

    /// Leave characters in place that are not in the alphabet. Otherwise a value with one is refused
    #[arg(long, conflicts_with = "card")]
    keep_others: bool,

    /// The values are numbers of cards: some digits stay, and become a part of the tweak. Spaces and hyphens
    /// stay in place
    #[arg(long)]
    card: bool,

    /// With --card: how many digits stay at the beginning
    #[arg(long, value_name = "N", default_value_t = 6, requires = "card")]
    keep_first: usize,

    /// With --card: how many digits stay at the end
    #[arg(long, value_name = "N", default_value_t = 4, requires = "card")]
    keep_last: usize,

    /// With --card: tokens pass the Luhn test, as their numbers do. This takes one more digit that does not
    /// stay
    #[arg(long, requires = "card")]
    luhn: bool,

    /// Read the values from this file, one a line; - for standard input
    #[arg(long = "in", value_name = "FILE", conflicts_with = "values")]
    input: Option<PathBuf>,

    #[command(flatten)]
    client: ClientOption,

    /// Print one JSON document
    #[arg(long)]
    json: bool,

    /// The values [default: standard input, one a line]
    #[arg(value_name = "VALUE")]
    values: Vec<String>,
}

/// Which of the two commands is run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// `tokenize`.
    ToTokens,
    /// `detokenize`.
    ToValues,
}

/// Runs one of the commands.
pub fn run(arguments: &Arguments, direction: Direction) -> Result<ExitCode> {
    let key = match arguments.key_version {
        Some(version) => format!("{}@{version}", arguments.key),
        None => arguments.key.clone(),
    };
    let alphabet = match &arguments.alphabet {
        Some(characters) => Alphabet::new(characters)?,
        None => Alphabet::of_radix(arguments.radix)?,
    };
    let tweak = arguments.tweak.as_deref().map(|text| hexadecimal("--tweak", text)).transpose()?;
    let tweak = tweak.unwrap_or_default();
    let values = arguments.given()?;
    ensure!(!values.is_empty(), "there is no value: give some, or one a line on standard input");
    let client = arguments.client.open()?;
    let tweaked: Vec<Tweaked<'_>> =
        values.iter().map(|value| Tweaked { value: value.as_str(), tweak: &tweak }).collect();
    let exchanged =
        persist(&client, || true, || arguments.exchange(&client, &key, &alphabet, &tweaked, direction))?;
    if arguments.json {
        let what = if direction == Direction::ToTokens { "tokens" } else { "values" };
        let exchanged: Vec<&str> = exchanged.iter().map(|value| value.as_str()).collect();
        say!("{}", serde_json::json!({ "key": arguments.key, what: exchanged }));
    } else {
        exchanged.iter().for_each(|value| say!("{}", value.as_str()));
    }
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    fn exchange(
        &self,
        client: &Client,
        key: &str,
        alphabet: &Alphabet,
        values: &[Tweaked<'_>],
        direction: Direction,
    ) -> Result<Vec<Zeroizing<String>>> {
        let to_tokens = direction == Direction::ToTokens;
        if self.card {
            let template =
                CardTemplate { first: self.keep_first, last: self.keep_last, keeps_check: self.luhn };
            let exchange = if to_tokens { Client::tokenize_cards } else { Client::detokenize_cards };
            return Ok(exchange(client, key, template, values)?);
        }
        let how = Tokenization { alphabet, keeps_others: self.keep_others };
        let exchange = if to_tokens { Client::tokenize } else { Client::detokenize };
        Ok(exchange(client, key, how, values)?)
    }

    /// The values, from wherever they come.
    fn given(&self) -> Result<Vec<Zeroizing<String>>> {
        if !self.values.is_empty() {
            return Ok(self.values.iter().cloned().map(Zeroizing::new).collect());
        }
        let path = self.input.clone().unwrap_or_else(|| "-".into());
        let input = Source::new(&path).open()?;
        let lines = BufReader::new(input).lines();
        lines.map(|line| Ok(Zeroizing::new(line.context("the values cannot be read as text")?))).collect()
    }
}
