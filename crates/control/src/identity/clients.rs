//! OAuth2 clients: of dynamic registration, and of applications.

use serde_json::{Map, Value, json};

use super::keys::Keys;
use crate::problem::Problem;
use crate::random;
use crate::store::{Kind, Object, Transaction};

/// Secrets of one client at once.
pub(crate) const SECRETS_MAX: usize = 10;

/// A client with its id and first secret.
pub(crate) fn new(
    organization: &str,
    name: &str,
    owner: &str,
    grant_types: &[String],
    callback: Option<&str>,
) -> Object {
    let mut document = Map::new();
    document.insert("grantTypes".into(), json!(grant_types));
    document.insert("callbackUrl".into(), json!(callback));
    document.insert("secrets".into(), json!([secret_entry(0, None, None)]));
    document.insert("nextSecret".into(), 1.into());
    let mut client = Object::new(Kind::Client, organization, name, document).owned(owner);
    client.id = random::hex(&random::bytes::<14>());
    client
}

/// How a secret is noted: never the secret itself.
pub(crate) fn secret_entry(number: u64, description: Option<&str>, ends_ms: Option<i64>) -> Value {
    json!({
        "number": number, "secretId": random::uuid(), "description": description, "expiresAt": ends_ms,
        "createdTime": crate::clock::now_ms(),
    })
}

/// The entries of the secrets of a client that have not ended.
pub(crate) fn secrets(client: &Object) -> Vec<&Value> {
    let now = crate::clock::now_ms();
    let entries = client.document.get("secrets").and_then(Value::as_array).into_iter().flatten();
    entries.filter(|entry| entry.get("expiresAt").and_then(Value::as_i64).is_none_or(|ends| ends > now)).collect()
}

/// The number of a secret.
pub(crate) fn number(entry: &Value) -> u64 {
    entry.get("number").and_then(Value::as_u64).unwrap_or_default()
}

/// The latest secret of a client; empty when all have ended.
pub(crate) fn secret(keys: &Keys, client: &Object) -> String {
    secrets(client).last().map(|entry| keys.client_secret(&client.id, number(entry))).unwrap_or_default()
}

/// Whether a client has a secret. All of them are compared.
pub(crate) fn has_secret(keys: &Keys, client: &Object, given: &str) -> bool {
    let is =
        |entry: &&Value| random::is_same(keys.client_secret(&client.id, number(entry)).as_bytes(), given.as_bytes());
    secrets(client).iter().fold(false, |found, entry| found | is(entry))
}

/// A client of any organization: clients authenticate before it is known which organization they are of.
pub(crate) fn find(tx: &Transaction<'_>, id: &str) -> Result<Option<Object>, Problem> {
    tx.get_of_any_organization(Kind::Client, id)
}

/// The grant types of a client.
pub(crate) fn allows(client: &Object, grant_type: &str) -> bool {
    client.texts("grantTypes").contains(&grant_type)
}

/// Whether a setting of a client is `true`, as a text or as a truth value.
pub(crate) fn setting_is_true(client: &Object, name: &str) -> bool {
    let value = client.document.get("additionalProperties").and_then(|settings| settings.get(name));
    value.is_some_and(|value| value == &Value::Bool(true) || value.as_str() == Some("true"))
}
