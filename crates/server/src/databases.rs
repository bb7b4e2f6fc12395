//! The databases of the process, with the certificates that the configuration trusts.

use std::sync::Arc;

use penstock_engine::background::Coordination;
use penstock_engine::clock;
use penstock_engine::database::{DataSource, Databases, Location, PoolSettings};
use penstock_sql::{ServerTls, Sql, SqlLeases, Verification};
use penstock_transports::http::tls::{ClientTrust, TlsClient};
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;

use crate::config::Settings;

/// The databases as the settings map them.
pub fn open(settings: &Settings, tls: Arc<TlsClient>) -> Arc<Sql> {
    Arc::new(Sql::new(settings.databases.clone(), Arc::new(ConfiguredTls(tls))))
}

/// A data source that the configuration names: by its name, or by an address.
pub fn source(text: &str) -> Arc<DataSource> {
    let location = if text.contains(':') { Location::Url(text.into()) } else { Location::Name(text.into()) };
    let pool = PoolSettings::default();
    Arc::new(DataSource { location, definition: None, user: None, password: None, pool })
}

/// The data source that turns coordination on in Micro Integrator.
const COORDINATION_DATA_SOURCE: &str = "jdbc/WSO2_COORDINATION_DB";

/// The leases of the cluster; `None` on a node that is alone.
pub fn coordination(settings: &Settings, databases: Arc<dyn Databases>) -> Option<Coordination> {
    let of_micro_integrator = || {
        let mut entries = settings.databases.entries.iter();
        entries.find(|entry| entry.name == COORDINATION_DATA_SOURCE).map(|entry| entry.name.as_str())
    };
    let database = settings.coordination.database.as_deref().or_else(of_micro_integrator)?;
    // A process that starts again is another holder: what it did before may still run.
    let node = settings.coordination.node.as_deref().unwrap_or(&settings.hostname);
    let holder = format!("{node} {}", clock::uuid());
    let leases = Arc::new(SqlLeases::new(databases, source(database), holder.into()));
    Some(Coordination { leases, time: settings.coordination.lease })
}

/// TLS to databases trusts what TLS to HTTP backends trusts.
struct ConfiguredTls(Arc<TlsClient>);

impl ServerTls for ConfiguredTls {
    fn config(&self, verification: Verification) -> Result<Arc<ClientConfig>, String> {
        let config = match verification {
            Verification::Certificate => self.0.config(),
            Verification::None => {
                TlsClient::new(ClientTrust { trust_everything: true, ..ClientTrust::default() }).config()
            }
        };
        config.map_err(|error| error.to_string())
    }

    fn roots(&self) -> Vec<CertificateDer<'static>> {
        self.0.roots()
    }
}
