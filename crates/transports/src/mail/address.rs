//! Lists of addresses: `a@example.com, "Sales, EU" <b@example.com>`.

use lettre::message::Mailbox;

/// Recipients of one mail. More belong into a mailing list.
const ADDRESSES_MAX: usize = 1000;

/// Parses a list. lettre's own parser stops at the first address that it cannot read, and the others would get no mail.
pub(super) fn parse_list(text: &str) -> Result<Vec<Mailbox>, String> {
    let mut found = Vec::new();
    for part in split(text) {
        if found.len() == ADDRESSES_MAX {
            return Err(format!("a mail has at most {ADDRESSES_MAX} recipients"));
        }
        found.push(parse(part)?);
    }
    Ok(found)
}

/// Parses one address, with or without a name.
pub(super) fn parse(text: &str) -> Result<Mailbox, String> {
    let wrong = || format!("`{text}` is not a mail address");
    let (name, address) = match text.strip_suffix('>').and_then(|rest| rest.rsplit_once('<')) {
        Some((name, address)) => (name.trim(), address.trim()),
        None => ("", text),
    };
    let name = match name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(quoted) => quoted.replace('\\', ""),
        None => name.to_owned(),
    };
    if name.chars().any(char::is_control) {
        return Err(wrong());
    }
    let address = address.parse().map_err(|_| wrong())?;
    Ok(Mailbox::new(Some(name).filter(|name| !name.is_empty()), address))
}

/// The parts between commas that stand in no quotes.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    let mut is_escaped = false;
    let parts = text.split(move |letter| {
        let ends = letter == ',' && !is_quoted;
        is_quoted ^= letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        ends
    });
    parts.map(str::trim).filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_of_a_list_is_read_or_reported() {
        let read = |text: &str| {
            parse_list(text).map(|list| list.iter().map(|mailbox| mailbox.email.to_string()).collect::<Vec<_>>())
        };
        assert_eq!(read("a@b.c,, d@localhost ,").unwrap(), ["a@b.c", "d@localhost"]);
        assert_eq!(read("\"Sales, \\\"EU\\\"\" <a@b.c>, X Y <d@e.f>").unwrap(), ["a@b.c", "d@e.f"]);
        assert_eq!(read("").unwrap(), Vec::<String>::new());
        assert_eq!(read("a@b.c; d@e.f").unwrap_err(), "`a@b.c; d@e.f` is not a mail address");
        assert!(read("a@b.c, d").is_err());
        assert!(read("A\r\nBcc: x <a@b.c>").is_err());
    }

    #[test]
    fn names_are_kept() {
        assert_eq!(parse("\"Sales, EU\" <a@b.c>").unwrap().name.as_deref(), Some("Sales, EU"));
        assert_eq!(parse("<a@b.c>").unwrap().name, None);
    }
}
