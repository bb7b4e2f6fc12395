//! `/message-stores`, and the messages in one.

use std::time::Duration;

use penstock_engine::store::{MessageStore, StoreError};
use penstock_message::Form;
use serde_json::{Map, Value, json};

use super::super::call::{Call, Outcome, list, ok, refusal, refuse};
use super::super::inventory::Deployed;
use super::{MASKED, is_secret_name, masked};

const KIND: &str = "messageStore";

/// Messages of one response, unless `limit` asks for fewer.
const MESSAGES_MAX: usize = 100;

/// A body is shown up to this length.
const SHOWN_BYTES: usize = 64 * 1024;

/// How long a back end may take; a list must come although one broker is away.
const BACKEND_TIMEOUT: Duration = Duration::from_secs(5);

/// Classes by their last name, and the types that clients know.
const TYPES: [(&str, &str); 7] = [
    ("InMemoryStore", "in-memory-message-store"),
    ("InMemoryMessageStore", "in-memory-message-store"),
    ("JDBCMessageStore", "jdbc-message-store"),
    ("JmsStore", "jms-message-store"),
    ("JMSMessageStore", "jms-message-store"),
    ("RabbitMQStore", "rabbitmq-message-store"),
    ("ResequenceMessageStore", "resequence-message-store"),
];

pub(crate) async fn read(call: &Call<'_>) -> Outcome {
    let inventory = call.api.inventory();
    if let Some(name) = call.parameter("name") {
        return match inventory.find(KIND, &name) {
            Some(found) => {
                let size = size(call, &name).await;
                ok(&detail(&found, size))
            }
            None => refuse(404, format!("Specified message store ('{name}') not found")),
        };
    }
    let mut items = Vec::new();
    for found in inventory.of_kind(KIND).filter(|found| call.finds(&found.artifact.name)) {
        let size = size(call, &found.artifact.name).await;
        items.push(summary(&found, size));
    }
    list(call, items)
}

/// The first messages of a store; they stay where they are.
pub(crate) async fn browse(call: &Call<'_>) -> Outcome {
    let name = call.segment;
    let store = match open(call, name) {
        Some(Ok(store)) => store,
        Some(Err(error)) => return refuse(500, error.to_string()),
        None => return refuse(404, format!("Specified message store ('{name}') not found")),
    };
    let limit = call.query.number("limit").unwrap_or(MESSAGES_MAX).min(MESSAGES_MAX);
    let browsed = tokio::time::timeout(BACKEND_TIMEOUT, store.browse(limit)).await;
    let records = match browsed {
        Ok(Ok(records)) => records,
        Ok(Err(error)) => return Err(refusal(500, error.to_string())),
        Err(_) => return Err(refusal(500, "the back end of the store does not answer")),
    };
    let messages = records.into_iter().map(|record| {
        let mut shown = json!({ "messageId": *record.id, "priority": record.priority, "bytes": record.bytes.len() });
        // A record of another program has no parts that are known here.
        if let Ok(mut message) = penstock_messaging::stored_message(&record.bytes) {
            let mut headers = Map::new();
            for (field, value) in message.headers.iter() {
                let field = String::from_utf8_lossy(field).into_owned();
                let hidden = is_secret_name(&field) || field.eq_ignore_ascii_case("authorization");
                let value = if hidden { MASKED.into() } else { String::from_utf8_lossy(value) };
                headers.insert(field, json!(value));
            }
            shown["headers"] = Value::Object(headers);
            if let Form::Bytes(body) = message.body.take() {
                shown["body"] = json!(String::from_utf8_lossy(&body[..body.len().min(SHOWN_BYTES)]));
            }
        }
        shown
    });
    list(call, messages)
}

fn open(call: &Call<'_>, name: &str) -> Option<Result<std::rc::Rc<dyn MessageStore>, StoreError>> {
    let program = call.api.state().current.get();
    let definition = penstock_messaging::store_definition(&program, name)?;
    Some(call.api.core.stores().and_then(|stores| stores.open(&definition)))
}

/// How many messages there are; 0 where the back end does not say.
async fn size(call: &Call<'_>, name: &str) -> u64 {
    let Some(Ok(store)) = open(call, name) else { return 0 };
    match tokio::time::timeout(BACKEND_TIMEOUT, store.count()).await {
        Ok(Ok(count)) => count.unwrap_or_default(),
        Ok(Err(_)) | Err(_) => 0,
    }
}

fn summary(found: &Deployed<'_>, size: u64) -> Value {
    let class = found.element.attribute("class").unwrap_or("InMemoryStore");
    let simple = class.rsplit('.').next().unwrap_or(class);
    let kind = TYPES.iter().find(|(known, _)| *known == simple).map_or("custom-message-store", |(_, kind)| kind);
    json!({ "name": found.artifact.name, "type": kind, "size": size })
}

fn detail(found: &Deployed<'_>, size: u64) -> Value {
    let mut detail = summary(found, size);
    detail["container"] = json!(found.container);
    detail["file"] = json!(found.file_name());
    let properties: Map<String, Value> = found
        .parameters()
        .into_iter()
        .map(|(name, value)| {
            let value = if is_secret_name(&name) { MASKED.to_owned() } else { super::mask_url(&value) };
            (name, json!(value))
        })
        .collect();
    detail["properties"] = Value::Object(properties);
    detail["configuration"] = json!(masked(found));
    detail
}
