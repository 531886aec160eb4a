//! A key that two people bring in, on the command line.

use std::os::unix::fs::PermissionsExt;

use crate::common::Place;

/// Components of a key of Triple DES with two keys. The check values are the encryption of zeros under each,
/// and the CMAC of zeros under their sum, by another program (pyca/cryptography).
const COMPONENTS: [(&str, &str); 2] =
    [("8c2a63f91d07b45e2f6bd08394e1c75a", "d56a13"), ("3f91c05e7ab6214dd80e6c97f2154ba3", "d4f4e2")];
const KEY_BY_CMAC: &str = "8bc906";

#[test]
fn two_people_bring_a_key_in_and_wrong_check_values_keep_nothing() {
    let place = Place::new();
    let _cluster = place.cluster();
    for name in ["dora", "edgar"] {
        place.run(&format!("client init {name} --name {name} --cluster try/cluster.toml"));
        for node in 1..=3 {
            let rights = "--rights import,list --keys zone-*";
            place.run(&format!("node allow try/node-{node} {name}/card.toml {rights}"));
        }
        place.until("the rights are taken", || {
            place.output(&format!("client status --client {name}")).status.success()
        });
    }
    let give = |i: usize, client: &str, kcv: &str| {
        let file = format!("component-{}.hex", i + 1);
        place.write(&file, COMPONENTS[i].0.as_bytes());
        std::fs::set_permissions(place.path(&file), std::fs::Permissions::from_mode(0o600)).expect("set");
        format!(
            "key import zone-master --cipher 3des-ede2 --modes tr31 --component {} --of 2 --kcv {kcv} --kcv-by zeros --key-file {file} \
             --client {client}",
            i + 1
        )
    };
    let message = place.fails(&give(0, "dora", "d56a14"));
    assert!(message.contains("the check value is d56a13, and d56a14 was expected"), "{message}");
    assert!(!place.run("key list").contains("zone-master"), "nothing was kept");
    let message = place.run(&give(0, "dora", COMPONENTS[0].1));
    assert!(message.contains("component    1 of 2"), "{message}");
    let message = place.fails(&give(1, "dora", COMPONENTS[1].1));
    assert!(message.contains("this client gave component 1"), "{message}");
    let message = place.fails("key combine zone-master --client edgar");
    assert!(message.contains("component 2 of 2 of the key 'zone-master' is not there yet"), "{message}");
    place.run(&give(1, "edgar", COMPONENTS[1].1));
    let message = place.fails("key combine zone-master --client edgar --kcv b8ab79 --kcv-by zeros");
    assert!(message.contains("take the check value by CMAC"), "{message}");
    let message = place.fails("key combine zone-master --client edgar --kcv 000000");
    assert!(message.contains("nothing was kept"), "{message}");
    let message =
        place.run(&format!("key combine zone-master --client edgar --kcv {KEY_BY_CMAC} --parity set --json"));
    let json: serde_json::Value = serde_json::from_str(&message).expect("it is JSON");
    assert_eq!((&json["origin"], &json["check_value"]), (&"combined".into(), &KEY_BY_CMAC.into()));
    assert!(!place.run("key list").contains("component"), "the components are gone");
    let message = place.run("key check zone-master --client edgar");
    assert!(message.lines().count() == 2 && message.contains(KEY_BY_CMAC), "{message}");
    let message = place.run("key check zone-master --client edgar --json");
    let json: serde_json::Value = serde_json::from_str(&message).expect("it is JSON");
    assert_eq!((&json[0]["version"], &json[0]["check_value"]), (&1.into(), &KEY_BY_CMAC.into()));
    let message = place.fails("key check zone-master --client edgar --kcv-by zeros");
    assert!(message.contains("take the check value by CMAC"), "{message}");
    let message = place.fails("key import other --kcv d56a13 --key-file component-1.hex");
    assert!(message.contains("--kcv belongs to --component"), "{message}");
    let message = place.fails("key import other --parity require --key-file component-1.hex");
    assert!(message.contains("no parity bits"), "{message}");
}
