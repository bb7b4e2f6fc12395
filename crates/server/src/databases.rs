//! The databases of the process, with the certificates that the configuration trusts.

use std::sync::Arc;

use penstock_sql::{ServerTls, Sql, Verification};
use penstock_transports::http::tls::{ClientTrust, TlsClient};
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;

use crate::config::Settings;

/// The databases as the settings map them.
pub fn open(settings: &Settings, tls: Arc<TlsClient>) -> Arc<Sql> {
    Arc::new(Sql::new(settings.databases.clone(), Arc::new(ConfiguredTls(tls))))
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
