//! Requests that are signed as clients of AWS sign them, with every part open to change.

use std::fmt::Write;

use ring::digest::{SHA256, digest};
use ring::hmac::{HMAC_SHA256, Key, sign};
use serde_json::Value;
use time::OffsetDateTime;

use super::{Answer, Ask, World};

/// An access key, as its holder has it.
#[derive(Clone)]
pub struct AccessKey {
    pub id: String,
    pub secret: String,
}

/// A request, before it is signed.
pub struct Unsigned {
    pub path: String,
    pub body: Vec<u8>,
    pub at: OffsetDateTime,
    pub region: &'static str,
    pub service: &'static str,
    /// Headers beside `host` and `x-amz-date`, which are signed, too.
    pub signed: Vec<(&'static str, String)>,
    /// Headers that are not signed.
    pub beside: Vec<(&'static str, String)>,
}

impl Unsigned {
    pub fn new(path: &str, body: &Value) -> Unsigned {
        Unsigned {
            path: path.into(),
            body: body.to_string().into_bytes(),
            at: OffsetDateTime::now_utc(),
            region: "eu-central-1",
            service: "payment-cryptography",
            signed: vec![("content-type", "application/json".into())],
            beside: Vec::new(),
        }
    }

    fn time(&self) -> String {
        let at = self.at;
        let date = format!("{:04}{:02}{:02}", at.year(), u8::from(at.month()), at.day());
        format!("{date}T{:02}{:02}{:02}Z", at.hour(), at.minute(), at.second())
    }

    /// The value of `Authorization`.
    pub fn authorization(&self, key: &AccessKey) -> String {
        let time = self.time();
        let mut headers = self.signed.clone();
        headers.extend([("host", "gateway".to_owned()), ("x-amz-date", time.clone())]);
        headers.sort();
        let names = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        let path: String = self.path.replace('%', "%25");
        let mut canonical = format!("POST\n{path}\n\n");
        for (name, value) in &headers {
            writeln!(canonical, "{name}:{value}").expect("written");
        }
        let hash = |bytes: &[u8]| hex::encode(digest(&SHA256, bytes));
        write!(canonical, "\n{names}\n{}", hash(&self.body)).expect("written");
        let scope = format!("{}/{}/{}/aws4_request", &time[..8], self.region, self.service);
        let to_sign = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hash(canonical.as_bytes()));
        let mut signing = Key::new(HMAC_SHA256, format!("AWS4{}", key.secret).as_bytes());
        for part in scope.split('/') {
            signing = Key::new(HMAC_SHA256, sign(&signing, part.as_bytes()).as_ref());
        }
        let signature = hex::encode(sign(&signing, to_sign.as_bytes()));
        let AccessKey { id, .. } = key;
        format!("AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}")
    }

    /// The request, signed.
    pub fn ask(&self, key: &AccessKey) -> Ask {
        let mut ask = Ask::new("POST", &self.path)
            .header("x-amz-date", &self.time())
            .header("authorization", &self.authorization(key))
            .body(&self.body);
        for (name, value) in self.signed.iter().chain(&self.beside) {
            ask = ask.header(name, value);
        }
        ask
    }
}

impl World {
    /// Asks as a client of AWS does.
    pub fn aws(&self, key: &AccessKey, path: &str, body: &Value) -> Answer {
        Unsigned::new(path, body).ask(key).of(self.address())
    }

    /// The same for something that has to succeed.
    pub fn paid(&self, key: &AccessKey, path: &str, body: &Value) -> Value {
        let answer = self.aws(key, path, body);
        assert_eq!(answer.status, 200, "{path} {body}: {answer:?}");
        answer.json
    }

    /// The same for something that has to be refused. Returns what it says.
    pub fn refused(&self, key: &AccessKey, path: &str, body: &Value, (status, kind): (u16, &str)) -> Value {
        let answer = self.aws(key, path, body);
        assert_eq!(answer.status, status, "{path} {body}: {answer:?}");
        assert_eq!(answer.header("x-amzn-errortype"), Some(kind), "{path} {body}: {answer:?}");
        answer.json
    }
}
