//! What a gateway tokenizes: roles, transformations, templates and alphabets, with the names that Vault has
//! for them (`[[transform.role]]` and so on).

use serde::{Deserialize, Deserializer, de};

use crate::{Error, Result, check_name};

/// Everything about tokenization.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GatewayTransform {
    /// Names under which programs ask.
    pub role: Vec<GatewayRole>,
    /// What is done with values.
    pub transformation: Vec<GatewayTransformation>,
    /// What values look like.
    pub template: Vec<GatewayTemplate>,
    /// The characters that values are made of.
    pub alphabet: Vec<GatewayAlphabet>,
}

/// A name under which programs ask, and the transformations that they may take.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayRole {
    /// Its name, which is a part of the path.
    pub name: String,
    /// Names of transformations.
    pub transformations: Vec<String>,
}

/// A template and a key.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayTransformation {
    /// Its name.
    pub name: String,
    /// The name of a key for FF1.
    pub key: String,
    /// The version of the key. Tokens do not say with which version they were made, so it does not change by
    /// itself when the key is rotated.
    #[serde(default = "first")]
    pub key_version: u32,
    /// The name of a template.
    pub template: String,
    /// Where tweaks come from.
    #[serde(default)]
    pub tweak_source: TweakSource,
    /// The tweak of `tweak_source = "internal"`, in hexadecimal; empty if absent.
    #[serde(default, deserialize_with = "hexadecimal")]
    pub tweak: Vec<u8>,
    /// For card numbers: how many digits at the beginning stay.
    pub keep_first: Option<usize>,
    /// For card numbers: how many digits at the end stay.
    pub keep_last: Option<usize>,
    /// For numbers of cards: tokens pass the Luhn test.
    pub luhn: Option<bool>,
}

/// Where tweaks come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TweakSource {
    /// The caller gives one with each value.
    #[default]
    Supplied,
    /// It is the same for all values of the transformation.
    Internal,
}

/// What values look like.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayTemplate {
    /// Its name.
    pub name: String,
    /// A regular expression for the whole value. What is in its groups is tokenized.
    pub pattern: String,
    /// The name of an alphabet.
    pub alphabet: String,
}

/// The characters that values are made of.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayAlphabet {
    /// Its name.
    pub name: String,
    /// 2 to 36 characters, each once.
    pub characters: String,
}

impl GatewayTransform {
    /// Checks names. What patterns and alphabets mean, the gateway checks.
    pub(super) fn check(&self) -> Result<()> {
        once("role", self.role.iter().map(|one| &one.name))?;
        once("transformation", self.transformation.iter().map(|one| &one.name))?;
        once("template", self.template.iter().map(|one| &one.name))?;
        once("alphabet", self.alphabet.iter().map(|one| &one.name))?;
        for role in &self.role {
            let unknown = |name: &&String| !self.transformation.iter().any(|one| one.name == **name);
            if let Some(name) = role.transformations.iter().find(unknown) {
                return Err(wrong("role", &role.name, format!("there is no transformation {name:?}")));
            }
            if role.transformations.is_empty() {
                return Err(wrong("role", &role.name, "it has no transformation".into()));
            }
        }
        for one in &self.transformation {
            let message = |e: Error| wrong("transformation", &one.name, e.to_string());
            check_name("key", &one.key).map_err(message)?;
            if one.key_version == 0 {
                return Err(wrong(
                    "transformation",
                    &one.name,
                    "key_version is 0; versions begin with 1".into(),
                ));
            }
            if one.tweak_source == TweakSource::Supplied && !one.tweak.is_empty() {
                let message = "it has a tweak, and its tweak_source is \"supplied\"; write \"internal\", or remove the tweak";
                return Err(wrong("transformation", &one.name, message.into()));
            }
        }
        Ok(())
    }
}

fn first() -> u32 {
    1
}

fn once<'t>(kind: &str, names: impl Iterator<Item = &'t String>) -> Result<()> {
    let mut seen: Vec<&String> = Vec::new();
    for name in names {
        check_name(kind, name)?;
        if seen.contains(&name) {
            return Err(wrong(kind, name, "there are two of this name".into()));
        }
        seen.push(name);
    }
    Ok(())
}

fn wrong(kind: &str, name: &str, message: String) -> Error {
    Error::misuse(format!("the {kind} {name:?} under [transform]: {message}"))
}

fn hexadecimal<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    hex::decode(&text).map_err(|_| de::Error::custom("a tweak is in hexadecimal digits, two for each byte"))
}
