//! Clients that nodes know by an authority, at real nodes: who is let in, for how long, and as whom.

use std::fs::{self, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use polyclave_api::{Approval, Mode, Operation, Reason, Reply, Right, Statement, Step, Use, operations};
use polyclave_client::{Client, Error};
use polyclave_config::{
    ApprovalRule, Authority as Entry, AuthorityClient, ClientCard, ClientDir, Consent, Moment, NodeDir,
    RenewedFiles, sign_approval,
};
use polyclave_harness::authority::{Authority, Signed, svid, uri, within};
use polyclave_node::AuthorityState;
use polyclave_node::admin::{Answer, Instruction, order};
use polyclave_protocol::PartySet;
use polyclave_transport::{Halt, Identity, Limits, Line, Node, call};
use rcgen::{BasicConstraints, CertificateParams, IsCa};

use crate::common::messages::ctr;
use crate::common::raw::{Raw, request};
use crate::common::{TestCluster, data, key, nothing};

const WEB: &str = "spiffe://corp.example/prod/web";

/// Nodes, a key, and an authority whose clients below `prod` may use it.
struct Corp {
    cluster: TestCluster,
    authority: Authority,
    dir: tempfile::TempDir,
}

impl Corp {
    fn start() -> Corp {
        let (mut cluster, authority) = (TestCluster::define(3, 1), Authority::new("corp"));
        let prod = AuthorityClient {
            name: "prod".into(),
            identity: "spiffe://corp.example/prod/*".into(),
            rights: vec![Right::Encrypt, Right::List, Right::Delete],
            keys: vec!["k*".into()],
        };
        for path in &cluster.local.nodes {
            fs::write(path.join("corp.pem"), authority.pem()).expect("written");
            let node = NodeDir::open(path).expect("its directory");
            let mut policy = node.policy().expect("its policy");
            policy.set_authority(Entry::new("corp", "corp.pem", Some(2))).expect("it fits");
            policy.set_authority_client("corp", prod.clone()).expect("it fits");
            node.save_policy(&policy).expect("saved");
        }
        (0..3).for_each(|node| cluster.restart(node));
        cluster.wait_until_ready();
        cluster.client().generate(key("k", "aes-128", &[Mode::Ctr])).expect("a key");
        Corp { cluster, authority, dir: tempfile::tempdir().expect("a directory") }
    }

    /// Clients have to connect anew.
    fn end_connections(&mut self) {
        for node in 0..3 {
            self.cluster.stop(node);
            self.cluster.restart(node);
        }
        self.cluster.wait_until_ready();
    }

    /// Where an agent writes for a client.
    fn files(&self, name: &str) -> RenewedFiles {
        let file = |kind: &str| self.dir.path().join(format!("{name}.{kind}"));
        RenewedFiles { certificate: file("pem"), key: file("key") }
    }

    /// A client whose agent has written this.
    fn client(&self, name: &str, signed: &Signed) -> Client {
        let (files, path) = (self.files(name), self.dir.path().join(name));
        renew(&files, signed);
        let dir = ClientDir::init_renewed(&path, name, &files).expect("made");
        dir.set_cluster(&self.cluster.file(), Consent::None).expect("saved");
        Client::open(&ClientDir::open(&path).expect("its directory")).expect("a client")
    }

    /// Calls all nodes. Returns the connections, or why there are none.
    fn call(&self, signed: &Signed) -> Vec<Result<Line, String>> {
        let identity = Identity::from_pem(signed.chain.as_bytes(), signed.key.as_bytes()).expect("they fit");
        let file = self.cluster.file();
        let node = |card: &polyclave_config::Card| Node {
            address: card.client_address.clone(),
            certificates: card.certificates.clone(),
        };
        let nodes: Vec<Node> = file.cards().iter().map(node).collect();
        let (of, all) = ((file.connection_id(), None), PartySet::all(3));
        let called = call(&identity, Limits::for_clients(), &nodes, of, all, &Halt::default());
        called.into_iter().map(|(_, line)| line.map_err(|e| e.to_string())).collect()
    }

    /// Says at all nodes what some clients of the authority may do.
    fn allow(&self, name: &str, identity: &str, rights: &[Right], keys: &str) {
        for path in &self.cluster.local.nodes {
            let node = NodeDir::open(path).expect("its directory");
            let mut policy = node.policy().expect("its policy");
            let (name, identity, keys) = (name.into(), identity.into(), vec![keys.into()]);
            let entry = AuthorityClient { name, identity, rights: rights.to_vec(), keys };
            policy.set_authority_client("corp", entry).expect("it fits");
            node.save_policy(&policy).expect("saved");
        }
    }

    fn is_admitted(&self, params: &CertificateParams) -> bool {
        let lines = self.call(&self.authority.sign(params));
        let admitted = lines.iter().filter(|line| line.is_ok()).count();
        assert!(admitted == 0 || admitted == 3, "the nodes do not agree");
        admitted == 3
    }

    /// Puts another file in the place of the authority's at all nodes, as SPIRE does.
    fn replace(&self, text: &str) {
        for path in &self.cluster.local.nodes {
            let next = path.join("corp.next");
            fs::write(&next, text).expect("written");
            fs::rename(&next, path.join("corp.pem")).expect("replaced");
        }
    }

    fn state(&self, node: usize) -> AuthorityState {
        let dir = NodeDir::open(&self.cluster.local.nodes[node]).expect("its directory");
        match order(&dir, &Instruction::Status).expect("it answers") {
            Some(Answer::Status(status)) => status.authorities.first().expect("it has one").clone(),
            other => panic!("{other:?}"),
        }
    }
}

/// Writes what an agent writes: first the certificate, then the key.
fn renew(files: &RenewedFiles, signed: &Signed) {
    let put = |path: &Path, text: &str| {
        let next = PathBuf::from(format!("{}.next", path.display()));
        fs::write(&next, text).expect("written");
        fs::set_permissions(&next, Permissions::from_mode(0o600)).expect("set");
        fs::rename(&next, path).expect("renamed");
    };
    put(&files.certificate, &signed.chain);
    put(&files.key, &signed.key);
}

fn changed(change: impl FnOnce(&mut CertificateParams)) -> CertificateParams {
    let mut params = svid(WEB);
    change(&mut params);
    params
}

#[test]
fn every_node_lets_clients_of_an_authority_in_by_their_identity_and_refuses_what_is_not_fit() {
    let corp = Corp::start();
    let web = corp.client("web", &corp.authority.sign(&svid(WEB)));
    assert_eq!(web.name(), WEB);
    ctr(&web, "k", &data(32)).expect("allowed by the prefix");
    let refusal = ctr(&web, "other", &data(32)).expect_err("no key of its entry").to_string();
    assert!(refusal.contains(WEB), "{refusal}");

    assert!(corp.is_admitted(&svid(WEB)));
    assert!(!corp.is_admitted(&svid("spiffe://corp.example/test/web")), "another path");
    assert!(!corp.is_admitted(&svid("spiffe://corp.example/prodweb")), "the path only begins alike");
    assert!(!corp.is_admitted(&svid("spiffe://other.example/prod/web")), "another trust domain");
    assert!(!corp.is_admitted(&changed(|p| within(p, -60, 3 * 3600 + 60))), "for too long");
    assert!(!corp.is_admitted(&changed(|p| p.subject_alt_names.push(uri("spiffe://corp.example/prod/b")))));
    assert!(!corp.is_admitted(&changed(|p| p.extended_key_usages.clear())), "not for clients");
    assert!(!corp.is_admitted(&changed(|p| p.key_usages.clear())), "not for signatures");
    assert!(!corp.is_admitted(&changed(|p| p.is_ca = IsCa::Ca(BasicConstraints::Unconstrained))));
    let wrong = Authority::new("corp");
    assert!(corp.call(&wrong.sign(&svid(WEB))).iter().all(Result::is_err), "another authority of its name");
    // Nothing of the reason goes to the other side.
    let told = corp.call(&wrong.sign(&svid(WEB))).remove(0).err().expect("refused");
    assert!(told.contains("not one of those that it lists or admits"), "{told}");
    // Listed clients are let in as before.
    ctr(&corp.cluster.client(), "k", &data(32)).expect("it is listed");
}

#[test]
fn a_file_of_an_authority_that_is_replaced_is_read_again_and_a_broken_one_changes_nothing() {
    let corp = Corp::start();
    let next = Authority::new("corp next");
    let is_in = |by: &Authority| corp.call(&by.sign(&svid(WEB))).iter().all(Result::is_ok);
    assert!(is_in(&corp.authority) && !is_in(&next));
    let mut before = corp.call(&corp.authority.sign(&svid(WEB)));
    corp.replace("-----BEGIN CERTIFICATE-----\nnothing\n");
    corp.cluster.wait_until(|| (0..3).all(|node| corp.state(node).problem.is_some()));
    assert!(is_in(&corp.authority), "the certificates of before stay");
    assert_eq!(corp.state(0).certificates, 1);
    corp.replace(&(corp.authority.pem() + &next.pem()));
    corp.cluster.wait_until(|| is_in(&next));
    assert!(is_in(&corp.authority), "both are in force");
    corp.cluster.wait_until(|| (0..3).all(|node| corp.state(node).problem.is_none()));
    assert!(
        before.iter_mut().flatten().all(Line::is_alive),
        "the certificate that has signed is still there"
    );
    corp.replace(&next.pem());
    corp.cluster.wait_until(|| corp.call(&corp.authority.sign(&svid(WEB))).iter().all(Result::is_err));
    assert!(is_in(&next));
    // Connections of before end, too.
    let until = Instant::now() + Duration::from_secs(20);
    while before.iter_mut().flatten().any(|line| line.is_alive()) {
        assert!(Instant::now() < until, "a connection outlives its authority");
        sleep(Duration::from_millis(50));
    }
}

/// A file that comes in two parts, the second one after a pause.
struct Paused {
    parts: Vec<Vec<u8>>,
    until: Instant,
}

impl Read for Paused {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(part) = self.parts.last_mut() else { return Ok(0) };
        let count = part.len().min(into.len());
        into[..count].copy_from_slice(&part[..count]);
        part.drain(..count);
        if part.is_empty() {
            self.parts.pop();
            sleep(self.until.saturating_duration_since(Instant::now()));
        }
        Ok(count)
    }
}

#[test]
fn no_connection_outlives_its_certificate_and_a_client_goes_on_with_the_one_that_its_agent_wrote() {
    let mut corp = Corp::start();
    let short = corp.authority.sign(&changed(|p| within(p, -60, 14)));
    let ends = Instant::now() + Duration::from_secs(15);
    let web = corp.client("web", &short);
    ctr(&web, "k", &data(32)).expect("in time");
    let mut quiet = corp.call(&short);
    assert!(quiet.iter_mut().all(|line| line.as_mut().is_ok_and(Line::is_alive)));
    // A request that has begun in time has no further step after the end.
    let (mut long, mut out) = (Paused { parts: vec![data(1 << 20); 2], until: ends }, Vec::new());
    let outcome = std::thread::scope(|scope| {
        let long = scope.spawn(|| web.key("k")?.ctr().encrypt_stream(&mut long, &mut out, &mut nothing));
        // The agent writes the next certificate before the end.
        sleep(Duration::from_secs(2));
        renew(&corp.files("web"), &corp.authority.sign(&svid(WEB)));
        long.join().expect("it ends")
    });
    match outcome {
        Err(Error::Refused { refusal, .. }) => {
            assert!(refusal.reason == Reason::Busy && refusal.message.contains("has ended"), "{refusal}");
        }
        other => panic!("{other:?}"),
    }
    let until = Instant::now() + Duration::from_secs(20);
    while quiet.iter_mut().flatten().any(|line| line.is_alive()) {
        assert!(Instant::now() < until, "a connection outlives its certificate");
        sleep(Duration::from_millis(50));
    }
    ctr(&web, "k", &data(32)).expect("with the next certificate");
    // What cannot be used, or is somebody else's, is not taken.
    let files = corp.files("web");
    fs::write(&files.certificate, "half").expect("written");
    corp.end_connections();
    corp.cluster.wait_until(|| ctr(&web, "k", &data(32)).is_ok());
    renew(&files, &corp.authority.sign(&svid("spiffe://corp.example/test/other")));
    corp.end_connections();
    // With what was read before: no node would let the other one in.
    corp.cluster.wait_until(|| ctr(&web, "k", &data(32)).is_ok());
    let admitted = Client::open(&ClientDir::open(&corp.dir.path().join("web")).expect("there"));
    assert_eq!(admitted.expect("a client").name(), "spiffe://corp.example/test/other");
}

#[test]
fn all_nodes_know_a_client_by_the_same_identity_which_outlasts_its_certificates() {
    let corp = Corp::start();
    let approver = Identity::generate_named("ann", 1).expect("an identity");
    let card = ClientCard { name: "ann".into(), certificate: approver.certificate() };
    for path in &corp.cluster.local.nodes {
        let node = NodeDir::open(path).expect("its directory");
        let mut policy = node.policy().expect("its policy");
        policy.set_approver(&card).expect("it fits");
        let rule = ApprovalRule {
            name: "one".into(),
            rights: vec![Right::Delete],
            keys: vec!["k*".into()],
            need: 1,
            of: vec!["ann".into()],
            ..ApprovalRule::default()
        };
        policy.set_approval(rule).expect("it fits");
        node.save_policy(&policy).expect("saved");
    }
    let web = corp.client("web", &corp.authority.sign(&svid(WEB)));
    // Of a key that is not there: before the nodes have taken their rules, nothing is deleted by it.
    corp.cluster.wait_until(|| web.delete("k-2").is_err_and(|e| e.to_string().contains("needs approval")));
    let statement = draft(&corp.cluster, web, |web| web.delete("k"));
    let mut approval = Approval::new(&statement).expect("encoded");
    sign_approval(&mut approval, &approver).expect("signed");

    // Another client of the authority is another one, and the same one with its next certificate is not.
    let other = corp.client("other", &corp.authority.sign(&svid("spiffe://corp.example/prod/other")));
    let refusal =
        other.with_approval(approval.clone()).delete("k").expect_err("approved for web").to_string();
    assert!(refusal.contains("for another client than spiffe://corp.example/prod/other"), "{refusal}");
    // One node is asked with another certificate than the others.
    let raw = |id: &str| {
        let signed = corp.authority.sign(&svid(id));
        let identity = Identity::from_pem(signed.chain.as_bytes(), signed.key.as_bytes()).expect("they fit");
        Raw::call_as(&corp.cluster, &identity)
    };
    let how = || Operation::Use(operations::UseKey { key: "k".into(), id: None, how: Use::CtrEncrypt });
    let keystream = || request(how(), Some(Step::Keystream { bytes: 32 }));
    let mut mixed = raw(WEB).with_line_of(raw(WEB), 0);
    mixed.tell_all(&keystream());
    mixed.replies();
    assert!(mixed.replies().iter().all(|reply| matches!(reply, Reply::Data { .. })), "the same client");
    let mut mixed = raw(WEB).with_line_of(raw("spiffe://corp.example/prod/other"), 0);
    mixed.tell_all(&keystream());
    let endings = mixed.endings();
    assert!(endings.iter().all(|ending| !ending.gave_data()), "two clients: {endings:?}");

    renew(&corp.files("web"), &corp.authority.sign(&svid(WEB)));
    let dir = ClientDir::open(&corp.dir.path().join("web")).expect("its directory");
    let web = Client::open(&dir).expect("a client");
    web.with_approval(approval).delete("k").expect("it is the same client");
    for path in &corp.cluster.local.nodes {
        let log = || fs::read_to_string(NodeDir::open(path).expect("there").audit_path()).expect("its log");
        corp.cluster.wait_until(|| {
            let lines = log();
            let mut lines =
                lines.lines().map(|l| serde_json::from_str::<serde_json::Value>(l).expect("JSON"));
            lines.any(|l| l["operation"] == "delete" && l["outcome"] == "done" && l["client"] == WEB)
        });
        assert!(log().contains("authority=corp certificates=blake3:"), "the log says which keys vouch");
        assert!(log().contains("authority-client=prod of=corp identity=spiffe://corp.example/prod/*"));
    }
}

#[test]
fn a_component_of_a_key_comes_from_a_client_that_the_rules_name_and_not_from_one_that_a_pattern_fits() {
    let corp = Corp::start();
    let client = |name: &str| {
        corp.client(name, &corp.authority.sign(&svid(&format!("spiffe://corp.example/prod/{name}"))))
    };
    let (web, other) = (client("web"), client("other"));
    let give = |client: &Client, number: u8| {
        client.import_component(key("two", "aes-128", &[Mode::Ctr]), (number, 2), None, &data(16))
    };
    let refused = |client: &Client, number: u8| {
        give(client, number).is_err_and(|e| e.to_string().contains("name one by one"))
    };
    corp.allow("prod", "spiffe://corp.example/prod/*", &[Right::Import, Right::List], "two*");
    corp.cluster.wait_until(|| refused(&web, 1));
    // The pattern gives the right, and an entry of its own says who it is.
    corp.allow("web", WEB, &[], "two*");
    corp.cluster.wait_until(|| give(&web, 1).is_ok());
    assert!(refused(&other, 2), "the authority could make any number of such");
    corp.allow("other", "spiffe://corp.example/prod/other", &[], "two*");
    corp.cluster.wait_until(|| give(&other, 2).is_ok());
}

/// What a client drafts once all nodes have taken their rules.
fn draft<T>(cluster: &TestCluster, client: Client, ask: impl Fn(&Client) -> Result<T, Error>) -> Statement {
    let taken = Arc::new(Mutex::new(None));
    let take = taken.clone();
    let drafting = client.drafting(Moment::now().seconds() + 3600, "a test", move |statement| {
        *take.lock() = Some(statement);
        Ok(())
    });
    cluster.wait_until(|| matches!(ask(&drafting), Err(Error::Drafted)));
    let statement = taken.lock().take();
    statement.expect("it was drafted")
}
