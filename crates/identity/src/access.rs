//! Applications and subscriptions, found by consumer key.

use std::sync::Arc;

use penstock_catalog::{Access, AccessChange, Application, ConsumerKey, Subscription};

use crate::shards::ShardedMap;

/// Who may use what. A copy is cheap, and so is a change of it, however many applications there are.
#[derive(Debug, Clone, Default)]
pub struct AccessList {
    applications: ShardedMap<Arc<str>, Application>,
    /// The application of a consumer key, and whether the key is for production.
    keys: ShardedMap<Arc<str>, (Arc<str>, bool)>,
    subscriptions: ShardedMap<SubscriptionKey, Subscription>,
}

/// Application, name of the API and its version.
type SubscriptionKey = (Arc<str>, Arc<str>, Arc<str>);

impl AccessList {
    /// An index of these.
    pub fn new(applications: &[Application], subscriptions: &[Subscription]) -> AccessList {
        let mut list = AccessList::default();
        applications.iter().for_each(|application| list.add_application(application.clone()));
        subscriptions.iter().for_each(|subscription| list.add_subscription(subscription.clone()));
        list
    }

    /// Adds these.
    pub fn extend(&mut self, access: Access) {
        access.applications.into_iter().for_each(|application| self.add_application(application));
        access.keys.into_iter().for_each(|key| self.add_key(key));
        access.subscriptions.into_iter().for_each(|subscription| self.add_subscription(subscription));
    }

    /// Makes the steps of a change, in their order.
    pub fn change(&mut self, steps: Vec<AccessChange>) {
        for step in steps {
            match step {
                AccessChange::Application(application) => self.add_application(application),
                AccessChange::NoApplication(id) => self.remove_application(&id),
                AccessChange::Key(key) => self.add_key(key),
                AccessChange::NoKey(key) => self.remove_key(&key.application, &key.key),
                AccessChange::Subscription(subscription) => self.add_subscription(subscription),
                AccessChange::NoSubscription(subscription) => self.subscriptions.remove(&key_of(&subscription)),
            }
        }
    }

    fn add_application(&mut self, application: Application) {
        for (key, production) in &application.keys {
            self.keys.insert(key.clone(), (application.id.clone(), *production));
        }
        self.applications.insert(application.id.clone(), application);
    }

    fn remove_application(&mut self, id: &Arc<str>) {
        let Some(application) = self.applications.get(id).cloned() else { return };
        application.keys.iter().for_each(|(key, _)| self.remove_key(id, key));
        self.applications.remove(id);
    }

    fn add_key(&mut self, ConsumerKey { application, key, production }: ConsumerKey) {
        self.keys.insert(key, (application, production));
    }

    /// Removes a key, unless another application has it now.
    fn remove_key(&mut self, application: &Arc<str>, key: &Arc<str>) {
        if self.keys.get(key).is_some_and(|(owner, _)| owner == application) {
            self.keys.remove(key);
        }
    }

    fn add_subscription(&mut self, subscription: Subscription) {
        self.subscriptions.insert(key_of(&subscription), subscription);
    }

    /// The application of a consumer key, and whether the key is for production.
    pub fn application(&self, consumer_key: &str) -> Option<(&Application, bool)> {
        let (id, production) = self.keys.get(consumer_key)?;
        Some((self.applications.get(id)?, *production))
    }

    /// The subscription of an application to an API.
    pub fn subscription(&self, application: &Arc<str>, api: &Arc<str>, version: &Arc<str>) -> Option<&Subscription> {
        self.subscriptions.get(&(application.clone(), api.clone(), version.clone()))
    }
}

fn key_of(subscription: &Subscription) -> SubscriptionKey {
    (subscription.application.clone(), subscription.api.clone(), subscription.version.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn application(id: &str, keys: &[&str]) -> Application {
        let keys = keys.iter().map(|key| ((*key).into(), true)).collect();
        Application { id: id.into(), name: id.into(), keys, ..Application::default() }
    }

    fn key(application: &str, key: &str) -> ConsumerKey {
        ConsumerKey { application: application.into(), key: key.into(), production: false }
    }

    fn subscription(application: &str, tier: &str) -> Subscription {
        let (api, version) = ("Orders".into(), "1".into());
        Subscription { application: application.into(), api, version, tier: tier.into(), ..Subscription::default() }
    }

    #[test]
    fn a_change_leads_where_a_new_list_would() {
        let mut list = AccessList::new(&[application("a", &["a"])], &[subscription("a", "Gold")]);
        let before = list.clone();
        list.change(vec![
            AccessChange::Application(application("b", &["b"])),
            AccessChange::Key(key("b", "of b")),
            AccessChange::Key(key("a", "of a")),
            AccessChange::NoKey(key("a", "of b")),
            AccessChange::NoSubscription(subscription("a", "Gold")),
            AccessChange::Subscription(subscription("b", "Gold")),
            AccessChange::NoSubscription(subscription("b", "Gold")),
            AccessChange::Subscription(subscription("b", "Silver")),
            AccessChange::NoApplication("a".into()),
        ]);
        let name =
            |list: &AccessList, key: &str| list.application(key).map(|(found, live)| (found.id.to_string(), live));
        assert_eq!(name(&list, "of b"), Some(("b".to_owned(), false)));
        assert_eq!(name(&list, "b"), Some(("b".to_owned(), true)));
        assert_eq!((name(&list, "a"), name(&list, "of a")), (None, None));
        let tier = |list: &AccessList, id: &str| {
            list.subscription(&id.into(), &"Orders".into(), &"1".into()).map(|found| found.tier.to_string())
        };
        assert_eq!((tier(&list, "a"), tier(&list, "b").as_deref()), (None, Some("Silver")));
        assert_eq!((name(&before, "a").is_some(), tier(&before, "a").as_deref()), (true, Some("Gold")));
    }
}
