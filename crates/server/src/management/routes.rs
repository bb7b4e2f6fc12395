//! The one table of resources, and how a request finds its place there. The OpenAPI description is made from it.

use penstock_engine::ports::{LocalFuture, Request};
use penstock_message::{Message, Method};

use super::access::{self, Access};
use super::call::{Call, Outcome, refusal};
use super::{Api, openapi, resources};
use crate::rest::{self, Query, decoded};

/// The context of all resources.
pub(super) const CONTEXT: &str = "/management";

/// A JSON body; those of Micro Integrator's tools have a few hundred bytes.
const BODY_BYTES_MAX: usize = 2 << 20;

/// A Carbon application; it is held in memory until it is checked and written.
const APPLICATION_BYTES_MAX: usize = 128 << 20;

/// A resource.
pub(super) struct Resource {
    /// Its path below the context; `{name}` stands for one segment.
    pub(super) path: &'static str,
    /// What it is, for the description.
    pub(super) title: &'static str,
    pub(super) access: Access,
    /// Query parameters of GET.
    pub(super) query: &'static [&'static str],
    pub(super) operations: &'static [Operation],
}

/// A method that a resource may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Verb {
    /// The verb of a request; HEAD is a GET whose body is not sent.
    fn from_method(method: &Method) -> Option<Verb> {
        Some(match method {
            Method::Get | Method::Head => Get,
            Method::Post => Post,
            Method::Put => Put,
            Method::Patch => Patch,
            Method::Delete => Delete,
            _ => return None,
        })
    }

    /// The word of the protocol.
    pub(super) fn word(self) -> &'static str {
        match self {
            Get => "GET",
            Post => "POST",
            Put => "PUT",
            Patch => "PATCH",
            Delete => "DELETE",
        }
    }
}

/// A method of a resource.
pub(super) struct Operation {
    pub(super) method: Verb,
    /// What it does, for the description.
    pub(super) summary: &'static str,
    pub(super) handler: Handler,
}

/// What answers.
pub(super) enum Handler {
    /// At once.
    Now(fn(&Call<'_>) -> Outcome),
    /// After waiting for something.
    Later(for<'a> fn(&'a Call<'a>) -> LocalFuture<'a, Outcome>),
}

const fn get(summary: &'static str, handler: fn(&Call<'_>) -> Outcome) -> Operation {
    Operation { method: Get, summary, handler: Handler::Now(handler) }
}

const fn post(summary: &'static str, handler: fn(&Call<'_>) -> Outcome) -> Operation {
    Operation { method: Post, summary, handler: Handler::Now(handler) }
}

const fn on(method: Verb, summary: &'static str, handler: fn(&Call<'_>) -> Outcome) -> Operation {
    Operation { method, summary, handler: Handler::Now(handler) }
}

const fn later(
    method: Verb,
    summary: &'static str,
    handler: for<'a> fn(&'a Call<'a>) -> LocalFuture<'a, Outcome>,
) -> Operation {
    Operation { method, summary, handler: Handler::Later(handler) }
}

const fn resource(
    path: &'static str,
    title: &'static str,
    access: Access,
    query: &'static [&'static str],
    operations: &'static [Operation],
) -> Resource {
    Resource { path, title, access, query, operations }
}

use Access::{Admin, AdminToChange, Password, User};
use Verb::{Delete, Get, Patch, Post, Put};
use resources::*;

/// Every resource.
pub(super) const RESOURCES: &[Resource] = &[
    resource("/login", "Login", Password, &[], &[get("Issues a token", session::login)]),
    resource("/logout", "Logout", User, &[], &[get("Ends the token", session::logout)]),
    resource(
        "/server",
        "Server",
        AdminToChange,
        &[],
        &[get("Describes the server", server::describe), on(Patch, "Ends the server", server::change)],
    ),
    resource(
        "/apis",
        "APIs",
        User,
        &["apiName", "searchKey"],
        &[get("Lists APIs, or describes one", apis::read), post("Switches its trace and statistics", apis::change)],
    ),
    resource(
        "/proxy-services",
        "Proxy services",
        User,
        &["proxyServiceName", "searchKey"],
        &[
            get("Lists proxy services, or describes one", proxy_services::read),
            post("Starts or stops one, or switches its trace and statistics", proxy_services::change),
        ],
    ),
    resource(
        "/endpoints",
        "Endpoints",
        User,
        &["endpointName", "searchKey"],
        &[
            get("Lists endpoints, or describes one", endpoints::read),
            post("Switches one on or off, or its trace and statistics", endpoints::change),
        ],
    ),
    resource(
        "/inbound-endpoints",
        "Inbound endpoints",
        User,
        &["inboundEndpointName", "searchKey"],
        &[
            get("Lists inbound endpoints, or describes one", inbound_endpoints::read),
            post("Activates or deactivates one, or switches its trace and statistics", inbound_endpoints::change),
        ],
    ),
    resource(
        "/message-processors",
        "Message processors",
        User,
        &["name", "searchKey"],
        &[
            get("Lists message processors, or describes one", message_processors::read),
            post("Activates or deactivates one", message_processors::change),
        ],
    ),
    resource(
        "/message-stores",
        "Message stores",
        User,
        &["name", "searchKey"],
        &[later(Get, "Lists message stores, or describes one", |call| Box::pin(message_stores::read(call)))],
    ),
    resource(
        "/message-stores/{name}/messages",
        "Messages of a store",
        Admin,
        &["limit"],
        &[later(Get, "Shows the first messages of a store", |call| Box::pin(message_stores::browse(call)))],
    ),
    resource(
        "/tasks",
        "Tasks",
        User,
        &["taskName", "searchKey"],
        &[
            get("Lists tasks, or describes one", tasks::read),
            post("Activates, deactivates or triggers one", tasks::change),
        ],
    ),
    resource(
        "/sequences",
        "Sequences",
        User,
        &["sequenceName", "searchKey"],
        &[
            get("Lists sequences, or describes one", sequences::read),
            post("Switches its trace and statistics", sequences::change),
        ],
    ),
    resource(
        "/templates",
        "Templates",
        User,
        &["type", "name", "searchKey"],
        &[
            get("Lists templates, or describes one", templates::read),
            post("Switches the trace and statistics of a sequence template", templates::change),
        ],
    ),
    resource(
        "/local-entries",
        "Local entries",
        User,
        &["name", "searchKey"],
        &[get("Lists local entries, or describes one", local_entries::read)],
    ),
    resource(
        "/connectors",
        "Connectors",
        User,
        &["searchKey"],
        &[get("Lists connectors", connectors::read), post("Enables a connector", connectors::change)],
    ),
    resource(
        "/data-services",
        "Data services",
        User,
        &["dataServiceName", "searchKey"],
        &[get("Lists data services, or describes one", data_services::read)],
    ),
    resource(
        "/data-sources",
        "Data sources",
        User,
        &["name", "searchKey"],
        &[get("Lists data sources, or describes one", data_sources::read)],
    ),
    resource(
        "/applications",
        "Carbon applications",
        AdminToChange,
        &["carbonAppName", "searchKey"],
        &[
            get("Lists applications, or describes one", applications::read),
            later(Post, "Deploys an application", |call| Box::pin(applications::deploy(call))),
        ],
    ),
    resource(
        "/applications/{name}",
        "Carbon application",
        AdminToChange,
        &[],
        &[
            get("Describes an application, or returns its file", applications::read_one),
            later(Delete, "Undeploys an application", |call| Box::pin(applications::undeploy(call))),
        ],
    ),
    resource(
        "/applications/{name}/fault",
        "Fault of a Carbon application",
        User,
        &[],
        &[get("Says why an application is faulty", applications::fault)],
    ),
    resource(
        "/logging",
        "Log levels",
        AdminToChange,
        &["loggerName", "searchKey"],
        &[
            get("Lists loggers, or describes one", logging::read),
            on(Patch, "Sets the level of a logger", logging::change),
            on(Delete, "Removes the level of a logger", logging::delete),
        ],
    ),
    resource(
        "/logs",
        "Log files",
        User,
        &["file", "searchKey"],
        &[later(Get, "Lists log files, or returns one", |call| Box::pin(logs::read(call)))],
    ),
    resource(
        "/users",
        "Users",
        Admin,
        &["pattern", "role"],
        &[get("Lists users", users::list), later(Post, "Adds a user", |call| Box::pin(users::add(call)))],
    ),
    resource(
        "/users/{userId}",
        "User",
        Admin,
        &["domain"],
        &[
            get("Describes a user", users::read),
            on(Delete, "Deletes a user", users::delete),
            later(Patch, "Changes a password", |call| Box::pin(users::change(call))),
        ],
    ),
    resource(
        "/roles",
        "Roles",
        Admin,
        &["searchKey"],
        &[
            get("Lists roles", roles::list),
            post("Adds a role", roles::add),
            on(Put, "Gives and takes roles of a user", roles::assign),
        ],
    ),
    resource(
        "/roles/{role}",
        "Role",
        Admin,
        &["domain"],
        &[get("Lists the users of a role", roles::read), on(Delete, "Deletes a role", roles::delete)],
    ),
    resource(
        "/registry-resources",
        "Registry",
        User,
        &["path", "expand", "searchKey"],
        &[get("Lists a folder of the registry", registry::list)],
    ),
    resource(
        "/registry-resources/content",
        "Content of a resource",
        AdminToChange,
        &["path", "mediaType"],
        &[
            get("Returns the content of a resource", registry::content),
            later(Post, "Adds a resource", |call| Box::pin(registry::add(call))),
            later(Put, "Changes the content of a resource", |call| Box::pin(registry::replace(call))),
            later(Delete, "Deletes a resource", |call| Box::pin(registry::delete(call))),
        ],
    ),
    resource(
        "/registry-resources/metadata",
        "Metadata of a resource",
        User,
        &["path"],
        &[get("Returns name and media type of a resource", registry::metadata)],
    ),
    resource(
        "/registry-resources/properties",
        "Properties of a resource",
        AdminToChange,
        &["path", "name"],
        &[
            get("Lists properties, or returns one", registry::properties),
            later(Post, "Sets properties", |call| Box::pin(registry::set_properties(call))),
        ],
    ),
    resource(
        "/transactions/{param}",
        "Requests",
        User,
        &["year", "month", "start", "end"],
        &[get("Counts the requests of this month since the start of the server", transactions::read)],
    ),
    resource(
        "/external-vaults/{vault}",
        "External vaults",
        AdminToChange,
        &[],
        &[post("Sets the secret of a vault", vaults::change)],
    ),
    resource(
        "/configs",
        "Settings",
        Admin,
        &["configName"],
        &[get("Describes a setting", configs::read), on(Put, "Changes a setting", configs::change)],
    ),
    resource("/openapi.json", "Description", User, &[], &[get("Describes this API (OpenAPI 3)", openapi::read)]),
];

/// The resource of a path, and the segment that it leaves open.
pub(super) fn find(path: &str) -> Option<(&'static Resource, String)> {
    // A resource without an open segment comes first, wherever it stands.
    let exact = RESOURCES.iter().find(|resource| resource.path == path).map(|resource| (resource, String::new()));
    exact.or_else(|| RESOURCES.iter().find_map(|resource| Some((resource, open_segment(resource.path, path)?))))
}

fn open_segment(template: &str, path: &str) -> Option<String> {
    let (before, rest) = template.split_once('{')?;
    let (_, after) = rest.split_once('}')?;
    let segment = path.strip_prefix(before)?.strip_suffix(after)?;
    (!segment.is_empty() && !segment.contains('/')).then(|| decoded(&segment.replace('+', "%2B")))
}

/// Answers a request.
pub(super) async fn answer(api: &Api, request: Request) -> Message {
    match run(api, request).await {
        Ok(message) => message,
        Err(refusal) => *refusal,
    }
}

async fn run(api: &Api, request: Request) -> Outcome {
    let Request { client, mut message } = request;
    let path = client.line.path();
    let Some(path) = path.strip_prefix(CONTEXT) else { return Err(refusal(404, "no such resource")) };
    let Some((resource, segment)) = find(path.trim_end_matches('/')) else {
        return Err(refusal(404, "no such resource"));
    };
    let method = &client.line.method;
    if *method == Method::Options {
        return Ok(options(resource));
    }
    let user = access::authenticate(api, resource.access, method, client.address, &message.headers).await?;
    let verb = Verb::from_method(method);
    let Some(operation) = resource.operations.iter().find(|operation| Some(operation.method) == verb) else {
        let text = format!("Unsupported HTTP method, {}. Only {} are supported", method.as_str(), methods(resource));
        let mut message = refusal(405, text);
        message.headers.set("Allow", methods(resource));
        return Err(message);
    };
    let bytes_max = if resource.path == "/applications" { APPLICATION_BYTES_MAX } else { BODY_BYTES_MAX };
    let Some(body) = rest::body(&mut message, bytes_max).await else {
        return Err(refusal(413, format!("the body is larger than {bytes_max} bytes, or did not arrive")));
    };
    let host = message.headers.get("host").unwrap_or("localhost").to_owned();
    let call = Call {
        api,
        user: &user.name,
        is_admin: user.is_admin(),
        query: &Query::read(client.line.query().unwrap_or_default()),
        segment: &segment,
        headers: &message.headers,
        body: &body,
        authority: &format!("https://{host}"),
    };
    match operation.handler {
        Handler::Now(handler) => handler(&call),
        Handler::Later(handler) => handler(&call).await,
    }
}

fn methods(resource: &Resource) -> String {
    let names: Vec<&str> = resource.operations.iter().map(|operation| operation.method.word()).collect();
    names.join(", ")
}

/// What browsers ask before a request of a page of another origin.
fn options(resource: &Resource) -> Message {
    let mut message = Message { status: 200, ..Message::default() };
    message.headers.set("Allow", methods(resource));
    message.headers.set("Access-Control-Allow-Methods", methods(resource));
    message.headers.set("Access-Control-Allow-Headers", "Authorization, Content-Type");
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_their_resources() {
        for (path, expected) in [
            ("/apis", Some(("/apis", ""))),
            ("/users/an%20na", Some(("/users/{userId}", "an na"))),
            ("/applications/a/fault", Some(("/applications/{name}/fault", "a"))),
            ("/message-stores/S/messages", Some(("/message-stores/{name}/messages", "S"))),
            ("/registry-resources/content", Some(("/registry-resources/content", ""))),
            ("/users/a/b", None),
            ("/users/", None),
            ("", None),
            ("/nothing", None),
        ] {
            let found = find(path).map(|(resource, segment)| (resource.path, segment));
            assert_eq!(found, expected.map(|(path, segment)| (path, segment.to_owned())), "{path}");
        }
    }
}
