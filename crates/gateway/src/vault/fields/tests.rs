use super::*;

const KNOWN: &[&str] = &["a", "b", "c", "d", "e", "f", "g", "h", "plaintext", "batch_input"];

fn parse(text: &[u8]) -> Result<Fields, Failure> {
    Fields::parse(Zeroizing::new(text.to_vec()), KNOWN)
}

fn fields(text: &str) -> Fields {
    parse(text.as_bytes()).expect("an object")
}

#[test]
fn a_batch_has_a_limit() {
    let batch =
        |items: usize| fields(&format!("{{\"batch_input\": [{}{{}}]}}", "{},".repeat(items - 1))).batch();
    assert_eq!(batch(MAX_ITEMS).expect("as many").expect("a batch").len(), MAX_ITEMS);
    let Err(Failure::Bad(message)) = batch(MAX_ITEMS + 2) else { panic!("too many") };
    assert!(message.contains("this one has 50002"), "{message}");
}

#[test]
fn numbers_and_truth_values_may_be_texts() {
    let all = fields(r#"{"a": 3, "b": "3", "c": "", "d": null, "e": "x", "f": 1.5, "g": [], "h": "-2"}"#);
    let number = |name| all.number(name).ok();
    assert_eq!(
        ["a", "b", "c", "d", "z", "h"].map(number),
        [Some(Some(3)), Some(Some(3)), Some(None), Some(None), Some(None), Some(Some(-2))]
    );
    assert_eq!(["e", "f", "g"].map(number), [None; 3]);
    let all = fields(r#"{"a": true, "b": "true", "c": 0, "d": "F", "e": "yes", "f": {}, "g": 2}"#);
    let flag = |name| all.flag(name).ok();
    assert_eq!(["a", "b", "c", "d"].map(flag), [true, true, false, false].map(|f| Some(Some(f))));
    assert_eq!(["e", "f", "g"].map(flag), [None; 3]);
}

#[test]
fn texts_come_as_they_were_meant_with_escapes_and_without() {
    let all = fields(r#"{"a": "plain ä", "\u0062": "a\/b\u00e4", "c": 1, "a": "the last one"}"#);
    assert_eq!(all.text("a"), Ok(Some("the last one")));
    assert_eq!(all.text("b"), Ok(Some("a/bä")));
    assert!(all.text("c").is_err() && all.text("d") == Ok(None));
    let all = fields(r#"{"a": ["x", "y\/z"], "b": "x, y", "c": [1], "d": [["x"]]}"#);
    assert_eq!(all.texts("a"), Ok(vec!["x", "y/z"]));
    assert_eq!((all.texts("b"), all.texts("e")), (Ok(vec!["x", "y"]), Ok(vec![])));
    assert!(all.texts("c").is_err() && all.texts("d").is_err() && all.text("a").is_err());
}

#[test]
fn items_have_their_own_fields_and_what_is_unknown_is_told() {
    let all = fields(
        r#"{"batch_input": [{"plaintext": "x", "other": [1]}, {"plaintext": "y"}], "plaintext": "z", "ttl": {"a": []}}"#,
    );
    let items = all.batch().expect("right").expect("a batch");
    assert_eq!(
        items.iter().map(|item| item.text("plaintext")).collect::<Vec<_>>(),
        [Ok(Some("x")), Ok(Some("y"))]
    );
    assert_eq!(all.text("plaintext"), Ok(Some("z")));
    assert_eq!(all.unknown(), ["ttl"]);
    let long = fields(&format!("{{\"{}\": 1}}", "n".repeat(1 << 16)));
    assert_eq!(long.unknown(), ["n".repeat(64)], "no more of it goes into the answer");
    for (body, message) in [
        (r#"{"batch_input": "hush"}"#, "no array"),
        (r#"{"batch_input": {"plaintext": "x"}}"#, "no array"),
        (r#"{"batch_input": [{}, "hush", {}]}"#, "no object"),
        (r#"{"batch_input": [[{}]]}"#, "no object"),
        (r#"{"batch_input": []}"#, "missing batch input"),
    ] {
        let Err(Failure::Bad(error)) = fields(body).batch() else { panic!("{body}") };
        assert!(error.contains(message), "{body}: {error}");
    }
    assert!(fields(r#"{"batch_input": null}"#).batch().is_ok_and(|batch| batch.is_none()));
}

#[test]
fn a_body_is_an_object_or_empty_and_errors_show_nothing_of_it() {
    assert!(parse(b"").is_ok() && parse(b" \n").is_ok());
    let wrong: [&[u8]; 8] = [
        b"[]",
        b"secret",
        b"{\"secret\"}",
        b"\"secret\"",
        b"{\"plaintext\": secret}",
        b"{} secret",
        b"{\"plaintext\": \"\xff\"}",
        b"{\"a\": 1, \"a\"}",
    ];
    for wrong in wrong {
        let Err(Failure::Bad(message)) = parse(wrong) else { panic!("{wrong:?}") };
        assert!(
            message.starts_with("failed to parse JSON input") && !message.contains("secret"),
            "{message}"
        );
    }
}

#[test]
fn only_a_duration_of_zero_is_none() {
    let all =
        fields(r#"{"a": 0, "b": "0", "c": "0s", "d": null, "e": 60, "f": "24h", "g": "0h30m", "h": true}"#);
    let set = |name| all.is_some_duration(name);
    assert_eq!(["a", "b", "c", "d", "z"].map(set), [false; 5]);
    assert_eq!(["e", "f", "g", "h"].map(set), [true; 4]);
}

/// What reading a body holds at most, besides the body.
fn held(body: String) -> usize {
    let body = Zeroizing::new(body.into_bytes());
    let (mut body, mut fields) = (Some(body), None);
    let held =
        allocation_counter::measure(|| fields = Some(Fields::parse(body.take().expect("once"), KNOWN)));
    held.bytes_max as usize
}

/// As a document of `serde_json` each of these took 16 to 100 times its bytes.
#[test]
fn a_body_of_many_small_or_deep_values_takes_a_small_multiple_of_its_bytes() {
    const BYTES: usize = 1 << 20;
    let times = |unit: &str, before: &str, after: &str| {
        let count = BYTES / unit.len();
        let body = format!("{before}{}{after}", unit.repeat(count));
        (held(body.clone()) as f64 / body.len() as f64, body)
    };
    for (unit, before, after) in [
        ("[],", "{\"unknown\": [", "0]}"),
        ("{},", "{\"a\": [", "0]}"),
        ("0,", "{\"a\": [", "0]}"),
        ("\"\",", "{\"a\": [", "0]}"),
        ("{\"a\":0},", "{\"batch_input\": {\"plaintext\": [", "0]}}"),
        ("\"k\":[{}],", "{\"a\": {", "\"z\": 0}}"),
        ("\"k\":0,", "{", "\"z\": 0}"),
        ("\\/", "{\"a\": \"", "\"}"),
    ] {
        let (times, _) = times(unit, before, after);
        assert!(times < 4.0, "{unit}: {times} times its bytes");
    }
    // Deep ones: brackets that are opened and closed.
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = BYTES / (open.len() + close.len());
        let body = format!("{{\"a\": {}0{}}}", open.repeat(deep), close.repeat(deep));
        let (bytes, held) = (body.len(), held(body));
        assert!(held < 4 * bytes, "{open}: {held} for {bytes}");
    }
    // Items of a batch: what they take is counted beside the bytes.
    for item in ["{}", r#"{"plaintext":""}"#, r#"{"a":0,"nonce":0,"value":0,"tweak":0,"context":0}"#] {
        let body = format!("{{\"batch_input\": [{}{item}]}}", format!("{item},").repeat(MAX_ITEMS - 1));
        let held = held(body);
        assert!(held < MAX_ITEMS * 480, "{item}: {} bytes an item", held / MAX_ITEMS);
    }
}
