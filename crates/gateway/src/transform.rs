//! Templates: which characters of a value are tokenized, and which stay in place. It is arithmetic of text;
//! `vault/transform.rs` asks the nodes.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use polyclave_cipher::ff1::least_length;
use polyclave_client::{Alphabet, Card, CardTemplate, Tokenization};
use polyclave_config::{GatewayTransform, GatewayTransformation, TweakSource};
use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Hir, HirKind};
use zeroize::Zeroizing;

use crate::failure::Failure;
use crate::{Error, Result};

/// The template of numbers of cards.
const CARDS: &str = "builtin/creditcardnumber";

/// Templates that are there without an entry: name, pattern, alphabet.
const TEMPLATES: [(&str, &str, &str); 2] = [
    ("builtin/socialsecuritynumber", r"(\d{3})[- ]?(\d{2})[- ]?(\d{4})", "builtin/numeric"),
    ("builtin/email", r"([^@\s]+)@[^@\s]+", "builtin/alphanumericlower"),
];

/// Alphabets that are there without an entry.
const ALPHABETS: [(&str, &str); 5] = [
    ("builtin/numeric", "0123456789"),
    ("builtin/alphalower", "abcdefghijklmnopqrstuvwxyz"),
    ("builtin/alphaupper", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    ("builtin/alphanumericlower", "0123456789abcdefghijklmnopqrstuvwxyz"),
    ("builtin/alphanumericupper", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
];

/// The most bytes of a value: with what is beside the characters that FF1 takes.
const MAX_VALUE: usize = 4 << 10;
/// The most memory that a compiled pattern may take.
const MAX_PATTERN: usize = 1 << 20;

/// Everything that the file has about tokenization.
#[derive(Default)]
pub(crate) struct Transformations {
    roles: HashMap<String, Vec<Arc<Transformation>>>,
}

/// How values are tokenized, and under which key.
pub(crate) struct Transformation {
    name: String,
    pub(crate) key: String,
    /// The key with its version, as nodes are asked for it.
    pub(crate) version_of_key: String,
    shape: Shape,
    /// The tweak of all values; `None` if each comes with its own.
    pub(crate) tweak: Option<Vec<u8>>,
    alphabet: Alphabet,
}

enum Shape {
    Card(CardTemplate),
    Pattern(Regex),
}

impl Transformations {
    /// From a file whose names have been checked.
    pub(crate) fn new(settings: &GatewayTransform) -> Result<Transformations> {
        let mut all = HashMap::new();
        for entry in &settings.transformation {
            let made = Transformation::new(entry, settings)
                .map_err(|message| Error::Transformation { name: entry.name.clone(), message })?;
            all.insert(entry.name.as_str(), Arc::new(made));
        }
        let of_role =
            |names: &[String]| names.iter().filter_map(|name| all.get(name.as_str()).cloned()).collect();
        let roles = settings.role.iter().map(|role| (role.name.clone(), of_role(&role.transformations)));
        Ok(Transformations { roles: roles.collect() })
    }

    /// The transformation that is meant: the only one of the role, if none is named.
    pub(crate) fn find(
        &self,
        role: &str,
        name: Option<&str>,
    ) -> std::result::Result<Arc<Transformation>, Failure> {
        let bad = |message: &str| Failure::Bad(message.into());
        let all = self.roles.get(role).ok_or_else(|| bad("unknown role"))?;
        match (name, all.as_slice()) {
            (None | Some(""), [only]) => Ok(only.clone()),
            (None | Some(""), _) => Err(bad("missing transformation: the role has several")),
            (Some(name), all) => all
                .iter()
                .find(|one| one.name == name)
                .cloned()
                .ok_or_else(|| bad("the transformation is not one of the role")),
        }
    }
}

impl Transformation {
    fn new(
        entry: &GatewayTransformation,
        settings: &GatewayTransform,
    ) -> std::result::Result<Transformation, String> {
        let of_cards = entry.keep_first.is_some() || entry.keep_last.is_some() || entry.luhn.is_some();
        let (shape, alphabet) = if entry.template == CARDS {
            let usual = CardTemplate::default();
            let template = CardTemplate {
                first: entry.keep_first.unwrap_or(usual.first),
                last: entry.keep_last.unwrap_or(usual.last),
                keeps_check: entry.luhn.unwrap_or(usual.keeps_check),
            };
            // The longest number shows whether there is any that fits.
            template.take_apart("0000000000000000000").map_err(|e| e.to_string())?;
            (Shape::Card(template), "builtin/numeric")
        } else if of_cards {
            return Err(format!("keep_first, keep_last and luhn are for the template {CARDS:?} only"));
        } else {
            let (pattern, alphabet) = template(settings, &entry.template)
                .ok_or_else(|| format!("there is no template {:?}", entry.template))?;
            (Shape::Pattern(compiled(pattern)?), alphabet)
        };
        let characters =
            characters(settings, alphabet).ok_or_else(|| format!("there is no alphabet {alphabet:?}"))?;
        let tweak = match entry.tweak_source {
            TweakSource::Supplied => None,
            TweakSource::Internal => Some(entry.tweak.clone()),
        };
        let alphabet = Alphabet::new(characters).map_err(|e| e.to_string())?;
        if let Shape::Pattern(pattern) = &shape {
            refuse_short(pattern, &alphabet)?;
        }
        let (name, key) = (entry.name.clone(), entry.key.clone());
        let version_of_key = format!("{key}@{}", entry.key_version);
        Ok(Transformation { name, key, version_of_key, shape, tweak, alphabet })
    }

    pub(crate) fn how(&self) -> Tokenization<'_> {
        Tokenization { alphabet: &self.alphabet, keeps_others: false }
    }

    /// Takes a value, or a token, apart.
    pub(crate) fn take_apart(&self, value: &str) -> std::result::Result<Parts, Failure> {
        if value.len() > MAX_VALUE {
            return Err(Failure::Bad(format!(
                "a value has at most {MAX_VALUE} bytes, and this one {}",
                value.len()
            )));
        }
        match &self.shape {
            Shape::Card(template) => Ok(Parts::Card(template.take_apart(value)?)),
            Shape::Pattern(pattern) => {
                let captures = pattern
                    .captures(value)
                    .ok_or_else(|| Failure::Bad("the value does not match the template".into()))?;
                let groups: Vec<Range<usize>> =
                    captures.iter().skip(1).flatten().map(|group| group.range()).collect();
                let is_in_group = |at: &usize| groups.iter().any(|group| group.contains(at));
                let free = value.char_indices().filter(|(at, c)| is_in_group(at) && self.alphabet.has(*c));
                let (places, free): (Vec<u16>, String) = free.map(|(at, c)| (at as u16, c)).unzip();
                Ok(Parts::Pattern { written: value.to_owned().into(), places, free: free.into() })
            }
        }
    }

    /// Puts a value together, or a token. It must be one that can be taken apart again: otherwise a token
    /// would be of no use to anybody.
    pub(crate) fn put_together(
        &self,
        parts: &Parts,
        free: &str,
    ) -> std::result::Result<Zeroizing<String>, Failure> {
        let whole = match parts {
            Parts::Card(card) => return Ok(card.with(free)?),
            Parts::Pattern { written, places, .. } => {
                let mut others = free.chars();
                let replaced =
                    written.char_indices().map(|(at, c)| match places.binary_search(&(at as u16)) {
                        Ok(_) => others.next().unwrap_or(c),
                        Err(_) => c,
                    });
                Zeroizing::new(replaced.collect::<String>())
            }
        };
        match self.take_apart(&whole) {
            Ok(again) if again.free() == free => Ok(whole),
            _ => Err(Failure::Bad(
                "the template does not match the result: each group of its pattern must take every character of the alphabet".into(),
            )),
        }
    }
}

/// A value, taken apart.
pub(crate) enum Parts {
    Card(Card),
    Pattern {
        written: Zeroizing<String>,
        /// Where in it the characters begin that are tokenized.
        places: Vec<u16>,
        free: Zeroizing<String>,
    },
}

impl Parts {
    /// The characters that are tokenized.
    pub(crate) fn free(&self) -> &str {
        match self {
            Parts::Card(card) => card.free_digits(),
            Parts::Pattern { free, .. } => free,
        }
    }

    /// The tweak that belongs to it, behind a given one.
    pub(crate) fn tweak(&self, before: &[u8]) -> Vec<u8> {
        match self {
            Parts::Card(card) => card.tweak(before),
            Parts::Pattern { .. } => before.to_vec(),
        }
    }
}

/// Pattern and alphabet of a template.
fn template<'s>(settings: &'s GatewayTransform, name: &str) -> Option<(&'s str, &'s str)> {
    let own =
        settings.template.iter().map(|one| (one.name.as_str(), one.pattern.as_str(), one.alphabet.as_str()));
    let found = own.chain(TEMPLATES).find(|(known, ..)| *known == name);
    found.map(|(_, pattern, alphabet)| (pattern, alphabet))
}

fn characters<'s>(settings: &'s GatewayTransform, name: &str) -> Option<&'s str> {
    let own = settings.alphabet.iter().map(|one| (one.name.as_str(), one.characters.as_str()));
    own.chain(ALPHABETS).find(|(known, _)| *known == name).map(|(_, characters)| characters)
}

/// A pattern of the whole value. It is matched in a time that is linear in the value's length.
fn compiled(pattern: &str) -> std::result::Result<Regex, String> {
    let wrong =
        |e: &dyn std::fmt::Display| format!("its template has a pattern that is no regular expression: {e}");
    // Alone first: so that a bracket too many is not closed by what is put around it.
    let read = regex_syntax::parse(pattern).map_err(|e| wrong(&e))?;
    if read.properties().explicit_captures_len() == 0 {
        return Err("the pattern of its template has no group (..), so nothing would be tokenized".into());
    }
    if repeats_a_group(&read) {
        return Err(
            "the pattern of its template repeats a group: only what the group matches last would be tokenized, and the rest would stay readable. \
             Write the repetition inside the group, as in ([0-9]+)"
                .into(),
        );
    }
    RegexBuilder::new(&format!(r"\A(?:{pattern})\z")).size_limit(MAX_PATTERN).build().map_err(|e| wrong(&e))
}

/// Refuses a pattern whose groups match so few characters that no value is long enough for FF1.
fn refuse_short(pattern: &Regex, alphabet: &Alphabet) -> std::result::Result<(), String> {
    let most = regex_syntax::parse(pattern.as_str()).map_or(None, |read| most_in_groups(&read));
    let least = least_length(alphabet.radix()) as usize;
    match most {
        Some(most) if most < least => Err(format!(
            "the groups of its template match at most {most} characters, and a token of an alphabet of {} needs at least {least}",
            alphabet.radix()
        )),
        _ => Ok(()),
    }
}

/// The most bytes, and so characters, that groups match together; `None` if there is no limit.
fn most_in_groups(part: &Hir) -> Option<usize> {
    if part.properties().explicit_captures_len() == 0 {
        return Some(0);
    }
    match part.kind() {
        HirKind::Capture(_) => part.properties().maximum_len(),
        HirKind::Repetition(repetition) => most_in_groups(&repetition.sub),
        HirKind::Concat(parts) => parts.iter().map(most_in_groups).sum(),
        HirKind::Alternation(parts) => {
            parts.iter().try_fold(0, |most, part| Some(most.max(most_in_groups(part)?)))
        }
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => Some(0),
    }
}

/// Whether a group may match more than once. Only the last match of such a group is told.
fn repeats_a_group(part: &Hir) -> bool {
    match part.kind() {
        HirKind::Repetition(repetition) => {
            let has_group = repetition.sub.properties().explicit_captures_len() > 0;
            (has_group && repetition.max != Some(1)) || repeats_a_group(&repetition.sub)
        }
        HirKind::Capture(group) => repeats_a_group(&group.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(repeats_a_group),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use polyclave_config::{GatewayAlphabet, GatewayTemplate};

    use super::*;

    fn entry(template: &str) -> GatewayTransformation {
        GatewayTransformation {
            name: "t".into(),
            key: "k".into(),
            key_version: 1,
            template: template.into(),
            tweak_source: TweakSource::Supplied,
            tweak: Vec::new(),
            keep_first: None,
            keep_last: None,
            luhn: None,
        }
    }

    fn with(pattern: &str, characters: &str) -> std::result::Result<Transformation, String> {
        let settings = GatewayTransform {
            template: vec![GatewayTemplate {
                name: "own".into(),
                pattern: pattern.into(),
                alphabet: "abc".into(),
            }],
            alphabet: vec![GatewayAlphabet { name: "abc".into(), characters: characters.into() }],
            ..GatewayTransform::default()
        };
        Transformation::new(&entry("own"), &settings)
    }

    fn builtin(template: &str) -> Transformation {
        Transformation::new(&entry(template), &GatewayTransform::default()).expect("it is there")
    }

    fn free(of: &Transformation, value: &str) -> String {
        of.take_apart(value).expect("it matches").free().to_owned()
    }

    #[test]
    fn what_is_outside_of_groups_and_alphabet_stays_in_place() {
        let email = builtin("builtin/email");
        assert_eq!(free(&email, "jane.d0e@example.org"), "janed0e");
        let parts = email.take_apart("jane.d0e@example.org").expect("it matches");
        assert_eq!(&*email.put_together(&parts, "0123456").expect("put together"), "0123.456@example.org");
        assert_eq!(free(&builtin("builtin/socialsecuritynumber"), "123-45-6789"), "123456789");
        let card = builtin(CARDS);
        let parts = card.take_apart("4111 1111 1111 1111").expect("a card");
        assert_eq!((parts.free(), parts.tweak(b"t")), ("111111", b"t4111111111".to_vec()));
        // Two groups, characters of several bytes, and one that is in no alphabet.
        let own = with("é([äöü]+)-x([äöüß]*)", "äöü").expect("made");
        let parts = own.take_apart("éäöü-xßü").expect("it matches");
        assert_eq!(parts.free(), "äöüü");
        assert_eq!(&*own.put_together(&parts, "üüää").expect("put together"), "éüüä-xßä");
    }

    #[test]
    fn values_that_do_not_fit_are_refused_and_so_are_tokens_that_could_not_come_back() {
        let ssn = builtin("builtin/socialsecuritynumber");
        for value in ["", "123-45-678", "123-45-67890", " 123-45-6789", "123-45-6789\n", "abc-de-fghi"] {
            assert!(ssn.take_apart(value).is_err(), "{value:?}");
        }
        let long = format!("{}@example.org", "a".repeat(MAX_VALUE));
        assert!(builtin("builtin/email").take_apart(&long).is_err(), "however many characters are tokenized");
        // No zero at the beginning: a token may have one.
        let narrow = with("([1-9][0-9]+)", "0123456789").expect("made");
        let parts = narrow.take_apart("1234567").expect("it matches");
        assert!(narrow.put_together(&parts, "0234567").is_err());
        assert!(narrow.put_together(&parts, "7654321").is_ok());
    }

    #[test]
    fn patterns_and_alphabets_that_cannot_be_meant_are_refused_with_the_reason() {
        let refused = |made: std::result::Result<Transformation, String>| made.err().expect("refused");
        assert!(refused(with("[0-9]+", "0123456789")).contains("no group"));
        assert!(refused(with("([0-9]+", "0123456789")).contains("no regular expression"));
        assert!(refused(with("a)|(b", "0123456789")).contains("no regular expression"));
        assert!(refused(with("((?:a{1000}){1000})", "ab")).contains("size limit"));
        for repeated in
            ["(?:([a-z0-9]{4})-?)+", "([a-z]+)*", "((a)b?){2,3}", "x(?:y|([0-9])){4}", "(?:(a)?)+"]
        {
            assert!(refused(with(repeated, "0123456789")).contains("repeats a group"), "{repeated}");
        }
        assert!(with("([0-9]+)(?:-([0-9]+))?", "0123456789").is_ok(), "once at most");
        for short in ["([0-9]{5})", "([0-9]{2})-([0-9]{3})", "(?:a([0-9]{4})|b([0-9]{1,5}))?"] {
            assert!(refused(with(short, "0123456789")).contains("needs at least 6"), "{short}");
        }
        for long in ["([0-9]{2,6})", "([0-9]{3})-([0-9]{3})", "a([0-9])|b([0-9]+)"] {
            assert!(with(long, "0123456789").is_ok(), "{long}");
        }
        assert!(refused(with("(.+)", "aab")).contains("twice"));
        assert!(refused(with("(.+)", "a")).contains("2 to 36"));
        let unknown =
            |template: &str| refused(Transformation::new(&entry(template), &GatewayTransform::default()));
        assert!(unknown("nothing").contains("no template"));
        let wide = GatewayTransformation { keep_first: Some(10), ..entry(CARDS) };
        assert!(refused(Transformation::new(&wide, &GatewayTransform::default())).contains("fewer digits"));
        let astray = GatewayTransformation { luhn: Some(true), ..entry("builtin/email") };
        assert!(refused(Transformation::new(&astray, &GatewayTransform::default())).contains(CARDS));
    }
}
