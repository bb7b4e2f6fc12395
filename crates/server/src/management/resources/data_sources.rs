//! `/data-sources`

use serde_json::{Value, json};

use super::super::call::{Call, Outcome, refuse};
use super::super::inventory::Deployed;
use super::{mask_url, masked, read_artifacts};

const KIND: &str = "datasource";

pub(crate) fn read(call: &Call<'_>) -> Outcome {
    read_artifacts(
        call,
        KIND,
        "name",
        |name| refuse(404, format!("datasource {name} does not exist")),
        |found| json!({ "name": found.artifact.name, "type": source_type(found) }),
        detail,
    )
}

fn source_type<'i>(found: &Deployed<'i>) -> &'i str {
    found.element.child("definition").and_then(|definition| definition.attribute("type")).unwrap_or("RDBMS")
}

fn detail(found: &Deployed<'_>) -> Value {
    let settings = found.element.child("definition").and_then(|definition| definition.child("configuration"));
    let text = |name: &'static str| settings.and_then(|settings| settings.child_text(name));
    let is = |name, default| text(name).map_or(default, |value| value.eq_ignore_ascii_case("true"));
    let number = |name| text(name).and_then(|value| value.parse::<i64>().ok());
    json!({
        "name": found.artifact.name,
        "description": found.element.child_text("description").unwrap_or_default(),
        "type": source_type(found),
        "configuration": masked(found),
        "driverClass": text("driverClassName"),
        "url": text("url").map(|url| mask_url(&url)),
        "userName": text("username"),
        "configurationParameters": {
            "isDefaultAutoCommit": is("defaultAutoCommit", true),
            "isDefaultReadOnly": is("defaultReadOnly", false),
            "removeAbandoned": is("removeAbandoned", false),
            "validationQuery": text("validationQuery"),
            "validationQueryTimeout": number("validationQueryTimeout"),
            "maxActive": number("maxActive"),
            "maxIdle": number("maxIdle"),
            "maxWait": number("maxWait"),
            "maxAge": number("maxAge"),
        },
    })
}
