//! The hosts an API is for: a name, `*.example.com` for the names below one, `sandbox-*` for those that begin so, `*` for any.

use std::sync::Arc;

/// How closely a pattern describes a host: the greater is the more specific one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HostRank {
    /// Any host fits.
    Any,
    /// The beginning fits, with so many characters.
    Prefix(usize),
    /// The end fits, with so many characters.
    Suffix(usize),
    /// The whole name fits.
    Exact,
}

/// The host of a `Host` field.
pub(crate) fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // The colons of an address of IPv6 stand in brackets.
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// How closely one pattern describes a host without port; `None` when it does not fit.
pub(crate) fn rank(pattern: &str, host: &str) -> Option<HostRank> {
    let (pattern_bytes, host_bytes) = (pattern.as_bytes(), host.as_bytes());
    if let Some(suffix) = pattern_bytes.strip_prefix(b"*") {
        if suffix.is_empty() {
            return Some(HostRank::Any);
        }
        let start = host_bytes.len().checked_sub(suffix.len()).filter(|start| *start > 0)?;
        return host_bytes[start..].eq_ignore_ascii_case(suffix).then_some(HostRank::Suffix(suffix.len()));
    }
    if let Some(prefix) = pattern_bytes.strip_suffix(b"*") {
        let begins = host_bytes.len() > prefix.len() && host_bytes[..prefix.len()].eq_ignore_ascii_case(prefix);
        return begins.then_some(HostRank::Prefix(prefix.len()));
    }
    pattern.eq_ignore_ascii_case(host).then_some(HostRank::Exact)
}

/// How closely the best of several patterns describes a host; no pattern at all means any host.
pub(crate) fn best_rank(patterns: &[Arc<str>], host: &str) -> Option<HostRank> {
    if patterns.is_empty() {
        return Some(HostRank::Any);
    }
    patterns.iter().filter_map(|pattern| rank(pattern, host)).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_pattern_has_the_highest_rank() {
        for (pattern, host, expected) in [
            ("a.example.com", "A.example.com", Some(HostRank::Exact)),
            ("a.example.com", "b.example.com", None),
            ("*.example.com", "a.Example.com", Some(HostRank::Suffix(12))),
            ("*.example.com", "a.b.example.com", Some(HostRank::Suffix(12))),
            ("*.example.com", ".example.com", None),
            ("*.example.com", "example.com", None),
            ("sandbox-*", "Sandbox-a.example.com", Some(HostRank::Prefix(8))),
            ("sandbox-*", "sandbox-", None),
            ("*", "", Some(HostRank::Any)),
        ] {
            assert_eq!(rank(pattern, host), expected, "{pattern} {host}");
        }
        assert!(HostRank::Exact > HostRank::Suffix(20) && HostRank::Suffix(1) > HostRank::Prefix(20));
        let patterns = ["*.example.com".into(), "*.b.example.com".into()];
        assert_eq!(best_rank(&patterns, "a.b.example.com"), Some(HostRank::Suffix(14)));
        assert_eq!((best_rank(&[], "x"), best_rank(&patterns, "x")), (Some(HostRank::Any), None));
    }
}
