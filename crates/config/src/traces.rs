//! `[traces]` in `node.toml` and `gateway.toml`: where traces of requests go.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Where traces of requests go, and what they say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TraceSettings {
    /// The collector of OpenTelemetry that takes them, `http://HOST:PORT/v1/traces`; none are made if absent.
    pub collector: Option<String>,
    /// Whether they name keys and clients, and say how long messages are.
    pub names: bool,
}

/// The most bytes of an address.
const MOST: usize = 512;

impl TraceSettings {
    pub(crate) fn check(&self) -> Result<()> {
        let Some(collector) = &self.collector else { return Ok(()) };
        let wrong = |why: &str| {
            let message =
                "write http://HOST:PORT/v1/traces, of a collector of OpenTelemetry that takes OTLP over HTTP";
            Err(Error::misuse(format!("collector under [traces] is {collector:?}: {why}; {message}")))
        };
        if collector.starts_with("https://") {
            return wrong(
                "a node sends traces without TLS, to a collector on the same machine, which can pass them on with TLS",
            );
        }
        let Some((place, path)) = collector.strip_prefix("http://").and_then(|rest| rest.split_once('/'))
        else {
            return wrong("it does not begin with http://HOST/");
        };
        let is_plain = |text: &str| text.bytes().all(|c| c.is_ascii_graphic() && c != b'@' && c != b'#');
        if place.is_empty() || !is_plain(place) || !is_plain(path) || collector.len() > MOST {
            return wrong("it is no address without a user and a fragment");
        }
        match place.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.ends_with(']')) {
            Some(port) if port.parse::<u16>().is_err() => wrong("its port is no number"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_has_an_address_of_http() {
        let check = |text: &str| TraceSettings { collector: Some(text.into()), names: false }.check();
        for good in
            ["http://127.0.0.1:4318/v1/traces", "http://[::1]:4318/v1/traces", "http://collector/v1/traces"]
        {
            assert!(check(good).is_ok(), "{good}");
        }
        assert!(TraceSettings::default().check().is_ok());
        for wrong in [
            "",
            "127.0.0.1:4318",
            "http://127.0.0.1:4318",
            "http:///v1/traces",
            "http://me:secret@127.0.0.1/v1/traces",
            "http://127.0.0.1:43181818/v1/traces",
            "http://127.0.0.1/v1/ traces",
            "ftp://127.0.0.1/v1/traces",
        ] {
            let message = check(wrong).expect_err(wrong).to_string();
            assert!(message.contains("write http://HOST:PORT/v1/traces"), "{message}");
        }
        let message = check("https://collector.example/v1/traces").expect_err("no TLS").to_string();
        assert!(message.contains("without TLS"), "{message}");
        let long = format!("http://collector/{}", "x".repeat(MOST));
        assert!(check(&long).is_err());
    }
}
