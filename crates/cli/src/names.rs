//! Modes, rights and usages as words of the command line.

use anyhow::{Result, bail};
use polyclave_api::{Mode, Right, Usage};
use polyclave_config::Day;

/// Parses rights: a list of words, or `all`.
pub fn parse_rights(text: &str) -> Result<Vec<Right>> {
    if text.trim() == "all" {
        return Ok(Right::ALL.to_vec());
    }
    text.split(',').map(parse_right).collect()
}

/// Parses a right.
pub fn parse_right(word: &str) -> Result<Right> {
    parse(word, "right", &Right::ALL)
}

/// Parses days of the week.
pub fn parse_days(text: &str) -> Result<Vec<Day>> {
    text.split(',').map(|word| parse(word, "day", &Day::ALL)).collect()
}

/// Parses a mode.
pub fn parse_mode(word: &str) -> Result<Mode> {
    parse(word, "mode", &Mode::ALL)
}

/// Parses a list of modes; the result is in order and without repeats.
pub fn parse_modes(text: &str) -> Result<Vec<Mode>> {
    let mut modes = text.split(',').map(parse_mode).collect::<Result<Vec<Mode>>>()?;
    modes.sort();
    modes.dedup();
    Ok(modes)
}

/// The modes of which something is true, as text for people.
pub fn modes_that(is_true: impl Fn(Mode) -> bool) -> String {
    words(&Mode::ALL.into_iter().filter(|mode| is_true(*mode)).collect::<Vec<_>>())
}

/// Parses a list of usages; the result is in order and without repeats.
pub fn parse_usage(text: &str) -> Result<Vec<Usage>> {
    let usage = text.split(',').map(|word| word.parse::<Usage>().map_err(anyhow::Error::msg));
    let mut usage = usage.collect::<Result<Vec<Usage>>>()?;
    usage.sort();
    usage.dedup();
    Ok(usage)
}

/// A list of words as text for people.
pub fn words<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

fn parse<T: Copy + ToString>(word: &str, kind: &str, all: &[T]) -> Result<T> {
    match all.iter().find(|item| item.to_string().eq_ignore_ascii_case(word.trim())) {
        Some(item) => Ok(*item),
        None => bail!("there is no {kind} '{word}'; choose from {}", words(all)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_modes_in_order_and_once() {
        assert_eq!(parse_modes("ctr, GCM,ctr").expect("they are"), [Mode::Gcm, Mode::Ctr]);
        assert!(parse_modes("gcm,").is_err());
    }

    #[test]
    fn all_is_every_right_and_misspelt_ones_are_refused() {
        assert_eq!(parse_rights("all").expect("all"), Right::ALL);
        let error = parse_rights("encrpyt").expect_err("misspelt").to_string();
        assert!(error.contains("encrypt"), "{error}");
    }
}
