//! A collector of OpenTelemetry for tests: takes traces over HTTP, in JSON, and keeps them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Value;

/// How long a test waits for spans.
const PATIENCE: Duration = Duration::from_secs(60);

/// A collector that is gone when dropped.
pub struct Collector {
    address: SocketAddr,
    spans: Arc<Mutex<Vec<Value>>>,
    stopping: Arc<AtomicBool>,
}

impl Collector {
    /// One that takes all spans.
    pub fn start() -> Collector {
        Collector::with(true)
    }

    /// One that accepts connections and answers nothing.
    pub fn silent() -> Collector {
        Collector::with(false)
    }

    fn with(answers: bool) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let (spans, stopping) = (Arc::<Mutex<Vec<Value>>>::default(), Arc::<AtomicBool>::default());
        let (kept, ends) = (spans.clone(), stopping.clone());
        thread::spawn(move || {
            let mut held = Vec::new();
            for stream in listener.incoming() {
                if ends.load(Relaxed) {
                    return;
                }
                let stream = stream.expect("a connection");
                if answers {
                    let kept = kept.clone();
                    thread::spawn(move || serve(&stream, &kept));
                } else {
                    held.push(stream);
                }
            }
        });
        Collector { address, spans, stopping }
    }

    /// Where it takes traces, as a setting has it.
    pub fn url(&self) -> String {
        format!("http://{}/v1/traces", self.address)
    }

    /// The spans so far. Each has the attributes of its process as `resource`, and attributes as an object.
    pub fn spans(&self) -> Vec<Value> {
        self.spans.lock().clone()
    }

    /// Waits until the spans are enough, and returns them.
    pub fn wait_for(&self, is_enough: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let until = Instant::now() + PATIENCE;
        loop {
            let spans = self.spans();
            if is_enough(&spans) {
                return spans;
            }
            assert!(Instant::now() < until, "spans did not come: {spans:#?}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.stopping.store(true, Relaxed);
        // The listener sees it with the next connection.
        drop(TcpStream::connect(self.address));
    }
}

/// Answers requests of one connection, until it ends.
fn serve(stream: &TcpStream, spans: &Mutex<Vec<Value>>) {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line == "\r\n" {
                break;
            }
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
            head += &lower;
        }
        assert!(head.starts_with("post /v1/traces http/1.1"), "{head}");
        assert!(head.contains("content-type: application/json"), "{head}");
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("a whole document");
        let document = serde_json::from_slice(&body).expect("a document in JSON");
        spans.lock().extend(spans_of(&document));
        (&*stream).write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").expect("answered");
    }
}

/// The spans of a document.
fn spans_of(document: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    for of_process in document["resourceSpans"].as_array().expect("a list") {
        let resource = attributes(&of_process["resource"]["attributes"]);
        for scope in of_process["scopeSpans"].as_array().expect("a list") {
            for span in scope["spans"].as_array().expect("a list") {
                let mut span = span.clone();
                span["attributes"] = attributes(&span["attributes"]);
                span["resource"] = resource.clone();
                all.push(span);
            }
        }
    }
    all
}

/// A list of names and values, as an object.
fn attributes(list: &Value) -> Value {
    let pairs = list.as_array().expect("a list").iter().map(|pair| {
        let value = pair["value"].as_object().and_then(|value| value.values().next()).expect("a value");
        (pair["key"].as_str().expect("a name").to_owned(), value.clone())
    });
    Value::Object(pairs.collect())
}
