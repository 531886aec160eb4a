//! A browser without a screen, asked over WebDriver, which is JSON over HTTP: Debian's `chromium` and
//! `chromium-driver`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use polyclave_harness::programs::succeeds;
use serde_json::{Value, json};

use super::{Ask, PATIENCE};

/// A browser with one page. It ends when this is dropped.
pub struct Browser {
    driver: Child,
    address: SocketAddr,
    session: String,
    _files: tempfile::TempDir,
}

impl Browser {
    /// Starts it. `None` if it is not installed.
    pub fn start() -> Option<Browser> {
        let there = |program| succeeds(Command::new(program).arg("--version"), PATIENCE);
        if !there("chromedriver") || !there("chromium") {
            return None;
        }
        let files = tempfile::tempdir().expect("a directory");
        // Nobody is on this port a moment later, either.
        let address =
            TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port");
        let driver = Command::new("chromedriver")
            .arg(format!("--port={}", address.port()))
            .env("HOME", files.path())
            .env("TMPDIR", files.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut browser = Browser { driver, address, session: String::new(), _files: files };
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < until, "chromedriver does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
        ];
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": { "args": arguments }, "goog:loggingPrefs": { "browser": "ALL" },
        } } });
        let made = browser.ask("POST", "/session", &wanted);
        browser.session = format!("/session/{}", made["sessionId"].as_str().expect("a session"));
        Some(browser)
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let asked = Ask::new(method, &format!("{}{path}", self.session)).host(&self.address.to_string());
        let asked = asked.body(body.as_bytes());
        let mut stream = TcpStream::connect(self.address).expect("connected");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        stream.write_all(&asked.head()).and_then(|()| stream.write_all(body.as_bytes())).expect("asked");
        // It keeps connections, so the answer ends where it says.
        let mut reader = BufReader::new(stream);
        let (mut status, mut bytes) = (String::new(), 0);
        reader.read_line(&mut status).expect("an answer");
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).expect("a head");
            let line = line.trim_end().to_lowercase();
            match line.strip_prefix("content-length:") {
                Some(length) => bytes = length.trim().parse().expect("a number"),
                None if line.is_empty() => break,
                None => {}
            }
        }
        let mut answer = vec![0; bytes];
        reader.read_exact(&mut answer).expect("the answer");
        let text = String::from_utf8_lossy(&answer);
        assert!(status.contains(" 200 "), "{path}: {status}{text}");
        let mut answer: Value = serde_json::from_slice(&answer).expect("JSON");
        answer["value"].take()
    }

    pub fn open(&self, url: &str) {
        self.ask("POST", "/url", &json!({ "url": url }));
    }

    /// The value of a program that runs in the page.
    pub fn run(&self, program: &str) -> Value {
        self.ask("POST", "/execute/sync", &json!({ "script": program, "args": [] }))
    }

    /// Waits until an expression is true in the page.
    pub fn wait_for(&self, what: &str) {
        let until = Instant::now() + PATIENCE;
        while self.run(&format!("return Boolean({what})")) != Value::Bool(true) {
            assert!(Instant::now() < until, "{what}: {}", self.text());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// What the page shows.
    pub fn text(&self) -> String {
        self.run("return document.body.innerText").as_str().expect("text").to_owned()
    }

    /// Errors and warnings of the browser since this was asked last.
    pub fn complaints(&self) -> Vec<String> {
        let all = self.ask("POST", "/se/log", &json!({ "type": "browser" }));
        let text = |one: &Value| one["message"].as_str().expect("text").to_owned();
        all.as_array().expect("a list").iter().map(text).collect()
    }

    /// Sets the size of the window, and whether the user wants it dark.
    pub fn show(&self, (width, height): (u32, u32), dark: bool) {
        let scheme = json!({ "name": "prefers-color-scheme", "value": if dark { "dark" } else { "light" } });
        self.devtools("Emulation.setEmulatedMedia", &json!({ "features": [scheme] }));
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700 });
        self.devtools("Emulation.setDeviceMetricsOverride", &size);
    }

    fn devtools(&self, command: &str, parameters: &Value) {
        self.ask("POST", "/goog/cdp/execute", &json!({ "cmd": command, "params": parameters }));
    }

    /// The window as PNG.
    pub fn picture(&self) -> Vec<u8> {
        let encoded = self.ask("GET", "/screenshot", &Value::Null);
        STANDARD.decode(encoded.as_str().expect("base64")).expect("base64")
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() && !std::thread::panicking() {
            self.ask("DELETE", "", &Value::Null);
        }
        // It ends its browser with it.
        let _ = self.driver.kill().and_then(|()| self.driver.wait());
    }
}
