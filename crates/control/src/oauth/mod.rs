//! The key manager: dynamic client registration, authorization, tokens, revocation, introspection, user information,
//! discovery.

mod assertion;
mod authorize;
mod device;
mod grants;
mod pages;
mod register;
mod session;
pub(crate) mod token;

use serde_json::{Value, json};

use crate::Control;
use crate::http::{Parameters, Request, Response};
use crate::identity::{clients, tokens, users};
use crate::problem::Problem;
use crate::route::basic;
use crate::store::Object;

/// The response to a request of the key manager; `None` for other paths.
pub(crate) fn respond(control: &Control, request: &Request) -> Option<Result<Response, Problem>> {
    let path = request.path.as_str();
    if let Some(id) = path.strip_prefix(register::STANDARD_PATH) {
        return Some(register::standard(control, request, id.trim_start_matches('/')));
    }
    if let Some(rest) = path.strip_prefix("/client-registration/") {
        return rest.ends_with("/register").then(|| register::respond(control, request));
    }
    // The key manager of an organization: its users carry the organization in their names.
    let path = match path.strip_prefix("/t/").and_then(|rest| rest.find('/').map(|end| &rest[end..])) {
        Some(behind) => behind,
        None => path,
    };
    let handler: fn(&Control, &Request) -> Result<Response, Problem> = match (path, request.method.as_str()) {
        ("/oauth2/token", "POST") => token::respond,
        ("/oauth2/revoke", "POST") => revoke,
        ("/oauth2/introspect", "POST") => introspect,
        ("/oauth2/userinfo", "GET" | "POST") => user_information,
        ("/oauth2/jwks", "GET") => jwks,
        ("/oauth2/authorize", "GET" | "POST") => authorize::respond,
        ("/oauth2/device_authorize", "POST") => device::authorize,
        ("/commonauth", "POST") => session::login,
        (authorize::LOGIN, "GET") => session::login_page,
        (authorize::CONSENT, "GET") => authorize::consent_page,
        (device::PAGE, "GET" | "POST") => device::page,
        ("/oidc/logout", "GET" | "POST") => session::logout,
        (
            "/oauth2/token/.well-known/openid-configuration" | "/oidcdiscovery/.well-known/openid-configuration",
            "GET",
        ) => discovery,
        (
            "/oauth2/token"
            | "/oauth2/revoke"
            | "/oauth2/introspect"
            | "/oauth2/userinfo"
            | "/oauth2/jwks"
            | "/oauth2/authorize"
            | "/oauth2/device_authorize"
            | "/commonauth"
            | "/oidc/logout",
            _,
        ) => |_, _| Err(Problem::new(405, 405, "Method Not Allowed", "The resource does not have this method")),
        _ => return None,
    };
    Some(handler(control, request))
}

/// An error of RFC 6749 §5.2.
fn error(status: u16, code: &str, description: &str) -> Response {
    let body = json!({"error_description": description, "error": code});
    let response = Response::json(status, &body).with("Cache-Control", "no-store").with("Pragma", "no-cache");
    if status == 401 { response.with("WWW-Authenticate", "Basic realm=\"Penstock\"") } else { response }
}

fn invalid_client() -> Response {
    error(401, "invalid_client", "Client credentials are invalid.")
}

/// The fields of a request: a form, or JSON whatever the content type says. Test suites and portals send both.
fn fields(request: &Request) -> Parameters {
    let text = String::from_utf8_lossy(&request.body);
    if text.trim_start().starts_with('{') {
        return serde_json::from_str::<Value>(&text).map(|value| Parameters::from_json(&value)).unwrap_or_default();
    }
    Parameters::parse(&text)
}

/// The client of a request, with its secret in the header or in the body. A client that is registered as public names itself
/// only, for codes that PKCE protects, for devices and for refresh tokens.
fn client(control: &Control, request: &Request, fields: &Parameters) -> Result<Option<Object>, Problem> {
    let is_public_grant = fields
        .get("grant_type")
        .is_none_or(|grant| matches!(grant, "authorization_code" | "refresh_token" | token::DEVICE_CODE));
    if is_public_grant {
        return client_or_public(control, request, fields);
    }
    authenticated_client(control, request, fields)
}

fn authenticated_client(control: &Control, request: &Request, fields: &Parameters) -> Result<Option<Object>, Problem> {
    let given = match request.header("authorization") {
        Some(authorization) => basic(authorization),
        None => fields.get("client_id").zip(fields.get("client_secret")).map(|(id, secret)| (id.into(), secret.into())),
    };
    let Some((id, secret)) = given else { return Ok(None) };
    let found = control.store.read(|tx| clients::find(tx, &id))?;
    Ok(found.filter(|client| clients::has_secret(&control.keys, client, &secret)))
}

fn client_or_public(control: &Control, request: &Request, fields: &Parameters) -> Result<Option<Object>, Problem> {
    if request.header("authorization").is_some() || fields.get("client_secret").is_some() {
        return authenticated_client(control, request, fields);
    }
    let Some(id) = fields.get("client_id") else { return Ok(None) };
    let found = control.store.read(|tx| clients::find(tx, id))?;
    Ok(found.filter(|client| clients::setting_is_true(client, "bypassClientCredentials")))
}

/// RFC 7009. A token that is not known is no error.
fn revoke(control: &Control, request: &Request) -> Result<Response, Problem> {
    let fields = fields(request);
    let Some(client) = client(control, request, &fields)? else { return Ok(invalid_client()) };
    let Some(token) = fields.get("token") else {
        return Ok(error(400, "invalid_request", "The parameter `token` is missing"));
    };
    let claims = tokens::verify(control, token)?;
    let of_access = claims.as_ref().and_then(|claims| {
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let ends = claims.get("exp").and_then(Value::as_u64)?;
        (text("client_id") == Some(&client.id)).then(|| text("jti").map(|id| (id.to_owned(), ends)))?
    });
    let revoked = control.store.change(|tx| {
        if let Some((id, ends)) = of_access {
            tx.revoke(&client.organization, &id, ends)?;
            tx.drop_refresh_token_of(&client.id, &id)?;
            return Ok(vec![(id, ends)]);
        }
        let hash = crate::random::sha256(token.as_bytes());
        match tx.refresh_family(&hash, &client.id)? {
            Some(family) => tx.end_family(&family),
            None => Ok(Vec::new()),
        }
    })?;
    control.end_tokens(&revoked);
    Ok(Response::empty(200))
}

/// RFC 7662, for clients and for administrators.
fn introspect(control: &Control, request: &Request) -> Result<Response, Problem> {
    let fields = fields(request);
    let is_client = client(control, request, &fields)?.is_some();
    if !is_client {
        let user = match request.header("authorization").and_then(basic) {
            Some((name, password)) => users::login(control, &name, &password, request.client)?,
            None => None,
        };
        if !user.is_some_and(|user| user.is_admin()) {
            return Ok(invalid_client());
        }
    }
    let Some(token) = fields.get("token") else {
        return Ok(Response::json(400, &json!({"error": "Invalid input"})));
    };
    let Some(mut claims) = tokens::verify(control, token)? else {
        return Ok(Response::json(200, &json!({"active": false})));
    };
    claims.insert("active".into(), true.into());
    claims.insert("token_type".into(), "Bearer".into());
    let user = claims.get("sub").cloned().unwrap_or_default();
    claims.insert("username".into(), user);
    Ok(Response::json(200, &Value::Object(claims)))
}

/// OpenID Connect Core §5.3.
fn user_information(control: &Control, request: &Request) -> Result<Response, Problem> {
    let token = request.header("authorization").and_then(|value| value.split_once(' ')).map(|(_, token)| token.trim());
    let claims = match token {
        Some(token) => tokens::verify(control, token)?,
        None => None,
    };
    let unauthorized = |code: &str, description: &str| {
        let body = json!({"error": code, "error_description": description});
        Ok(Response::json(401, &body).with("WWW-Authenticate", "Bearer"))
    };
    let Some(claims) = claims else { return unauthorized("invalid_token", "Access token validation failed") };
    let text = |name: &str| claims.get(name).and_then(Value::as_str).unwrap_or_default();
    if !text("scope").split_whitespace().any(|scope| scope == "openid") {
        return unauthorized("insufficient_scope", "Access token does not have the openid scope");
    }
    Ok(Response::json(200, &json!({"sub": text("sub")})))
}

fn jwks(control: &Control, _: &Request) -> Result<Response, Problem> {
    Ok(Response::json(200, &json!({"keys": control.keys.jwks()})))
}

/// OpenID Connect Discovery §3: what is there, and nothing else.
fn discovery(control: &Control, _: &Request) -> Result<Response, Problem> {
    let base = control.base_url();
    let at = |path: &str| format!("{base}{path}");
    let body = json!({
        "issuer": control.issuer(),
        "authorization_endpoint": at("/oauth2/authorize"),
        "token_endpoint": at("/oauth2/token"),
        "device_authorization_endpoint": at("/oauth2/device_authorize"),
        "end_session_endpoint": at("/oidc/logout"),
        "revocation_endpoint": at("/oauth2/revoke"),
        "introspection_endpoint": at("/oauth2/introspect"),
        "userinfo_endpoint": at("/oauth2/userinfo"),
        "jwks_uri": at("/oauth2/jwks"),
        "registration_endpoint": at("/client-registration/v0.17/register"),
        "grant_types_supported": token::GRANT_TYPES,
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "code_challenge_methods_supported": ["S256", "plain"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"],
        "scopes_supported": ["openid"],
        "claims_supported": ["sub", "iss", "aud", "exp", "iat", "auth_time", "nonce"],
    });
    Ok(Response::json(200, &body))
}
