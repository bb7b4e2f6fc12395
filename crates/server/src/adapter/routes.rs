//! The REST API: `/api/mgw/adapter/0.1`.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use penstock_compile::{Diagnostic, Severity};
use penstock_engine::ports::{LocalFuture, Request, Service};
use penstock_engine::{Login, Realm, basic_credentials, is_secret};
use penstock_message::{Message, Method};
use serde_json::{Value, json};

use super::deploy::{Deployer, Refused, Wanted};
use super::revoked::{self, Revoked};
use super::tokens::Tokens;
use crate::rest::{Query, body, multipart, reply};

const BASE: &str = "/api/mgw/adapter/0.1";

/// The largest archive; definitions, policies and certificates together are rarely a megabyte.
const ARCHIVE_BYTES_MAX: usize = 64 << 20;

/// Maximum errors of one project in a response.
const ERRORS_MAX: usize = 100;

/// Answers requests.
pub(super) struct Routes {
    deployer: Arc<Deployer>,
    tokens: Tokens,
}

impl Service for Routes {
    fn answer<'a>(&'a self, request: Request) -> LocalFuture<'a, Message> {
        Box::pin(self.reply(request))
    }
}

impl Routes {
    pub(super) fn new(deployer: Arc<Deployer>) -> Routes {
        let tokens = Tokens::new(deployer.settings().adapter.token_lifetime);
        Routes { deployer, tokens }
    }

    async fn reply(&self, request: Request) -> Message {
        let Request { client, mut message } = request;
        let Some(path) = client.line.path().strip_prefix(BASE) else {
            return error(404, "Not Found", "no such resource");
        };
        let query = Query::read(client.line.query().unwrap_or_default());
        let is_secured = matches!(path.trim_end_matches('/'), "/apis" | "/revoked-tokens");
        if let Some(refusal) = Some(()).filter(|()| is_secured).and_then(|()| self.refuse(client.address, &message)) {
            return refusal;
        }
        match (path.trim_end_matches('/'), &client.line.method) {
            ("/oauth2/token", Method::Post) => match body(&mut message, 64 * 1024).await {
                Some(bytes) => self.token(client.address, &message, &bytes),
                None => error(413, "Payload Too Large", "credentials are shorter"),
            },
            ("/apis", Method::Get) => self.list(&query),
            ("/apis", Method::Post) => match body(&mut message, ARCHIVE_BYTES_MAX).await {
                Some(bytes) => self.deploy(&message, &bytes, &query),
                None => {
                    let limit = format!("an archive is at most {} MiB", ARCHIVE_BYTES_MAX >> 20);
                    error(413, "Payload Too Large", &limit)
                }
            },
            ("/apis", Method::Delete) => self.undeploy(&query),
            ("/revoked-tokens", Method::Get) => self.revoked().list(query.number("offset"), query.number("limit")),
            ("/revoked-tokens", Method::Post) => match body(&mut message, revoked::BODY_BYTES_MAX).await {
                Some(bytes) => self.revoked().revoke(&bytes),
                None => error(413, "Payload Too Large", "a token is shorter"),
            },
            ("/revoked-tokens", Method::Delete) => self.revoked().restore(query.get("jti").as_deref()),
            ("/revoked-tokens", _) => error(405, "Method Not Allowed", "GET, POST and DELETE of /revoked-tokens"),
            ("/apis" | "/oauth2/token", _) => {
                error(405, "Method Not Allowed", "GET, POST and DELETE of /apis, POST of /oauth2/token")
            }
            _ => error(404, "Not Found", "no such resource"),
        }
    }

    fn revoked(&self) -> Revoked<'_> {
        Revoked(&self.deployer.state.gateway_state().security.revocations)
    }

    /// The answer for a client that may not deploy; `None` for one that may.
    fn refuse(&self, address: IpAddr, message: &Message) -> Option<Message> {
        let Some(authorization) = message.headers.get("authorization") else { return Some(unauthorized()) };
        match authorization.split_once(' ') {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => {
                let settings = self.deployer.settings();
                let users = &settings.adapter.users;
                (!self.tokens.knows(token.trim(), users)).then(unauthorized)
            }
            _ => match basic_credentials(authorization) {
                Some((name, password)) => refusal_of(self.login(address, &name, &password)),
                None => Some(unauthorized()),
            },
        }
    }

    fn login(&self, address: IpAddr, name: &str, password: &str) -> Login {
        let settings = self.deployer.settings();
        let users = &settings.adapter.users;
        self.deployer.state.logins.attempt(Realm::Adapter, name, address, || is_user(users, name, password))
    }

    fn token(&self, address: IpAddr, message: &Message, bytes: &[u8]) -> Message {
        let credentials = match serde_json::from_slice::<Value>(bytes) {
            Ok(value) => {
                let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
                text("username").zip(text("password"))
            }
            Err(_) => None,
        };
        let credentials = credentials.or_else(|| message.headers.get("authorization").and_then(basic_credentials));
        let Some((name, password)) = credentials else { return unauthorized() };
        if let Some(refusal) = refusal_of(self.login(address, &name, &password)) {
            return refusal;
        }
        match self.tokens.issue(&self.deployer.settings().adapter.users) {
            Some(token) => reply(200, &json!({"accessToken": token})),
            None => error(500, "Internal Server Error", "the system has no random numbers"),
        }
    }

    fn list(&self, query: &Query) -> Message {
        let kind = query.get("query").and_then(|filter| filter.strip_prefix("type:").map(str::to_owned));
        let mut apis: Vec<Value> = Vec::new();
        let services = self.deployer.services();
        for service in &services {
            // As its default version an API is served at a shorter path besides.
            let is_default = services.iter().any(|other| {
                (&other.name, &other.version, &other.hosts) == (&service.name, &service.version, &service.hosts)
                    && other.path.len() > service.path.len()
            });
            if is_default {
                continue;
            }
            if kind.as_ref().is_some_and(|kind| !kind.eq_ignore_ascii_case(service.kind)) {
                continue;
            }
            let hosts = if service.hosts.is_empty() { vec!["*".into()] } else { service.hosts.clone() };
            for host in hosts {
                apis.push(json!({
                    "apiName": service.name,
                    "version": service.version,
                    "apiType": service.kind,
                    "context": service.path,
                    "vhost": *host,
                    "gateway-envs": self.environments(&host),
                }));
            }
        }
        let total = apis.len();
        if let Some(limit) = query.get("limit").and_then(|limit| limit.parse().ok()) {
            apis.truncate(limit);
        }
        reply(200, &json!({"total": total, "count": apis.len(), "list": apis}))
    }

    /// The deployment environments of a host.
    fn environments(&self, host: &str) -> Vec<String> {
        let settings = self.deployer.settings();
        let config = &settings.gateway;
        let named = config.vhosts.iter().filter(|(_, known)| known == host).map(|(name, _)| name.clone());
        let mut names: Vec<String> = named.collect();
        if names.is_empty() && (host == "*" || host == config.default_vhost) {
            names.push("Default".to_owned());
        }
        names
    }

    fn deploy(&self, message: &Message, bytes: &Bytes, query: &Query) -> Message {
        let content_type = message.headers.get("content-type").unwrap_or_default();
        let file = match multipart::file(content_type, bytes, "file") {
            Ok(file) => file,
            Err(reason) => return error(400, "Bad Request", reason),
        };
        // The name of the parameter is misspelt in the published examples.
        let replace = ["override", "overwride"].iter().any(|name| query.get(name).is_some_and(|value| value == "true"));
        match self.deployer.deploy(file, replace) {
            Ok(name) => reply(200, &json!({"action": "deployed", "info": name})),
            Err(refused) => self.refusal(refused),
        }
    }

    fn undeploy(&self, query: &Query) -> Message {
        let (Some(name), Some(version)) = (query.get("apiName"), query.get("version")) else {
            return error(400, "Bad Request", "`apiName` and `version` are needed");
        };
        let mut hosts: Vec<String> = query.get("vhost").into_iter().collect();
        let settings = self.deployer.settings();
        let vhosts = &settings.gateway.vhosts;
        for environment in query.get("environments").unwrap_or_default().split(':').filter(|name| !name.is_empty()) {
            hosts.extend(vhosts.iter().filter(|(known, _)| known == environment).map(|(_, host)| host.clone()));
        }
        match self.deployer.undeploy(&Wanted { name, version, hosts }) {
            Ok(name) => reply(200, &json!({"action": "deleted", "info": name})),
            Err(refused) => self.refusal(refused),
        }
    }

    fn refusal(&self, refused: Refused) -> Message {
        match refused {
            Refused::Broken(diagnostics) => match diagnostics.iter().find(|diagnostic| is_taken(diagnostic)) {
                Some(taken) => error(409, "Conflict", &taken.to_string()),
                None => broken(&diagnostics),
            },
            Refused::Exists(name) => {
                error(409, "Conflict", &format!("{name} is deployed already; `override=true` replaces it"))
            }
            Refused::Unknown => error(404, "Not Found", "no such API"),
            Refused::Given => error(409, "Conflict", "the API is served from files that were given to the server"),
            Refused::Environment(why) => {
                let text = format!("not changed: {why}");
                self.deployer.log().say(penstock_engine::ports::Level::Error, "Adapter", &text);
                error(500, "Internal Server Error", &text)
            }
        }
    }
}

/// Whether a list has that user with that password. All of them are compared, so that the time does not reveal which exist.
pub fn is_user(users: &[(String, String)], name: &str, password: &str) -> bool {
    let is = |ours: &str, given: &str| is_secret(ours.as_bytes(), given.as_bytes());
    users.iter().fold(false, |found, (known, secret)| found | (is(known, name) & is(secret, password)))
}

/// The answer to a login that failed.
fn refusal_of(login: Login) -> Option<Message> {
    match (login, login.retry_after_seconds()) {
        (Login::Accepted, _) => None,
        (_, None) => Some(unauthorized()),
        (_, Some(seconds)) => {
            let mut message = error(429, "Too Many Requests", "too many failed logins; try again later");
            message.headers.set("Retry-After", seconds.to_string());
            Some(message)
        }
    }
}

fn unauthorized() -> Message {
    let mut message = error(401, "Unauthorized", "credentials of a user who may deploy, or a token of /oauth2/token");
    message.headers.set("WWW-Authenticate", "Basic realm=\"adapter\", Bearer");
    message
}

/// Whether another API has the path already. Choreo Connect, too, calls that a conflict.
fn is_taken(diagnostic: &Diagnostic) -> bool {
    diagnostic.severity == Severity::Error && diagnostic.message.contains("` is served already, by ")
}

fn broken(diagnostics: &[Diagnostic]) -> Message {
    let errors: Vec<Value> = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .take(ERRORS_MAX)
        .map(|diagnostic| json!({"code": "400", "message": diagnostic.to_string()}))
        .collect();
    let description = errors.first().and_then(|error| error["message"].as_str()).unwrap_or("the project has errors");
    reply(
        400,
        &json!({"code": 400, "message": "Bad Request", "description": description, "moreInfo": "", "error": errors}),
    )
}

pub(crate) fn error(status: u16, message: &str, description: &str) -> Message {
    reply(status, &json!({"code": status, "message": message, "description": description, "moreInfo": "", "error": []}))
}
