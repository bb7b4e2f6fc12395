//! The same document in every encoding that is read.

use penstock_xml::{Document, Encoding, ParseOptions};

fn check(bytes: &[u8], imposed: Option<Encoding>, expected: &str) {
    let options = ParseOptions { encoding: imposed, ..ParseOptions::default() };
    let found = match Document::parse(bytes.to_vec(), &options) {
        Ok(document) => document.string_value(Document::ROOT).into_owned(),
        Err(error) => error.to_string(),
    };
    assert_eq!(found, expected, "{bytes:?}");
}

fn utf16(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(unit).collect()
}

#[test]
fn declared_and_detected() {
    check("<a>ä€😀</a>".as_bytes(), None, "ä€😀");
    check("\u{FEFF}<a>ä</a>".as_bytes(), None, "ä");
    check(b"<?xml version='1.0' encoding='ISO-8859-1'?><a>\xE4\x80</a>", None, "ä\u{80}");
    check(b"<?xml version='1.0' encoding='iso-8859-1'?><a>\xE4</a>", None, "ä");
    check(b"<?xml version='1.0' encoding='windows-1252'?><a>\x80\xE4</a>", None, "€ä");
    check(b"<?xml version='1.0' encoding='US-ASCII'?><a>&#xE4;</a>", None, "ä");
    for head in
        ["\u{FEFF}", "\u{FEFF}<?xml version='1.0' encoding='UTF-16'?>", "<?xml version='1.0' encoding='UTF-16'?>"]
    {
        check(&utf16(&format!("{head}<a>ä😀</a>"), u16::to_le_bytes), None, "ä😀");
        check(&utf16(&format!("{head}<a>ä😀</a>"), u16::to_be_bytes), None, "ä😀");
    }
    // What programs write that put a string's own encoding into the declaration.
    check("<?xml version='1.0' encoding='utf-16'?><a>ä</a>".as_bytes(), None, "ä");
}

#[test]
fn imposed() {
    check(b"<a>\xE4</a>", Some(Encoding::Latin1), "ä");
    check(b"<?xml version='1.0' encoding='UTF-8'?><a>\x80</a>", Some(Encoding::Windows1252), "€");
    check("\u{FEFF}<a>ä</a>".as_bytes(), Some(Encoding::Latin1), "ä");
    check(&utf16("<a>ä</a>", u16::to_le_bytes), Some(Encoding::Utf16Le), "ä");
}

#[test]
fn mistakes() {
    check(b"<a>\xE4</a>", None, "1:4: these bytes are not UTF-8");
    check(b"<?xml version='1.0' encoding='US-ASCII'?><a>\xE4</a>", None, "1:45: these bytes are not US-ASCII");
    check(b"<?xml version='1.0' encoding='EBCDIC-9'?><a/>", None, "1:1: the encoding `EBCDIC-9` is not supported");
    check(b"\xFF\xFE<\0a\0/\0>", None, "1:9: these bytes are not UTF-16");
    check(b"\xFF\xFE<\0a\0>\0\x00\xD8<\0/\0a\0>\0", None, "1:9: these bytes are not UTF-16");
    check(b"<a>\x01</a>", None, "1:4: the character U+0001 is not allowed in XML");
    check("<a>\n\u{FFFE}</a>".as_bytes(), None, "2:1: the character U+FFFE is not allowed in XML");
}
