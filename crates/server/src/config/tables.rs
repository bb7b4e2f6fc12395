//! The tables whose keys are names that users give: which there are, and where their entries go.

use std::path::PathBuf;

use super::keys::{Dialect, MICRO_INTEGRATOR};
use super::settings::Settings;
use super::value::Value;

/// A table whose keys are not a fixed list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MapTable {
    /// Names and passwords.
    Users,
    /// `[roles]`: the names of users by role.
    Roles,
    /// Names and passwords of users that may deploy APIs.
    AdapterUsers,
    /// Names and passwords for the admin port.
    AdminUsers,
    /// Certificates by the names that clients ask for.
    TlsHosts,
    /// Hosts of deployment environments.
    VirtualHosts,
    /// Names and passwords of users that may call APIs.
    GatewayUsers,
    /// Names and passwords of users that get development tokens.
    TestUsers,
    /// Whose tokens count.
    Issuers,
    /// Who subscribed to what.
    Applications,
    /// Users of the management API.
    ManagementUsers,
    /// Limits by level and name.
    Plans,
    /// Limits with keys of their own.
    CustomLimits,
    /// Flags of the mapping between JSON and XML.
    Flags,
    /// The same in a file of Micro Integrator, which has more than are known here.
    OriginalFlags,
    /// Which database a data source is.
    Databases,
    /// Connections of brokers.
    Connections,
    /// Modules that stand for classes.
    Classes,
}

/// An entry of such a table.
pub(super) struct Map {
    /// Which table.
    pub(super) table: MapTable,
    /// The key inside it.
    pub(super) name: String,
}

/// The table a path leads into.
pub(super) fn map_entry(path: &str, dialect: Dialect) -> Option<Map> {
    let tables: &[(&str, MapTable)] = match dialect {
        Dialect::Penstock => &[
            ("users.", MapTable::Users),
            ("roles.", MapTable::Roles),
            ("mediation.", MapTable::Flags),
            ("databases.", MapTable::Databases),
            ("connections.", MapTable::Connections),
            ("classes.", MapTable::Classes),
            ("adapter.users.", MapTable::AdapterUsers),
            ("admin.users.", MapTable::AdminUsers),
            ("management.users.", MapTable::ManagementUsers),
            ("tls.hosts.", MapTable::TlsHosts),
            ("gateway.vhosts.", MapTable::VirtualHosts),
            ("gateway.users.", MapTable::GatewayUsers),
            ("gateway.test_users.", MapTable::TestUsers),
            ("gateway.issuers.", MapTable::Issuers),
            ("gateway.applications.", MapTable::Applications),
            ("gateway.plans.", MapTable::Plans),
            ("gateway.custom_limits.", MapTable::CustomLimits),
        ],
        Dialect::MicroIntegrator => &[
            ("mediation.", MapTable::OriginalFlags),
            ("synapse_properties.", MapTable::OriginalFlags),
            ("roles.", MapTable::Roles),
        ],
        Dialect::ChoreoConnect | Dialect::ApiPlatform => &[],
    };
    tables.iter().find_map(|(prefix, table)| {
        let name = path.strip_prefix(prefix)?;
        // `global_timeout_interval` stands in the same table and is a key of its own.
        let leads_to_a_key = MICRO_INTEGRATOR.iter().any(|key| key.name.starts_with(&format!("{path}.")));
        (!leads_to_a_key).then(|| Map { table: *table, name: name.to_owned() })
    })
}

impl Map {
    /// Sets the entry; `false` when nothing is called so.
    pub(super) fn set(&self, settings: &mut Settings, value: &Value) -> Result<bool, String> {
        match self.table {
            MapTable::Users => {
                settings.users.push((self.name.clone(), value.0.clone()));
                Ok(true)
            }
            MapTable::Roles => {
                let users = value.list().iter().map(|name| name.to_string()).collect();
                settings.roles.insert(self.name.clone(), users);
                Ok(true)
            }
            MapTable::AdapterUsers => {
                settings.adapter.users.push((self.name.clone(), value.0.clone()));
                Ok(true)
            }
            MapTable::AdminUsers => {
                settings.admin_users.push((self.name.clone(), value.0.clone()));
                Ok(true)
            }
            MapTable::ManagementUsers => super::management::user(settings, &self.name, value),
            MapTable::TlsHosts => super::keys::tls_host(settings, &self.name, value),
            MapTable::VirtualHosts => {
                super::gateway::vhost(settings, &self.name, value);
                Ok(true)
            }
            MapTable::Plans => super::traffic::plan(settings, &self.name, value),
            MapTable::CustomLimits => super::traffic::custom(settings, &self.name, value),
            MapTable::GatewayUsers | MapTable::TestUsers => {
                super::callers::user(settings, &self.name, value, self.table == MapTable::TestUsers);
                Ok(true)
            }
            MapTable::Issuers => super::callers::issuer(settings, &self.name, value),
            MapTable::Applications => super::callers::application(settings, &self.name, value),
            MapTable::Classes => {
                settings.classes.push((self.name.clone(), PathBuf::from(value.text())));
                Ok(true)
            }
            MapTable::Databases => super::databases::set(settings, &self.name, value),
            MapTable::Connections => super::connections::set(settings, &self.name, value),
            MapTable::Flags | MapTable::OriginalFlags => {
                let options = &mut settings.conversion.mapping;
                if options.set(&self.name, &value.0)? {
                    return Ok(true);
                }
                options.set(&format!("synapse.{}", self.name), &value.0)
            }
        }
    }
}
