//! `polyclave cluster bench` with a slower network between the nodes of a new cluster.

use serde_json::Value;

use crate::common::Place;

/// Each kind of request is measured, also with a node that ends, and none is faster than the way to the nodes
/// and back.
#[test]
fn a_new_cluster_is_measured_with_a_network_and_without_a_node() {
    let place = Place::new();
    let said = place.run(
        "cluster bench --protocol replicated-active --network 1ms,1Gbit --far-client --without-one --requests 2 --clients 2 \
         --concurrent-requests 2 --bytes 100 --json",
    );
    let measured: Value = serde_json::from_str(&said).expect("it is JSON");
    let network = &measured["network"];
    assert_eq!(
        (&network["shape"], &network["without_one"]),
        (&"1ms,1000Mbit".into(), &true.into()),
        "{said}"
    );
    assert!(network["round_trip_ms"].as_f64().expect("a number") >= 1.0, "{said}");
    let requests = measured["requests"].as_object().expect("by kind");
    let mut kinds: Vec<&str> = requests.keys().map(String::as_str).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["cmac", "ecb", "gcm", "pin", "sealed", "wrap"]);
    for (kind, times) in requests {
        let [least, median, most] =
            ["least_ms", "median_ms", "percentile_99_ms"].map(|what| times[what].as_f64().expect("a number"));
        // To the nodes and back, and once from node to node and back.
        assert!(least >= 2.0 && least <= median && median <= most, "{kind}: {said}");
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    let place = Place::new();
    for (options, reason) in [
        ("--far-client", "--network"),
        ("--without-one", "--network"),
        ("--network 20ms", "RTT,RATE"),
        ("--only everything", "possible values"),
    ] {
        let output = place.output(&format!("cluster bench {options}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(reason), "{options}: {said}");
    }
}
