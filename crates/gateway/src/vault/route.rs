//! The operation that a request asks for, by its method and path, and the right that it takes.

use axum::http::{Method, Uri};
use polyclave_api::Right;
use polyclave_config::check_name;

use super::fields::truth;
use super::transform::Direction;
use crate::failure::Failure;

/// A request that the API knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(super) what: What,
}

/// What is asked for; with the name of the key, if it is about one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    ListKeys,
    CreateKey(String),
    ReadKey(String),
    DeleteKey(String),
    RotateKey(String),
    ConfigureKey(String),
    TrimKey(String),
    Encrypt(String),
    Decrypt(String),
    Rewrap(String),
    Hmac {
        key: String,
        algorithm: Option<String>,
    },
    Verify {
        key: String,
        algorithm: Option<String>,
    },
    DataKey {
        key: String,
        /// Whether it is given in the clear, too.
        shown: bool,
    },
    Transform {
        direction: Direction,
        role: String,
    },
    Random {
        bytes: Option<String>,
    },
    Hash {
        algorithm: Option<String>,
    },
    LookUpSelf,
    RenewSelf,
    RevokeSelf,
    Mounts,
    Capabilities,
    /// What Vault has and the gateway never will have.
    Refused(&'static str),
}

/// What a method means in Vault.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Read,
    List,
    Write,
    Delete,
}

const NO_EXPORT: &str = "the keys of the nodes are in no place that they could be exported or backed up from";

impl Call {
    pub(super) fn of(method: &Method, uri: &Uri) -> Result<Call, Failure> {
        let path = uri.path().strip_prefix("/v1/").ok_or(Failure::NoPath)?;
        let verb = match method.as_str() {
            "GET" if wants_list(uri)? => Verb::List,
            "GET" => Verb::Read,
            "LIST" => Verb::List,
            "POST" | "PUT" => Verb::Write,
            "DELETE" => Verb::Delete,
            _ => return Err(Failure::NoMethod),
        };
        Call::under(path, verb)
    }

    /// What is asked for under a path.
    pub(super) fn under(path: &str, verb: Verb) -> Result<Call, Failure> {
        let parts: Vec<&str> = path.trim_end_matches('/').split('/').collect();
        what(verb, &parts).map(|what| Call { what })
    }

    /// Whether it is something that the gateway does.
    pub(super) fn is_served(&self) -> bool {
        !matches!(self.what, What::Refused(_))
    }

    /// Whether it makes a key that is not there, if its token may do that, too.
    pub(super) fn may_create(&self) -> bool {
        matches!(self.what, What::Encrypt(_))
    }

    /// Whether its token is good for more afterwards.
    pub(super) fn keeps_its_token(&self) -> bool {
        !matches!(self.what, What::RevokeSelf)
    }

    /// The most bytes of its body: as in Vault where there are messages in it.
    pub(super) fn most_bytes(&self) -> usize {
        match self.what {
            What::Encrypt(_)
            | What::Decrypt(_)
            | What::Rewrap(_)
            | What::Hmac { .. }
            | What::Verify { .. }
            | What::Transform { .. }
            | What::Hash { .. } => 32 << 20,
            _ => 64 << 10,
        }
    }

    /// A word for the log and the counts.
    pub(super) fn operation(&self) -> &'static str {
        match self.what {
            What::ListKeys => "list-keys",
            What::CreateKey(_) => "create-key",
            What::ReadKey(_) => "read-key",
            What::DeleteKey(_) => "delete-key",
            What::RotateKey(_) => "rotate-key",
            What::ConfigureKey(_) => "configure-key",
            What::TrimKey(_) => "trim-key",
            What::Encrypt(_) => "encrypt",
            What::Decrypt(_) => "decrypt",
            What::Rewrap(_) => "rewrap",
            What::Hmac { .. } => "hmac",
            What::Verify { .. } => "verify",
            What::DataKey { .. } => "data-key",
            What::Transform { direction: Direction::Encode, .. } => "encode",
            What::Transform { direction: Direction::Decode, .. } => "decode",
            What::Random { .. } => "random",
            What::Hash { .. } => "hash",
            What::LookUpSelf => "look-up-self",
            What::RenewSelf => "renew-self",
            What::RevokeSelf => "revoke-self",
            What::Mounts => "mounts",
            What::Capabilities => "capabilities-self",
            What::Refused(_) => "refused",
        }
    }

    /// The name of the key; empty if it is about none.
    pub(super) fn key(&self) -> &str {
        match &self.what {
            What::CreateKey(key)
            | What::ReadKey(key)
            | What::DeleteKey(key)
            | What::RotateKey(key)
            | What::ConfigureKey(key)
            | What::TrimKey(key)
            | What::Encrypt(key)
            | What::Decrypt(key)
            | What::Rewrap(key)
            | What::Hmac { key, .. }
            | What::Verify { key, .. }
            | What::DataKey { key, .. } => key,
            _ => "",
        }
    }

    /// The right that a token needs for it, and with which key.
    pub(super) fn right(&self) -> Option<(Right, Option<&str>)> {
        let right = match &self.what {
            What::ListKeys => return Some((Right::List, None)),
            What::Random { .. } => return Some((Right::Random, None)),
            What::CreateKey(_) | What::RotateKey(_) => Right::Generate,
            What::ReadKey(_) => Right::List,
            What::DeleteKey(_) | What::TrimKey(_) => Right::Delete,
            What::ConfigureKey(_) => Right::Configure,
            What::Encrypt(_) | What::DataKey { .. } => Right::Encrypt,
            What::Decrypt(_) => Right::Decrypt,
            What::Rewrap(_) => Right::Rewrap,
            // Nodes do not distinguish either: they compute a code.
            What::Hmac { .. } | What::Verify { .. } => Right::Mac,
            // With which key, the body says.
            What::Transform { .. } => return Some((Right::Tokenize, None)),
            What::Hash { .. }
            | What::LookUpSelf
            | What::RenewSelf
            | What::RevokeSelf
            | What::Mounts
            | What::Capabilities
            | What::Refused(_) => return None,
        };
        Some((right, Some(self.key())))
    }

    /// The fields of its body that Vault knows. Others are ignored, and a warning says so.
    pub(super) fn fields(&self) -> &'static [&'static str] {
        const ITEM: [&str; 6] = [
            "associated_data",
            "batch_input",
            "context",
            "key_version",
            "nonce",
            "partial_failure_response_code",
        ];
        const ENCRYPT: [&str; 9] = [
            ITEM[0],
            ITEM[1],
            ITEM[2],
            ITEM[3],
            ITEM[4],
            ITEM[5],
            "plaintext",
            "type",
            "convergent_encryption",
        ];
        const DECRYPT: [&str; 7] = [ITEM[0], ITEM[1], ITEM[2], ITEM[3], ITEM[4], ITEM[5], "ciphertext"];
        match &self.what {
            What::CreateKey(_) => &[
                "type",
                "derived",
                "convergent_encryption",
                "exportable",
                "allow_plaintext_backup",
                "auto_rotate_period",
                "context",
                "key_size",
            ],
            What::ConfigureKey(_) => &[
                "min_decryption_version",
                "min_encryption_version",
                "deletion_allowed",
                "exportable",
                "allow_plaintext_backup",
                "auto_rotate_period",
            ],
            What::TrimKey(_) => &["min_available_version"],
            What::Encrypt(_) => &ENCRYPT,
            What::Decrypt(_) | What::Rewrap(_) => &DECRYPT,
            What::Hmac { .. } => &["input", "algorithm", "key_version", "batch_input"],
            What::Verify { .. } => {
                &["input", "hmac", "signature", "cmac", "hash_algorithm", "algorithm", "batch_input"]
            }
            What::DataKey { .. } => &["bits", "context", "nonce", "key_version", "associated_data"],
            What::Transform { .. } => &[
                "value",
                "transformation",
                "tweak",
                "reference",
                "batch_input",
                "partial_failure_response_code",
            ],
            What::Random { .. } => &["bytes", "format", "source"],
            What::Hash { .. } => &["input", "algorithm", "format"],
            What::RenewSelf => &["increment"],
            What::LookUpSelf => &["token"],
            What::Capabilities => &["path", "paths"],
            _ => &[],
        }
    }
}

/// Whether a `GET` asks for a list. Vault reads the first `list` of the query as a truth value, and ignores
/// one that is empty.
fn wants_list(uri: &Uri) -> Result<bool, Failure> {
    let mut pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    match pairs.find(|(name, _)| name == "list") {
        Some((_, text)) if !text.is_empty() => {
            truth(&text).ok_or_else(|| Failure::Bad("list in the query is neither true nor false".into()))
        }
        _ => Ok(false),
    }
}

fn what(verb: Verb, parts: &[&str]) -> Result<What, Failure> {
    let only = |wanted: Verb, what: What| if verb == wanted { Ok(what) } else { Err(Failure::NoMethod) };
    let key = |name: &str| match check_name("key", name) {
        Ok(()) => Ok(name.to_owned()),
        Err(_) => Err(Failure::NoPath),
    };
    match parts {
        ["transit", "keys"] => only(Verb::List, What::ListKeys),
        ["transit", "keys", name] => match verb {
            Verb::Write => Ok(What::CreateKey(key(name)?)),
            Verb::Read => Ok(What::ReadKey(key(name)?)),
            Verb::Delete => Ok(What::DeleteKey(key(name)?)),
            Verb::List => Err(Failure::NoMethod),
        },
        ["transit", "keys", name, "rotate"] => only(Verb::Write, What::RotateKey(key(name)?)),
        ["transit", "keys", name, "config"] => only(Verb::Write, What::ConfigureKey(key(name)?)),
        ["transit", "keys", name, "trim"] => only(Verb::Write, What::TrimKey(key(name)?)),
        ["transit", "encrypt", name] => only(Verb::Write, What::Encrypt(key(name)?)),
        ["transit", "decrypt", name] => only(Verb::Write, What::Decrypt(key(name)?)),
        ["transit", "rewrap", name] => only(Verb::Write, What::Rewrap(key(name)?)),
        ["transit", "hmac", name] => only(Verb::Write, What::Hmac { key: key(name)?, algorithm: None }),
        ["transit", "hmac", name, algorithm] => {
            only(Verb::Write, What::Hmac { key: key(name)?, algorithm: Some((*algorithm).into()) })
        }
        ["transit", "verify", name] => only(Verb::Write, What::Verify { key: key(name)?, algorithm: None }),
        ["transit", "verify", name, algorithm] => {
            only(Verb::Write, What::Verify { key: key(name)?, algorithm: Some((*algorithm).into()) })
        }
        ["transit", "datakey", "plaintext", name] => {
            only(Verb::Write, What::DataKey { key: key(name)?, shown: true })
        }
        ["transit", "datakey", "wrapped", name] => {
            only(Verb::Write, What::DataKey { key: key(name)?, shown: false })
        }
        ["transit", "datakey", _, _] => only(
            Verb::Write,
            What::Refused("this path does not exist: after datakey comes plaintext or wrapped"),
        ),
        ["transform", "encode", role] => {
            only(Verb::Write, What::Transform { direction: Direction::Encode, role: key(role)? })
        }
        ["transform", "decode", role] => {
            only(Verb::Write, What::Transform { direction: Direction::Decode, role: key(role)? })
        }
        ["transit", "random"] => only(Verb::Write, What::Random { bytes: None }),
        ["transit", "random", "platform"] => only(Verb::Write, What::Random { bytes: None }),
        ["transit", "random", "seal" | "all", ..] => {
            only(Verb::Write, What::Refused("random bytes come from the platform only"))
        }
        ["transit", "random", "platform", bytes] | ["transit", "random", bytes] => {
            only(Verb::Write, What::Random { bytes: Some((*bytes).into()) })
        }
        ["transit", "hash"] => only(Verb::Write, What::Hash { algorithm: None }),
        ["transit", "hash", algorithm] => {
            only(Verb::Write, What::Hash { algorithm: Some((*algorithm).into()) })
        }
        ["transit", "export" | "byok-export", ..] | ["transit", "backup", _] => {
            only(Verb::Read, What::Refused(NO_EXPORT))
        }
        ["auth", "token", "lookup-self"] => match verb {
            Verb::Read | Verb::Write => Ok(What::LookUpSelf),
            _ => Err(Failure::NoMethod),
        },
        ["auth", "token", "renew-self"] => only(Verb::Write, What::RenewSelf),
        ["auth", "token", "revoke-self"] => only(Verb::Write, What::RevokeSelf),
        ["sys", "mounts"] => only(Verb::Read, What::Mounts),
        ["sys", "capabilities-self"] => only(Verb::Write, What::Capabilities),
        _ => Err(Failure::NoPath),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: &str, uri: &str) -> Result<What, Failure> {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        Call::of(&method, &uri.parse().expect("a path")).map(|call| call.what)
    }

    #[test]
    fn post_and_put_are_alike_and_lists_are_asked_for_in_two_ways() {
        for method in ["POST", "PUT"] {
            assert_eq!(of(method, "/v1/transit/encrypt/k"), Ok(What::Encrypt("k".into())));
        }
        for (method, uri) in [
            ("LIST", "/v1/transit/keys"),
            ("LIST", "/v1/transit/keys/"),
            ("GET", "/v1/transit/keys?list=true"),
            ("GET", "/v1/transit/keys/?a=b&list=true"),
            ("GET", "/v1/transit/keys?list=1"),
            ("GET", "/v1/transit/keys?list=T"),
            ("GET", "/v1/transit/keys?list=True"),
            ("GET", "/v1/transit/keys?li%73t=%74rue&list=false"),
        ] {
            assert_eq!(of(method, uri), Ok(What::ListKeys), "{method} {uri}");
        }
        for query in
            ["", "?list=", "?list", "?list=false", "?list=0", "?list=F", "?lists=true", "?list=f&list=t"]
        {
            assert_eq!(of("GET", &format!("/v1/transit/keys{query}")), Err(Failure::NoMethod), "{query}");
        }
        for query in ["?list=yes", "?list=tRUE", "?list=2", "?list=%20true"] {
            let refused = of("GET", &format!("/v1/transit/keys{query}"));
            assert!(matches!(refused, Err(Failure::Bad(_))), "{query}");
        }
    }

    #[test]
    fn what_is_not_there_and_what_is_there_with_other_methods_differ() {
        for (method, uri, expected) in [
            ("GET", "/", Failure::NoPath),
            ("GET", "/ui", Failure::NoPath),
            ("POST", "/v1/transit/sign/k", Failure::NoPath),
            ("POST", "/v1/other/encrypt/k", Failure::NoPath),
            ("POST", "/v1/transit/encrypt", Failure::NoPath),
            ("POST", "/v1/transit/encrypt/k/l", Failure::NoPath),
            ("POST", "/v1/transit/encrypt/k@1", Failure::NoPath),
            ("POST", "/v1/transit/encrypt/..", Failure::NoPath),
            ("GET", "/v1/transit/encrypt/k", Failure::NoMethod),
            ("LIST", "/v1/transit/keys/k", Failure::NoMethod),
            ("PATCH", "/v1/transit/keys/k", Failure::NoMethod),
            ("HEAD", "/v1/transit/keys/k", Failure::NoMethod),
            ("DELETE", "/v1/auth/token/lookup-self", Failure::NoMethod),
        ] {
            assert_eq!(of(method, uri), Err(expected), "{method} {uri}");
        }
    }
}
