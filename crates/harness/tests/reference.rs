//! The pages of the reference that are written from the sources, and compared with them here:
//! `docs/reference/`. Those of metrics are in `metrics.rs`,
//! those of commands in the crate `cli`.

use std::collections::BTreeSet;
use std::fmt::Write;

use polyclave_harness::{book, sources};

/// What writes the pages.
const THIS: &str = "-p polyclave-harness --test reference";
/// The first lines of a page.
fn begin(title: &str, words: &str) -> String {
    format!("<!-- A test writes this page: see CONTRIBUTING.md. -->\n\n# {title}\n\n{words}\n")
}

/// A file of settings: its name, what it is for, and the tables in it, each with its struct.
struct File {
    name: &'static str,
    sources: &'static str,
    words: &'static str,
    tables: &'static [(&'static str, &'static str, &'static str)],
}

const FILES: [File; 4] = [
    File {
        name: "node.toml",
        sources: "config/src",
        words: "The settings of a node, in its directory. `polyclave node init` writes it. The node reads \
            it at its start.",
        tables: &[
            ("at the top", "NodeSettings", ""),
            ("[limits]", "NodeLimits", "[Limits](../operate/limits.md) explains them."),
            ("[stock]", "StockSettings", "[Material in stock](../operate/stock.md) explains them."),
            (
                "[latency]",
                "LatencySettings",
                "[Nodes in different cities](../operate/cities.md) explains them.",
            ),
            ("[audit]", "AuditSettings", "[Audit log](../operate/audit-log.md) explains them."),
            ("[refresh]", "RefreshSettings", ""),
            ("[certificates]", "CertificateSettings", ""),
            ("[traces]", "TraceSettings", "[Traces](../operate/traces.md) explains them."),
            ("[[workers]]", "Place", "One for each further [worker](../operate/workers.md)."),
        ],
    },
    File {
        name: "clients.toml",
        sources: "config/src",
        words: "The rules of a node for its clients, in its directory. `polyclave node allow` and \
        `polyclave node policy` write it, or you do. A \
                running node takes a changed file within a second. [Rules for clients](../operate/rules.md) \
                and \
                [Approvals](../operate/approvals.md) explain it.",
        tables: &[
            ("[[client]]", "ClientRule", ""),
            (
                "[[authority]]",
                "Authority",
                "[Clients of an authority](../operate/authorities.md) explains it.",
            ),
            ("[[authority.client]]", "AuthorityClient", ""),
            ("[[group]]", "Group", ""),
            ("[[rule]]", "Rule", ""),
            ("[[approver]]", "Approver", ""),
            ("[[approver_group]]", "ApproverGroup", ""),
            ("[[approval]]", "ApprovalRule", ""),
            ("and = [..] of [[approval]]", "Quorum", ""),
        ],
    },
    File {
        name: "gateway.toml",
        sources: "config/src",
        words: "The settings of a gateway. [Vault's transit API](../use/vault.md#gatewaytoml) explains them.",
        tables: &[
            ("at the top", "GatewaySettings", ""),
            ("[limits]", "GatewayLimits", ""),
            ("[traces]", "TraceSettings", "[Traces](../operate/traces.md) explains them."),
            ("[[listener]]", "GatewayListener", ""),
            ("[[kms]]", "KmsListener", ""),
            ("[[token]]", "GatewayToken", ""),
            ("[[login]]", "GatewayLogin", "[Logins with identities](../use/identities.md) explains them."),
            ("[[login.role]]", "GatewayLoginRole", ""),
            (
                "[[access_key]]",
                "GatewayAccessKey",
                "[AWS Payment Cryptography's API](../use/payments-aws.md) explains them.",
            ),
            ("[[kmip]]", "GatewayKmip", "[KMIP](../use/kmip.md) explains them."),
            ("[[kmip.client]]", "GatewayKmipClient", ""),
            ("[[xks]]", "GatewayXks", "[External key stores of AWS KMS](../use/xks.md) explains them."),
            ("[[xks.key]]", "GatewayXksKey", ""),
            ("[[transform.role]]", "GatewayRole", ""),
            ("[[transform.transformation]]", "GatewayTransformation", ""),
            ("[[transform.template]]", "GatewayTemplate", ""),
            ("[[transform.alphabet]]", "GatewayAlphabet", ""),
        ],
    },
    File {
        name: "pkcs11.toml",
        sources: "pkcs11/src",
        words: "Which keys a PKCS#11 module shows. `POLYCLAVE_PKCS11_CONFIG` names it. \
            [PKCS#11](../use/pkcs11.md#pkcs11toml) explains it.",
        tables: &[("[[token]]", "TokenSettings", "")],
    },
];

/// Fields that have tables of their own.
const TABLES: [&str; 17] = [
    "audit",
    "limits",
    "stock",
    "latency",
    "refresh",
    "certificates",
    "workers",
    "listeners",
    "kms",
    "tokens",
    "logins",
    "kmip",
    "access_keys",
    "xks",
    "transform",
    "traces",
    "and",
];

/// A type, as somebody who writes the file knows it.
fn kind(sources: &[String], rust: &str) -> String {
    let inner = |start: &str| rust.strip_prefix(start).and_then(|rest| rest.strip_suffix('>'));
    if let Some(inner) = inner("Option<") {
        return kind(sources, inner);
    }
    if let Some(inner) = inner("Vec<") {
        return if inner == "u8" { "text".into() } else { format!("list of {}", kind(sources, inner)) };
    }
    match rust {
        "bool" => "true or false",
        "usize" | "u64" | "u32" | "u16" | "NonZeroU64" => "number",
        "PathBuf" => "path",
        "Moment" => "time",
        "Quorum" | "GatewayXksKey" | "GatewayLoginRole" | "GatewayKmipClient" | "AuthorityClient" => "table",
        "BTreeMap<String, Vec<String>>" => "table of lists of text",
        "Right" => "[right](#rights)",
        other if other.starts_with("CertificateDer") => "certificate, Base64 of DER",
        other => return choices(sources, other).unwrap_or("text".into()),
    }
    .into()
}

/// What can be written for an enum; `None` if a type is none, or is written in another way.
fn choices(sources: &[String], name: &str) -> Option<String> {
    let starts = [format!("pub enum {name} {{"), format!("pub(crate) enum {name} {{")];
    let text = sources.iter().find(|text| starts.iter().any(|start| text.contains(start)))?;
    let start = starts.iter().find(|start| text.contains(*start))?;
    let (before, _) = text.split_once(start.as_str())?;
    let kebab = before.rsplit("\n\n").next()?.contains("kebab-case");
    before.rsplit("\n\n").next()?.contains("rename_all").then_some(())?;
    let named = variants(sources, start).into_iter().map(|(variant, _)| {
        let written = variant.char_indices().map(|(at, c)| match c {
            c if kebab && at > 0 && c.is_ascii_uppercase() => format!("-{}", c.to_ascii_lowercase()),
            c => c.to_ascii_lowercase().to_string(),
        });
        format!("`{}`", written.collect::<String>())
    });
    Some(named.collect::<Vec<_>>().join(", "))
}

fn default(field: &sources::Field) -> String {
    match field.default.as_deref() {
        Some("None") => "none".into(),
        Some(value)
            if !value.starts_with(|c: char| c.is_ascii_digit()) && value != "true" && value != "false" =>
        {
            "optional".into()
        }
        Some(value) => value.replace('_', ""),
        None if field.optional => "optional".into(),
        None => "required".into(),
    }
}

#[test]
fn the_page_of_settings_is_what_the_structs_say() {
    let mut page = begin(
        "Configuration",
        "The files of settings that people write or change. A field that no program knows is an error, \
        which names the line. `none` is a default that \
         sets no limit or does nothing.\n\n\
         `cluster.toml`, cards and certificates are written by commands, and never by hand. The fingerprint \
             of `cluster.toml` covers every value in it.",
    );
    for file in FILES {
        let sources = sources::of(file.sources);
        write!(page, "\n## {}\n\n{}\n", file.name, file.words).expect("written");
        for (table, name, words) in file.tables {
            let fields = sources::fields(&sources, name);
            assert!(!fields.is_empty(), "{name}");
            let heading = if *table == "at the top" { "At the top" } else { table };
            write!(page, "\n### `{heading}`\n\n").expect("written");
            if !words.is_empty() {
                write!(page, "{words}\n\n").expect("written");
            }
            page += "| field | | default | |\n|---|---|---|---|\n";
            for field in
                fields.iter().filter(|field| *table != "at the top" || !TABLES.contains(&field.name.as_str()))
            {
                assert!(!field.words.is_empty(), "{name}: {} has no documentation", field.name);
                let (kind, words) = (kind(&sources, &field.kind), field.words.replace('|', "\\|"));
                writeln!(page, "| `{}` | {kind} | {} | {words} |", field.name, default(field))
                    .expect("written");
            }
        }
    }
    page += "\n## Rights\n\nWhat a client may be allowed to do. `node allow --rights all` gives all of \
        them.\n\n| right | |\n|---|---|\n";
    for (name, words) in variants(&sources::of("api/src"), "pub enum Right {") {
        writeln!(page, "| `{}` | {words} |", name.to_lowercase()).expect("written");
    }
    book::compare("reference/configuration.md", &page.replace("### `At the top`", "### At the top"), THIS);
}

/// The variants of an enum, with their documentation.
fn variants(sources: &[String], start: &str) -> Vec<(String, String)> {
    let mut words = String::new();
    let mut variants = Vec::new();
    for line in sources::item(sources, start).lines().skip(1).map(str::trim) {
        match line.strip_prefix("///") {
            Some(more) => words += more,
            None if line.ends_with(',') => {
                variants.push((
                    line.trim_end_matches(',').to_owned(),
                    sources::plain(&std::mem::take(&mut words)),
                ));
            }
            None => {}
        }
    }
    variants
}

/// The strings in a function, with what is before each arrow.
fn arms(folder: &str, start: &str) -> Vec<(String, String)> {
    let text =
        sources::of(folder).into_iter().find(|text| text.contains(start)).expect("the function is there");
    let body = text.split_once(start).expect("found").1;
    let body =
        body.split(['\n']).take_while(|line| *line != "}" && *line != "    }").collect::<Vec<_>>().join("\n");
    let arms = body.split("=>").collect::<Vec<_>>();
    let named = arms.windows(2).filter_map(|pair| {
        let (name, _) = sources::string(pair[1])?;
        Some((pair[0].lines().last()?.trim().to_owned(), name))
    });
    named.collect()
}

#[test]
fn the_page_of_errors_has_every_kind_of_refusal() {
    let reasons = variants(&sources::of("api/src"), "pub enum Reason {");
    let codes = arms("api/src", "pub fn code(self) -> &'static str {");
    let words = arms("api/src", "pub fn in_words(self) -> &'static str {");
    assert_eq!((reasons.len(), codes.len(), words.len()), (13, 13, 13), "{codes:?} {words:?}");
    let mut page = begin(
        "Errors",
        "A node that refuses a request gives a reason for programs and a message for people. The reason has \
        a code in audit logs and metrics, and words \
         on [the operator's page](../operate/dashboard.md). In Rust it is `Reason`; Python has an exception \
         for each.\n\n\
         [What to do when](../operate/messages.md) lists messages with their causes and what to do.\n\n## \
         Reasons\n\n\
         | code | in words | |\n|---|---|---|",
    );
    for (((reason, meaning), (of_code, code)), (of_words, words)) in reasons.iter().zip(&codes).zip(&words) {
        assert!(
            of_code.ends_with(&format!("::{reason}")) && of_words.ends_with(&format!("::{reason}")),
            "{reason}"
        );
        writeln!(page, "| `{code}` | {words} | {meaning} |").expect("written");
    }
    page += "\n## Exit statuses\n\n| status | |\n|---|---|\n\
             | 0 | done |\n\
             | 1 | an error, which is on standard error; or a node that cannot serve (`node status`), or an \
             audit log that was tampered with (`node audit verify`) |\n\
             | 2 | the command line is wrong; or the rules do not allow it (`node policy check`) |\n\
             | 3 | an audit log with gaps (`node audit verify`) |\n";
    book::compare("reference/errors.md", &page, THIS);
}

/// What each operation in an audit log is. Those of requests come from clients.
const REQUESTS: [(&str, &str); 24] = [
    ("check", "the check value of a key is computed; `by=` says how"),
    ("combine", "a key is made of its components"),
    ("configure", "least version, whether it may be deleted, and what is withdrawn, as in `detail`"),
    ("copy", "a key gets a second name; `of=` in `detail` is the first"),
    (
        "decrypt",
        "data is decrypted; for envelopes `detail` has the owner, the hash of the header and the commitment",
    ),
    ("delete", "a key, or one version of it (`version=`), is deleted"),
    ("derive", "a key is derived from another one, `from=`"),
    ("describe", "a label or attributes are replaced"),
    ("encrypt", "data is encrypted; for envelopes `detail` is as for `decrypt`"),
    ("generate", "a key is made"),
    ("import", "a key is imported; `component=` and `sealed=` say how"),
    ("kdf", "a client gets bytes that are derived from a key"),
    ("list", "the keys that the client may see"),
    ("mac", "a code is computed"),
    (
        "pay",
        "payment commands are computed; `command=` is their kind, `count=` their number, `with=` the other keys",
    ),
    ("random", "random bytes, `bytes=`"),
    ("report", "what concerns an operator, for a client with the right `observe`"),
    ("retire", "a version is moved to the state in `detail`"),
    ("rewrap", "a ciphertext is encrypted under another key; `from=` is the old one"),
    ("rotate", "the next version of a key is made; without a client: the operator orders a refresh"),
    ("show", "the versions of one key"),
    ("tokenize", "values are tokenized, or tokens inverted: the client says which (`inverse=`)"),
    ("unwrap", "a wrapped key becomes a key; `under=` is the key that unwraps"),
    ("wrap", "a key is wrapped; `under=` is the key that wraps"),
];
/// Those of the node itself.
const OF_NODE: [(&str, &str); 17] = [
    (
        "authority",
        "certificates of an authority of clients came into force; `certificates=` in `detail` has the hash of each",
    ),
    ("backup", "the operator makes a backup"),
    ("deletion", "a refresh completes a deletion that was interrupted"),
    ("discarded", "the oldest file of the log is deleted, up to the line in `blocks`"),
    ("gap", "so many events (`blocks`) have no line, since the time in `detail`"),
    (
        "policy",
        "rules for clients change: `allowed`, `changed` or `revoked`, with what it was before; `in-force` \
        has the hashes of all rules; \
                `approved`, `refused` if changes need approval",
    ),
    ("quarantine", "a check failed; `one-of=` in `detail` names nodes, if any is to be named"),
    ("readmit", "the operator readmits the node in `detail`"),
    ("recovered", "a line that a crash left half written was cut off"),
    ("renewed", "the operator has begun a new log"),
    ("reshare", "keys move to other nodes: `approved`, `refused` or `done`"),
    ("restored", "the node was restored from a backup"),
    ("rotate-despite-failures", "the operator orders a refresh although many checks have failed"),
    ("rotation", "a refresh is done"),
    ("started", "the node has started; `blocks` is the number of the start"),
    ("stopped", "the node was stopped in order"),
    ("switch-on", "the operator switches on a feature, as `feature=` in `detail` says"),
];

/// The operations of lines about the node itself, as the sources have them.
fn of_node() -> BTreeSet<String> {
    let sources = sources::of("node/src");
    let mut found = BTreeSet::new();
    for text in &sources {
        let constants = text.lines().filter_map(|line| line.split_once("const ")?.1.split_once(": &str = "));
        for (name, value) in constants {
            if ["STARTED", "STOPPED", "DISCARDED", "RESTORED", "OPERATION"].contains(&name) {
                found.extend(sources::string(value).map(|(value, _)| value));
            }
        }
        for (at, call) in text.match_indices("Event::of_node(") {
            let named = sources::string(&text[at + call.len()..]);
            found.extend(named.map(|(name, _)| name));
        }
        if let Some((_, orders)) = text.split_once("fn operation(order: &Instruction)") {
            let body = orders.split("\n}\n").next().unwrap_or_default();
            found.extend(body.split("Some(").skip(1).filter_map(|rest| Some(sources::string(rest)?.0)));
        }
    }
    found
}

/// The names of the operations of clients, which each of them gives itself. Uses of a key have the names of
/// the rights that they need.
fn kinds() -> BTreeSet<String> {
    let mut found = BTreeSet::from(["encrypt", "decrypt", "mac", "tokenize"].map(str::to_owned));
    for text in sources::of("api/src") {
        for named in text.split("fn kind(&self) -> &'static str {").skip(1) {
            let body = named.split("\n    }\n").next().unwrap_or_default();
            let code: String = body.lines().filter(|line| !line.trim().starts_with("//")).collect();
            found.extend(code.split('"').skip(1).step_by(2).map(str::to_owned));
        }
    }
    found
}

#[test]
fn the_page_of_audit_events_has_every_operation() {
    let mut requests = kinds();
    // Answered without a line.
    assert!(requests.remove("status"));
    let named =
        |list: &[(&str, &str)]| list.iter().map(|(name, _)| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(requests, named(&REQUESTS), "give each operation words in this test");
    let mut of_the_node = of_node();
    // In the list of requests, which have this name too.
    assert!(of_the_node.remove("rotate"));
    assert_eq!(of_the_node, named(&OF_NODE), "give each operation words in this test");

    let mut page = begin(
        "Audit events",
        "Each line of a node's [audit log](../operate/audit-log.md) is a JSON object:\n\n\
         | field | |\n|---|---|\n\
         | `seq` | the number of the line |\n\
         | `time` | when, in UTC |\n\
         | `client` | the client's name in the node's rules, or the identity that its authority vouches for; \
         empty if no client is involved |\n\
         | `operation` | see below |\n\
         | `key` | the key's name; empty if no key is involved |\n\
         | `outcome` | `begun` before anything is computed; then `done`, or the code of a \
         [refusal](errors.md#reasons) |\n\
         | `blocks` | blocks that were computed; with some operations another number |\n\
         | `detail` | further names and numbers, such as `for=` (for whom a gateway asks), `approved-by=`, \
         `under=`, `from=` |\n\
         | `mark` | a mark that the store had reached by then |\n\
         | `request` | the request's id, the same in the logs of all nodes |\n\
         | `previous`, `hash` | the hash of the line before, and of this line (BLAKE3) |\n\n\
         Under `shamir-active` and `replicated-four` the outcomes `outvoted-NAME` and `silent-NAME` name a \
         node that caused a fault in a request. Under `replicated-four` the outcome `disputed-NAME-NAME` names \
         two nodes that contradict each other: one of them cheats, or is damaged.\n\n\
         ## Requests of clients\n\n| operation | |\n|---|---|",
    );
    for (name, words) in REQUESTS {
        writeln!(page, "| `{name}` | {words} |").expect("written");
    }
    page += "\n## The node itself\n\n| operation | |\n|---|---|\n";
    for (name, words) in OF_NODE {
        writeln!(page, "| `{name}` | {words} |").expect("written");
    }
    book::compare("reference/audit-events.md", &page, THIS);
}
