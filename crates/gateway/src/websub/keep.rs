//! Subscriptions as they are kept: a JSON text.

use std::sync::Arc;

use penstock_catalog::{Secret, SigningAlgorithm};
use serde_json::{Value, json};

use super::subscription::Subscription;
use crate::policy::limits::Subscriber;

const ALGORITHMS: [(&str, SigningAlgorithm); 4] = [
    ("sha1", SigningAlgorithm::Sha1),
    ("sha256", SigningAlgorithm::Sha256),
    ("sha384", SigningAlgorithm::Sha384),
    ("sha512", SigningAlgorithm::Sha512),
];

/// All subscriptions by their numbers, and the next number.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    pub subscriptions: Vec<(u64, Subscription)>,
    pub next: u64,
}

/// Writes subscriptions.
pub(super) fn write<'s>(subscriptions: impl Iterator<Item = (u64, &'s Subscription)>, next: u64) -> Vec<u8> {
    let one = |(number, subscription): (u64, &'s Subscription)| {
        let Subscription { api, topic, callback, hub, secret, algorithm, ends, who } = subscription;
        let name = ALGORITHMS.iter().find(|(_, known)| known == algorithm).map_or("sha1", |(name, _)| name);
        json!({
            "number": number, "hub": &**hub,
            "api": &**api, "topic": &**topic, "callback": &**callback, "algorithm": name, "ends": ends,
            "secret": secret.as_ref().map(|secret| &*secret.0), "application": &*who.application,
            "subject": &*who.subject, "applicationTier": &*who.application_tier,
            "subscriptionTier": &*who.subscription_tier,
        })
    };
    let all: Vec<_> = subscriptions.map(one).collect();
    json!({ "version": 1, "next": next, "subscriptions": all }).to_string().into_bytes()
}

/// Reads what was written. What cannot be read is a mistake, so that it is not written over.
pub(super) fn read(bytes: &[u8]) -> Result<Kept, String> {
    let kept: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if kept.get("version") != Some(&json!(1)) {
        return Err("it is not of version 1".to_owned());
    }
    let list = kept.get("subscriptions").and_then(Value::as_array).ok_or("it has no `subscriptions`")?;
    let mut all = Kept { next: kept.get("next").and_then(Value::as_u64).unwrap_or(0), ..Kept::default() };
    for (at, entry) in list.iter().enumerate() {
        // Its place, not its text: there is a secret in it.
        let subscription = one(entry).ok_or_else(|| format!("entry {at} is no subscription"))?;
        // What was written before there were numbers has none.
        let number = entry.get("number").and_then(Value::as_u64).unwrap_or(at as u64);
        all.next = all.next.max(number.saturating_add(1));
        all.subscriptions.push((number, subscription));
    }
    Ok(all)
}

/// Reads what was written, and writes it again.
pub(crate) fn rewritten(bytes: &[u8]) -> Option<Vec<u8>> {
    let all = read(bytes).ok()?;
    Some(write(all.subscriptions.iter().map(|(number, one)| (*number, one)), all.next))
}

fn one(entry: &Value) -> Option<Subscription> {
    let text = |key: &str| Some(Arc::<str>::from(entry.get(key)?.as_str()?));
    let algorithm = text("algorithm")?;
    Some(Subscription {
        api: text("api")?,
        topic: text("topic")?,
        callback: text("callback")?,
        hub: text("hub").unwrap_or_default(),
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
        let subscription = |secret: Option<&str>, ends| Subscription {
            api: "/a/1".into(),
            topic: "t\"ü".into(),
            callback: "http://x/?a=b".into(),
            hub: "https://h/a/1".into(),
            secret: secret.map(|secret| Secret(secret.into())),
            algorithm: SigningAlgorithm::Sha256,
            ends,
            who: Subscriber { application: "7".into(), subscription_tier: "Gold".into(), ..Subscriber::default() },
        };
        let all = vec![(3, subscription(None, None)), (9, subscription(Some("s"), Some(7)))];
        let written = write(all.iter().map(|(number, one)| (*number, one)), 12);
        assert_eq!(read(&written), Ok(Kept { subscriptions: all, next: 12 }));
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
