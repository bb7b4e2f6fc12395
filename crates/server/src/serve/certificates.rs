//! Certificates and keys of the ports and towards backends: read at the start, and again when their files change.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use penstock_transports::http::tls::{
    ClientCertificates, ClientTrust, Identities, Identity, TlsClient, TlsServer, read_certificates,
};

use crate::command::Failure;
use crate::config::{Keystore, Settings};

/// What was read of the files.
pub(super) struct Certificates {
    /// What the ports show, and what authorities of clients they name.
    server: Option<(Identities, ClientCertificates)>,
    client: ClientTrust,
    http2: bool,
}

/// TLS of the process.
#[derive(Clone)]
pub(super) struct Tls {
    /// Of every HTTPS port.
    pub(super) server: Option<Arc<TlsServer>>,
    /// Towards backends.
    pub(super) client: Arc<TlsClient>,
}

impl Certificates {
    /// Reads the files that the settings name.
    pub(super) fn read(settings: &Settings) -> Result<Certificates, Failure> {
        let own = settings.keystore.as_ref().map(identity).transpose()?;
        let server = match settings.https || settings.adapter.enabled {
            true => Some((identities(settings, own.clone())?, clients(settings))),
            false => None,
        };
        let mut client = ClientTrust { trust_everything: settings.trust_all, ..ClientTrust::default() };
        if let Some(file) = &settings.trust {
            let bytes = read(file)?;
            client.extra_roots = read_certificates(&bytes, &settings.trust_password)
                .map_err(|error| Failure::environment(format!("`{}`: {error}", file.display())))?;
        }
        // As Micro Integrator does: the server's certificate is the client certificate for backends.
        client.identity = own;
        Ok(Certificates { server, client, http2: settings.http2 })
    }

    /// TLS with them.
    pub(super) fn into_tls(self) -> Result<Tls, Failure> {
        let server = match &self.server {
            Some((identities, clients)) => {
                Some(Arc::new(TlsServer::new(identities, clients, self.http2).map_err(unusable)?))
            }
            None => None,
        };
        Ok(Tls { server, client: Arc::new(TlsClient::new(self.client)) })
    }

    /// Gives them to connections to come. On an error nothing changes.
    pub(super) fn apply(self, tls: &Tls) -> Result<(), Failure> {
        if let (Some(server), Some((identities, clients))) = (&tls.server, &self.server) {
            server.replace(identities, clients, self.http2).map_err(unusable)?;
        }
        tls.client.replace(self.client);
        Ok(())
    }
}

/// The files whose change is a change of certificates.
pub(super) fn files(settings: &Settings) -> Vec<PathBuf> {
    let keystores = settings.keystore.iter().chain(settings.tls_hosts.iter().map(|(_, keystore)| keystore));
    let of_keystores = keystores.flat_map(|keystore| [Some(&keystore.file), keystore.key.as_ref()]);
    of_keystores.flatten().chain(&settings.trust).cloned().collect()
}

fn unusable(error: impl std::fmt::Display) -> Failure {
    Failure::environment(format!("TLS: {error}"))
}

fn identities(settings: &Settings, own: Option<Identity>) -> Result<Identities, Failure> {
    let default = match own {
        Some(own) => own,
        None => {
            let names = [settings.hostname.clone(), "localhost".to_owned(), "127.0.0.1".to_owned()];
            Identity::self_signed(&names)
                .map_err(|error| Failure::environment(format!("no certificate could be made: {error}")))?
        }
    };
    let hosts = settings.tls_hosts.iter().map(|(host, keystore)| Ok((host.clone(), identity(keystore)?)));
    Ok(Identities { default, hosts: hosts.collect::<Result<_, Failure>>()? })
}

fn clients(settings: &Settings) -> ClientCertificates {
    ClientCertificates::Any(settings.gateway_state.security.wants_certificates())
}

fn identity(keystore: &Keystore) -> Result<Identity, Failure> {
    let file = &keystore.file;
    let bytes = read(file)?;
    let is_pem = bytes.windows(10).any(|window| window == b"-----BEGIN");
    let identity = if is_pem {
        let key = match &keystore.key {
            Some(key) => read(key)?,
            None => bytes.clone(),
        };
        Identity::from_pem(&bytes, &key)
    } else {
        Identity::from_keystore(&bytes, &keystore.password, keystore.key_password.as_deref(), keystore.alias.as_deref())
    };
    identity.map_err(|error| Failure::environment(format!("`{}`: {error}", file.display())))
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(file).map_err(|cause| Failure::from(crate::load::LoadError { path: file.to_owned(), cause }))
}
