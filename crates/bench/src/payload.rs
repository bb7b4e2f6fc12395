//! Message bodies of the published shapes, made to fit a byte count.
use crate::error::Error;

/// What a body looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A SOAP 1.1 envelope with a routing header and as many orders as fit.
    Soap,
    /// The orders without an envelope.
    Xml,
    /// An object whose array of symbols is as long as fits.
    Json,
    /// An object of a size and a text that is as long as fits: the message of the published API Manager tests.
    Record,
    /// Exactly that many letters.
    Text,
}

/// No message may be larger than what the echo backend takes.
const PAYLOAD_BYTES_MAX: usize = crate::echo::BODY_BYTES_MAX;

impl Shape {
    /// The shape with this name.
    pub fn parse(name: &str) -> Option<Shape> {
        Some(match name {
            "soap" => Shape::Soap,
            "xml" => Shape::Xml,
            "json" => Shape::Json,
            "record" => Shape::Record,
            "text" => Shape::Text,
            _ => return None,
        })
    }

    /// The media type a request with such a body carries.
    pub fn content_type(self) -> &'static str {
        match self {
            Shape::Soap | Shape::Xml => "text/xml",
            Shape::Json | Shape::Record => "application/json",
            Shape::Text => "text/plain",
        }
    }

    /// A body of at most `bytes` bytes, as close to it as whole elements allow.
    pub fn generate(self, bytes: usize) -> Result<Vec<u8>, Error> {
        if bytes > PAYLOAD_BYTES_MAX {
            return Err(Error::Input(format!("a body of {bytes} bytes is larger than {PAYLOAD_BYTES_MAX}")));
        }
        match self {
            Shape::Soap => orders(bytes, SOAP_START, SOAP_END),
            Shape::Xml => orders(bytes, XML_START, XML_END),
            Shape::Json => json(bytes),
            Shape::Record => record(bytes),
            Shape::Text => Ok((b'a'..=b'z').cycle().take(bytes).collect()),
        }
    }
}

const SOAP_START: &str = "<soapenv:Envelope xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\">\
<soapenv:Header><routing xmlns=\"http://someuri\">xadmin;server1;community#1.0##</routing></soapenv:Header>\
<soapenv:Body><m:buyStocks xmlns:m=\"http://services.samples/xsd\">\n";
const SOAP_END: &str = "</m:buyStocks></soapenv:Body></soapenv:Envelope>\n";
const XML_START: &str = "<m:buyStocks xmlns:m=\"http://services.samples/xsd\">\n";
const XML_END: &str = "</m:buyStocks>\n";

/// Symbol, buyer, price and volume of the orders, in turn.
const ORDERS: [(&str, &str, &str, &str); 5] = [
    ("IBM", "asha", "141.20", "2500"),
    ("ACME", "ruwan", "8.75", "120"),
    ("PIPE", "lena", "56.10", "900"),
    ("W", "t", "1.5", "1"),
    ("GATE", "miguel", "310.05", "40"),
];

fn order(number: usize) -> String {
    let (symbol, buyer, price, volume) = ORDERS[number % ORDERS.len()];
    format!(
        "<order><symbol>{symbol}</symbol><buyerID>{buyer}</buyerID><price>{price}</price><volume>{volume}</volume></order>\n"
    )
}

fn orders(bytes: usize, start: &str, end: &str) -> Result<Vec<u8>, Error> {
    let least = start.len() + order(0).len() + end.len();
    if bytes < least {
        let why = format!("a message of this shape with one order has {least} bytes, more than {bytes}");
        return Err(Error::Input(format!("{why}; use the shape `json` or `text` for small messages")));
    }
    let mut body = start.to_owned();
    let mut number = 0;
    while body.len() + order(number).len() + end.len() <= bytes {
        body.push_str(&order(number));
        number += 1;
    }
    // White space before the end tag brings the size to the byte; it changes nothing in the content.
    body.push_str(&" ".repeat(bytes - body.len() - end.len()));
    body.push_str(end);
    Ok(body.into_bytes())
}

fn json(bytes: usize) -> Result<Vec<u8>, Error> {
    const START: &str = "{\"payload\":{\"symbol\":[\"gate\"";
    const ITEM: &str = ",\"gate\"";
    const END: &str = "]}}";
    let Some(room) = bytes.checked_sub(START.len() + END.len()) else {
        let least = START.len() + END.len();
        return Err(Error::Input(format!(
            "the smallest JSON message of this shape has {least} bytes, more than {bytes}"
        )));
    };
    let items = room / ITEM.len();
    let mut body = String::with_capacity(bytes);
    body.push_str(START);
    body.push_str(&ITEM.repeat(items));
    body.push_str(&" ".repeat(room - items * ITEM.len()));
    body.push_str(END);
    Ok(body.into_bytes())
}

fn record(bytes: usize) -> Result<Vec<u8>, Error> {
    let start = format!("{{\"size\":\"{bytes}B\",\"payload\":\"");
    const END: &str = "\"}";
    let Some(room) = bytes.checked_sub(start.len() + END.len()) else {
        return Err(Error::Input(format!("a record of {bytes} bytes has no room for its size")));
    };
    let letters: String = ('0'..='9').chain('A'..='Z').cycle().take(room).collect();
    Ok(format!("{start}{letters}{END}").into_bytes())
}

/// Reads a size such as `500`, `500B`, `1KB` (1,000 bytes), `1KiB` (1,024 bytes) or `2MB`.
pub fn parse_size(text: &str) -> Option<usize> {
    let split = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let factor = match unit.trim_start() {
        "" | "B" => 1,
        "KB" | "kB" => 1000,
        "KiB" => 1024,
        "MB" => 1_000_000,
        "MiB" => 1024 * 1024,
        _ => return None,
    };
    digits.parse::<usize>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_have_exactly_the_requested_size() {
        for shape in [Shape::Soap, Shape::Xml, Shape::Json, Shape::Record, Shape::Text] {
            for bytes in [50, 500, 1000, 1024, 10_000, 10_240, 100_000, 102_400] {
                if bytes == 50 && matches!(shape, Shape::Soap | Shape::Xml) {
                    assert!(shape.generate(bytes).is_err());
                    continue;
                }
                assert_eq!(shape.generate(bytes).unwrap().len(), bytes, "{shape:?}");
            }
        }
        assert!(Shape::Text.generate(usize::MAX).is_err());
    }

    #[test]
    fn soap_is_well_formed_and_starts_with_the_order_that_is_routed_on() {
        let body = String::from_utf8(Shape::Soap.generate(10_000).unwrap()).unwrap();
        let document = penstock_xml::Document::parse(body.clone(), &penstock_xml::ParseOptions::default()).unwrap();
        let elements = document.descendants(penstock_xml::Document::ROOT);
        let orders =
            elements.filter(|node| document.is_element(*node) && document.local_name(*node) == "order").count();
        assert!(orders > 80, "{orders}");
        assert!(body.contains("<order><symbol>IBM</symbol>"));
    }

    #[test]
    fn sizes_are_read() {
        for (text, expected) in [
            ("500", Some(500)),
            ("500B", Some(500)),
            ("1KB", Some(1000)),
            ("1 KiB", Some(1024)),
            ("2MB", Some(2_000_000)),
            ("1GB", None),
            ("", None),
            ("KB", None),
        ] {
            assert_eq!(parse_size(text), expected, "{text}");
        }
    }
}
