//! Subscriptions as they are kept: a JSON text.

use std::sync::Arc;

use penstock_catalog::{Secret, SigningAlgorithm};
use serde_json::{Value, json};

use super::hub::Subscription;
use crate::policy::limits::Subscriber;

const ALGORITHMS: [(&str, SigningAlgorithm); 4] = [
    ("sha1", SigningAlgorithm::Sha1),
    ("sha256", SigningAlgorithm::Sha256),
    ("sha384", SigningAlgorithm::Sha384),
    ("sha512", SigningAlgorithm::Sha512),
];

/// Writes subscriptions.
pub(super) fn write<'s>(subscriptions: impl Iterator<Item = &'s Arc<Subscription>>) -> Vec<u8> {
    let one = |subscription: &'s Arc<Subscription>| {
        let Subscription { api, topic, callback, secret, algorithm, ends, who } = &**subscription;
        let name = ALGORITHMS.iter().find(|(_, known)| known == algorithm).map_or("sha1", |(name, _)| name);
        json!({
            "api": &**api, "topic": &**topic, "callback": &**callback, "algorithm": name, "ends": ends,
            "secret": secret.as_ref().map(|secret| &*secret.0), "application": &*who.application,
            "subject": &*who.subject, "applicationTier": &*who.application_tier,
            "subscriptionTier": &*who.subscription_tier,
        })
    };
    json!({ "version": 1, "subscriptions": subscriptions.map(one).collect::<Vec<_>>() }).to_string().into_bytes()
}

/// Reads what was written. What cannot be read is a mistake, so that it is not written over.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<Subscription>, String> {
    let kept: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if kept.get("version") != Some(&json!(1)) {
        return Err("it is not of version 1".to_owned());
    }
    let list = kept.get("subscriptions").and_then(Value::as_array).ok_or("it has no `subscriptions`")?;
    // Its number, not its text: there is a secret in it.
    let numbered = list.iter().enumerate();
    numbered.map(|(at, entry)| one(entry).ok_or_else(|| format!("entry {at} is no subscription"))).collect()
}

/// Reads what was written, and writes it again.
pub(crate) fn rewritten(bytes: &[u8]) -> Option<Vec<u8>> {
    let all: Vec<_> = read(bytes).ok()?.into_iter().map(Arc::new).collect();
    Some(write(all.iter()))
}

fn one(entry: &Value) -> Option<Subscription> {
    let text = |key: &str| Some(Arc::<str>::from(entry.get(key)?.as_str()?));
    let algorithm = text("algorithm")?;
    Some(Subscription {
        api: text("api")?,
        topic: text("topic")?,
        callback: text("callback")?,
        secret: text("secret").map(Secret),
        algorithm: ALGORITHMS.iter().find(|(name, _)| *name == &*algorithm).map(|(_, known)| *known)?,
        ends: entry.get("ends").and_then(Value::as_u64),
        who: Subscriber {
            application: text("application")?,
            subject: text("subject")?,
            application_tier: text("applicationTier")?,
            subscription_tier: text("subscriptionTier")?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let subscription = |secret: Option<&str>, ends| {
            Arc::new(Subscription {
                api: "/a/1".into(),
                topic: "t\"ü".into(),
                callback: "http://x/?a=b".into(),
                secret: secret.map(|secret| Secret(secret.into())),
                algorithm: SigningAlgorithm::Sha256,
                ends,
                who: Subscriber { application: "7".into(), subscription_tier: "Gold".into(), ..Subscriber::default() },
            })
        };
        let all = [subscription(None, None), subscription(Some("s"), Some(7))];
        let read_back: Vec<_> = read(&write(all.iter())).expect("it can be read").into_iter().map(Arc::new).collect();
        assert_eq!(read_back, all);
        for bad in [
            "",
            "{}",
            "[]",
            "{\"version\":1}",
            "{\"version\":1,\"subscriptions\":[{}]}",
            "{\"version\":2,\"subscriptions\":[]}",
        ] {
            assert!(read(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
