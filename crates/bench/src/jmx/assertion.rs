//! Response assertions.
use super::Reading;
use super::tree::Element;
use crate::error::Error;
use crate::load::expect::{Expect, Field, TextRule};

// The bits of `Assertion.test_type`, as JMeter numbers them.
const MATCH: u64 = 1;
const CONTAINS: u64 = 2;
const NOT: u64 = 4;
const EQUALS: u64 = 8;
const SUBSTRING: u64 = 16;
const OR: u64 = 32;

pub(super) fn read(reading: &Reading<'_>, element: &Element, expect: &mut Expect) -> Result<(), Error> {
    let field = match reading.text(element, "Assertion.test_field")?.as_str() {
        "Assertion.response_data" => Field::Body,
        "Assertion.response_code" => Field::Status,
        other => return Err(reading.wrong(element, &format!("an assertion on `{other}` is not supported"))),
    };
    let kind = reading.number(element, "Assertion.test_type", SUBSTRING)?;
    // JMeter's own files misspell the name of the list.
    let list = element.property("Asserion.test_strings").or_else(|| element.property("Assertion.test_strings"));
    let patterns = list.map(|list| list.children.as_slice()).unwrap_or_default();
    if kind & OR != 0 && patterns.len() > 1 {
        return Err(reading.wrong(element, "an assertion with `Or` is not supported"));
    }
    if reading.flag(element, "Assertion.assume_success")? {
        expect.any_status = true;
    }
    for pattern in patterns {
        let text = reading.evaluated(pattern, &pattern.text)?;
        let expression = kind & (MATCH | CONTAINS) != 0;
        if expression && text.contains(['\\', '^', '$', '.', '|', '?', '*', '+', '(', ')', '[', ']', '{', '}']) {
            return Err(
                reading.wrong(pattern, &format!("the regular expression `{text}` is not supported; use `Substring`"))
            );
        }
        let equals = kind & (EQUALS | MATCH) != 0;
        expect.rules.push(TextRule { field, pattern: text, equals, negated: kind & NOT != 0 });
    }
    Ok(())
}
