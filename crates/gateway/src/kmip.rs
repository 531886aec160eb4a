//! KMIP, the Key Management Interoperability Protocol (OASIS, 1.2 to 2.1), for keys that never leave the
//! nodes.
//!
//! A client is known by the name in its certificate. What it may do says its entry in the settings, by the
//! same rule as for tokens. Messages are TTLV on a connection of TLS, one after the other.
//!
//! TTLV is read by code of our own. The crates for it fill types that own their data, copies of plaintexts
//! that nobody wipes, and bound neither the depth nor the number of items.

mod asked;
mod attributes;
mod call;
mod codes;
mod create;
mod crypt;
mod fields;
#[cfg(test)]
mod fuzz;
mod life;
mod look;
mod mac_verify;
mod object;
mod refused;
mod rekey;
mod request;
mod response;
mod tell;
mod ttlv;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use polyclave_transport::expiry;
use rustls::pki_types::CertificateDer;
use rustls::server::ParsedCertificate;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use zeroize::Zeroizing;

use crate::connections::Peer;
use crate::counts::Counts;
use crate::queue::Queue;
use crate::tls;
use crate::tokens::{KmipClient, Tokens};
use asked::Asked;
use call::{Call, Done, Placeholder, now};
use codes::{VERSIONS, Version, operation, tag};
use refused::{Reason, Refused};
use request::Request;
use response::Outcome;

/// The most bytes of a message after its head.
const MOST: usize = 64 << 10;
/// A payload with more bytes is left out of a response that is longer than its client takes. That of a change
/// has an identifier and a type.
const LONG: usize = 192;
/// How long a connection may be idle.
const IDLE: Duration = Duration::from_secs(120);
/// How long the rest of a message may take after its head.
const ARRIVES: Duration = Duration::from_secs(30);

/// A server of KMIP.
pub(crate) struct Kmip {
    /// Its address as the settings write it, by which its clients are looked up.
    pub(crate) address: String,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) queue: Queue,
    pub(crate) counts: Arc<Counts>,
    /// The time within which an item of a batch is answered.
    pub(crate) within: Duration,
}

/// Who is at the other end of a connection.
struct Caller<'c> {
    certificate: ParsedCertificate<'c>,
    /// When the certificate ends.
    ends: SystemTime,
}

impl Kmip {
    /// Answers one message after the other, until the client ends it, is idle, sends what is no message, or
    /// is not in the settings any more, or its certificate ends.
    pub(crate) async fn converse(
        &self,
        certificate: CertificateDer<'static>,
        mut stream: impl AsyncRead + AsyncWrite + Unpin,
        peer: &Peer,
    ) {
        let (Ok(parsed), Ok((_, ends))) = (ParsedCertificate::try_from(&certificate), expiry(&certificate))
        else {
            return;
        };
        let caller = Caller { certificate: parsed, ends };
        let mut head = [0; ttlv::HEAD];
        while let Ok(Ok(_)) = timeout(IDLE, stream.read_exact(&mut head)).await {
            // Until the answer is written: a connection with nothing under way may have to go for another.
            let _under_way = peer.begin();
            let (answer, goes_on) = match self.answered(&caller, head, &mut stream, peer).await {
                Ok(Some(answer)) => (answer, true),
                Ok(None) => return,
                Err(refused) => (whole(refused), false),
            };
            let is_written = stream.write_all(&answer).await.is_ok() && stream.flush().await.is_ok();
            if !goes_on || !is_written {
                let _ = stream.shutdown().await;
                return;
            }
        }
    }

    /// The answer to the message that begins with a head; none if there is nobody to be answered. After an
    /// error the connection is closed.
    async fn answered(
        &self,
        caller: &Caller<'_>,
        head: [u8; ttlv::HEAD],
        stream: &mut (impl AsyncRead + Unpin),
        peer: &Peer,
    ) -> refused::Result<Option<Zeroizing<Vec<u8>>>> {
        let (tag, kind, length) = ttlv::head(head);
        if (tag, kind) != (tag::REQUEST_MESSAGE, ttlv::STRUCTURE) {
            tracing::debug!("what a client of KMIP sent is no request in TTLV");
            return Ok(None);
        }
        let client = self.client(caller)?;
        if peer.is_known_as(&client.asker.name).is_err() {
            let why =
                "this client has as many connections as there is room for; use one for several requests";
            return Err(Reason::GeneralFailure.because(why));
        }
        if length > MOST {
            return Err(Reason::InvalidMessage.because(format!("a request has at most {MOST} bytes")));
        }
        let mut message = Zeroizing::new(vec![0; ttlv::HEAD + length]);
        message[..ttlv::HEAD].copy_from_slice(&head);
        let arrived = timeout(ARRIVES, stream.read_exact(&mut message[ttlv::HEAD..])).await;
        if !matches!(arrived, Ok(Ok(_))) {
            return Ok(None);
        }
        peer.take_turn().await;
        // The settings may have changed until the message was there.
        self.client(caller)?;
        Ok(Some(self.answer(caller, &client.asker.name, &message).await))
    }

    /// Who a caller is by the settings of this moment.
    fn client(&self, caller: &Caller<'_>) -> refused::Result<Arc<KmipClient>> {
        if SystemTime::now() > caller.ends {
            return Err(Reason::NotAuthenticated.because("the certificate has ended: take a new one"));
        }
        let has_name = |name: &str| tls::has_name(&caller.certificate, name);
        self.tokens.find_kmip_client(&self.address, has_name).ok_or_else(|| {
            tracing::debug!("a certificate has the name of no client of KMIP, or of several, and means none");
            let why = "no client, or more than one, has a certificate_name that is in this certificate";
            Reason::NotAuthenticated.because(why)
        })
    }

    async fn answer(&self, caller: &Caller<'_>, name: &str, message: &[u8]) -> Zeroizing<Vec<u8>> {
        let Request { version, most_response, continues, batch } = match Request::read(message) {
            Ok(request) => request,
            Err(refused) => {
                tracing::warn!(client = %name, why = refused.message, "a request of KMIP was refused");
                return whole(refused);
            }
        };
        let mut outcomes = Vec::with_capacity(batch.len());
        let (mut placeholder, mut lists_all) = (None, false);
        for item in batch {
            let (operation, id, began) = (item.operation, item.id, Instant::now());
            let outcome = match Asked::read(item, version, placeholder.as_deref()) {
                // Nothing else makes a response much longer than its request.
                Ok(asked) if asked.lists_all() && std::mem::replace(&mut lists_all, true) => {
                    let why = "all keys were listed for this batch already: send this item by itself";
                    Err(Reason::GeneralFailure.because(why))
                }
                Ok(asked) => self.done(caller, version, asked).await,
                Err(refused) => Err(refused),
            };
            self.note(name, operation, outcome.as_ref().err(), began);
            match &outcome {
                Ok(done) => {
                    if let Placeholder::Now(now) = &done.placeholder {
                        placeholder.clone_from(now);
                    }
                }
                // What comes next may have meant what this item was to make or find.
                Err(_) => placeholder = None,
            }
            let ends = outcome.is_err() && !continues;
            outcomes.push(Outcome { operation: Some(operation), id, outcome });
            if ends {
                break;
            }
        }
        let answer = response::write(version, &outcomes, now());
        match most_response.is_some_and(|most| answer.len() > most) {
            true => shortened(version, outcomes),
            false => answer,
        }
    }

    /// Does an item of a batch with the rights of this moment: a batch may take long.
    async fn done(&self, caller: &Caller<'_>, version: Version, asked: Asked) -> refused::Result<Done> {
        let client = self.client(caller)?;
        asked.done(&Call { client: &client, queue: &self.queue, within: self.within, version }).await
    }

    fn note(&self, client: &str, operation: u32, refused: Option<&Refused>, began: Instant) {
        let served = operation::SERVED.iter().find(|(one, _)| *one == operation);
        let operation = served.map_or("other", |(_, name)| name);
        let outcome = refused.map_or_else(|| "Success".to_owned(), |refused| format!("{:?}", refused.reason));
        self.counts.request(("kmip", operation), outcome, began.elapsed());
        match refused {
            None => tracing::info!(%client, operation, "answered"),
            Some(Refused { reason, message }) => {
                tracing::warn!(%client, operation, ?reason, why = message, "refused");
            }
        }
    }
}

/// A response that is shorter: what was done is told, with what was made or changed, but no longer results.
fn shortened(version: Version, mut outcomes: Vec<Outcome<'_>>) -> Zeroizing<Vec<u8>> {
    for Outcome { outcome, .. } in &mut outcomes {
        if outcome.as_ref().is_ok_and(|done| done.payload.len() > LONG) {
            *outcome = Err(Reason::ResponseTooLarge.because("the response is longer than the client takes"));
        }
    }
    response::write(version, &outcomes, now())
}

/// The response to a request that was refused as a whole, in the oldest version, which all clients read.
fn whole(refused: Refused) -> Zeroizing<Vec<u8>> {
    let outcome = Outcome { operation: None, id: None, outcome: Err(refused) };
    response::write(VERSIONS[VERSIONS.len() - 1], &[outcome], now())
}
