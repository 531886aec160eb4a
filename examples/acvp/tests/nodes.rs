//! NIST's tests of `vectors/acvp`, answered by three nodes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use polyclave_acvp::report::Report;
use polyclave_acvp::run::{Outcome, Settings, response, run};
use polyclave_acvp::set::{Prompt, Response, read};
use polyclave_client::Client;
use polyclave_config::{ClientDir, NodeDir};
use polyclave_node::Running;
use polyclave_node::local::create;

/// How long nodes may take to be ready: much longer than they need, since machines are busy.
const PATIENCE: Duration = Duration::from_secs(120);
const SETTINGS: Settings = Settings { monte_carlo: false, at_once: 8 };

/// Of each set, the tests that nodes answer as expected, and those that they do not do.
const COUNTS: [(&str, usize, usize); 11] = [
    ("ACVP-AES-ECB", 6, 0),
    ("ACVP-AES-CBC", 6, 0),
    ("ACVP-AES-CTR", 6, 6),
    ("ACVP-AES-GCM", 3, 3),
    ("ACVP-AES-KW", 3, 15),
    ("ACVP-AES-KWP", 0, 18),
    ("ACVP-AES-FF1", 6, 2),
    ("ACVP-TDES-ECB", 3, 0),
    ("ACVP-TDES-CBC", 2, 0),
    ("CMAC-AES", 9, 0),
    ("CMAC-TDES", 5, 0),
];

/// Three nodes and a client that may do everything.
struct Cluster {
    client: Client,
    _nodes: Vec<Running>,
    _dir: tempfile::TempDir,
}

impl Cluster {
    fn start() -> Cluster {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let local = create(&dir.path().join("try"), "shamir", 3, 1).expect("a new cluster");
        let start =
            |path: &PathBuf| Running::start(NodeDir::open(path).expect("its directory")).expect("it starts");
        let nodes: Vec<Running> = local.nodes.iter().map(start).collect();
        let until = Instant::now() + PATIENCE;
        while !nodes.iter().all(|node| node.is_ready() && node.status().connected.len() >= nodes.len()) {
            assert!(Instant::now() < until, "the nodes are not ready");
            std::thread::sleep(Duration::from_millis(20));
        }
        let client = Client::open(&ClientDir::open(&local.client).expect("its directory")).expect("a client");
        Cluster { client, _nodes: nodes, _dir: dir }
    }

    fn answers(&self, prompt: &Prompt, expected: Response) -> Vec<Vec<Outcome>> {
        let expected = expected.by_test(prompt).expect("they belong together");
        run(&self.client, prompt, Some(&expected), SETTINGS).expect("nodes answer")
    }
}

fn path(set: &str, file: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../vectors/acvp", &format!("{set}-1.0"), &format!("{file}.json")]
        .iter()
        .collect()
}

fn text(set: &str, file: &str) -> String {
    String::from_utf8(read(&path(set, file)).expect("it can be read")).expect("it is text")
}

fn parsed(set: &str) -> (Prompt, Response) {
    let (prompt, expected) = (text(set, "prompt"), text(set, "expectedResults"));
    (
        Prompt::parse(prompt.as_bytes()).expect("a set"),
        Response::parse(expected.as_bytes()).expect("its results"),
    )
}

/// How many tests passed, and how many are not supported; all others are named.
fn counted(prompt: &Prompt, outcomes: &[Vec<Outcome>]) -> (usize, usize) {
    let report = Report { prompt, outcomes };
    assert!(report.is_good(), "{report}");
    let of = |is: fn(&Outcome) -> bool| outcomes.iter().flatten().filter(|outcome| is(outcome)).count();
    let passed = of(|outcome| matches!(outcome, Outcome::Passed(_)));
    let not_supported = of(|outcome| matches!(outcome, Outcome::NotSupported(_)));
    assert_eq!(passed + not_supported, outcomes.iter().flatten().count(), "{report}");
    (passed, not_supported)
}

#[test]
fn nodes_answer_as_nist_expects_and_what_they_do_not_do_is_named() {
    let cluster = Cluster::start();
    for (set, passed, not_supported) in COUNTS {
        let (prompt, expected) = parsed(set);
        let outcomes = cluster.answers(&prompt, expected);
        assert_eq!(counted(&prompt, &outcomes), (passed, not_supported), "{set}");
        let (_, expected) = parsed(set);
        let expected = expected.by_test(&prompt).expect("they belong together");
        let answers = response(&prompt, &outcomes).by_test(&prompt).expect("they belong together");
        assert_eq!(answers.len(), passed);
        // Counters that nodes choose are others than NIST's.
        if set != "ACVP-AES-CTR" {
            let served: BTreeMap<_, _> =
                expected.into_iter().filter(|(test, _)| answers.contains_key(test)).collect();
            assert_eq!(answers, served, "{set}");
        }
    }
    nonces_of_the_nodes_are_checked(&cluster);
    a_changed_answer_fails(&cluster);
    nothing_is_left(&cluster);
}

/// GCM as ACVP asks for it with `ivGen: internal`: no nonce is given.
fn nonces_of_the_nodes_are_checked(cluster: &Cluster) {
    let mut prompt = parsed("ACVP-AES-GCM").0;
    prompt
        .test_groups
        .retain(|group| group.direction.as_deref() == Some("encrypt") && group.tag_len == Some(128));
    for group in &mut prompt.test_groups {
        group.iv_gen = Some("internal".into());
        group.tests.iter_mut().for_each(|test| test.iv = None);
    }
    let outcomes = cluster.answers(&prompt, parsed("ACVP-AES-GCM").1);
    assert_eq!(counted(&prompt, &outcomes), (1, 0));
    let answered = response(&prompt, &outcomes).by_test(&prompt).expect("they belong together");
    assert!(answered.values().all(|fields| fields["iv"].as_str().is_some_and(|iv| iv.len() == 24)));
    // Nodes do not construct nonces of a counter and a name.
    prompt.test_groups.iter_mut().for_each(|group| group.iv_gen_mode = Some("8.2.1".into()));
    let outcomes = cluster.answers(&prompt, parsed("ACVP-AES-GCM").1);
    assert_eq!(counted(&prompt, &outcomes), (0, 1));
}

fn a_changed_answer_fails(cluster: &Cluster) {
    for (set, field) in [("ACVP-AES-ECB", "ct"), ("ACVP-AES-GCM", "testPassed"), ("ACVP-AES-FF1", "pt")] {
        let (mut prompt, mut expected) = parsed(set);
        let (at, changed) = expected
            .test_groups
            .iter_mut()
            .enumerate()
            .flat_map(|(at, group)| group.tests.iter_mut().map(move |test| (at, test)))
            .find(|(_, test)| test.fields.contains_key(field))
            .expect("it has one");
        let other = match &changed.fields[field] {
            serde_json::Value::String(text) => {
                let first = if text.starts_with('0') { "1" } else { "0" };
                format!("{first}{}", &text[1..]).into()
            }
            _ => true.into(),
        };
        changed.fields.insert(field.into(), other);
        let tc_id = changed.tc_id;
        let group = prompt.test_groups.remove(at);
        prompt.test_groups = vec![group];
        let outcomes = cluster.answers(&prompt, expected);
        let report = Report { prompt: &prompt, outcomes: &outcomes };
        assert!(!report.is_good() && report.to_string().contains("1 FAILED"), "{report}");
        let at =
            prompt.test_groups[0].tests.iter().position(|test| test.tc_id == tc_id).expect("it is asked");
        assert!(matches!(outcomes[0][at], Outcome::Failed(..)));
    }
}

fn nothing_is_left(cluster: &Cluster) {
    assert_eq!(cluster.client.keys().expect("a list").keys.len(), 0);
}
