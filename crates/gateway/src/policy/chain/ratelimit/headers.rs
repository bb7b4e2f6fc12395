//! Headers about quotas.

use std::fmt::Write;

use penstock_message::{DIGITS_MAX, Headers, decimal};

use super::limiter::Verdict;
use crate::policy::chain::config::RateLimitConfig;

const SECOND: u64 = 1_000_000_000;

/// Which headers are sent.
pub(super) struct QuotaHeaders {
    common: bool,
    standard: bool,
    retry: bool,
}

impl QuotaHeaders {
    pub(super) fn new(config: &RateLimitConfig) -> QuotaHeaders {
        QuotaHeaders { common: config.tells_common, standard: config.tells_standard, retry: config.tells_retry }
    }

    /// The fields of these quotas; `refused` is the one that let nothing through.
    pub(super) fn fields<'a>(
        &self,
        quotas: impl Iterator<Item = (&'a str, &'a Verdict)> + Clone,
        now: u64,
        refused: Option<&str>,
    ) -> Headers {
        let mut headers = Headers::new();
        let number = |headers: &mut Headers, name: &str, value: u64| {
            headers.append(name, decimal(value, &mut [0; DIGITS_MAX]));
        };
        if self.common
            && let Some((_, tightest)) = quotas.clone().min_by_key(|(_, verdict)| verdict.left)
        {
            number(&mut headers, "x-ratelimit-limit", tightest.limit);
            number(&mut headers, "x-ratelimit-remaining", tightest.left);
            number(&mut headers, "x-ratelimit-reset", tightest.reset / SECOND);
        }
        if self.standard {
            let (mut policy, mut limit) = (String::new(), String::new());
            for (name, verdict) in quotas.clone() {
                let comma = if policy.is_empty() { "" } else { ", " };
                let seconds = verdict.reset.saturating_sub(now) / SECOND;
                // Writing to a `String` cannot fail.
                let _ = write!(policy, "{comma}\"{name}\";q={};w={}", verdict.limit, verdict.window.as_secs());
                let _ = write!(limit, "{comma}\"{name}\";r={};t={seconds}", verdict.left);
            }
            if !policy.is_empty() {
                headers.append("ratelimit-policy", policy);
                headers.append("ratelimit", limit);
            }
        }
        if let Some(refused) = refused {
            let retry = quotas.clone().find(|(name, _)| *name == refused).and_then(|(_, verdict)| verdict.retry);
            if let Some(retry) = retry.filter(|_| self.retry) {
                // Rounded up: a request at that time is not rejected again.
                number(&mut headers, "retry-after", retry.div_ceil(SECOND).max(1));
            }
            headers.append("x-ratelimit-quota", refused);
        }
        headers
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_tightest_limit_is_reported() {
        let verdict = |left: u64, seconds: u64, retry: Option<u64>| Verdict {
            granted: retry.is_none(),
            limit: 10,
            left,
            reset: (100 + seconds) * SECOND,
            retry,
            window: Duration::from_secs(60),
        };
        let quotas = [("a", verdict(3, 20, None)), ("b", verdict(0, 5, Some(SECOND * 9 / 2)))];
        let all = || quotas.iter().map(|(name, verdict)| (*name, verdict));
        let told = |tell: &QuotaHeaders, refused| {
            let headers = tell.fields(all(), 100 * SECOND, refused);
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            headers.iter().map(|(name, value)| format!("{}: {}", text(name), text(value))).collect::<Vec<_>>()
        };
        let everything = QuotaHeaders::new(&RateLimitConfig::default());
        let standard =
            ["ratelimit-policy: \"a\";q=10;w=60, \"b\";q=10;w=60", "ratelimit: \"a\";r=3;t=20, \"b\";r=0;t=5"];
        let common = ["x-ratelimit-limit: 10", "x-ratelimit-remaining: 0", "x-ratelimit-reset: 105"];
        assert_eq!(told(&everything, None), [&common[..], &standard[..]].concat());
        let refused = ["retry-after: 5", "x-ratelimit-quota: b"];
        assert_eq!(told(&everything, Some("b")), [&common[..], &standard[..], &refused[..]].concat());
        let nothing = QuotaHeaders { common: false, standard: false, retry: false };
        assert_eq!(told(&nothing, Some("b")), ["x-ratelimit-quota: b"]);
        assert!(told(&nothing, None).is_empty());
    }
}
