//! Keys and certificates of connections to brokers, from the keystores that parameters name.

use std::fmt;
use std::path::PathBuf;

use rustls::pki_types::CertificateDer;

use crate::http::tls::{Identity, read_certificates};
#[cfg(any(feature = "jms", feature = "mqtt"))]
pub(crate) use client::client_config;
#[cfg(feature = "jms")]
pub(crate) use client::connect;

/// What the client shows and trusts.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Tls {
    /// Its own key, for brokers that ask for one.
    pub(crate) keystore: Option<Keystore>,
    /// The authorities it trusts; those of the machine when there is none.
    pub(crate) truststore: Option<Keystore>,
}

/// A file with keys or certificates.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Keystore {
    location: PathBuf,
    password: String,
}

impl Keystore {
    pub(crate) fn new(location: &str, password: Option<&str>) -> Keystore {
        Keystore { location: location.into(), password: password.unwrap_or_default().to_owned() }
    }

    /// Reads its key and certificates.
    pub(crate) fn identity(&self) -> Result<Identity, String> {
        Identity::from_keystore(&self.read()?, &self.password, None, None).map_err(|error| self.wrong(&error))
    }

    /// Reads its certificates.
    pub(crate) fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, String> {
        read_certificates(&self.read()?, &self.password).map_err(|error| self.wrong(&error))
    }

    fn read(&self) -> Result<Vec<u8>, String> {
        std::fs::read(&self.location).map_err(|cause| self.wrong(&cause))
    }

    fn wrong(&self, cause: &dyn fmt::Display) -> String {
        format!("{}: {cause}", self.location.display())
    }
}

/// For clients whose library leaves TLS to its user.
#[cfg(any(feature = "jms", feature = "mqtt"))]
mod client {
    use std::sync::Arc;

    use rustls::ClientConfig;
    #[cfg(feature = "jms")]
    use tokio::net::TcpStream;
    #[cfg(feature = "jms")]
    use tokio_rustls::client::TlsStream;

    use super::{Keystore, Tls};
    use crate::http::tls::{ClientTrust, TlsClient};

    /// Reads the files.
    pub(crate) fn client_config(tls: &Tls) -> Result<Arc<ClientConfig>, String> {
        let trust = ClientTrust {
            extra_roots: tls.truststore.as_ref().map(Keystore::certificates).transpose()?.unwrap_or_default(),
            only_extra_roots: tls.truststore.is_some(),
            identity: tls.keystore.as_ref().map(Keystore::identity).transpose()?,
            ..ClientTrust::default()
        };
        let config = TlsClient::new(trust).config().map_err(|error| error.to_string())?;
        let mut config = ClientConfig::clone(&config);
        // The protocols of HTTP.
        config.alpn_protocols.clear();
        Ok(Arc::new(config))
    }

    /// Starts TLS on a connection. The broker's certificate must have the name of the host.
    #[cfg(feature = "jms")]
    pub(crate) async fn connect(tls: &Tls, host: &str, socket: TcpStream) -> Result<TlsStream<TcpStream>, String> {
        let tls = tls.clone();
        let config = tokio::task::spawn_blocking(move || client_config(&tls)).await;
        let config = config.map_err(|error| error.to_string())??;
        let name = rustls::pki_types::ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        tokio_rustls::TlsConnector::from(config).connect(name, socket).await.map_err(|error| error.to_string())
    }
}
