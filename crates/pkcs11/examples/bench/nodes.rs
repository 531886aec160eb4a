//! Three nodes under `shamir` in a process of their own, or those of a cluster that is there, and the
//! configuration of the library.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use polyclave_client::Client;
use polyclave_config::{ClientDir, NodeDir, PinOwner, SealedClient, Strength};
use polyclave_node::Running;
use polyclave_node::local::create;

use crate::{Outcome, Plan};

/// For how long nodes may take to become ready.
const PATIENCE: Duration = Duration::from_secs(120);

/// Nodes that serve, and a client whose key is sealed.
pub(crate) struct Nodes {
    client: PathBuf,
    pin: String,
    own: Option<Child>,
    _dir: tempfile::TempDir,
}

impl Nodes {
    /// Starts nodes, or takes those of a running cluster. Sets the environment for the library.
    pub(crate) fn start(plan: &Plan) -> Outcome<Nodes> {
        let dir = tempfile::tempdir()?;
        let (client, own) = match &plan.cluster {
            Some(cluster) => (cluster.join("client"), None),
            None => {
                let at = dir.path().join("cluster");
                let local = create(&at, "shamir", 3, 1)?;
                let open = ClientDir::open(&local.client)?;
                let strength = if plan.is_quick { Strength::Quick } else { Strength::Full };
                SealedClient::at(&local.client).of_strength(strength).seal(
                    open.identity(),
                    b"the officer's PIN of the bench",
                    Some(plan.pin.as_bytes()),
                )?;
                let mut child = Command::new(std::env::current_exe()?)
                    .arg("serve")
                    .arg(&at)
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .spawn()?;
                let mut ready = String::new();
                BufReader::new(child.stdout.take().ok_or("it has an output")?).read_line(&mut ready)?;
                if ready.trim() != "ready" {
                    return Err("the nodes did not become ready".into());
                }
                (local.client, Some(child))
            }
        };
        let configuration = dir.path().join("pkcs11.toml");
        let text =
            format!("[[token]]\nlabel = \"bench\"\nclient = \"{}\"\nprefix = \"bench.\"\n", client.display());
        std::fs::write(&configuration, text)?;
        // SAFETY: this program has no other thread yet.
        unsafe {
            std::env::set_var("POLYCLAVE_PKCS11_CONFIG", &configuration);
            std::env::set_var("POLYCLAVE_PKCS11_LOG", configuration.with_extension("log"));
        }
        Ok(Nodes { client, pin: plan.pin.clone(), own, _dir: dir })
    }

    /// The client without PKCS#11: what `polyclave encrypt` uses.
    pub(crate) fn client(&self) -> Outcome<Client> {
        let dir = SealedClient::at(&self.client).unseal(PinOwner::User, self.pin.as_bytes())?;
        Ok(Client::open(&dir)?)
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        if let Some(mut own) = self.own.take() {
            // They stop when their input ends.
            drop(own.stdin.take());
            let _ = own.wait();
        }
    }
}

/// Runs the nodes of a directory until standard input ends.
pub(crate) fn serve(dir: &str) -> Outcome<()> {
    let open = |number: usize| NodeDir::open(&Path::new(dir).join(format!("node-{number}")));
    let running = (1..=3).map(|number| Ok(Running::start(open(number)?)?)).collect::<Outcome<Vec<_>>>()?;
    let until = Instant::now() + PATIENCE;
    while !running.iter().all(|node| node.is_ready() && node.status().connected.len() >= 3) {
        if Instant::now() > until {
            return Err("the nodes did not find each other".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("ready");
    std::io::stdin().read_to_end(&mut Vec::new())?;
    running.into_iter().for_each(Running::stop);
    Ok(())
}
