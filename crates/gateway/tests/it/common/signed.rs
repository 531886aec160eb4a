//! Requests that are signed as clients of AWS sign them, with every part open to change.

use serde_json::Value;
use time::OffsetDateTime;

use super::sign::{authorization, time_of};
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
        time_of(self.at)
    }

    /// The value of `Authorization`.
    pub fn authorization(&self, key: &AccessKey) -> String {
        let time = self.time();
        let mut headers = self.signed.clone();
        headers.extend([("host", "gateway".to_owned()), ("x-amz-date", time.clone())]);
        let of = (key.id.as_str(), key.secret.as_str());
        authorization(of, (self.region, self.service), (&self.path, &time), headers, &self.body)
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
