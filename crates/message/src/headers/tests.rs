use super::*;

fn block() -> Headers {
    let bytes = Bytes::from_static(b"Host: a\r\nX-Tag: one\r\nx-tag: two\r\n");
    Headers::from_block(HeaderBlock { bytes, fields: vec![(0..4, 6..7), (9..14, 16..19), (21..26, 28..31)] })
}

#[test]
fn names_compare_without_case_and_keep_their_order() {
    let headers = block();
    assert_eq!(headers.get("HOST"), Some("a"));
    assert_eq!(headers.get_all("X-TAG").collect::<Vec<_>>(), [b"one", b"two"]);
}

#[test]
fn set_replaces_all_at_the_place_of_the_first() {
    let mut headers = block();
    headers.set("x-tag", "three");
    headers.append("Y", "1");
    let all: Vec<_> = headers.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
    assert_eq!(
        all,
        [(b"Host".to_vec(), b"a".to_vec()), (b"X-Tag".to_vec(), b"three".to_vec()), (b"Y".to_vec(), b"1".to_vec())]
    );
    assert!(headers.remove("host") && !headers.remove("host"));
}

#[test]
fn lines_are_those_that_were_checked() {
    let mut headers = block();
    headers.append("Own", "1");
    headers.append_number("Left", 42);
    headers.set("host", "b");
    let lines = |headers: &Headers| {
        let line = |field: FieldLine<'_>| field.line.map(|line| String::from_utf8(line.to_vec()).unwrap());
        headers.lines().map(line).collect::<Vec<_>>()
    };
    let some = |line: &str| Some(line.to_owned());
    assert_eq!(lines(&headers), [None, some("X-Tag: one\r\n"), some("x-tag: two\r\n"), None, some("Left: 42\r\n")]);
    // A value that is put where a line would have it is not one.
    let mut headers = Headers::new();
    headers.append("A", ": ");
    headers.set("A", "x\r\nB: y");
    headers.append("\r\n", "");
    assert_eq!(lines(&headers), [None, None]);
    headers.append_number("A", 7);
    headers.set("A", "8");
    assert_eq!(lines(&headers)[0], None);
    assert_eq!(headers.get("A"), Some("8"));
}

#[test]
fn fields_of_others_replace_those_of_their_names() {
    let mut others = Headers::new();
    others.append_number("X-TAG", 3);
    others.append("New", "n");
    for own in [false, true] {
        let mut headers = block();
        if own {
            headers.append("Own", "o");
        }
        headers.set_all(others.clone());
        assert_eq!(headers.get_all("x-tag").collect::<Vec<_>>(), [b"3"]);
        assert_eq!((headers.get("host"), headers.get("new")), (Some("a"), Some("n")));
        assert_eq!(headers.len(), 3 + usize::from(own));
    }
}

#[test]
fn replacing_fields_keeps_the_others() {
    let long = "v".repeat(2 * OWN_BYTES_LOOSE);
    let mut others = Headers::new();
    others.append("X-Tag", "short");
    others.append("Long", &long);
    others.append_number("Left", 7);
    let mut headers = block();
    headers.set_all(others);
    headers.set("After", "all");
    let values = ["x-tag", "long", "left", "after"].map(|name| headers.get(name).unwrap().to_owned());
    assert_eq!(values, ["short".to_owned(), long, "7".to_owned(), "all".to_owned()]);

    let mut others = Headers::new();
    others.append_number("A", 1);
    others.append("B", "x\r\nC: y");
    others.append_number("A", 2);
    let mut headers = block();
    headers.set_all(others);
    assert_eq!(headers.get("a"), Some("2"));
    let ends = |line: &[u8]| line.windows(2).filter(|two| two == b"\r\n").count();
    assert!(headers.lines().filter_map(|field| field.line).all(|line| ends(line) == 1));
}

#[test]
fn values_that_were_replaced_do_not_pile_up() {
    let mut headers = block();
    headers.set("Kept", "first");
    for number in 0..10_000 {
        headers.set("X-Tag", format!("value {number}"));
    }
    assert!(headers.own.len() <= 2 * OWN_BYTES_LOOSE);
    let all: Vec<_> = headers.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
    let expected: [(&[u8], &[u8]); 3] = [(b"Host", b"a"), (b"X-Tag", b"value 9999"), (b"Kept", b"first")];
    assert_eq!(all, expected.map(|(name, value)| (name.to_vec(), value.to_vec())));
}
