//! The KMS of Kubernetes, version 2: a service of gRPC on a Unix socket, as the API server asks it
//! (`k8s.io/kms/apis/v2`).
//!
//! A ciphertext is nonce, ciphertext and tag of GCM, with the `key_id` as additional data. So one that comes
//! with the `key_id` of another version, key or cluster does not decrypt.

mod authority;
mod key_id;
mod messages;

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::{Request, Response};
use polyclave_api::KeyInfo;
use tonic::body::Body;
use tonic::server::Grpc;
use tonic::{Code, Status};
use tonic_prost::ProstCodec;
use zeroize::Zeroizing;

use crate::counts::Counts;
use crate::failure::Failure;
use crate::look::Look;
use crate::nodes::Asker;
use crate::queue::Queue;
use crate::traced::Traces;
pub(crate) use authority::Lenient;
use key_id::KeyId;
use messages::{
    DecryptRequest, DecryptResponse, EncryptRequest, EncryptResponse, StatusRequest, StatusResponse,
};

/// The API server waits for 3 s.
const WITHIN: Duration = Duration::from_millis(2800);
/// A request takes no longer than this, with its message.
const AT_MOST: Duration = Duration::from_secs(10);
/// The most bytes of a plaintext: a ciphertext must stay below 1 kB. The API server encrypts keys of 32
/// bytes.
const MAX_PLAINTEXT: usize = 512;
/// Bytes of nonce and tag.
const AROUND: usize = 12 + 16;
/// The most bytes of a message of the API server.
const MAX_MESSAGE: usize = 16 << 10;

/// A KMS with one key.
pub(crate) struct Kms {
    pub(crate) asker: Asker,
    pub(crate) key: String,
    pub(crate) queue: Queue,
    pub(crate) look: Arc<Look>,
    pub(crate) counts: Arc<Counts>,
    pub(crate) traces: Traces,
}

impl Kms {
    /// Answers one request. One whose message does not arrive does not hold its place for ever.
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let headers = request.headers().clone();
        let answer = self.traces.around(&headers, self.serve(request));
        match tokio::time::timeout(AT_MOST, answer).await {
            Ok(response) => response,
            Err(_) => Status::deadline_exceeded("the message did not arrive in time").into_http(),
        }
    }

    async fn serve(&self, request: Request<Incoming>) -> Response<Body> {
        match request.uri().path() {
            "/v2.KeyManagementService/Status" => {
                unary(request, |StatusRequest {}| std::future::ready(Ok(self.status()))).await
            }
            "/v2.KeyManagementService/Encrypt" => {
                unary(request, |asked| self.timed("encrypt", self.encrypt(asked))).await
            }
            "/v2.KeyManagementService/Decrypt" => {
                unary(request, |asked| self.timed("decrypt", self.decrypt(asked))).await
            }
            _ => Status::unimplemented(
                "this is version 2 of the KMS of Kubernetes, and has Status, Encrypt and Decrypt",
            )
            .into_http(),
        }
    }

    /// Answers from what was seen last, and asks no node.
    fn status(&self) -> StatusResponse {
        let key_id = self.look.key(&self.key).map(|info| KeyId::of(&info).to_string());
        let trouble = match (self.look.trouble_of_keys(), &key_id) {
            (None, None) => Some(format!("the nodes have not shown the key {}", self.key)),
            (trouble, _) => trouble,
        };
        StatusResponse {
            version: "v2".into(),
            healthz: trouble.unwrap_or_else(|| "ok".into()),
            key_id: key_id.unwrap_or_default(),
        }
    }

    async fn encrypt(
        &self,
        EncryptRequest { plaintext, .. }: EncryptRequest,
    ) -> Result<EncryptResponse, Failure> {
        let plaintext = Arc::new(Zeroizing::new(plaintext));
        if plaintext.len() > MAX_PLAINTEXT {
            return Err(Failure::Bad(format!(
                "a plaintext of {} bytes; at most {MAX_PLAINTEXT} are encrypted",
                plaintext.len()
            )));
        }
        let known = match self.look.key(&self.key) {
            Some(info) => info,
            None => self.current().await?,
        };
        match self.encrypt_under(known, plaintext.clone()).await {
            // The version may have been retired or deleted a moment ago.
            Err(Failure::NoKey | Failure::Bad(_)) => {
                self.encrypt_under(self.current().await?, plaintext).await
            }
            done => done,
        }
    }

    async fn encrypt_under(
        &self,
        info: KeyInfo,
        plaintext: Arc<Zeroizing<Vec<u8>>>,
    ) -> Result<EncryptResponse, Failure> {
        let key_id = KeyId::of(&info).to_string();
        let additional = key_id.clone();
        let encrypted = self.asker.ask(&self.queue, move |client| {
            client.key_with_info(&info).gcm().aad(additional.as_bytes()).encrypt(&plaintext)
        });
        Ok(EncryptResponse { ciphertext: encrypted.await?, key_id, annotations: Default::default() })
    }

    /// The current version of the key, as the nodes show it now.
    async fn current(&self) -> Result<KeyInfo, Failure> {
        let name = self.key.clone();
        let info = self.asker.ask(&self.queue, move |client| client.info(&name)).await?;
        self.look.note(info.clone());
        Ok(info)
    }

    async fn decrypt(&self, asked: DecryptRequest) -> Result<DecryptResponse, Failure> {
        let DecryptRequest { ciphertext, key_id, annotations, .. } = asked;
        let version = KeyId::parse(&key_id)
            .filter(|id| id.name == self.key)
            .ok_or_else(|| Failure::Bad(format!("the key_id is none of the key {}", self.key)))?;
        if !annotations.is_empty() {
            return Err(Failure::Bad("it has annotations; this KMS gives none".into()));
        }
        if !(AROUND..=MAX_PLAINTEXT + AROUND).contains(&ciphertext.len()) {
            return Err(Failure::Bad(format!(
                "a ciphertext of {} bytes is none of this KMS",
                ciphertext.len()
            )));
        }
        let key = version.to_version();
        let decrypted = self.asker.ask(&self.queue, move |client| {
            client.key_with_id(key.clone()).gcm().aad(key_id.as_bytes()).decrypt(&ciphertext)
        });
        Ok(DecryptResponse { plaintext: std::mem::take(&mut *decrypted.await?) })
    }

    /// The answer, within the time for which the API server waits.
    async fn timed<T>(
        &self,
        operation: &'static str,
        answer: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Status> {
        let began = Instant::now();
        let outcome = match tokio::time::timeout(WITHIN, answer).await {
            Ok(outcome) => outcome,
            Err(_) => Err(match self.look.trouble_of_keys() {
                Some(trouble) => Failure::Unavailable(trouble),
                None => Failure::Late,
            }),
        };
        let outcome = outcome.map_err(|failure| Status::new(code(&failure), failure.to_string()));
        let returned = outcome.as_ref().map_or_else(Status::code, |_| Code::Ok);
        self.counts.request(("kms", operation), format!("{returned:?}"), began.elapsed());
        match &outcome {
            Ok(_) => tracing::info!(kms = %self.asker.name, operation, key = self.key, "answered"),
            Err(status) => {
                tracing::warn!(kms = %self.asker.name, operation, key = self.key, code = ?returned, why = status.message(), "refused");
            }
        }
        outcome
    }
}

/// Everything that is wrong with a request is one code, and missing nodes another one.
fn code(failure: &Failure) -> Code {
    match failure {
        Failure::Unavailable(_) | Failure::Late | Failure::Full => Code::Unavailable,
        Failure::Internal(_) => Code::Internal,
        _ => Code::InvalidArgument,
    }
}

/// One message in, one out.
async fn unary<Q, A, F>(request: Request<Incoming>, mut answer: impl FnMut(Q) -> F) -> Response<Body>
where
    Q: prost::Message + Default + 'static,
    A: prost::Message + Default + 'static,
    F: Future<Output = Result<A, Status>>,
{
    let service = tower::service_fn(move |asked: tonic::Request<Q>| {
        let answered = answer(asked.into_inner());
        async move { answered.await.map(tonic::Response::new) }
    });
    let codec = ProstCodec::<A, Q>::default();
    Grpc::new(codec).max_decoding_message_size(MAX_MESSAGE).unary(service, request).await
}
