//! `/tasks`

use serde_json::{Map, Value, json};

use super::super::audit::{self, Action};
use super::super::call::{Call, Outcome, done, refuse, text};
use super::super::inventory::Deployed;
use super::{read_artifacts, service_status, set_service};

const KIND: &str = "task";

/// The class and the group of a task that names none.
const MESSAGE_INJECTOR: &str = "org.apache.synapse.startup.tasks.MessageInjector";
const GROUP: &str = "synapse.simple.quartz";

pub(crate) fn read(call: &Call<'_>) -> Outcome {
    read_artifacts(
        call,
        KIND,
        "taskName",
        |name| refuse(404, format!("Specified task {name} not found")),
        |found| json!({ "name": found.artifact.name }),
        |found| detail(call, found),
    )
}

pub(crate) fn change(call: &Call<'_>) -> Outcome {
    let payload = call.payload()?;
    let (Some(name), Some(wanted)) = (text(&payload, "name"), text(&payload, "status")) else {
        return refuse(400, "Missing parameters in payload");
    };
    let Some(status) = call.api.state().services.get(KIND, &name) else {
        return refuse(404, format!("Specified task {name} not found"));
    };
    let (action, verb) = if wanted.eq_ignore_ascii_case("trigger") {
        status.trigger();
        (Action::Triggered, "triggered")
    } else {
        match set_service(&status, &wanted) {
            Some(true) => (Action::Enabled, "activated"),
            Some(false) => (Action::Disabled, "deactivated"),
            None => return refuse(400, "Provided state is not valid"),
        }
    };
    audit::changed(call, action, "task", &json!({ "taskName": name }));
    done(format!("Task [{name}] is successfully {verb}."))
}

fn detail(call: &Call<'_>, found: &Deployed<'_>) -> Value {
    let element = &found.element;
    let name = &found.artifact.name;
    let trigger = element.child("trigger");
    let given = |attribute: &str| trigger.and_then(|trigger| trigger.attribute(attribute));
    let mut detail = json!({
        "name": name,
        "taskGroup": element.attribute("group").unwrap_or(GROUP),
        "implementation": element.attribute("class").unwrap_or(MESSAGE_INJECTOR),
        "status": service_status(call, KIND, name),
    });
    match given("cron") {
        Some(cron) => {
            detail["triggerType"] = json!("cron");
            detail["cronExpression"] = json!(cron);
        }
        None => {
            let once = trigger.is_none() || given("once") == Some("true");
            detail["triggerType"] = json!("simple");
            detail["triggerCount"] = json!(given("count").unwrap_or(if once { "1" } else { "-1" }));
            detail["triggerInterval"] = json!(given("interval").unwrap_or("1"));
        }
    }
    let property = |property: penstock_compile::Element<'_>| {
        let value = match property.attribute("value") {
            Some(value) => value.to_owned(),
            None => property
                .children()
                .next()
                .map_or_else(|| property.text(), |child| String::from_utf8_lossy(&child.to_xml()).into_owned()),
        };
        Some((property.attribute("name")?.to_owned(), json!(value)))
    };
    let properties: Map<String, Value> = element.elements("property").filter_map(property).collect();
    detail["properties"] = Value::Object(properties);
    detail["configuration"] = json!(found.configuration());
    detail
}
