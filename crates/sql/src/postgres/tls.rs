//! TLS to PostgreSQL.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use penstock_engine::database::{DatabaseError, DatabaseErrorKind};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

use crate::tls::{ServerTls, Verification};

/// Starts TLS on connections.
#[derive(Clone)]
pub(super) struct MakeTls {
    config: Arc<ClientConfig>,
}

impl MakeTls {
    pub(super) fn new(tls: &Arc<dyn ServerTls>, verification: Verification) -> Result<MakeTls, DatabaseError> {
        let config = tls.config(verification);
        let config = config.map_err(|error| DatabaseError::new(DatabaseErrorKind::Unreachable, error))?;
        let mut config = (*config).clone();
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(MakeTls { config: Arc::new(config) })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for MakeTls {
    type Stream = Encrypted<S>;
    type TlsConnect = Connect;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Connect, Self::Error> {
        // A server that is reached by a socket file has no name; its certificate is not checked either.
        let domain = if domain.is_empty() { "localhost" } else { domain };
        Ok(Connect { config: self.config.clone(), domain: ServerName::try_from(domain.to_owned())? })
    }
}

/// One handshake.
pub(super) struct Connect {
    config: Arc<ClientConfig>,
    domain: ServerName<'static>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Connect {
    type Stream = Encrypted<S>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = std::io::Result<Encrypted<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move { TlsConnector::from(self.config).connect(self.domain, stream).await.map(Encrypted) })
    }
}

/// An encrypted connection.
pub(super) struct Encrypted<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Encrypted<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
