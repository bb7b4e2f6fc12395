//! The keys of managed APIs that say how backends are treated, what is limited and what is traced.

use std::sync::Arc;

use penstock_catalog::PlanLevel;
use penstock_gateway::{parse_custom, parse_denial, parse_plan};

use super::gateway::gateway;
use super::keys::{FLAG, Key, LIST, NUMBER, SIZE, TEXT, TIME, assign};
use super::settings::Settings;
use super::value::Value;

/// The keys.
pub(super) const KEYS: &[Key] = &[
    Key {
        name: "gateway.retry.count_max",
        kind: NUMBER,
        set: assign!(gateway => upstream.retry_count_max = number("a whole number")),
    },
    Key { name: "gateway.retry.statuses", kind: LIST, set: retry_statuses },
    Key { name: "gateway.aws.region", kind: TEXT, set: assign!(gateway => upstream.aws.region = some string) },
    Key { name: "gateway.aws.endpoint", kind: TEXT, set: assign!(gateway => upstream.aws.endpoint = some string) },
    Key { name: "gateway.aws.passthrough", kind: FLAG, set: assign!(gateway => upstream.aws.passthrough = flag()) },
    Key { name: "gateway.retry.base", kind: TIME, set: assign!(gateway => upstream.retry_base = duration("ms")) },
    Key { name: "gateway.retry.body", kind: SIZE, set: assign!(gateway => upstream.replay_bytes_max = size()) },
    Key {
        name: "gateway.health.interval",
        kind: TIME,
        set: assign!(gateway => upstream.health.interval = duration("s")),
    },
    Key {
        name: "gateway.health.timeout",
        kind: TIME,
        set: assign!(gateway => upstream.health.timeout = duration("s")),
    },
    Key {
        name: "gateway.health.unhealthy_after",
        kind: NUMBER,
        set: |settings, value| {
            gateway(settings).upstream.health.unhealthy_after = value.positive()? as u32;
            Ok(())
        },
    },
    Key {
        name: "gateway.health.healthy_after",
        kind: NUMBER,
        set: |settings, value| {
            gateway(settings).upstream.health.healthy_after = value.positive()? as u32;
            Ok(())
        },
    },
    Key { name: "gateway.deny", kind: LIST, set: deny },
    Key { name: "gateway.limits.headers", kind: FLAG, set: assign!(gateway => limits.tell_what_is_left = flag()) },
    Key {
        name: "gateway.graphql.depth",
        kind: NUMBER,
        set: |settings, value| {
            gateway(settings).graphql.depth_max = Some(value.positive()? as u64);
            Ok(())
        },
    },
    Key {
        name: "gateway.graphql.complexity",
        kind: NUMBER,
        set: |settings, value| {
            gateway(settings).graphql.complexity_max = Some(value.positive()? as u64);
            Ok(())
        },
    },
    Key { name: "gateway.graphql.introspection", kind: FLAG, set: assign!(gateway => graphql.introspection = flag()) },
    Key { name: "gateway.request_body", kind: SIZE, set: assign!(gateway => request_bytes_max = some bytes()) },
    Key { name: "gateway.compression.enabled", kind: FLAG, set: assign!(gateway => compression.enabled = flag()) },
    Key { name: "gateway.compression.min", kind: SIZE, set: assign!(gateway => compression.bytes_min = bytes()) },
    Key { name: "gateway.compression.types", kind: LIST, set: assign!(gateway => compression.types = list) },
    Key {
        name: "gateway.tracing.endpoint",
        kind: TEXT,
        set: |settings, value| {
            if !value.text().starts_with("http://") && !value.text().starts_with("https://") {
                return Err(format!("must be the address of an OTLP receiver over HTTP, not `{}`", value.text()));
            }
            gateway(settings).tracing.endpoint = Some(value.text().into());
            Ok(())
        },
    },
    Key {
        name: "gateway.tracing.ratio",
        kind: "a number from 0 to 1",
        set: |settings, value| {
            let ratio: f64 = value.number("a number from 0 to 1")?;
            if !(0.0..=1.0).contains(&ratio) {
                return Err(format!("must be a number from 0 to 1, not `{ratio}`"));
            }
            gateway(settings).tracing.ratio = ratio;
            Ok(())
        },
    },
    Key { name: "gateway.tracing.service", kind: TEXT, set: assign!(gateway => tracing.service = string) },
];

fn retry_statuses(settings: &mut Settings, value: &Value) -> Result<(), String> {
    let parse = |text: Arc<str>| text.parse::<u16>().ok().filter(|status| (401..=598).contains(status)).ok_or(text);
    let statuses: Result<Vec<u16>, Arc<str>> = value.list().into_iter().map(parse).collect();
    match statuses {
        Ok(statuses) if !statuses.is_empty() => gateway(settings).upstream.retry_statuses = statuses,
        Ok(_) => return Err("must name a status".to_owned()),
        Err(text) => return Err(format!("must name statuses from 401 to 598, not `{text}`")),
    }
    Ok(())
}

fn deny(settings: &mut Settings, value: &Value) -> Result<(), String> {
    let denials: Result<Vec<_>, String> = value.list().iter().map(|text| parse_denial(text)).collect();
    gateway(settings).limits.denials = denials?;
    Ok(())
}

/// An entry of `[gateway.plans]`: `api.NAME`, `subscription.NAME` or `application.NAME`.
pub(super) fn plan(settings: &mut Settings, name: &str, value: &Value) -> Result<bool, String> {
    let Some((level, name)) = name.split_once('.') else { return Ok(false) };
    let level = match level {
        "api" => PlanLevel::Api,
        "subscription" => PlanLevel::Subscription,
        "application" => PlanLevel::Application,
        _ => return Ok(false),
    };
    gateway(settings).limits.plans.push(parse_plan(level, name, value.text())?);
    Ok(true)
}

/// An entry of `[gateway.custom_limits]`.
pub(super) fn custom(settings: &mut Settings, name: &str, value: &Value) -> Result<bool, String> {
    gateway(settings).limits.custom.push(parse_custom(name, value.text())?);
    Ok(true)
}
