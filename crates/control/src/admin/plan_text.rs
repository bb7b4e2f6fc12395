//! Limits of throttling policies in the notation of the configuration of the gateway: `5000/1min; ip 10.0.0.0/8: 10/1min`.

use serde_json::{Map, Value};

/// A number that stands for no limit.
pub(super) const NO_LIMIT: u64 = 2_147_483_647;

/// The limit of a policy in the notation of the configuration: `5000/1min`.
pub(crate) fn limit_text(document: &Map<String, Value>) -> Option<String> {
    let mut text = amount_text(document.get("defaultLimit")?)?;
    let own = |name: &str| document.get(name).and_then(Value::as_u64).filter(|number| *number > 0);
    if let Some(count) = own("rateLimitCount") {
        let unit = document.get("rateLimitTimeUnit").and_then(Value::as_str).unwrap_or("sec");
        text.push_str(&format!(" burst {count}/1{unit}"));
    }
    if document.get("stopOnQuotaReach").and_then(Value::as_bool) == Some(false) {
        text.push_str(" soft");
    }
    for (word, name) in
        [("depth", "graphQLMaxDepth"), ("complexity", "graphQLMaxComplexity"), ("subscribers", "subscriberCount")]
    {
        if let Some(count) = own(name) {
            text.push_str(&format!(" {word} {count}"));
        }
    }
    for group in document.get("conditionalGroups").and_then(Value::as_array).into_iter().flatten() {
        text.push_str("; ");
        text.push_str(&group_text(group).ok()?);
    }
    Some(text)
}

/// A group of conditions with its limit in the notation of the configuration; the error is what is wrong with it.
pub(super) fn group_text(group: &Value) -> Result<String, &'static str> {
    let conditions = group.get("conditions").and_then(Value::as_array).filter(|conditions| !conditions.is_empty());
    let conditions = conditions.ok_or("a group needs conditions")?;
    let texts: Vec<String> = conditions.iter().map(condition_text).collect::<Result<_, _>>()?;
    let limit =
        group.get("limit").and_then(amount_text).ok_or("the limit of a group needs a type, an amount and a time")?;
    Ok(format!("{}: {limit}", texts.join(" and ")))
}

fn condition_text(condition: &Value) -> Result<String, &'static str> {
    let not = if condition.get("invertCondition") == Some(&Value::Bool(true)) { "not " } else { "" };
    let member = |of: &str, name: &str| {
        let value = condition.get(of).and_then(|of| of.get(name)).and_then(Value::as_str).unwrap_or_default().trim();
        if value.is_empty() { Err("a condition lacks a value") } else { Ok(value.to_owned()) }
    };
    let address = |name: &str| {
        let value = member("ipCondition", name)?;
        match value.parse::<std::net::IpAddr>() {
            Ok(_) => Ok(value),
            Err(_) => Err("a condition has an invalid address"),
        }
    };
    let pair = |of: &str, name: &str, value: &str| {
        let name = member(of, name)?;
        if name.contains(|letter: char| letter.is_whitespace() || "=;".contains(letter)) {
            return Err("a condition has an invalid name");
        }
        // Values are regular expressions, which know these characters by their numbers as well.
        let value = member(of, value)?.replace(';', "\\x3b").replace(':', "\\x3a").replace(' ', "\\x20");
        match regex::Regex::new(&value) {
            Ok(_) => Ok(format!("{name}={value}")),
            Err(_) => Err("a condition has a value that is no regular expression"),
        }
    };
    Ok(match condition.get("type").and_then(Value::as_str).unwrap_or_default() {
        "IPCONDITION" if condition["ipCondition"]["ipConditionType"] == "IPRANGE" => {
            format!("{not}ip {}-{}", address("startingIP")?, address("endingIP")?)
        }
        "IPCONDITION" => format!("{not}ip {}", address("specificIP")?),
        "HEADERCONDITION" => format!("{not}header {}", pair("headerCondition", "headerName", "headerValue")?),
        "JWTCLAIMSCONDITION" => format!("{not}claim {}", pair("jwtClaimsCondition", "claimUrl", "attribute")?),
        "QUERYPARAMETERCONDITION" => {
            format!("{not}query {}", pair("queryParameterCondition", "parameterName", "parameterValue")?)
        }
        _ => return Err("a condition has an unknown type"),
    })
}

/// A limit in the notation of the configuration.
fn amount_text(limit: &Value) -> Option<String> {
    let of = |name: &str| limit.get(name).filter(|value| value.is_object());
    let number = |value: &Value, name: &str| value.get(name).and_then(Value::as_u64);
    let window = |value: &Value| -> Option<String> {
        let (count, unit) = (number(value, "unitTime").unwrap_or(1), value.get("timeUnit")?.as_str()?);
        Some(match unit {
            "month" | "months" => format!("{}day", count.saturating_mul(30)),
            "hours" => format!("{count}hour"),
            "minutes" => format!("{count}min"),
            "seconds" => format!("{count}sec"),
            unit => format!("{count}{unit}"),
        })
    };
    let text = match limit.get("type")?.as_str()? {
        "BANDWIDTHLIMIT" => {
            let bandwidth = of("bandwidth")?;
            let unit = bandwidth.get("dataUnit").and_then(Value::as_str).unwrap_or("KB");
            format!("{}{unit}/{}", number(bandwidth, "dataAmount")?, window(bandwidth)?)
        }
        kind => {
            let name = if kind == "EVENTCOUNTLIMIT" { "eventCount" } else { "requestCount" };
            let count = number(of(name)?, name)?;
            if count >= NO_LIMIT { "unlimited".to_owned() } else { format!("{count}/{}", window(of(name)?)?) }
        }
    };
    Some(text)
}
