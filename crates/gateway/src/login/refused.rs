//! Why somebody may not log in. The messages say what is wrong with a token, and show nothing of it.

use super::strict::Flaw;

/// See the [module](self). docs/use/identities.md has the list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("the token is longer than {0} bytes")]
    TooLong(usize),
    #[error("it is no JWT: it has to be three parts in base64url with two dots between them")]
    NotCompact,
    #[error("the token is encrypted (JWE); send one that is only signed")]
    Encrypted,
    #[error("its {0} is not base64url without padding")]
    Base64(&'static str),
    #[error("its {0} {1}")]
    Json(&'static str, Flaw),
    #[error("its header has no \"alg\"")]
    NoAlgorithm,
    #[error("the token is not signed (\"alg\" is none)")]
    Unsigned,
    #[error(
        "the token has a code under a shared secret (\"alg\" is HS256, HS384 or HS512); tokens have to be signed with a private key"
    )]
    Symmetric,
    #[error("its \"alg\" is none that this gateway knows")]
    UnknownAlgorithm,
    #[error("it is signed with {0}, which `algorithms` of this login does not allow")]
    AlgorithmNotAllowed(&'static str),
    #[error("its header has \"crit\": it asks for an extension, and this gateway has none")]
    Critical,
    #[error("it is a token within a token (\"cty\" is JWT)")]
    Nested,
    #[error("its \"{0}\" is no text")]
    HeaderNoText(&'static str),
    #[error("the issuer has no key with its \"kid\"")]
    UnknownKey,
    #[error("it has no \"kid\", and the issuer has more than {0} keys for its algorithm")]
    TooManyKeys(usize),
    #[error("the issuer's key with its \"kid\" is not for its \"alg\"")]
    OtherKind,
    #[error("the issuer's key with its \"kid\" cannot be used: {0}")]
    UnusableKey(&'static str),
    #[error("its signature is not one of the issuer")]
    Signature,
    #[error("it has no claim \"{0}\"")]
    NoClaim(&'static str),
    #[error("its claim \"{0}\" is not what it has to be: {1}")]
    WrongClaim(&'static str, &'static str),
    #[error("it has expired {0} s ago (\"exp\")")]
    Expired(i64),
    #[error("it is good only in {1} s (\"{0}\"): the clock of the issuer or of the gateway may be wrong")]
    TooEarly(&'static str, i64),
    #[error("it is of another issuer (\"iss\")")]
    OtherIssuer,
    #[error("it was made for other services (\"aud\"): none of its audiences is one of this role")]
    OtherAudience,
    #[error("its subject (\"sub\") is none of this role")]
    OtherSubject,
    #[error("its claim {0:?} is missing, or has no value of this role")]
    OtherClaim(String),
    #[error(
        "it is no token of a service account that the API server makes on request: take a projected token, or `kubectl create token`"
    )]
    NoServiceAccount,
    #[error("its service account is none of this role")]
    OtherServiceAccount,
    #[error("its namespace is none of this role")]
    OtherNamespace,
    #[error("it was used before, and this role takes each token once (\"jti\")")]
    UsedBefore,
    #[error(
        "it was issued before this gateway started, or within {0} s after (\"iat\"), and this role takes each token once: the gateway does \
         not remember what was used before; get a new one"
    )]
    BeforeStart(u64),
    #[error(
        "it is good for {0} s (\"exp\" and \"iat\"), and may be for {1} s: this role takes each token once, and its id has to be remembered for so \
         long"
    )]
    LongLived(i64, i64),
    #[error(
        "more tokens for single use of its {0} were used than there is memory for; ask again when some have expired"
    )]
    UsedUp(&'static str),
    #[error("too many logins of its subject; log in again in {0} s")]
    Hasty(u64),
    #[error("too many tokens wait to be verified; ask again")]
    Busy,
    #[error("the keys of its issuer cannot be had; the gateway's log says why")]
    NoKeys,
    #[error("the settings of this login have changed meanwhile; ask again")]
    Changed,
    #[error("the gateway has no random bytes: {0}")]
    System(String),
}

impl Refused {
    /// Whether the cause is not the caller's token.
    pub(crate) fn is_ours(&self) -> bool {
        matches!(
            self,
            Refused::UsedUp(_) | Refused::Busy | Refused::NoKeys | Refused::Changed | Refused::System(_)
        )
    }
}
