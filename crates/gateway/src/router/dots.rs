//! Paths that climb. A backend may resolve `/open/../closed` to `/closed`, whose policies did not run; so a path with
//! such a segment, written plainly or escaped, belongs to no operation.

/// Whether a segment of a path is `.` or `..`, also where dots and slashes are escaped, with a backslash for a slash, or
/// with parameters (`..;a=1`).
pub(crate) fn has_dot_segment(path: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::has_dot_segment;

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
