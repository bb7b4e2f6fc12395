use super::*;

fn response(status: u16, headers: &[(&str, &str)], body: &str) -> Response {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Response { status, headers, body: Bytes::copy_from_slice(body.as_bytes()) }
}

fn json(body: &str) -> Response {
    response(200, &[("content-type", "application/json")], body)
}

fn xml(body: &str) -> Response {
    response(200, &[("content-type", "text/xml; charset=UTF-8")], body)
}

#[test]
fn each_of_twenty_differences_is_found() {
    let plain = |body: &str| response(200, &[("content-type", "text/plain"), ("x-a", "1")], body);
    let pairs = [
        (json("{}"), response(201, &[("content-type", "application/json")], "{}")),
        (json("{}"), response(200, &[("content-type", "text/plain")], "{}")),
        (json("{}"), response(200, &[("content-type", "application/json; charset=UTF-8")], "{}")),
        (plain("a"), response(200, &[("content-type", "text/plain")], "a")),
        (plain("a"), response(200, &[("content-type", "text/plain"), ("x-a", "2")], "a")),
        (plain("a"), response(200, &[("content-type", "text/plain"), ("x-a", "1"), ("x-b", "1")], "a")),
        (plain("a"), response(200, &[("content-type", "text/plain"), ("x-a", "1"), ("x-a", "1")], "a")),
        (plain("a"), plain("b")),
        (plain("a"), plain("a ")),
        (json(r#"{"a": 1}"#), json(r#"{"a": 2}"#)),
        (json(r#"{"a": 1}"#), json(r#"{"a": "1"}"#)),
        (json(r#"{"a": 1}"#), json(r#"{"a": 1, "b": null}"#)),
        (json(r#"{"a": [1, 2]}"#), json(r#"{"a": [2, 1]}"#)),
        (json(r#"{"a": {"b": "2026-01-01"}}"#), json(r#"{"a": {"b": "2026-01-02"}}"#)),
        (json(r#"{"a": 9007199254740993}"#), json(r#"{"a": 9007199254740992}"#)),
        (json("{}"), json("")),
        (xml("<a><b>1</b></a>"), xml("<a><b>2</b></a>")),
        (xml("<a x='1'/>"), xml("<a x='2'/>")),
        (xml("<a xmlns='u'/>"), xml("<a xmlns='v'/>")),
        (xml("<a><b/><c/></a>"), xml("<a><c/><b/></a>")),
    ];
    for (number, (reference, candidate)) in pairs.iter().enumerate() {
        assert!(!between(reference, candidate, &[]).is_empty(), "difference {number} is not found");
        assert!(!between(candidate, reference, &[]).is_empty(), "difference {number} is not found the other way");
        assert_eq!(between(reference, reference, &[]), [""; 0]);
    }
}

#[test]
fn ten_thousand_equal_pairs_have_no_difference() {
    let now = |second: u32| {
        let (year, month, day) = clock::civil((clock::epoch_ms() / 86_400_000) as i64);
        format!("{year}-{month:02}-{day:02}T10:00:{second:02}Z")
    };
    for number in 0..2_500u32 {
        let (one, other) = (number % 60, (number + 7) % 60);
        let uuid = |part: u32| format!("{part:08x}-0000-4000-8000-{number:012x}");
        let pairs = [
            (
                json(&format!(r#"{{"id": {number}, "list": [1.0, {{"a": "x", "b": null}}]}}"#)),
                json(&format!("{{\n \"list\":[1,{{\"b\":null,\"a\":\"x\"}}],\"id\":{number} }}")),
            ),
            (
                json(&format!(r#"{{"id": "{}", "at": "{}"}}"#, uuid(one), now(one))),
                json(&format!(r#"{{"at": "{}", "id": "{}"}}"#, now(other), uuid(other))),
            ),
            (
                xml(&format!("<p:a xmlns:p='u' x='{number}' y='2'>\n  <p:b>t</p:b>\n</p:a>")),
                xml(&format!("<?xml version='1.0'?><a xmlns='u' y='2' x='{number}'><b>t</b></a>")),
            ),
            (
                response(200, &[("date", "a"), ("server", "b"), ("content-type", "Text/Plain;charset=\"utf-8\"")], "x"),
                response(200, &[("content-type", "text/plain; charset=UTF-8"), ("connection", "close")], "x"),
            ),
        ];
        for (reference, candidate) in pairs {
            assert_eq!(between(&reference, &candidate, &[]), [""; 0], "pair {number}");
        }
    }
}

#[test]
fn masks_hide_what_they_name_and_nothing_else() {
    let masks: Vec<Mask> =
        ["header:X-A", "json:$.list.*.at", "xml:stamp"].iter().map(|text| Mask::parse(text).unwrap()).collect();
    let headers = |value| response(200, &[("x-a", value)], "x");
    assert_eq!(between(&headers("1"), &headers("2"), &masks), [""; 0]);
    let listed = |at: &str, name: &str| json(&format!(r#"{{"list": [{{"at": {at}, "name": "{name}"}}]}}"#));
    assert_eq!(between(&listed("1", "a"), &listed("2", "a"), &masks), [""; 0]);
    assert_eq!(between(&json(r#"{"list": [{}]}"#), &json(r#"{"list": [{"at": 1}]}"#), &masks), [""; 0]);
    assert_eq!(between(&listed("1", "a"), &listed("2", "b"), &masks), ["body $.list.0.name: `a` and `b`"]);
    assert_eq!(between(&xml("<a stamp='1'><stamp>1</stamp></a>"), &xml("<a><stamp/></a>"), &masks), [""; 0]);
    for wrong in ["", "header:", "json:a", "regex:x"] {
        assert!(Mask::parse(wrong).is_err(), "{wrong}");
    }
}
