//! Skimming finds what reading finds.
#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

use std::collections::HashSet;

use penstock_xml::{ParseOptions, Reader, Token};

/// Tokens with their places, the depth after them, the names of start tags, and what two prefixes mean.
fn all(document: &str, mut next: impl FnMut(&mut Reader<'_>) -> Token) -> Vec<String> {
    let mut reader = Reader::new(document.as_bytes(), &ParseOptions::default());
    let mut seen = Vec::new();
    loop {
        let token = next(&mut reader);
        let is_start = matches!(token, Token::Start | Token::Empty);
        let name = if is_start { reader.element_name().as_str() } else { "" };
        let namespaces = (reader.namespace(""), reader.namespace("p"));
        seen.push(format!("{token:?} {name} at {} {} {namespaces:?}", reader.offset(), reader.depth()));
        if token == Token::EndOfInput {
            return seen;
        }
    }
}

/// The numbers of the names of elements that begin with `x`, which the next reader of this thread uses again.
fn boring_numbers(document: &str) -> HashSet<u32> {
    let mut reader = Reader::new(document.as_bytes(), &ParseOptions::default());
    let mut numbers = HashSet::new();
    loop {
        match reader.advance().unwrap() {
            Token::Start | Token::Empty if reader.element_name().as_str().starts_with('x') => {
                numbers.insert(reader.name_number());
            }
            Token::EndOfInput => return numbers,
            _ => {}
        }
    }
}

/// What `skim` promises, by the means of `advance`.
fn next_by_reading(reader: &mut Reader<'_>, is_boring: impl Fn(u32, bool) -> bool) -> Token {
    let before = reader.depth();
    loop {
        let token = reader.advance().unwrap();
        let passes = match token {
            Token::Start => is_boring(reader.name_number(), reader.depth() - 1 > before),
            Token::Empty => reader.depth() > 0 && is_boring(reader.name_number(), reader.depth() > before),
            Token::End => reader.depth() >= before,
            other => {
                matches!(other, Token::Verbatim | Token::Text | Token::CData | Token::Comment | Token::Instruction)
            }
        };
        if !passes {
            return token;
        }
    }
}

#[test]
fn skimming_finds_what_reading_finds() {
    for document in [
        "<a><x>1</x><b>2</b><x/><x><x>3</x><b/></x><c/></a>",
        "<x><x><b>1</b></x></x>",
        "<x/>",
        "<a><x k='>' l=\"/x>\">1</x><x></x ><x\n/><b k='1'/></a>",
        "<a>]<x>]</x>]]<x> ]] > <b/></x></a>",
        "<a>\r\n<x>\r</x><b>\r</b></a>",
        "<a><x>&lt;b&gt;</x><![CDATA[<b>]]><!-- <b> --><?b <b>?><x><b/></x></a>",
        "<a xmlns:p='u'><x xmlns:p='v'><p:b/></x><p:b/><x><x xmlns='w'/></x></a>",
        "<!DOCTYPE a [<!ENTITY e 'x'>]><a><x>&e;</x><b/></a><!-- end -->",
        "<?xml version='1.0'?>\n<a><x1/><x2>t</x2><x1/><x2>t</x2><b/></a>\n",
        "<a><x\u{e4}>\u{20ac}</x\u{e4}><b/></a>",
    ] {
        let boring = boring_numbers(document);
        for deeper_only in [false, true] {
            let is_boring = |number: u32, nested: bool| (nested || !deeper_only) && boring.contains(&number);
            let expected = all(document, |reader| next_by_reading(reader, is_boring));
            let found = all(document, |reader| reader.skim(is_boring).unwrap());
            assert_eq!(found, expected, "{document}");
        }
    }
}
