//! The SOAP services for users and organizations that acceptance tests and scripts use. They need HTTP Basic of an
//! administrator. The messages are flat, so their elements are found by local name without a parser of XML.

use serde_json::Map;

use crate::Control;
use crate::http::{Request, Response};
use crate::identity::{ADMIN_ROLE, Caller, SUPER_ORGANIZATION, scopes, users};
use crate::problem::Problem;
use crate::route::basic;
use crate::store::{Filter, Kind, Object, Transaction};

/// A message names a user, a password and some roles.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;

const USERS: &str = "/services/RemoteUserStoreManagerService";
/// The administration of users in the console of API Manager: the same operations under other names.
const USER_ADMIN: &str = "/services/UserAdmin";
const TENANTS: &str = "/services/TenantMgtAdminService";

/// The response to a request of a SOAP service; `None` for other paths.
pub(crate) fn respond(control: &Control, request: &Request) -> Option<Result<Response, Problem>> {
    let service = request.path.split('.').next().unwrap_or_default();
    match service {
        USERS | USER_ADMIN | TENANTS => Some(answer(control, request, service)),
        _ => None,
    }
}

fn answer(control: &Control, request: &Request, service: &str) -> Result<Response, Problem> {
    let caller = match request.header("authorization").and_then(basic) {
        Some((name, password)) => users::login(control, &name, &password, request.client)?,
        None => None,
    };
    let Some(caller) = caller.filter(Caller::is_admin) else { return Err(Problem::unauthenticated()) };
    if request.body.len() > MESSAGE_BYTES_MAX {
        return Err(Problem::too_large(MESSAGE_BYTES_MAX));
    }
    let text = String::from_utf8_lossy(&request.body).into_owned();
    let message = Message(&text);
    let action = request.header("soapaction").unwrap_or_default().trim_matches('"');
    let outcome = match (service, action.strip_prefix("urn:").unwrap_or(action)) {
        (USERS | USER_ADMIN, action) => user_service(control, &caller, action, &message, request.client)?,
        (_, action) => tenant_service(control, &caller, action, &message)?,
    };
    Ok(match outcome {
        Outcome::Accepted => Response::empty(202),
        Outcome::Value(operation, content) => {
            let body = format!(
                "<soapenv:Envelope xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\"><soapenv:Body>\n\
                 <ns:{operation}Response xmlns:ns=\"http://service.ws.um.carbon.wso2.org\">\n{content}\n\
                 </ns:{operation}Response></soapenv:Body></soapenv:Envelope>"
            );
            Response::of_type(200, "text/xml; charset=UTF-8", body)
        }
        Outcome::Fault(why) => {
            let body = format!(
                "<soapenv:Envelope xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\"><soapenv:Body><soapenv:Fault>\
                 <faultcode>soapenv:Server</faultcode><faultstring>{}</faultstring></soapenv:Fault></soapenv:Body>\
                 </soapenv:Envelope>",
                escaped(&why)
            );
            Response::of_type(500, "text/xml; charset=UTF-8", body)
        }
    })
}

enum Outcome {
    /// A one-way operation.
    Accepted,
    /// The name of the operation, and the content of its response.
    Value(String, String),
    Fault(String),
}

fn user_service(
    control: &Control,
    caller: &Caller,
    action: &str,
    message: &Message<'_>,
    caller_address: std::net::IpAddr,
) -> Result<Outcome, Problem> {
    let organization = caller.organization.as_str();
    let cost = control.config.password_cost;
    let name = message.first("userName").unwrap_or_default();
    let role = message.first("roleName").unwrap_or_default();
    let fault = |why: String| Ok(Outcome::Fault(why));
    match action {
        "addUser" => {
            let password = message.first("credential").or_else(|| message.first("password")).unwrap_or_default();
            if name.is_empty() {
                return fault("a user needs a name".to_owned());
            }
            if let Some(why) = users::weakness(&password) {
                return fault(why);
            }
            let roles = [message.all("roleList"), message.all("roles")].concat();
            control.store.change(|tx| {
                let asked: Vec<&str> = roles.iter().map(String::as_str).collect();
                let unknown = users::unknown_roles(tx, organization, &asked)?;
                if !unknown.is_empty() {
                    return fault(format!("unknown roles: {}", unknown.join(", ")));
                }
                Ok(match users::add(tx, organization, &name, &password, &roles, cost)? {
                    Some(()) => Outcome::Accepted,
                    None => Outcome::Fault(format!("UserAlreadyExisting: the user `{name}` exists")),
                })
            })
        }
        "isExistingUser" => {
            let found = control.store.read(|tx| tx.find(Kind::User, organization, &name))?.is_some();
            Ok(Outcome::Value(action.to_owned(), format!("<ns:return>{found}</ns:return>")))
        }
        "deleteUser" => {
            if name == ADMIN_ROLE {
                return fault("the administrator cannot be removed".to_owned());
            }
            let ended = control.store.change(|tx| {
                let Some(user) = tx.find(Kind::User, organization, &name)? else { return Ok(Vec::new()) };
                tx.delete(&user)?;
                tx.end_tokens_of_user(organization, &name)
            })?;
            control.end_tokens(&ended);
            Ok(Outcome::Accepted)
        }
        "listUsers" | "listAllUsers" => {
            let wanted = message.first("filter").unwrap_or_default();
            let users = control.store.read(|tx| tx.list(&Filter::new(Kind::User, organization)))?;
            let names = users.iter().map(|user| user.name.as_str());
            Ok(values(action, names.filter(|name| fits(&wanted, name)).take(LISTED_MAX)))
        }
        "isExistingRole" => {
            let unknown = control.store.read(|tx| users::unknown_roles(tx, organization, &[role.as_str()]))?;
            Ok(values(action, [if unknown.is_empty() { "true" } else { "false" }].into_iter()))
        }
        "getRoleNames" | "getAllRolesNames" => {
            let own = control.store.read(|tx| tx.list(&Filter::new(Kind::Role, organization)))?;
            Ok(values(action, scopes::ROLES.into_iter().chain(own.iter().map(|role| role.name.as_str()))))
        }
        "getRoleListOfUser" | "getRolesOfUser" => {
            let found = control.store.read(|tx| tx.find(Kind::User, organization, &name))?;
            let roles = found.map(|user| users::roles(&user)).unwrap_or_default();
            Ok(values(action, roles.iter().map(String::as_str)))
        }
        "getUserListOfRole" | "getUsersOfRole" => {
            let found = control.store.read(|tx| users::with_role(tx, organization, &role))?;
            Ok(values(action, found.iter().map(|user| user.name.as_str())))
        }
        "updateRoleListOfUser" | "updateUserListOfRole" | "addRemoveRolesOfUser" | "addRemoveUsersOfRole" => {
            control.store.change(|tx| update_roles(tx, organization, action, message))
        }
        "updateCredential" | "updateCredentialByAdmin" | "changePassword" => {
            let password = message.first("newCredential").or_else(|| message.first("newPassword")).unwrap_or_default();
            if let Some(why) = users::weakness(&password) {
                return fault(why);
            }
            let ended = control.store.change(|tx| users::set_password(tx, organization, &name, &password, cost))?;
            let Some(ended) = ended else { return fault(format!("the user `{name}` does not exist")) };
            control.end_tokens(&ended);
            Ok(Outcome::Accepted)
        }
        "authenticate" => {
            let password = message.first("credential").unwrap_or_default();
            let full = crate::identity::shown(&name, organization);
            let found = users::login(control, &full, &password, caller_address)?;
            Ok(values(action, [if found.is_some() { "true" } else { "false" }].into_iter()))
        }
        "addRole" => {
            if role.is_empty() {
                return fault("a role needs a name".to_owned());
            }
            let object = Object::new(Kind::Role, organization, &role, Map::new()).keyed(role.to_lowercase());
            control.store.change(|tx| {
                tx.insert(&object)?;
                for user in message.all("userList") {
                    if let Some(mut user) = tx.find(Kind::User, organization, &user)? {
                        users::set_role(&mut user, &role, true);
                        tx.update(&mut user)?;
                    }
                }
                Ok(())
            })?;
            Ok(Outcome::Value(action.to_owned(), String::new()))
        }
        "deleteRole" => {
            control.store.change(|tx| {
                let Some(found) = tx.find(Kind::Role, organization, &role.to_lowercase())? else { return Ok(()) };
                for mut user in users::with_role(tx, organization, &role)? {
                    users::set_role(&mut user, &role, false);
                    tx.update(&mut user)?;
                }
                tx.delete(&found)
            })?;
            Ok(Outcome::Value(action.to_owned(), String::new()))
        }
        other => fault(format!("the operation `{other}` is not implemented")),
    }
}

/// Names of one list at most.
const LISTED_MAX: usize = 10_000;

/// Whether a name fits a filter, in which `*` stands for anything.
fn fits(filter: &str, name: &str) -> bool {
    let (filter, name) = (filter.to_lowercase(), name.to_lowercase());
    let parts: Vec<&str> = filter.split('*').collect();
    match parts.as_slice() {
        [""] => true,
        [exact] => *exact == name,
        [first, middle @ .., last] => {
            let Some(mut rest) = name.strip_prefix(first) else { return false };
            for part in middle {
                let Some(at) = rest.find(part) else { return false };
                rest = &rest[at + part.len()..];
            }
            rest.ends_with(last)
        }
        [] => true,
    }
}

/// A response with a list of texts.
fn values<'v>(action: &str, list: impl Iterator<Item = &'v str>) -> Outcome {
    let lines: Vec<String> = list.map(|value| format!("<ns:return>{}</ns:return>", escaped(value))).collect();
    Outcome::Value(action.to_owned(), lines.join("\n"))
}

/// Gives users roles, and takes others.
fn update_roles(
    tx: &Transaction<'_>,
    organization: &str,
    action: &str,
    message: &Message<'_>,
) -> Result<Outcome, Problem> {
    let (added, removed) = (message.all("newRoles"), message.all("deletedRoles"));
    let (users_added, users_removed) = (message.all("newUsers"), message.all("deletedUsers"));
    let mut changes: Vec<(String, String, bool)> = Vec::new();
    if action.contains("User") && action.ends_with("OfUser") {
        let name = message.first("userName").unwrap_or_default();
        changes.extend(removed.into_iter().map(|role| (name.clone(), role, false)));
        changes.extend(added.into_iter().map(|role| (name.clone(), role, true)));
    } else {
        let role = message.first("roleName").unwrap_or_default();
        changes.extend(users_removed.into_iter().map(|user| (user, role.clone(), false)));
        changes.extend(users_added.into_iter().map(|user| (user, role.clone(), true)));
    }
    for (name, role, has) in changes.iter().filter(|(_, role, _)| !role.is_empty()) {
        if *has && !users::unknown_roles(tx, organization, &[role.as_str()])?.is_empty() {
            return Err(Problem::bad_request(format!("The role {role} does not exist")));
        }
        let Some(mut user) = tx.find(Kind::User, organization, name)? else {
            return Ok(Outcome::Fault(format!("the user `{name}` does not exist")));
        };
        users::set_role(&mut user, role, *has);
        tx.update(&mut user)?;
    }
    Ok(Outcome::Accepted)
}

/// Organizations are the first one's business.
fn tenant_service(control: &Control, caller: &Caller, action: &str, message: &Message<'_>) -> Result<Outcome, Problem> {
    if caller.organization != SUPER_ORGANIZATION {
        return Err(Problem::unauthenticated());
    }
    let domain = message.first("tenantDomain").unwrap_or_default();
    let done = || Ok(Outcome::Value(action.to_owned(), String::new()));
    let set_state = |state: &str| {
        // The APIs of an inactive organization are not served.
        control.change_served(|tx| {
            let Some(mut found) = tx.find(Kind::Organization, SUPER_ORGANIZATION, &domain)? else { return Ok(()) };
            found.state = state.to_owned();
            tx.update(&mut found).map(|_| ())
        })
    };
    match action {
        "getTenant" => {
            let found = control.store.read(|tx| tx.find(Kind::Organization, SUPER_ORGANIZATION, &domain))?;
            let (is_active, number) = match &found {
                Some(found) => {
                    (found.state == "ACTIVE", found.document.get("number").and_then(serde_json::Value::as_u64))
                }
                None => (false, None),
            };
            let content = format!(
                "<ns:return>\n<active>{is_active}</active>\n<tenantDomain>{}</tenantDomain>\n<tenantId>{}</tenantId>\n</ns:return>",
                escaped(&domain),
                number.unwrap_or_default()
            );
            Ok(Outcome::Value(action.to_owned(), content))
        }
        "addSkeletonTenant" | "addTenant" => {
            let admin = message.first("admin").unwrap_or_default();
            let password = message.first("adminPassword").unwrap_or_default();
            if domain.is_empty() || !domain.contains('.') || admin.is_empty() || users::weakness(&password).is_some() {
                return Ok(Outcome::Fault(
                    "an organization needs a domain, an administrator and a password".to_owned(),
                ));
            }
            let cost = control.config.password_cost;
            control.store.change(|tx| {
                let number = tx.count(&Filter::new(Kind::Organization, SUPER_ORGANIZATION))? + 1;
                let mut document = Map::new();
                document.insert("number".into(), number.into());
                let mut object = Object::new(Kind::Organization, SUPER_ORGANIZATION, &domain, document).keyed(&*domain);
                object.state = "ACTIVE".to_owned();
                if tx.insert(&object)?.is_some() {
                    users::add(tx, &domain, &admin, &password, &[ADMIN_ROLE.to_owned()], cost)?;
                    crate::admin::throttling::add_standard(tx, &domain)?;
                }
                Ok(())
            })?;
            done()
        }
        "activateTenant" => set_state("ACTIVE").and_then(|()| done()),
        "deactivateTenant" => set_state("INACTIVE").and_then(|()| done()),
        other => Ok(Outcome::Fault(format!("the operation `{other}` is not implemented"))),
    }
}

/// A flat message: elements with text.
struct Message<'m>(&'m str);

impl Message<'_> {
    fn first(&self, element: &str) -> Option<String> {
        self.all(element).into_iter().next()
    }

    /// The texts of all elements with a local name.
    fn all(&self, element: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut rest = self.0;
        while let Some(start) = rest.find('<') {
            rest = &rest[start + 1..];
            let Some(end) = rest.find('>') else { break };
            let (tag, behind) = (&rest[..end], &rest[end + 1..]);
            rest = behind;
            let name = tag.split([' ', '\t', '\r', '\n', '/']).next().unwrap_or_default();
            if tag.starts_with('/') || tag.ends_with('/') || name.rsplit(':').next() != Some(element) {
                continue;
            }
            let text = &behind[..behind.find('<').unwrap_or(behind.len())];
            found.push(unescaped(text.trim()));
        }
        found
    }
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'").replace("&amp;", "&")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_by_local_name() {
        let text = "<s:Envelope><s:Body><n:addUser><n:userName>a&amp;b</n:userName><n:roleList>x</n:roleList>\
                    <roleList> y </roleList><n:empty/></n:addUser></s:Body></s:Envelope>";
        let message = Message(text);
        assert_eq!(message.first("userName").as_deref(), Some("a&b"));
        assert_eq!(message.all("roleList"), ["x", "y"]);
        assert_eq!(message.first("empty"), None);
        assert!(Message("<broken").all("broken").is_empty());
    }
}
