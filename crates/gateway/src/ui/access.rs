//! Access to the page: it takes a token of the gateway with the right `observe`, or the token that `polyclave
//! dashboard` printed.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::header::HOST;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use polyclave_api::Right;
use polyclave_config::{GatewayGrant, GatewayToken};

use crate::connections::Peer;
use crate::tokens::{Tokens, token_of};

/// The tokens that are accepted.
pub(crate) enum Access {
    /// Those of a gateway's file.
    Gateway(Arc<Tokens>),
    /// The token with this hash.
    One([u8; 32]),
}

/// An admitted viewer.
pub(crate) struct Viewer {
    hash: [u8; 32],
    entry: Option<GatewayGrant>,
}

/// Why somebody may not.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Denied {
    #[error("this token is not known here")]
    Stranger,
    #[error(
        "this token has no right to observe; make one with `polyclave gateway token NAME --rights observe,list --keys '*'`"
    )]
    NotAllowed,
    #[error("this token has as many connections as there is room for; close a page")]
    Crowded,
}

impl Denied {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Denied::Stranger => StatusCode::UNAUTHORIZED,
            Denied::NotAllowed => StatusCode::FORBIDDEN,
            Denied::Crowded => StatusCode::TOO_MANY_REQUESTS,
        }
    }
}

impl Access {
    /// The viewer, by the token in the header.
    pub(crate) fn admit(&self, headers: &HeaderMap) -> Result<Viewer, Denied> {
        let hash = GatewayToken::hash_of(token_of(headers).ok_or(Denied::Stranger)?);
        match self {
            // Hashes are compared, so how long it takes says nothing of the token.
            Access::One(own) if *own == hash => Ok(Viewer { hash, entry: None }),
            Access::One(_) => Err(Denied::Stranger),
            Access::Gateway(tokens) => {
                let token = tokens.find(&hash).ok_or(Denied::Stranger)?;
                match token.entry.allows(Right::Observe, "") {
                    true => Ok(Viewer { hash, entry: Some(token.entry.clone()) }),
                    false => Err(Denied::NotAllowed),
                }
            }
        }
    }

    /// Whether an admitted viewer may still look, by the present file.
    pub(crate) fn still(&self, viewer: &Viewer) -> bool {
        match self {
            Access::One(_) => true,
            Access::Gateway(tokens) => {
                tokens.find(&viewer.hash).is_some_and(|token| token.entry.allows(Right::Observe, ""))
            }
        }
    }
}

impl Viewer {
    /// The token's name.
    pub(crate) fn name(&self) -> &str {
        self.entry.as_ref().map_or("dashboard", |entry| &entry.name)
    }

    /// Notes whose connection it is.
    pub(crate) fn comes_on(&self, peer: Option<&Peer>) -> Result<(), Denied> {
        peer.map_or(Ok(()), |peer| peer.is_known_as(&self.name().into())).map_err(|_| Denied::Crowded)
    }

    /// Whether a search may show a key. The token of a dashboard gives all rights of its client.
    pub(crate) fn may_list(&self, key: &str) -> bool {
        self.entry.as_ref().is_none_or(|entry| entry.allows(Right::List, key))
    }
}

/// By which names the page may be asked for.
pub(crate) enum Hosts {
    /// Any: a certificate or a proxy decides about names, and every request has a token that no other site
    /// knows.
    Any,
    /// Those of the loopback interface, with a port: another name that leads here is one that another site
    /// has made up to be taken for this page ("DNS rebinding").
    Loopback(u16),
}

impl Hosts {
    pub(crate) fn loopback(address: SocketAddr) -> Hosts {
        Hosts::Loopback(address.port())
    }

    /// Why a request is refused.
    pub(crate) fn refuse(&self, headers: &HeaderMap) -> Option<String> {
        let Hosts::Loopback(port) = self else { return None };
        let is_own = |host: &HeaderValue| {
            ["127.0.0.1", "localhost", "[::1]"].iter().any(|name| *host == format!("{name}:{port}"))
        };
        let mut hosts = headers.get_all(HOST).iter().peekable();
        let known = hosts.peek().is_some() && hosts.all(is_own);
        (!known).then(|| format!("this page is asked for as 127.0.0.1:{port} or localhost:{port} only"))
    }
}
