//! What a change touched of what the gateway knows, noted while the change is made: so only that is published again.

use std::collections::BTreeSet;

use penstock_catalog::AccessChange;

use super::{Kind, Object};
use crate::identity::SUPER_ORGANIZATION;
use crate::snapshot;

/// See the module.
#[derive(Debug, Clone, Default)]
pub(crate) struct Touched {
    /// APIs, products and MCP servers by their ids.
    pub(crate) apis: BTreeSet<String>,
    /// Something that many APIs may use: certificates of backends, shared policies.
    pub(crate) all_apis: bool,
    /// Plans, deny conditions, key managers.
    pub(crate) configuration: bool,
    /// An organization was activated or deactivated. A new one has nothing that the gateway knows.
    pub(crate) organizations: bool,
    /// Applications, keys and subscriptions.
    pub(crate) access: Vec<AccessChange>,
}

impl Touched {
    /// Notes that an object was added, replaced or removed.
    pub(super) fn note(&mut self, before: Option<&Object>, after: Option<&Object>) {
        self.access.extend(before.and_then(snapshot::removal));
        self.access.extend(after.and_then(snapshot::addition));
        let Some(object) = after.or(before) else { return };
        match object.kind {
            Kind::Api => drop(self.apis.insert(object.id.clone())),
            Kind::Revision | Kind::ClientCertificate => drop(self.apis.insert(object.parent.clone())),
            Kind::OperationPolicy if !object.parent.is_empty() => drop(self.apis.insert(object.parent.clone())),
            Kind::OperationPolicy | Kind::EndpointCertificate => self.all_apis = true,
            Kind::Throttling | Kind::Deny => self.configuration |= object.organization == SUPER_ORGANIZATION,
            Kind::KeyManager => self.configuration = true,
            Kind::Organization => self.organizations |= before.is_some(),
            _ => {}
        }
    }

    /// Notes that files of an object changed. Files of other objects than APIs change together with their objects.
    pub(super) fn note_files(&mut self, owner: &str) {
        self.apis.insert(owner.to_owned());
    }

    /// Adds what was touched later.
    pub(super) fn merge(&mut self, later: Touched) {
        self.apis.extend(later.apis);
        self.all_apis |= later.all_apis;
        self.configuration |= later.configuration;
        self.organizations |= later.organizations;
        self.access.extend(later.access);
    }

    /// Whether something was touched that a snapshot has.
    pub(crate) fn is_of_snapshot(&self) -> bool {
        !self.apis.is_empty() || self.all_apis || self.configuration || self.organizations
    }
}

/// Whether changes of a kind need the object as it was: steps of a change name what they remove.
pub(super) fn needs_before(kind: Kind) -> bool {
    matches!(kind, Kind::Application | Kind::KeyMapping | Kind::Subscription | Kind::Organization)
}
