//! Whether services are paused, kept in the registry where Micro Integrator keeps it, so that it outlives restarts.

use std::sync::Arc;

use penstock_engine::background::SavedStates;
use penstock_engine::{Registry, Resources};

/// Where the state of a kind of service lies, and its words: the folder, the property, active, paused.
const PLACES: [(&str, &str, &str, [&str; 2]); 4] = [
    (
        "messageProcessor",
        "/_system/config/repository/components/org.apache.synapse.message.processor",
        "MESSAGE_PROCESSOR_STATE",
        ["RUNNING", "PAUSED"],
    ),
    ("task", "/_system/config/repository/components/org.apache.synapse.startup", "TASK_STATE", ["ACTIVE", "INACTIVE"]),
    (
        "inboundEndpoint",
        "/_system/config/repository/components/org.apache.synapse.inbound",
        "INBOUND_ENDPOINT_STATE",
        ["ACTIVE", "INACTIVE"],
    ),
    ("proxy", "/_system/config/repository/components/org.apache.synapse.proxy", "PROXY_STATE", ["ACTIVE", "INACTIVE"]),
];

/// States in the registry. Kinds without a place there are not kept.
pub struct RegistryStates {
    registry: Arc<Registry>,
}

impl RegistryStates {
    /// States in a registry.
    pub fn new(registry: Arc<Registry>) -> RegistryStates {
        RegistryStates { registry }
    }

    fn write(&self, kind: &str, name: &str, value: impl FnOnce([&'static str; 2]) -> &'static str) {
        let Some((_, folder, property, words)) = PLACES.iter().find(|(known, ..)| *known == kind) else { return };
        // The write is queued for the registry's thread, which goes on when nothing waits for it; a full queue loses a
        // state, which is then that of the artifact.
        let _ = self.registry.put(&format!("{folder}/{name}@{property}"), value(*words), &Resources::default());
    }
}

impl SavedStates for RegistryStates {
    fn paused(&self, kind: &str, name: &str) -> Option<bool> {
        let (_, folder, property, [active, paused]) = PLACES.iter().find(|(known, ..)| *known == kind)?;
        let resource = self.registry.get(&format!("{folder}/{name}"))?;
        let (_, value) = resource.properties.iter().find(|(key, _)| **key == **property)?;
        match &**value {
            value if value == *paused => Some(true),
            value if value == *active => Some(false),
            _ => None,
        }
    }

    fn save(&self, kind: &str, name: &str, paused: bool) {
        self.write(kind, name, |[active, inactive]| if paused { inactive } else { active });
    }

    fn forget(&self, kind: &str, name: &str) {
        if self.paused(kind, name).is_some() {
            self.write(kind, name, |_| "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_kept_until_the_service_is_undeployed() {
        let states = RegistryStates::new(Arc::default());
        assert_eq!(states.paused("task", "nightly"), None);
        states.save("task", "nightly", true);
        assert_eq!(states.paused("task", "nightly"), Some(true));
        assert_eq!(states.paused("messageProcessor", "nightly"), None);
        states.save("task", "nightly", false);
        assert_eq!(states.paused("task", "nightly"), Some(false));
        states.forget("task", "nightly");
        assert_eq!(states.paused("task", "nightly"), None);
    }
}
