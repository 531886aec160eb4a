//! `pkcs11.toml`: which client's keys each slot shows.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// The most bytes of the file.
const MAX_BYTES: u64 = 1 << 20;
/// The most bytes of a label, as PKCS#11 has it.
const MAX_LABEL: usize = 32;
/// The most tokens.
const MAX_TOKENS: usize = 256;

/// All tokens, by slot.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Configuration {
    #[serde(rename = "token")]
    pub(crate) tokens: Vec<TokenSettings>,
}

/// One token.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenSettings {
    /// Its name for programs.
    pub(crate) label: String,
    /// The directory of the client whose keys it shows.
    pub(crate) client: PathBuf,
    /// What the names of its keys begin with.
    #[serde(default)]
    pub(crate) prefix: String,
    /// What keys are made for, unless a program says so by `CKA_ALLOWED_MECHANISMS`.
    #[serde(default = "all_modes")]
    pub(crate) modes: Vec<TokenMode>,
    /// Who chooses the nonces of GCM.
    #[serde(default)]
    pub(crate) gcm_nonce: GcmNonce,
    /// What happens to templates of keys that could be read, or seen without a login.
    #[serde(default)]
    pub(crate) visible_templates: VisibleTemplates,
    /// Whether a program may delete all keys and begin again.
    #[serde(default)]
    pub(crate) allow_init: bool,
    /// For how long busy nodes are asked again.
    #[serde(default = "ten")]
    pub(crate) retry_seconds: u32,
}

/// What a key of a token serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TokenMode {
    Gcm,
    /// With the program's initial block, which takes single blocks.
    Cbc,
    Ctr,
    Ecb,
}

/// Who chooses the nonces of GCM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum GcmNonce {
    /// The program, and it must never use one twice.
    #[default]
    Caller,
    /// The nodes. The nonce follows the tag, or is written over 12 zero bytes of the program.
    Nodes,
    /// The nodes. The nonce follows the tag, or is written over any 12 bytes of the program.
    Overwrite,
}

/// What happens to templates of keys that could be read, or seen without a login.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum VisibleTemplates {
    /// No key is made.
    #[default]
    #[serde(rename = "refuse")]
    Refuse,
    /// The key is made, cannot be read or seen like that, and says so.
    #[serde(rename = "make-sensitive")]
    MakeSensitive,
}

fn all_modes() -> Vec<TokenMode> {
    vec![TokenMode::Gcm, TokenMode::Cbc, TokenMode::Ctr, TokenMode::Ecb]
}

fn ten() -> u32 {
    10
}

/// Reads the file that the environment chooses.
pub(crate) fn load() -> Result<Configuration, String> {
    let path = path();
    let at = |e: std::io::Error| format!("cannot read {}: {e}", path.display());
    let bytes = std::fs::metadata(&path).map_err(at)?.len();
    if bytes > MAX_BYTES {
        return Err(format!("{} has {bytes} bytes; that is no configuration", path.display()));
    }
    let text = std::fs::read_to_string(&path).map_err(at)?;
    parse(&text).map_err(|what| format!("{}: {what}", path.display()))
}

fn path() -> PathBuf {
    if let Some(path) = std::env::var_os("POLYCLAVE_PKCS11_CONFIG") {
        return path.into();
    }
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".config"));
    let user = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home);
    let user = user.map(|dir| dir.join("polyclave/pkcs11.toml")).filter(|path| path.exists());
    user.unwrap_or_else(|| "/etc/polyclave/pkcs11.toml".into())
}

/// Reads a configuration. An error says what is wrong, for people.
pub(crate) fn parse(text: &str) -> Result<Configuration, String> {
    let configuration: Configuration = toml::from_str(text).map_err(|e| e.to_string())?;
    let tokens = &configuration.tokens;
    if tokens.is_empty() || tokens.len() > MAX_TOKENS {
        return Err(format!("it has {} tokens; it needs 1 to {MAX_TOKENS}", tokens.len()));
    }
    for (slot, token) in tokens.iter().enumerate() {
        let message = |what: &str| Err(format!("the token '{}' {what}", token.label));
        if token.label.is_empty() || token.label.len() > MAX_LABEL || token.label.contains(char::is_control) {
            return message(&format!("needs a label of 1 to {MAX_LABEL} bytes without control characters"));
        }
        if tokens[..slot].iter().any(|other| other.label == token.label) {
            return message("is there twice; programs choose tokens by their labels");
        }
        if !token.client.is_absolute() {
            return message("needs the whole path of its client's directory, from / on");
        }
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if token.prefix.len() > 32 || !token.prefix.chars().all(fits) {
            return message(
                "has a prefix that no name of a key has: letters, digits, '-', '_' and '.', at most 32",
            );
        }
        if token.modes.is_empty() {
            return message("has no modes; give one of gcm, cbc, ctr, ecb");
        }
        if token.retry_seconds > 600 {
            return message("repeats requests for more than 600 seconds");
        }
    }
    Ok(configuration)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = r#"
        [[token]]
        label = "payroll"
        client = "/home/alice/.polyclave"
        prefix = "hr."
        modes = ["gcm", "ctr"]
        gcm_nonce = "nodes"
        visible_templates = "make-sensitive"
        allow_init = true
        retry_seconds = 3

        [[token]]
        label = "other"
        client = "/srv/other"
    "#;

    #[test]
    fn a_file_says_everything_or_only_what_must_be_said() {
        let read = parse(FULL).expect("it fits");
        let [payroll, other] = &read.tokens[..] else { panic!("two tokens") };
        assert_eq!(
            (payroll.modes.as_slice(), payroll.gcm_nonce),
            (&[TokenMode::Gcm, TokenMode::Ctr][..], GcmNonce::Nodes)
        );
        assert_eq!(payroll.visible_templates, VisibleTemplates::MakeSensitive);
        assert_eq!((other.gcm_nonce, other.allow_init, other.retry_seconds), (GcmNonce::Caller, false, 10));
        assert_eq!((other.modes.len(), other.prefix.as_str()), (4, ""));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let refused = |from: &str, to: &str, part: &str| {
            let text = FULL.replacen(from, to, 1);
            assert_ne!(text, FULL);
            let message = parse(&text).expect_err(to);
            assert!(message.contains(part), "{message}");
        };
        refused("label = \"other\"", "label = \"payroll\"", "is there twice");
        refused("\"payroll\"", "\"a label of more than thirty-two bytes\"", "1 to 32 bytes");
        refused("\"/srv/other\"", "\"other\"", "whole path");
        refused("\"hr.\"", "\"h r\"", "prefix");
        refused("[\"gcm\", \"ctr\"]", "[]", "no modes");
        refused("[\"gcm\", \"ctr\"]", "[\"xts\"]", "xts");
        refused("\"nodes\"", "\"me\"", "me");
        refused("retry_seconds = 3", "retry_seconds = 3000", "600 seconds");
        refused("allow_init", "allow_innit", "allow_innit");
        assert!(parse("").is_err());
    }

    #[test]
    fn foreign_configurations_do_not_panic() {
        polyclave_harness::fuzz!(
            "pkcs11-configurations",
            &["[[token]]", "label = ", "client = ", "modes = "],
            vec![FULL.into()],
            |bytes: &[u8]| {
                if let Some(Ok(read)) = str::from_utf8(bytes).ok().map(parse) {
                    assert!(read.tokens.iter().all(|token| token.client.is_absolute()));
                }
            }
        );
    }
}
