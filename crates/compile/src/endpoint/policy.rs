//! Timeouts and suspension, and values that come from the environment.

use std::time::Duration;

use penstock_engine::endpoint::{AddressingVersion, EndpointPolicy, TimeoutAction, TimeoutDuration};
use penstock_engine::{Exchange, Place};

use crate::{Compiler, Element, Expression};

/// Reads `timeout`, `markForSuspension`, `suspendOnFailure` and `retryConfig`.
pub(super) fn read(cx: &mut Compiler<'_>, el: &Element<'_>) -> EndpointPolicy {
    let mut policy = EndpointPolicy::default();
    if let Some(timeout) = el.child("timeout") {
        read_timeout(cx, &timeout, &mut policy);
    }
    if let Some(mark) = el.child("markForSuspension") {
        let suspension = &mut policy.suspension;
        suspension.mark_codes = codes(cx, &mark, "errorCodes");
        suspension.retries_before_suspension =
            number(cx, &mark, "retriesBeforeSuspension").unwrap_or(0.0).max(0.0) as u32;
        suspension.retry_delay = millis(number(cx, &mark, "retryDelay").unwrap_or(0.0));
    }
    if let Some(suspend) = el.child("suspendOnFailure") {
        let suspension = &mut policy.suspension;
        suspension.suspend_codes = codes(cx, &suspend, "errorCodes");
        suspension.initial = number(cx, &suspend, "initialDuration").map(millis);
        suspension.factor = number(cx, &suspend, "progressionFactor").unwrap_or(1.0);
        if let Some(maximum) = number(cx, &suspend, "maximumDuration") {
            suspension.maximum = millis(maximum);
        }
    }
    if let Some(seconds) = number(cx, el, "suspendDurationOnFailure") {
        // The oldest form: seconds, with nothing to grow.
        policy.suspension.initial = Some(millis(seconds * 1000.0));
    }
    if let Some(retry) = el.child("retryConfig") {
        policy.retry_disabled_codes = codes(cx, &retry, "disabledErrorCodes");
        policy.retry_enabled_codes = codes(cx, &retry, "enabledErrorCodes");
    }
    if let Some(security) = el.child("enableSec") {
        security.accept_all();
        cx.unprotected(security.place(), "WS-Security to a backend is not supported");
    }
    if let Some(reliable) = el.child("enableRM") {
        reliable.accept_all();
        cx.warn(reliable.place(), "WS-ReliableMessaging is not supported; ignored");
    }
    if let Some(addressing) = el.child("enableAddressing") {
        policy.addressing = Some(read_addressing(cx, &addressing));
    }
    for tolerated in ["property", "authentication"] {
        for child in el.elements(tolerated) {
            child.accept_all();
        }
    }
    policy
}

fn read_addressing(cx: &mut Compiler<'_>, el: &Element<'_>) -> AddressingVersion {
    if el.flag("separateListener", false) {
        let at = el.attribute_place("separateListener");
        cx.warn(at, "`separateListener` is not supported; the response comes back on the connection of the request");
    }
    let version = match el.attribute("version") {
        None | Some("" | "final") => AddressingVersion::Final,
        Some("submission") => AddressingVersion::Submission,
        Some(other) => {
            let message = format!("the version `{other}` of WS-Addressing is not one of final, submission");
            cx.warn(el.attribute_place("version"), message);
            AddressingVersion::Final
        }
    };
    el.finish(cx);
    version
}

/// The same from the children of a connection entry.
pub(super) fn read_connection(cx: &mut Compiler<'_>, el: &Element<'_>) -> EndpointPolicy {
    let mut policy = EndpointPolicy::default();
    if let Some(duration) = el.child("timeoutDuration").filter(|child| !child.text().is_empty()) {
        read_duration(cx, &duration, &mut policy);
    }
    policy.timeout_action = response_action(cx, el.child("timeoutAction"));
    let suspension = &mut policy.suspension;
    suspension.mark_codes = codes(cx, el, "retryErrorCodes");
    suspension.retries_before_suspension = number(cx, el, "retryCount").unwrap_or(0.0) as u32;
    suspension.retry_delay = millis(number(cx, el, "retryDelay").unwrap_or(0.0));
    suspension.suspend_codes = codes(cx, el, "suspendErrorCodes");
    suspension.initial = number(cx, el, "suspendInitialDuration").map(millis);
    suspension.factor = number(cx, el, "suspendProgressionFactor").unwrap_or(1.0);
    if let Some(maximum) = number(cx, el, "suspendMaximumDuration") {
        suspension.maximum = millis(maximum);
    }
    policy
}

fn read_timeout(cx: &mut Compiler<'_>, timeout: &Element<'_>, policy: &mut EndpointPolicy) {
    if let Some(duration) = timeout.child("duration") {
        read_duration(cx, &duration, policy);
    }
    policy.timeout_action = response_action(cx, timeout.child("responseAction").or_else(|| timeout.child("action")));
}

fn read_duration(cx: &mut Compiler<'_>, duration: &Element<'_>, policy: &mut EndpointPolicy) {
    let text = configured(cx, &duration.text(), &duration.place());
    if let Ok(milliseconds) = text.parse::<u64>() {
        if milliseconds > 0 {
            policy.timeout = Some(TimeoutDuration::Fixed(Duration::from_millis(milliseconds)));
        }
    } else if let Some(expression) = Expression::compile(cx, duration, inner(&text), duration.place()) {
        policy.timeout = Some(TimeoutDuration::Computed(Box::new(move |exchange: &mut Exchange| {
            let text = expression.text(exchange)?;
            let milliseconds = text.trim().parse::<u64>().map_err(|_| {
                penstock_engine::Fault::new(format!("the timeout `{text}` is not a number of milliseconds"))
            })?;
            Ok(Duration::from_millis(milliseconds))
        })));
    }
}

fn response_action(cx: &mut Compiler<'_>, action: Option<Element<'_>>) -> TimeoutAction {
    let Some(action) = action else { return TimeoutAction::None };
    let text = action.text();
    match text.to_ascii_lowercase().as_str() {
        "fault" => TimeoutAction::Fault,
        "discard" => TimeoutAction::Discard,
        "never" | "" => TimeoutAction::None,
        _ => {
            cx.warn(action.place(), format!("the response action `{text}` is not one of fault, discard, never"));
            TimeoutAction::None
        }
    }
}

fn inner(text: &str) -> &str {
    crate::expression::braced(text).unwrap_or(text)
}

fn millis(number: f64) -> Duration {
    Duration::from_secs_f64((number / 1000.0).clamp(0.0, 1e9))
}

fn number(cx: &mut Compiler<'_>, el: &Element<'_>, name: &'static str) -> Option<f64> {
    let child = el.child(name)?;
    let text = configured(cx, &child.text(), &child.place());
    if text.is_empty() {
        return None;
    }
    match text.parse::<f64>() {
        Ok(number) => (number >= 0.0).then_some(number),
        Err(_) => {
            cx.error(child.place(), format!("<{name}> is `{text}`, not a number"));
            None
        }
    }
}

fn codes(cx: &mut Compiler<'_>, el: &Element<'_>, name: &'static str) -> Vec<u32> {
    let Some(child) = el.child(name) else { return Vec::new() };
    let mut found = Vec::new();
    let text = configured(cx, &child.text(), &child.place());
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match word.parse() {
            Ok(code) => found.push(code),
            // Artifacts write `-1` for none: a list with a code that no fault has, not an empty one.
            Err(_) if word.parse::<i64>().is_ok() => found.push(u32::MAX),
            Err(_) => cx.error(child.place(), format!("the error code `{word}` is not a number")),
        }
    }
    found
}

/// Replaces `$SYSTEM:NAME` and `$FILE:NAME` by their values of now.
pub(crate) fn configured(cx: &mut Compiler<'_>, text: &str, at: &Place) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((start, marker)) =
        ["$SYSTEM:", "$FILE:"].iter().filter_map(|marker| Some((rest.find(marker)?, *marker))).min()
    {
        let (before, after) = rest.split_at(start);
        let after = &after[marker.len()..];
        let end = after
            .find(|next: char| !(next.is_alphanumeric() || matches!(next, '_' | '-' | '.')))
            .unwrap_or(after.len());
        let name = &after[..end];
        out.push_str(before);
        match cx.options.configurables.get(name) {
            Some(value) => out.push_str(value),
            None => {
                cx.warn(at.clone(), format!("`{marker}{name}` has no value in the environment or in file.properties"));
                out.push_str(marker);
                out.push_str(name);
            }
        }
        rest = &after[end..];
    }
    out.push_str(rest);
    out
}
