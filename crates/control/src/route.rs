//! From a request to an operation: the table, authentication, scopes.
//!
//! The table is `operations.txt`; a handler is registered by method and path in the list of its API. An operation without a
//! handler responds with 501 and its name. Scopes are compared here and nowhere else.

use crate::http::{Parameters, Request, Response, decode};
use crate::identity::{Caller, tokens, users};
use crate::problem::Problem;
use crate::{BODY_BYTES_MAX, Control, admin, catalog, devops, devportal, gateway, oauth, publisher, scim, soap};

const TABLE: &str = include_str!("operations.txt");

/// Segments of a path; the deepest operation has eight.
const SEGMENTS_MAX: usize = 16;

/// What an operation does.
pub(crate) type Handler = fn(&Call<'_>) -> Result<Response, Problem>;

/// A handler by method and path.
pub(crate) type Registration = (&'static str, &'static str, Handler);

/// A REST API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Publisher,
    Devportal,
    Admin,
    ServiceCatalog,
    Gateway,
    Devops,
    Internal,
}

impl Api {
    fn named(name: &str) -> Option<Api> {
        Some(match name {
            "publisher" => Api::Publisher,
            "devportal" => Api::Devportal,
            "admin" => Api::Admin,
            "service-catalog" => Api::ServiceCatalog,
            "gateway" => Api::Gateway,
            "devops" => Api::Devops,
            "internal" => Api::Internal,
            _ => return None,
        })
    }

    /// The API of a path, and the path below its base. The first three have any version in their path, or none.
    fn of(path: &str) -> Option<(Api, &str)> {
        if let Some(rest) = path.strip_prefix("/internal/data/v1") {
            return Some((Api::Internal, rest));
        }
        let (name, rest) = match path.strip_prefix("/api/am/")?.split_once('/') {
            Some((name, _)) => (name, &path["/api/am/".len() + name.len()..]),
            None => return None,
        };
        let api = Api::named(name)?;
        let below = rest.strip_prefix('/').unwrap_or(rest);
        let (first, behind) = below.split_at(below.find('/').unwrap_or(below.len()));
        let digits = first.strip_prefix('v').unwrap_or_default();
        let is_version = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        match api {
            Api::Publisher | Api::Devportal | Api::Admin => Some((api, if is_version { behind } else { rest })),
            Api::Gateway => (first == "v2").then_some((api, behind)),
            Api::ServiceCatalog => (first == "v1").then_some((api, behind)),
            Api::Devops => (first == "v0").then_some((api, behind)),
            Api::Internal => None,
        }
    }
}

/// An operation of the table.
pub(crate) struct Operation {
    pub(crate) api: Api,
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    scopes: Vec<String>,
    pub(crate) handler: Option<Handler>,
    segments: Vec<Segment>,
}

enum Segment {
    Literal(&'static str),
    Parameter(&'static str),
}

/// Who may call an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Anyone; a caller that authenticates is known to the handler.
    Anonymous,
    /// A caller with one of the scopes, or any caller when there are none.
    Scopes,
    /// An administrator with name and password.
    AdministratorBasic,
}

impl Operation {
    /// Who may call it.
    pub(crate) fn access(&self) -> Access {
        let reads = self.method == "GET" || self.method == "HEAD";
        match self.api {
            Api::Devportal if self.scopes.is_empty() && reads => Access::Anonymous,
            Api::Publisher | Api::Admin | Api::ServiceCatalog | Api::Devportal if self.path == "/settings" => {
                Access::Anonymous
            }
            Api::Gateway if self.path == "/server-startup-healthcheck" => Access::Anonymous,
            Api::Gateway | Api::Devops | Api::Internal => Access::AdministratorBasic,
            _ => Access::Scopes,
        }
    }

    /// Whether any caller may call it.
    #[cfg(test)]
    pub(crate) fn needs_no_scope(&self) -> bool {
        self.scopes.is_empty()
    }

    /// The values of its parameters in a path.
    fn matches(&self, path: &[&str]) -> Option<Vec<(&'static str, String)>> {
        if path.len() != self.segments.len() {
            return None;
        }
        let mut parameters = Vec::new();
        for (segment, text) in self.segments.iter().zip(path) {
            match segment {
                Segment::Literal(known) if known == text => {}
                Segment::Literal(_) => return None,
                Segment::Parameter(name) => parameters.push((*name, decode(text, false))),
            }
        }
        Some(parameters)
    }

    fn literals(&self) -> usize {
        self.segments.iter().filter(|segment| matches!(segment, Segment::Literal(_))).count()
    }
}

/// All operations.
pub(crate) struct Routes {
    operations: Vec<Operation>,
}

/// A call of an operation.
pub(crate) struct Call<'c> {
    pub(crate) control: &'c Control,
    pub(crate) request: &'c Request,
    pub(crate) api: Api,
    pub(crate) query: Parameters,
    pub(crate) caller: Caller,
    parameters: Vec<(&'static str, String)>,
}

impl Call<'_> {
    /// A parameter of the path.
    pub(crate) fn parameter(&self, name: &str) -> &str {
        self.parameters.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value.as_str())
    }

    /// The first parameter of the path: the id of the API, the application.
    pub(crate) fn id(&self) -> &str {
        self.parameters.first().map_or("", |(_, value)| value.as_str())
    }

    /// A query parameter that must be given.
    pub(crate) fn needed(&self, name: &str) -> Result<&str, Problem> {
        self.query.get(name).ok_or_else(|| Problem::bad_request(format!("The query parameter `{name}` is missing")))
    }

    /// The organization of the caller; anonymous callers of the portal name theirs.
    pub(crate) fn organization(&self) -> &str {
        &self.caller.organization
    }

    /// Whether the request has no credentials.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.caller.name.is_empty()
    }
}

impl Routes {
    pub(crate) fn new() -> Routes {
        let rows = TABLE.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let operations = rows.filter_map(|row| {
            let mut cells = row.split(' ');
            let (api, method, path, scopes) = (cells.next()?, cells.next()?, cells.next()?, cells.next()?);
            let api = Api::named(api)?;
            let handlers: &[&[Registration]] = match api {
                Api::Publisher => publisher::HANDLERS,
                Api::Devportal => devportal::HANDLERS,
                Api::Admin => admin::HANDLERS,
                Api::ServiceCatalog => catalog::HANDLERS,
                Api::Gateway => gateway::HANDLERS,
                Api::Devops => devops::HANDLERS,
                Api::Internal => &[],
            };
            let found = handlers.iter().copied().flatten().find(|(of, at, _)| *of == method && *at == path);
            let segment = |text: &'static str| match text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
                Some(name) => Segment::Parameter(name),
                None => Segment::Literal(text),
            };
            Some(Operation {
                api,
                method,
                path,
                scopes: scopes.split(',').filter(|scope| *scope != "-").map(crate::identity::scopes::full).collect(),
                handler: found.map(|(_, _, handler)| *handler),
                segments: path.trim_matches('/').split('/').map(segment).collect(),
            })
        });
        Routes { operations: operations.collect() }
    }

    /// All scopes of operations.
    pub(crate) fn scopes(&self) -> impl Iterator<Item = &str> {
        self.operations.iter().flat_map(|operation| &operation.scopes).map(String::as_str)
    }

    /// The scopes of one API.
    pub(crate) fn scopes_of(&self, api: Api) -> Vec<&str> {
        let of_api = self.operations.iter().filter(|operation| operation.api == api);
        let mut scopes: Vec<&str> = of_api.flat_map(|operation| &operation.scopes).map(String::as_str).collect();
        scopes.sort_unstable();
        scopes.dedup();
        scopes
    }

    /// All operations.
    #[cfg(test)]
    pub(crate) fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Responds.
    pub(crate) fn respond(&self, control: &Control, request: &Request) -> Result<Response, Problem> {
        if request.body.len() > BODY_BYTES_MAX {
            return Err(Problem::too_large(BODY_BYTES_MAX));
        }
        if let Some(response) = oauth::respond(control, request)
            .or_else(|| soap::respond(control, request))
            .or_else(|| scim::respond(control, request))
        {
            return response;
        }
        let not_found = || Problem::new(404, 404, "Not Found", "The requested resource was not found");
        let Some((api, path)) = Api::of(&request.path) else { return Err(not_found()) };
        let path: Vec<&str> = path.trim_matches('/').split('/').collect();
        if path.len() > SEGMENTS_MAX {
            return Err(not_found());
        }
        let of_api = self.operations.iter().filter(|operation| operation.api == api);
        let matching: Vec<_> = of_api.filter_map(|operation| Some((operation, operation.matches(&path)?))).collect();
        let literals = matching.iter().map(|(operation, _)| operation.literals()).max();
        let mut at_path =
            matching.into_iter().filter(|(operation, _)| Some(operation.literals()) == literals).peekable();
        if at_path.peek().is_none() {
            return Err(not_found());
        }
        let Some((operation, parameters)) = at_path.find(|(operation, _)| operation.method == request.method) else {
            return Err(Problem::new(405, 405, "Method Not Allowed", "The resource does not have this method"));
        };
        let query = Parameters::parse(&request.query);
        let caller = authorize(control, request, operation, &query)?;
        let call = Call { control, request, api, query, caller, parameters };
        match operation.handler {
            Some(handler) => handler(&call),
            None => Err(Problem::not_implemented(&format!("{} {}", operation.method, operation.path))),
        }
    }
}

/// The caller, when it may call the operation.
fn authorize(
    control: &Control,
    request: &Request,
    operation: &Operation,
    query: &Parameters,
) -> Result<Caller, Problem> {
    let access = operation.access();
    let caller = authenticate(control, request, query, access)?;
    let allowed = match (access, &caller) {
        (Access::Anonymous, _) => true,
        (Access::AdministratorBasic, Some(caller)) => caller.is_admin(),
        (Access::Scopes, Some(caller)) => {
            operation.scopes.is_empty() || operation.scopes.iter().any(|scope| caller.has(scope))
        }
        (_, None) => false,
    };
    if !allowed {
        return Err(Problem::unauthenticated());
    }
    let anonymous = || {
        let tenant = request.header("x-wso2-tenant").or_else(|| query.get("tenant"));
        let organization = tenant.filter(|tenant| !tenant.is_empty()).unwrap_or(crate::identity::SUPER_ORGANIZATION);
        Caller { organization: organization.to_owned(), ..Caller::default() }
    };
    Ok(caller.unwrap_or_else(anonymous))
}

/// Who calls, by a token or by name and password. Credentials that are wrong are an error also where none are needed.
fn authenticate(
    control: &Control,
    request: &Request,
    query: &Parameters,
    access: Access,
) -> Result<Option<Caller>, Problem> {
    let Some(authorization) = request.header("authorization") else {
        return match query.get("access_token").filter(|_| access != Access::AdministratorBasic) {
            Some(token) => tokens::caller(control, token)?.map(Some).ok_or_else(Problem::unauthenticated),
            None => Ok(None),
        };
    };
    let (scheme, credentials) = authorization.split_once(' ').unwrap_or((authorization, ""));
    let caller = if scheme.eq_ignore_ascii_case("bearer") && access != Access::AdministratorBasic {
        // The portals of API Manager keep half of a token in a cookie.
        let half = request.cookie("AM_ACC_TOKEN_DEFAULT_P2").unwrap_or_default();
        match tokens::caller(control, credentials.trim())? {
            None if !half.is_empty() => tokens::caller(control, &format!("{}{half}", credentials.trim()))?,
            found => found,
        }
    } else {
        match basic(authorization) {
            Some((name, password)) => users::login(control, &name, &password, request.client)?,
            None => None,
        }
    };
    caller.map(Some).ok_or_else(Problem::unauthenticated)
}

/// Name and password of HTTP Basic.
pub(crate) fn basic(authorization: &str) -> Option<(String, String)> {
    use base64::Engine;
    let (scheme, credentials) = authorization.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = base64::engine::general_purpose::STANDARD.decode(credentials.trim()).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    text.split_once(':').map(|(name, password)| (name.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_belongs_to_an_api_with_any_version() {
        for (path, expected) in [
            ("/api/am/publisher/v4/apis", Some((Api::Publisher, "/apis"))),
            ("/api/am/publisher/apis", Some((Api::Publisher, "/apis"))),
            ("/api/am/devportal/v3.5/apis/x", Some((Api::Devportal, "/apis/x"))),
            ("/api/am/devops/v0/config/correlation", Some((Api::Devops, "/config/correlation"))),
            ("/api/am/devops/v1/config/correlation", None),
            ("/t/test.com/api/am/publisher/v4/apis", None),
            ("/api/am/other/v4/apis", None),
            ("/api/am", None),
        ] {
            assert_eq!(Api::of(path), expected, "{path}");
        }
    }

    #[test]
    fn every_row_of_the_table_is_read_and_every_handler_has_a_row() {
        let routes = Routes::new();
        let rows = TABLE.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).count();
        assert_eq!(routes.operations.len(), rows);
        let lists = [
            publisher::HANDLERS,
            devportal::HANDLERS,
            admin::HANDLERS,
            catalog::HANDLERS,
            gateway::HANDLERS,
            devops::HANDLERS,
        ];
        let registered: usize = lists.iter().flat_map(|list| list.iter()).map(|list| list.len()).sum();
        let handled = routes.operations.iter().filter(|operation| operation.handler.is_some()).count();
        assert_eq!(handled, registered, "a handler is registered for an operation that is not in the table, or twice");
    }
}
