//! Secrets by alias. Their values are read by flows that ask for them and shown by nothing here.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Values by alias. What it prints are the aliases.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(BTreeMap<String, Arc<str>>);

impl Secrets {
    /// Adds or replaces a secret.
    pub fn set(&mut self, alias: impl Into<String>, value: impl Into<Arc<str>>) {
        self.0.insert(alias.into(), value.into());
    }

    /// The value of an alias.
    pub fn get(&self, alias: &str) -> Option<&Arc<str>> {
        self.0.get(alias)
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn values_are_not_printed() {
        let mut secrets = super::Secrets::default();
        secrets.set("db", "hush");
        assert_eq!(format!("{secrets:?}"), "{\"db\"}");
        assert_eq!(secrets.get("db").map(|value| &**value), Some("hush"));
    }
}
