//! `/transactions/count` and `/transactions/report`: requests of APIs and proxy services since the start of the server.

use std::collections::HashMap;

use penstock_engine::clock;
use serde_json::json;

use super::super::call::{Call, Outcome, ok, refuse, unknown};

pub(crate) fn read(call: &Call<'_>) -> Outcome {
    let (year, month, _) = clock::civil((clock::epoch_ms() / 86_400_000) as i64);
    let this_month = |year_text: Option<&str>, month_text: Option<&str>| {
        year_text.is_none_or(|text| text.parse() == Ok(year)) && month_text.is_none_or(|text| text.parse() == Ok(month))
    };
    let elsewhere = || refuse(404, "requests are counted since the start of the server, for the current month only");
    match call.segment {
        "count" => {
            if !this_month(call.parameter("year").as_deref(), call.parameter("month").as_deref()) {
                return elsewhere();
            }
            ok(&json!({ "Year": year, "Month": month, "TransactionCount": count(call) }))
        }
        "report" => {
            let Some(start) = call.parameter("start") else { return refuse(400, "the parameter `start` is missing") };
            let end = call.parameter("end").unwrap_or_else(|| format!("{year}-{month:02}"));
            let now = format!("{year}-{month:02}");
            let mut rows = vec![["Year", "Month", "TransactionCount"].map(str::to_owned)];
            // Texts of this form are ordered like the months.
            if start <= now && now <= end {
                rows.push([year.to_string(), month.to_string(), count(call).to_string()]);
            }
            ok(&json!({ "TransactionCountData": rows }))
        }
        _ => unknown(),
    }
}

fn count(call: &Call<'_>) -> u64 {
    let mut sum = HashMap::new();
    for core in call.api.state().cores() {
        core.metrics.add_to(&mut sum);
    }
    sum.iter().filter(|((kind, _), _)| matches!(*kind, "api" | "proxy")).map(|(_, counts)| counts.requests).sum()
}
