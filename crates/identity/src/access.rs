//! Applications and subscriptions, found by consumer key.

use std::collections::HashMap;
use std::sync::Arc;

use penstock_catalog::{Application, Subscription};

/// Who may use what. Made anew when anything changes.
#[derive(Debug, Default)]
pub struct AccessList {
    applications: Vec<Entry>,
    by_key: HashMap<Arc<str>, (usize, bool)>,
}

#[derive(Debug)]
struct Entry {
    application: Application,
    subscriptions: Vec<Subscription>,
}

impl AccessList {
    /// An index of these.
    pub fn new(applications: &[Application], subscriptions: &[Subscription]) -> AccessList {
        let mut list = AccessList::default();
        for application in applications {
            let index = list.applications.len();
            for (key, production) in &application.keys {
                list.by_key.insert(key.clone(), (index, *production));
            }
            let own = subscriptions.iter().filter(|subscription| subscription.application == application.id);
            list.applications.push(Entry { application: application.clone(), subscriptions: own.cloned().collect() });
        }
        list
    }

    /// The application of a consumer key, and whether the key is for production.
    pub fn application(&self, consumer_key: &str) -> Option<(&Application, bool)> {
        let (index, production) = self.by_key.get(consumer_key)?;
        Some((&self.applications.get(*index)?.application, *production))
    }

    /// The subscription of a consumer key's application to an API.
    pub fn subscription(&self, consumer_key: &str, api: &str, version: &str) -> Option<&Subscription> {
        let (index, _) = self.by_key.get(consumer_key)?;
        let subscriptions = &self.applications.get(*index)?.subscriptions;
        subscriptions.iter().find(|subscription| *subscription.api == *api && *subscription.version == *version)
    }
}
