//! Paths that climb. A backend may resolve `/open/../closed` to `/closed`, whose policies did not run; so a path with
//! such a segment, written plainly or escaped, belongs to no operation. It may as well take `/%61dmin` for `/admin`, and
//! `/users%2Fadmin`, `//users/admin` or `/users/admin;v=1` for `/users/admin`.

use std::borrow::Cow;

/// Whether a segment of a path is `.` or `..`, also where dots and slashes are escaped, with a backslash for a slash, or
/// with parameters (`..;a=1`).
pub fn has_dot_segment(path: &str) -> bool {
    // Few paths have any of what makes a closer look necessary.
    if !path.as_bytes().windows(2).any(|two| two == b"/.") && !path.bytes().any(|byte| matches!(byte, b'%' | b'\\')) {
        return false;
    }
    let mut plain = path.to_ascii_lowercase();
    for (escaped, byte) in [("%2e", "."), ("%2f", "/"), ("%5c", "/"), ("\\", "/")] {
        plain = plain.replace(escaped, byte);
    }
    plain.split('/').any(|segment| matches!(segment.split(';').next(), Some("." | "..")))
}

/// A path with letters that need no escape as they are (RFC 3986 §6.2.2.2).
pub fn without_needless_escapes(path: &str) -> Cow<'_, str> {
    unescaped(path, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~'))
}

/// A path with everything as it is that may stand in a segment (RFC 3986 §3.3, `pchar`): most backends do not distinguish
/// `/jobs/1%3Acancel` from `/jobs/1:cancel`.
pub fn without_segment_escapes(path: &str) -> Cow<'_, str> {
    unescaped(path, |byte| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte))
}

/// What else backends may take a path for: with escaped slashes as slashes, without parameters of segments (`;v=1`), with one
/// slash for several, and each combination of these.
pub fn other_readings(path: &str) -> impl Iterator<Item = String> + use<'_> {
    let is_escaped = |three: &[u8]| matches!(three, b"%2f" | b"%2F" | b"%5c" | b"%5C");
    let has_slashes = path.contains('\\') || path.as_bytes().windows(3).any(is_escaped);
    let has_parameters = path.contains(';');
    // Slashes may come together only when others were read.
    let may_merge = path.contains("//") || has_slashes || has_parameters;
    (1..8_u8).filter_map(move |reading| {
        let [slashes, parameters, merged] = [1, 2, 4].map(|bit| reading & bit != 0);
        let is_of_use = (!slashes || has_slashes) && (!parameters || has_parameters) && (!merged || may_merge);
        is_of_use.then(|| read_as(path, slashes, parameters, merged)).filter(|read| read != path)
    })
}

fn read_as(path: &str, slashes: bool, parameters: bool, merged: bool) -> String {
    let mut read = path.to_owned();
    if slashes {
        for written in ["%2f", "%2F", "%5c", "%5C", "\\"] {
            read = read.replace(written, "/");
        }
    }
    if parameters {
        let segments: Vec<&str> =
            read.split('/').map(|segment| segment.split(';').next().unwrap_or_default()).collect();
        read = segments.join("/");
    }
    while merged && read.contains("//") {
        read = read.replace("//", "/");
    }
    read
}

/// A path without the escapes of some letters.
fn unescaped(path: &str, needs_none: impl Fn(u8) -> bool) -> Cow<'_, str> {
    if !path.as_bytes().contains(&b'%') {
        return Cow::Borrowed(path);
    }
    let plain_letter = |at: usize| {
        let digits = path.as_bytes().get(at + 1..at + 3)?;
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let byte = (digit(digits[0])? * 16 + digit(digits[1])?) as u8;
        needs_none(byte).then_some(char::from(byte))
    };
    let mut found = path.match_indices('%').filter_map(|(at, _)| Some((at, plain_letter(at)?))).peekable();
    if found.peek().is_none() {
        return Cow::Borrowed(path);
    }
    let (mut plain, mut from) = (String::with_capacity(path.len()), 0);
    for (at, letter) in found {
        plain.push_str(&path[from..at]);
        plain.push(letter);
        from = at + 3;
    }
    plain.push_str(&path[from..]);
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_lose_escapes_they_do_not_need() {
        for (path, plain) in [
            ("/a/b", "/a/b"),
            ("/%61dmin", "/admin"),
            ("/%41%7E%2d%5f%2E", "/A~-_."),
            ("/a%2Fb%20%C3%A4", "/a%2Fb%20%C3%A4"),
            ("/%6", "/%6"),
            ("/%zz%", "/%zz%"),
            ("/%2561", "/%2561"),
            ("/ä%61ä", "/äaä"),
        ] {
            assert_eq!(without_needless_escapes(path), plain);
        }
    }

    #[test]
    fn slashes_and_parameters_are_read_in_every_way() {
        let readings = |path| {
            let mut readings: Vec<_> = other_readings(path).collect();
            readings.sort();
            readings.dedup();
            readings
        };
        assert!(readings("/a/b.c/%20").is_empty());
        assert_eq!(readings("/a%2Fb"), ["/a/b"]);
        assert_eq!(readings("/a%5cb\\c"), ["/a/b/c"]);
        assert_eq!(readings("//a"), ["/a"]);
        assert_eq!(readings("/a;v=1/b;x"), ["/a/b"]);
        assert_eq!(readings("/a;v/%2fb"), ["/a/%2fb", "/a//b", "/a/b", "/a;v//b", "/a;v/b"]);
    }

    #[test]
    fn only_whole_segments_climb() {
        for (path, climbs) in [
            ("/a/../b", true),
            ("/a/./b", true),
            ("/a/..", true),
            ("/a/%2e%2E/b", true),
            ("/a/.%2e/b", true),
            ("/a%2f..%2Fb", true),
            ("/a/..%5cb", true),
            ("/a/..\\b", true),
            ("/a/..;x=1/b", true),
            ("/a/...", false),
            ("/a/..b/.c", false),
            ("/a/b.json", false),
            ("/a/%20b", false),
            ("/", false),
        ] {
            assert_eq!(has_dot_segment(path), climbs, "{path}");
        }
    }
}
