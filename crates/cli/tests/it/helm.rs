//! The Helm chart (`packaging/helm`). What it renders of its examples is beside them, and is compared where
//! `helm` is installed. What must hold of every manifest is looked for in these files, without `helm`. The
//! script that makes a node's directory runs here without containers.
//!
//! `POLYCLAVE_WRITE_REFERENCE=1 cargo test -p polyclave-cli --test it helm` writes the files again.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use polyclave_harness::programs::{ended, skipped};

use crate::common::Place;

const WITHIN: Duration = Duration::from_secs(60);
const EXAMPLES: [&str; 2] = ["node", "trial"];
/// What helm renders for, if no cluster tells it.
const KUBERNETES: [&str; 2] = ["--kube-version", "1.30.0"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/helm")
}

fn rendered(example: &str) -> PathBuf {
    folder().join("examples").join(format!("{example}.rendered.yaml"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Runs helm on the chart, with the values of an example and some more. `None` if there is no helm.
fn helm(command: &[&str], example: &str, more: &[&str]) -> Option<Output> {
    let mut helm = Command::new("helm");
    helm.args(command).arg(folder().join("polyclave"));
    helm.arg("--values").arg(folder().join("examples").join(format!("{example}.yaml"))).args(more);
    ended(&mut helm, WITHIN)
}

fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

fn without_helm() -> bool {
    let none = ended(Command::new("helm").arg("version"), WITHIN).is_none();
    if none {
        skipped("the Helm chart", "helm is not installed (go install helm.sh/helm/v3/cmd/helm@latest)");
    }
    none
}

#[test]
fn the_chart_renders_what_is_beside_its_examples() {
    if without_helm() {
        return;
    }
    for example in EXAMPLES {
        let linted = helm(&["lint", "--strict"], example, &[]).expect("it ends");
        assert!(linted.status.success(), "{}", text(&linted));
        let output = helm(&["template", example], example, &KUBERNETES).expect("it ends");
        assert!(output.status.success(), "{}", text(&output));
        let now = String::from_utf8(output.stdout).expect("text");
        if std::env::var_os("POLYCLAVE_WRITE_REFERENCE").is_some() {
            std::fs::write(rendered(example), &now).expect("written");
        }
        assert_eq!(now, read(&rendered(example)), "POLYCLAVE_WRITE_REFERENCE=1 writes it again");
    }
}

#[test]
fn wrong_values_are_refused_by_the_schema() {
    if without_helm() {
        return;
    }
    for (set, wrong) in [
        ("--set-string", "mode=both"),
        ("--set-string", "node.name="),
        ("--set-string", "node.name=two words"),
        ("--set-string", "node.address=alpha.example"),
        ("--set-string", "node.fingerprint=1234"),
        ("--set-string", "node.nmae=alpha"),
        ("--set-string", "image.digest=sha256:1234"),
        ("--set-string", "networkPolicy.peers[0]=everybody"),
        ("--set", "podDisruptionBudget.maxUnavailable=2"),
    ] {
        let output = helm(&["template", "x"], "node", &[set, wrong, KUBERNETES[0], KUBERNETES[1]]);
        let output = output.expect("it ends");
        assert!(!output.status.success(), "{wrong}: {}", text(&output));
        assert!(text(&output).contains("schema"), "{wrong}: {}", text(&output));
    }
}

/// Besides what a person sees in the rendered files: as docs/operate/containers.md wants it.
#[test]
fn every_container_is_locked_and_every_pod_has_what_the_page_on_containers_asks_for() {
    for example in EXAMPLES {
        let manifests = read(&rendered(example));
        let count = |what: &str| manifests.matches(what).count();
        let containers = count("imagePullPolicy: ");
        assert_eq!(containers, if example == "node" { 2 } else { 4 }, "{example}");
        for of_container in [
            "allowPrivilegeEscalation: false",
            "readOnlyRootFilesystem: true",
            "capabilities: { drop: [ALL] }",
        ] {
            assert_eq!(count(of_container), containers, "{of_container} in {example}");
        }
        for of_pod in [
            "runAsUser: 10001",
            "fsGroup: 10001",
            "seccompProfile: { type: RuntimeDefault }",
            "automountServiceAccountToken: false",
            "kind: NetworkPolicy",
            "policyTypes: [Ingress, Egress]",
            "volumeClaimTemplates:",
        ] {
            assert_eq!(count(of_pod), 1, "{of_pod} in {example}");
        }
        let nodes = if example == "node" { 1 } else { 3 };
        for path in [
            "startupProbe: { httpGet: { path: /healthz",
            "readinessProbe: { httpGet: { path: /readyz",
            "livenessProbe: { httpGet: { path: /healthz",
        ] {
            assert_eq!(count(path), nodes, "{path} in {example}");
        }
        // Secrets are files of a volume, and in no variable.
        assert!(!manifests.contains("secretKeyRef") && !manifests.contains("envFrom"), "{example}");
    }
    let node = read(&rendered("node"));
    for only_for_real in [
        "kind: PodDisruptionBudget",
        "topologyKey: kubernetes.io/hostname",
        "secretName: alpha-passphrase",
        "cidr: \"192.0.2.10/32\"",
        // Else the service hides the addresses that the NetworkPolicy admits.
        "externalTrafficPolicy: Local",
        "polyclave@sha256:",
    ] {
        assert!(node.contains(only_for_real), "{only_for_real}");
    }
}

/// Starts the script of the chart that makes a node's directory.
fn start(place: &Place, fingerprint: &str) -> Child {
    let program = Path::new(env!("CARGO_BIN_EXE_polyclave")).parent().expect("a folder");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").expect("a path"));
    let log = std::fs::File::options().create(true).append(true).open(place.path("log")).expect("a log");
    let mut script = Command::new("sh");
    script
        .arg(folder().join("polyclave/files/directory"))
        .env("PATH", path)
        .envs([("POLYCLAVE_HOME", place.path("home")), ("POLYCLAVE_ETC", place.path("etc"))])
        .env("POLYCLAVE_RUN", place.path("run"))
        .envs([("NAME", "alpha"), ("ADDRESS", "alpha.example:7000"), ("CLIENT_ADDRESS", "")])
        .env("FINGERPRINT", fingerprint)
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a second handle"))
        .stderr(log);
    script.spawn().expect("it starts")
}

#[test]
fn a_node_s_directory_is_made_once_and_takes_the_cluster_whose_fingerprint_is_known() {
    let place = Place::new();
    for name in ["home", "etc/cluster", "etc/rules", "etc/passphrase", "run"] {
        std::fs::create_dir_all(place.path(name)).expect("made");
    }
    place.write("etc/passphrase/passphrase", b"a passphrase\n");
    // It waits for the cluster's file, and is killed meanwhile.
    let mut waiting = start(&place, "");
    place.until("a card", || place.path("home/node/card.toml").exists());
    let card = place.read("home/node/card.toml");
    waiting.kill().and_then(|()| waiting.wait()).expect("ended");
    let of_node = polyclave_config::NodeDir::open(&place.path("home/node")).expect("a node's directory");
    assert_eq!(of_node.secret_place().expect("a secret"), polyclave_config::SecretPlace::Sealed);

    let polyclave = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_polyclave")).args(arguments).output().expect("it runs");
        assert!(output.status.success(), "{}", text(&output));
    };
    let path = |name: &str| place.path(name).display().to_string();
    for other in ["beta", "gamma"] {
        polyclave(&[
            "node",
            "init",
            &path(other),
            "--name",
            other,
            "--address",
            &format!("{other}.example:7000"),
        ]);
    }
    let cards = ["home/node/card.toml", "beta/card.toml", "gamma/card.toml"].map(path);
    let file = path("etc/cluster/cluster.toml");
    polyclave(&[
        "cluster",
        "define",
        "--protocol",
        "replicated-active",
        "--out",
        &file,
        &cards[0],
        &cards[1],
        &cards[2],
    ]);
    place.write("etc/rules/clients.toml", b"");

    let other = "0".repeat(64);
    assert!(!start(&place, &other).wait().expect("it ends").success(), "another cluster's fingerprint");
    assert!(!place.path("home/node/cluster.toml").exists());
    let cluster = polyclave_config::Cluster::load(file.as_ref()).expect("the cluster's file");
    for _ in 0..2 {
        let log = String::from_utf8_lossy(&place.read("log")).into_owned();
        let words = cluster.fingerprint().words();
        assert!(start(&place, &words).wait().expect("it ends").success(), "{log}");
    }
    assert_eq!(place.read("home/node/card.toml"), card, "it has the keys of its first start");

    // The next file of the cluster, with another certificate, is taken with its own fingerprint only.
    polyclave(&["node", "join", &path("beta"), &file, "--expect", &cluster.fingerprint().words()]);
    polyclave(&["node", "rotate", &path("beta")]);
    polyclave(&["cluster", "update", &file, &cards[1]]);
    let joined = || polyclave_config::Cluster::load(&place.path("home/node/cluster.toml")).expect("it loads");
    let words = cluster.fingerprint().words();
    assert!(!start(&place, &words).wait().expect("it ends").success(), "the fingerprint of the old file");
    assert_eq!(joined().fingerprint(), cluster.fingerprint());
    let other = polyclave_config::Cluster::load(file.as_ref()).expect("the next file").fingerprint();
    let log = || String::from_utf8_lossy(&place.read("log")).into_owned();
    assert!(start(&place, &other.words()).wait().expect("it ends").success(), "{}", log());
    assert_eq!(joined().fingerprint(), other);
    assert!(place.path("home/node/cluster.toml").exists() && place.path("home/node/clients.toml").exists());
    let mode =
        |name: &str| std::fs::metadata(place.path(name)).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode("run/passphrase"), mode("home/node/clients.toml")), (0o600, 0o600));
}
