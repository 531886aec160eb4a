//! Whether this node can serve, and if not, why. For its operator: on `/readyz`, in `node status` and in the
//! log.

use std::time::SystemTime;

use polyclave_protocol::service::ServiceConfig;
use polyclave_store::StoreError;

use crate::core::Core;

impl Core {
    /// Whether requests can be served now.
    pub(crate) fn is_ready(&self) -> bool {
        self.why_not_ready().is_none()
    }

    /// Why requests cannot be served now, for people.
    pub(crate) fn why_not_ready(&self) -> Option<String> {
        if self.threads.is_stopping() {
            return Some("it is stopping".into());
        }
        if let Some(damaged) = self.store.file_damage() {
            return Some(damaged.to_string());
        }
        if self.material.is_outdated() {
            return Some(StoreError::Renewed.to_string());
        }
        if self.material.is_cut_off() {
            return Some("the server of its store does not answer; see this node's log".into());
        }
        if let Some(why) = self.logbook.refuses() {
            return Some(format!("its audit log cannot be written: {why}"));
        }
        if let Some(why) = self.rules.why_unknown() {
            return Some(why);
        }
        let least = self.service.config.quorum();
        let now = SystemTime::now();
        if self.dates.fitting(now).len() < least
            && let Some(misfit) = self.dates.misfit(now)
        {
            return Some(misfit);
        }
        if let Some(apart) = self.clock_apart() {
            return Some(apart);
        }
        if let Err(refusal) = self.material.context() {
            return Some(self.members.message(refusal.message));
        }
        let there = self.network.peers.connected();
        if there.len() < least {
            let missing = self.members.names_of(self.members.all().without(there));
            let are = if missing.len() == 1 { "is" } else { "are" };
            let missing = missing.join(" and ");
            return Some(format!(
                "{least} nodes are needed, this one included, and {missing} {are} not connected; see this node's log and theirs"
            ));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use polyclave_api::{Mode, NewKey};
    use polyclave_client::Client;
    use polyclave_config::{ClientDir, NodeDir};

    use crate::Running;
    use crate::operator::admin::{Answer, Instruction, order};

    #[test]
    fn a_node_whose_store_is_damaged_is_not_ready_refuses_and_says_why() {
        let dir = tempfile::tempdir().expect("a directory");
        let local = crate::local::create(&dir.path().join("cluster"), "shamir", 3, 1).expect("made");
        let node = |path| Running::start(NodeDir::open(path).expect("its directory")).expect("it starts");
        let nodes: Vec<Running> = local.nodes.iter().map(|path| node(path)).collect();
        let until = Instant::now() + Duration::from_secs(60);
        while let Some(why) = nodes.iter().find_map(Running::why_not_ready) {
            assert!(Instant::now() < until, "{why}");
            std::thread::sleep(Duration::from_millis(20));
        }
        nodes[1].store.find_damage();
        let message = nodes[1].why_not_ready().expect("not ready");
        assert!(message.contains("store.redb is damaged") && message.contains("node restore"), "{message}");
        let status = order(&NodeDir::open(&local.nodes[1]).expect("its directory"), &Instruction::Status);
        let Ok(Some(Answer::Status(status))) = status else { panic!("{status:?}") };
        assert!(!status.ready && status.why_not_ready == Some(message));
        let client = Client::open(&ClientDir::open(&local.client).expect("its directory")).expect("a client");
        let key = NewKey::for_modes("k", "aes-128", &[Mode::Gcm], 1 << 20);
        let refused = client.generate(key).expect_err("it takes all nodes").to_string();
        assert!(refused.contains("its store is damaged"), "{refused}");
    }
}
