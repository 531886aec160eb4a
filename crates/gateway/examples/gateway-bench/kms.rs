//! The API server of Kubernetes, as far as it asks a KMS.

use std::path::Path;

use futures_util::future::join_all;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::runtime::Runtime;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

use crate::Outcome;

#[derive(Clone, PartialEq, prost::Message)]
struct EncryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    plaintext: Vec<u8>,
}

/// The answer to `Encrypt`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Encrypted {
    #[prost(bytes = "vec", tag = "1")]
    ciphertext: Vec<u8>,
    #[prost(string, tag = "2")]
    key_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct DecryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    ciphertext: Vec<u8>,
    #[prost(string, tag = "3")]
    key_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Decrypted {
    #[prost(bytes = "vec", tag = "1")]
    plaintext: Vec<u8>,
}

/// A connection.
pub(crate) struct Kms {
    runtime: Runtime,
    channel: Channel,
}

impl Kms {
    pub(crate) fn connect(socket: &Path) -> Outcome<Kms> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let socket = socket.to_path_buf();
        let connect = tower::service_fn(move |_| {
            let socket = socket.clone();
            async move { std::io::Result::Ok(TokioIo::new(UnixStream::connect(socket).await?)) }
        });
        let endpoint = Endpoint::from_static("http://localhost");
        let channel = runtime.block_on(endpoint.connect_with_connector(connect))?;
        Ok(Kms { runtime, channel })
    }

    pub(crate) fn encrypt(&self, plaintext: &[u8]) -> Outcome<Encrypted> {
        self.ask("/v2.KeyManagementService/Encrypt", EncryptRequest { plaintext: plaintext.to_vec() })
    }

    pub(crate) fn decrypt(&self, Encrypted { ciphertext, key_id }: &Encrypted) -> Outcome<()> {
        let asked = DecryptRequest { ciphertext: ciphertext.clone(), key_id: key_id.clone() };
        self.ask::<_, Decrypted>("/v2.KeyManagementService/Decrypt", asked).map(drop)
    }

    /// Asks for so many encryptions at once, and waits for all answers. Returns how many succeeded.
    #[allow(dead_code, reason = "gateway-flood has it, gateway-bench has not")]
    pub(crate) fn encrypt_at_once(&self, count: usize, plaintext: &[u8]) -> usize {
        let one = |_| {
            let asked = EncryptRequest { plaintext: plaintext.to_vec() };
            self.answer::<_, Encrypted>("/v2.KeyManagementService/Encrypt", asked)
        };
        let all = self.runtime.block_on(join_all((0..count).map(one)));
        all.iter().filter(|outcome| outcome.is_ok()).count()
    }

    fn ask<Q, A>(&self, method: &'static str, message: Q) -> Outcome<A>
    where
        Q: prost::Message + Default + 'static,
        A: prost::Message + Default + 'static,
    {
        self.runtime.block_on(self.answer(method, message))
    }

    async fn answer<Q, A>(&self, method: &'static str, message: Q) -> Outcome<A>
    where
        Q: prost::Message + Default + 'static,
        A: prost::Message + Default + 'static,
    {
        let mut grpc = Grpc::new(self.channel.clone());
        grpc.ready().await?;
        let (path, codec) = (PathAndQuery::from_static(method), ProstCodec::<Q, A>::default());
        Ok(grpc.unary(tonic::Request::new(message), path, codec).await?.into_inner())
    }
}
