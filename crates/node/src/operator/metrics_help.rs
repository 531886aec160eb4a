//! The help text of each metric, as Prometheus shows it. `docs/reference/metrics.md` is written from it.

use metrics::{describe_counter, describe_gauge, describe_histogram};

/// Describes each metric. A metric without a description fails a test.
pub(crate) fn describe() {
    describe_counter!(
        "polyclave_requests_total",
        "Requests of clients that ended, by outcome: done, or why not."
    );
    describe_counter!("polyclave_blocks_total", "Blocks that clients paid for, counted when a request ends.");
    describe_counter!("polyclave_blocks_computed_total", "Blocks computed, counted piece by piece.");
    describe_histogram!("polyclave_request_seconds", "Duration of requests of clients.");
    describe_gauge!("polyclave_peers_connected", "Other nodes to which this one is connected.");
    describe_gauge!("polyclave_peers", "Other nodes of the cluster.");
    describe_gauge!(
        "polyclave_peers_of_other_releases",
        "Other nodes whose program is of another release, as far as they were seen."
    );
    describe_gauge!("polyclave_nodes_needed", "Nodes that it takes to serve, this one included.");
    describe_gauge!(
        "polyclave_corrects",
        "0 while wrong shares are detected and not corrected, because a node is missing. Only where they can be corrected."
    );
    describe_gauge!("polyclave_ready", "1 if requests can be served.");
    describe_gauge!(
        "polyclave_keys_nearly_spent",
        "Active keys whose newest version has less than a tenth of its budget left, counted every five minutes."
    );
    describe_gauge!(
        "polyclave_keys_expiring",
        "Keys whose newest version expires within a week and stays for decryption, counted every five minutes."
    );
    describe_gauge!("polyclave_audit_lines", "The number of the last line of the audit log.");
    describe_gauge!("polyclave_keys", "Keys whose shares this node holds.");
    describe_gauge!("polyclave_keys_damaged", "Keys whose record here cannot be read.");
    describe_gauge!("polyclave_keys_lacking", "Keys that other nodes have and this node lacks.");
    describe_gauge!("polyclave_stock_blocks", "Material in stock, in blocks.");
    describe_gauge!("polyclave_stock_level_blocks", "The level to which the stock is filled, in blocks.");
    describe_counter!(
        "polyclave_circuit_blocks_total",
        "Blocks that went through garbled circuits, because the nodes are far from each other."
    );
    describe_gauge!("polyclave_round_trip_seconds", "Time there and back to the others, at the first node.");
    describe_counter!("polyclave_fills_total", "Runs in which nodes made material, by outcome.");
    describe_counter!(
        "polyclave_epochs_total",
        "Epochs that began. Each renews the secrets that material is made with."
    );
    describe_gauge!(
        "polyclave_standby_ready",
        "1 if this node and the partner could go on without the third."
    );
    describe_gauge!("polyclave_standby_serves", "1 while they go on without the third.");
    describe_gauge!("polyclave_standby_keys_lacking", "Keys of which the pair has no shares yet.");
    describe_counter!("polyclave_standby_blocks_total", "Blocks computed by the pair.");
    describe_gauge!("polyclave_refreshed_timestamp_seconds", "When the shares in use were made.");
    describe_gauge!("polyclave_refresh_wanted", "1 if a refresh is ordered here and not done.");
    describe_gauge!("polyclave_refresh_running", "1 while the nodes make fresh shares.");
    describe_gauge!("polyclave_quarantined", "1 if a check failed and the node computes nothing.");
    describe_gauge!("polyclave_checks_failed", "Checks under the MAC key in use that failed.");
    describe_gauge!(
        "polyclave_checks_unanswered",
        "Checks under the MAC key in use that a peer left unanswered."
    );
    describe_gauge!("polyclave_clock_fits", "0 if the clock does not fit the certificates of the nodes.");
    describe_gauge!("polyclave_certificate_end_timestamp_seconds", "When a certificate ends.");
    describe_gauge!(
        "polyclave_authorities_ending",
        "Authorities of clients whose last certificate ends soon, or has ended: within the days of the settings, and in the last quarter of its time."
    );
    describe_gauge!("polyclave_store_damaged", "1 if the file of the store was found damaged.");
    describe_gauge!("polyclave_audit_writable", "0 while no line of the audit log can be written.");
    describe_counter!("polyclave_audit_unlogged_total", "Events that have no line in the audit log.");
    describe_counter!("polyclave_audit_unsent_total", "Lines of the audit log that syslog did not take.");
    describe_counter!(
        "polyclave_trace_spans_total",
        "Parts of traces, by what became of them: sent, dropped because the queue was full, or failed at the collector."
    );
    describe_counter!(
        "polyclave_faults_total",
        "Requests in which another node was outvoted, silent, or one of two that contradict each other."
    );
}
