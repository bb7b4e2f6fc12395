//! What the gateway proves itself with to a backend: what always is the same, tokens, and answers to challenges.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use penstock_catalog::{EndpointSecurity, OAuthCredentials};
use penstock_engine::endpoint::{TokenRequest, TokenSource};
use penstock_engine::ports::TlsProfile;
use penstock_engine::{Exchange, Fault};
use penstock_message::Message;
use penstock_message::push_field;

use super::digest::Digest;

/// For a token service that an API gives no time of its own. Every request that needs the token waits for it.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(15);

/// What the gateway proves itself with to the backends of a cluster.
pub(super) enum Proof {
    /// A header field.
    Field(Arc<str>, Box<str>),
    /// A parameter of the query, encoded.
    Parameter(Box<str>),
    /// A token, which is requested.
    Token(TokenSource),
    /// An answer to the backend's challenge.
    Digest(Digest),
}

/// Says which it is and nothing else.
impl fmt::Debug for Proof {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Proof::Field(name, _) => name,
            Proof::Parameter(_) => "parameter",
            Proof::Token(_) => "token",
            Proof::Digest(_) => "digest",
        })
    }
}

impl Proof {
    /// What a catalog says. `tls` says whom the backends of the API are trusted by; the token service is one of them.
    pub(super) fn new(security: &EndpointSecurity, tls: Option<Arc<TlsProfile>>) -> Proof {
        match security {
            EndpointSecurity::Basic(basic) => {
                Proof::Field("Authorization".into(), basic_field(&basic.username, &basic.password).into())
            }
            EndpointSecurity::Digest(user) => Proof::Digest(Digest::new(user.clone())),
            EndpointSecurity::OAuth(oauth) => Proof::Token(TokenSource::alike(token_request(oauth, tls))),
            EndpointSecurity::ApiKey(key) if key.in_query => {
                let mut parameter = String::new();
                push_field(&mut parameter, &key.name, &key.value);
                Proof::Parameter(parameter.into())
            }
            EndpointSecurity::ApiKey(key) => Proof::Field(key.name.clone(), (&*key.value).into()),
        }
    }

    /// Whether it may have something better to say to a backend that refused it.
    pub(super) fn answers(&self) -> bool {
        matches!(self, Proof::Token(_) | Proof::Digest(_))
    }

    /// The address with what goes into it.
    pub(super) fn address(&self, url: Arc<str>) -> Arc<str> {
        match self {
            Proof::Parameter(parameter) => {
                let mark = if url.contains('?') { '&' } else { '?' };
                format!("{url}{mark}{parameter}").into()
            }
            _ => url,
        }
    }

    /// The value of `Authorization` that a request begins with.
    pub(super) async fn first(&self, exchange: &mut Exchange, target: &str) -> Result<Option<String>, Fault> {
        match self {
            Proof::Token(source) => source.token(exchange).await.map(|token| Some(bearer(&token))),
            Proof::Digest(digest) => Ok(digest.next(exchange.message.method.as_str(), target)),
            Proof::Field(..) | Proof::Parameter(_) => Ok(None),
        }
    }

    /// What to say to a backend that refused `shown`; nothing when there is nothing better.
    pub(super) async fn second(
        &self,
        exchange: &mut Exchange,
        refusal: &Message,
        shown: Option<&str>,
        target: &str,
    ) -> Result<Option<String>, Fault> {
        match self {
            Proof::Token(source) => {
                let renewed = source.renewed(exchange, token_in(shown)).await?;
                Ok(renewed.map(|token| bearer(&token)))
            }
            Proof::Digest(digest) if digest.is_challenged(&refusal.headers) => {
                Ok(digest.next(exchange.message.method.as_str(), target))
            }
            _ => Ok(None),
        }
    }

    /// Notes that a backend refused it once more.
    pub(super) fn refused_again(&self, exchange: &mut Exchange) {
        match self {
            Proof::Token(source) => source.refused_again(exchange),
            Proof::Digest(digest) => digest.forget(),
            Proof::Field(..) | Proof::Parameter(_) => {}
        }
    }

    /// Notes that a backend refused it, and that the request cannot be sent again.
    pub(super) fn refused(&self, refusal: &Message, shown: Option<&str>) {
        match self {
            Proof::Token(source) => source.refused(token_in(shown)),
            // For the next request.
            Proof::Digest(digest) => drop(digest.is_challenged(&refusal.headers)),
            Proof::Field(..) | Proof::Parameter(_) => {}
        }
    }
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

fn token_in(shown: Option<&str>) -> &str {
    shown.and_then(|shown| shown.strip_prefix("Bearer ")).unwrap_or_default()
}

fn basic_field(name: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
}

fn token_request(oauth: &OAuthCredentials, tls: Option<Arc<TlsProfile>>) -> TokenRequest {
    let mut form = String::new();
    match &oauth.user {
        None => push_field(&mut form, "grant_type", "client_credentials"),
        Some(user) => {
            push_field(&mut form, "grant_type", "password");
            push_field(&mut form, "username", &user.username);
            push_field(&mut form, "password", &user.password);
        }
    }
    for (name, value) in &oauth.parameters {
        push_field(&mut form, name, value);
    }
    let client = basic_field(&oauth.client_id, &oauth.client_secret);
    TokenRequest {
        url: oauth.token_url.clone(),
        form,
        headers: vec![("Authorization".into(), client.into())],
        timeout: oauth.timeout.unwrap_or(TOKEN_TIMEOUT),
        tls,
    }
}
