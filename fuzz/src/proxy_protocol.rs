//! Headers of the PROXY protocol: what is read does not depend on how the bytes arrive, nor on what follows.

use penstock_transports::http::ProxyHeader;

/// What headers are made of.
pub const DICTIONARY: &[&str] = &[
    "PROXY ",
    "TCP4 ",
    "TCP6 ",
    "UNKNOWN",
    "192.0.2.1 ",
    "2001:db8::1 ",
    "443",
    "\r\n",
    "\r\n\r\n\0\r\nQUIT\n",
    "\u{21}",
    "\u{20}",
    "\u{11}",
    "\0\u{c}",
    "\0\u{24}",
];

/// Checks the properties for one input.
pub fn header(data: &[u8]) {
    let whole = ProxyHeader::parse(data);
    // A beginning is incomplete until the header is whole, then always the same.
    for end in 0..data.len() {
        match (ProxyHeader::parse(&data[..end]), &whole) {
            (Ok(None), _) => {}
            (found, whole) => assert_eq!(&found, whole, "after {end} bytes"),
        }
    }
    if let Ok(Some(header)) = whole {
        assert!(header.length <= data.len() && header.length >= 15);
        assert_eq!(ProxyHeader::parse(&data[..header.length]), whole);
        assert_eq!(ProxyHeader::parse(&data[..header.length - 1]), Ok(None));
    }
}
