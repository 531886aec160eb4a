//! `GetHealthStatus`, from the last look at the nodes: it is at most some seconds old, and nobody waits for a
//! node that does not answer. The specification allows a result that is a minute old.

use serde::Serialize;

use super::error::{Kind, Result};
use crate::look::Look;

const VENDOR: &str = "Polyclave";
const MODEL: &str = concat!("polyclave gateway ", env!("CARGO_PKG_VERSION"));
/// The most nodes that are told.
const MOST: usize = 10;

/// The answer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Health {
    xks_proxy_fleet_size: u8,
    xks_proxy_vendor: &'static str,
    xks_proxy_model: &'static str,
    ekm_vendor: &'static str,
    ekm_fleet_details: Vec<Manager>,
}

/// A node of the cluster.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Manager {
    id: String,
    model: String,
    health_status: &'static str,
}

/// How the nodes are. It is an error if they cannot serve: an answer means that the next request will
/// succeed.
pub(super) fn health(look: &Look, cluster: &str) -> Result<Health> {
    told(look.trouble(), look.nodes(), cluster)
}

fn told(trouble: Option<String>, nodes: Vec<(String, bool)>, cluster: &str) -> Result<Health> {
    if let Some(trouble) = trouble {
        return Err(Kind::Internal.because("the nodes cannot serve at the moment", trouble));
    }
    let manager = |(id, can_serve): (String, bool)| Manager {
        id,
        model: cluster.into(),
        health_status: if can_serve { "ACTIVE" } else { "UNAVAILABLE" },
    };
    Ok(Health {
        xks_proxy_fleet_size: 1,
        xks_proxy_vendor: VENDOR,
        xks_proxy_model: MODEL,
        ekm_vendor: VENDOR,
        ekm_fleet_details: nodes.into_iter().take(MOST).map(manager).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_are_missing_are_told_if_the_others_serve() {
        let nodes = |count: usize| (0..count).map(|at| (format!("node-{at}"), at != 1)).collect();
        let Ok(health) = told(None, nodes(12), "four") else { panic!("they serve") };
        let states: Vec<_> = health.ekm_fleet_details.iter().map(|node| node.health_status).collect();
        assert_eq!((states.len(), &states[..3]), (MOST, &["ACTIVE", "UNAVAILABLE", "ACTIVE"][..]));
        let refused = told(Some("node-1 is gone".into()), nodes(3), "three").err().expect("refused");
        assert!(refused.kind == Kind::Internal && refused.why().contains("node-1 is gone"));
    }
}
