//! Patterns of keys' and owners' names: `*` stands for any characters, `?` for one. The time is at most the
//! product of the two lengths, for any number of stars. Callers bound both.

use polyclave_transport::MAX_IDENTITY;

use crate::{Error, Result};

/// The longest pattern.
const MAX: usize = 64;

/// Whether a name fits a pattern.
///
/// A star takes as little as possible. If what follows does not fit, only the last star takes one character
/// more: an earlier one need not be tried again, because what follows it fitted as early as possible.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&c) if c == b'?' || c == name[n] => (p, n) = (p + 1, n + 1),
            _ => {
                let Some((at, taken)) = star else { return false };
                star = Some((at, taken + 1));
                (p, n) = (at + 1, taken + 1);
            }
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

/// Whether some name fits both patterns.
pub(super) fn overlap(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    // Whether the rest of `a` from i on and the rest of `b` from j on overlap, for one i and all j.
    let mut after = vec![false; b.len() + 1];
    for i in (0..=a.len()).rev() {
        let mut here = vec![false; b.len() + 1];
        for j in (0..=b.len()).rev() {
            here[j] = match (a.get(i), b.get(j)) {
                (None, None) => true,
                (Some(b'*'), _) => after[j] || (j < b.len() && here[j + 1]),
                (_, Some(b'*')) => here[j + 1] || (i < a.len() && after[j]),
                (Some(x), Some(y)) => (x == y || *x == b'?' || *y == b'?') && after[j + 1],
                _ => false,
            };
        }
        after = here;
    }
    after[0]
}

/// Refuses what can be the pattern of no name.
pub(crate) fn check(pattern: &str) -> Result<()> {
    let letter = |b: u8| b.is_ascii_alphanumeric() || b"-_.*?".contains(&b);
    let fits = (1..=MAX).contains(&pattern.len())
        && pattern.bytes().all(letter)
        && !pattern.starts_with(['.', '-'])
        && !pattern.contains("**");
    let wrong = || {
        let shown: String = pattern.chars().take(MAX).collect();
        Error::misuse(format!(
            "{shown:?} fits no key's name: take 1 to {MAX} letters, digits, '-', '_' or '.', a letter or digit first; '*' stands for any \
             characters (one '*' is enough in one place), '?' for one"
        ))
    };
    fits.then_some(()).ok_or_else(wrong)
}

/// The same for a pattern of names of clients, which can be identities of authorities' clients.
pub(super) fn check_owner(pattern: &str) -> Result<()> {
    let is_identity = pattern.contains(':');
    let letter = |b: u8| b.is_ascii_alphanumeric() || b"-_.*?:/".contains(&b);
    if !is_identity {
        return check(pattern);
    }
    let fits = pattern.len() <= MAX_IDENTITY && pattern.bytes().all(letter) && !pattern.contains("**");
    let shown: String = pattern.chars().take(MAX).collect();
    fits.then_some(()).ok_or_else(|| Error::misuse(format!("{shown:?} fits no identity of a client")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters_and_a_question_mark_for_one() {
        for (pattern, name) in [
            ("*", "a"),
            ("pay-*", "pay-"),
            ("pay-*", "pay-roll"),
            ("*-2026", "pay-2026"),
            ("a*b*c", "abc"),
            ("a*b*c", "a-bb-bc"),
            ("k?", "k1"),
            ("?*?", "ab"),
            ("*ab", "aab"),
            ("exact", "exact"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("pay-*", "pay"),
            ("*-2026", "pay-2026-old"),
            ("a*b*c", "acb"),
            ("k?", "k"),
            ("k?", "k12"),
            ("?*?", "a"),
            ("exact", "exactly"),
            ("exact", "exac"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    /// The obvious matcher, which takes exponential time.
    fn slow(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, None) => true,
            (Some((b'*', rest)), _) => slow(rest, name) || (!name.is_empty() && slow(pattern, &name[1..])),
            (Some((p, ps)), Some((n, ns))) => (*p == b'?' || p == n) && slow(ps, ns),
            _ => false,
        }
    }

    /// All texts of these letters up to a length.
    fn all(letters: &[u8], most: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut last = all.clone();
        for _ in 0..most {
            last = last
                .iter()
                .flat_map(|text| letters.iter().map(move |c| format!("{text}{}", char::from(*c))))
                .collect();
            all.extend(last.iter().cloned());
        }
        all
    }

    #[test]
    fn short_patterns_match_and_overlap_as_the_obvious_matcher_says() {
        let (patterns, names) = (all(b"ab*?", 4), all(b"ab", 6));
        for pattern in &patterns {
            for name in &names {
                assert_eq!(
                    matches(pattern, name),
                    slow(pattern.as_bytes(), name.as_bytes()),
                    "{pattern} {name}"
                );
            }
        }
        let (patterns, names) = (all(b"ab*?", 3), all(b"ab", 6));
        for a in &patterns {
            for b in &patterns {
                let common = names.iter().any(|name| matches(a, name) && matches(b, name));
                assert_eq!(overlap(a, b), common, "{a} {b}");
            }
        }
    }

    /// With backtracking to every star this would not end.
    #[test]
    fn many_stars_end() {
        let pattern = "a*".repeat(31) + "b";
        check(&pattern).expect("a pattern");
        let name = "a".repeat(64);
        for _ in 0..10_000 {
            assert!(!matches(&pattern, &name));
        }
        assert!(matches(&("a*".repeat(32)), &name));
    }
}
