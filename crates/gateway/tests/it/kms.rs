//! The KMS of Kubernetes, asked by a client of gRPC whose messages are written down here once more, from the
//! published description.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use hyper_util::rt::TokioIo;
use polyclave_gateway::Running as Gateway;
use tokio::net::UnixStream;
use tokio::runtime::Runtime;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use tonic_prost::ProstCodec;

use crate::common::{KMS_KEY, PATIENCE, World};

#[derive(Clone, PartialEq, prost::Message)]
struct StatusRequest {}

#[derive(Clone, PartialEq, prost::Message)]
struct StatusResponse {
    #[prost(string, tag = "1")]
    version: String,
    #[prost(string, tag = "2")]
    healthz: String,
    #[prost(string, tag = "3")]
    key_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct DecryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    ciphertext: Vec<u8>,
    #[prost(string, tag = "2")]
    uid: String,
    #[prost(string, tag = "3")]
    key_id: String,
    #[prost(map = "string, bytes", tag = "4")]
    annotations: HashMap<String, Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct DecryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    plaintext: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct EncryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    plaintext: Vec<u8>,
    #[prost(string, tag = "2")]
    uid: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct EncryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    ciphertext: Vec<u8>,
    #[prost(string, tag = "2")]
    key_id: String,
    #[prost(map = "string, bytes", tag = "3")]
    annotations: HashMap<String, Vec<u8>>,
}

/// A client as the API server has one.
struct Kms {
    runtime: Runtime,
    channel: Channel,
}

impl Kms {
    fn of(world: &World) -> Kms {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let socket: PathBuf = world.socket();
        let channel = runtime.block_on(async {
            let connect = tower::service_fn(move |_| {
                let socket = socket.clone();
                async move { std::io::Result::Ok(TokioIo::new(UnixStream::connect(socket).await?)) }
            });
            Endpoint::from_static("http://localhost")
                .connect_with_connector(connect)
                .await
                .expect("connected")
        });
        Kms { runtime, channel }
    }

    fn ask<Q, A>(&self, method: &'static str, message: Q) -> Result<A, Status>
    where
        Q: prost::Message + Default + 'static,
        A: prost::Message + Default + 'static,
    {
        self.runtime.block_on(async {
            let mut grpc = Grpc::new(self.channel.clone());
            grpc.ready().await.map_err(|e| Status::unknown(e.to_string()))?;
            let path = PathAndQuery::from_static(method);
            let codec = ProstCodec::<Q, A>::default();
            grpc.unary(tonic::Request::new(message), path, codec).await.map(tonic::Response::into_inner)
        })
    }

    fn status(&self) -> StatusResponse {
        self.ask("/v2.KeyManagementService/Status", StatusRequest {}).expect("always answered")
    }

    fn encrypt(&self, plaintext: &[u8]) -> Result<EncryptResponse, Status> {
        let asked =
            EncryptRequest { plaintext: plaintext.to_vec(), uid: "a request of the API server".into() };
        self.ask("/v2.KeyManagementService/Encrypt", asked)
    }

    fn decrypt(&self, encrypted: &EncryptResponse) -> Result<Vec<u8>, Status> {
        let EncryptResponse { ciphertext, key_id, annotations } = encrypted.clone();
        let asked = DecryptRequest { ciphertext, uid: String::new(), key_id, annotations };
        let answered: DecryptResponse = self.ask("/v2.KeyManagementService/Decrypt", asked)?;
        Ok(answered.plaintext)
    }
}

fn code(outcome: Result<impl std::fmt::Debug, Status>) -> Code {
    outcome.expect_err("refused").code()
}

#[test]
fn keys_of_the_api_server_come_back_and_the_status_names_the_key() {
    let world = World::shared();
    let kms = Kms::of(&world);
    let info = world.client().info(KMS_KEY).expect("shown");
    let status = kms.status();
    let key_id = format!("{KMS_KEY}/1/{}", hex::encode(info.id));
    assert_eq!((status.version.as_str(), status.healthz.as_str(), &status.key_id), ("v2", "ok", &key_id));
    for bytes in [0, 1, 32, 512] {
        let plaintext: Vec<u8> = (0..bytes).map(|i| i as u8).collect();
        let encrypted = kms.encrypt(&plaintext).expect("encrypted");
        assert_eq!((encrypted.ciphertext.len(), &encrypted.key_id), (bytes + 28, &key_id));
        assert!(encrypted.ciphertext.len() < 1024 && encrypted.annotations.is_empty());
        assert_eq!(kms.decrypt(&encrypted).expect("decrypted"), plaintext);
    }
    world.wait_until("the nodes have logged it", |world| {
        (0..3).all(|node| world.audit_log(node).contains("for=api-server"))
    });
}

#[test]
fn whatever_is_wrong_is_an_invalid_argument() {
    let world = World::shared();
    let kms = Kms::of(&world);
    assert_eq!(code(kms.encrypt(&[0; 513])), Code::InvalidArgument);
    let good = kms.encrypt(&[7; 32]).expect("encrypted");
    let of = |ciphertext: &[u8], key_id: &str| EncryptResponse {
        ciphertext: ciphertext.to_vec(),
        key_id: key_id.into(),
        annotations: HashMap::new(),
    };
    for at in [0, 12, 44, 59] {
        let mut altered = good.ciphertext.clone();
        altered[at] ^= 1;
        assert_eq!(code(kms.decrypt(&of(&altered, &good.key_id))), Code::InvalidArgument, "byte {at}");
    }
    let unknown = format!("{KMS_KEY}/1/{}", "0".repeat(32));
    let version = good.key_id.replace("/1/", "/2/");
    for key_id in ["", KMS_KEY, &unknown, &version, &good.key_id.replace(KMS_KEY, "other")] {
        assert_eq!(code(kms.decrypt(&of(&good.ciphertext, key_id))), Code::InvalidArgument, "{key_id}");
    }
    for ciphertext in [&[][..], &[0; 27], &[0; 28], &[0; 541]] {
        assert_eq!(code(kms.decrypt(&of(ciphertext, &good.key_id))), Code::InvalidArgument);
    }
    let annotated = EncryptResponse { annotations: [("a.b".to_owned(), vec![1])].into(), ..good.clone() };
    assert_eq!(code(kms.decrypt(&annotated)), Code::InvalidArgument);
    let other: Result<StatusResponse, _> = kms.ask("/v2.KeyManagementService/Rotate", StatusRequest {});
    assert_eq!(code(other), Code::Unimplemented);
    assert_eq!(kms.decrypt(&good).expect("decrypted"), [7; 32]);
}

#[test]
fn a_rotated_key_has_a_new_id_soon_and_old_messages_are_decrypted() {
    let world = World::start();
    let kms = Kms::of(&world);
    let old = kms.encrypt(&[1; 32]).expect("encrypted");
    let made = world.client().rotate(KMS_KEY).expect("rotated");
    let key_id = format!("{KMS_KEY}/2/{}", hex::encode(made.id));
    world.wait_until("the status has the new id", |_| kms.status().key_id == key_id);
    let new = kms.encrypt(&[2; 32]).expect("encrypted");
    assert_eq!((new.key_id.as_str(), kms.decrypt(&new).expect("decrypted")), (key_id.as_str(), vec![2; 32]));
    assert_eq!(kms.decrypt(&old).expect("decrypted"), [1; 32]);
    let swapped = EncryptResponse { key_id, ..old };
    assert_eq!(code(kms.decrypt(&swapped)), Code::InvalidArgument, "the id is authenticated");
}

/// The API server waits for 3 s. Nodes that are stopped refuse connections, and a node that hangs does not.
#[test]
fn missing_nodes_are_named_and_requests_end_before_the_api_server_gives_up() {
    let mut world = World::start();
    let kms = Kms::of(&world);
    let encrypted = kms.encrypt(&[3; 32]).expect("encrypted");
    world.stop_node(2);
    world
        .wait_until("the status names the node", |_| kms.status().healthz.contains("node-3 does not answer"));
    assert_eq!(code(kms.encrypt(&[3; 32])), Code::Unavailable);
    assert_eq!(code(kms.decrypt(&encrypted)), Code::Unavailable);
    assert!(kms.status().key_id.starts_with(KMS_KEY), "the last one that was seen");
    // In its place something that accepts connections and says nothing.
    let address = world.local.nodes[2].clone();
    let settings = polyclave_config::NodeDir::open(&address).expect("its directory").settings().clone();
    let silent = std::net::TcpListener::bind(&settings.client_listen).expect("its address is free");
    let began = Instant::now();
    assert_eq!(code(kms.encrypt(&[3; 32])), Code::Unavailable);
    // A connection that stays silent is waited for by the library for a minute.
    assert!(began.elapsed() < Duration::from_secs(60));
    drop(silent);
    world.start_node(2);
    let until = Instant::now() + PATIENCE;
    while kms.decrypt(&encrypted).is_err() || kms.status().healthz != "ok" {
        assert!(Instant::now() < until, "{}", kms.status().healthz);
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn the_socket_is_its_owners_and_replaces_one_that_nobody_serves_on() {
    let mut world = World::start();
    let mode =
        |world: &World| std::fs::metadata(world.socket()).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&world), 0o600);
    let error = Gateway::start(&world.file()).err().expect("refused").to_string();
    assert!(error.contains("another process serves on"), "{error}");
    // Its tasks hold the socket too, on threads of their own.
    for _ in 0..20 {
        drop(world.gateway.take());
        assert!(!world.socket().exists(), "it is removed in the end");
        world.start_gateway();
    }
    drop(world.gateway.take());
    // What a process leaves that was killed.
    drop(std::os::unix::net::UnixListener::bind(world.socket()).expect("bound"));
    assert!(world.socket().exists());
    world.start_gateway();
    assert_eq!(mode(&world), 0o600);
    assert_eq!(Kms::of(&world).status().version, "v2");
}
