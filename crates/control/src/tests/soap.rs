//! The SOAP services for users and organizations.

use super::*;

const USERS: &str = "/services/RemoteUserStoreManagerService";
const TENANTS: &str = "/services/TenantMgtAdminService";

impl Server {
    /// The status and the returned values of an operation.
    fn soap(&self, user: &str, password: &str, service: &str, action: &str, content: &str) -> (u16, Vec<String>) {
        let request = Request {
            method: "POST".to_owned(),
            path: service.to_owned(),
            query: String::new(),
            headers: vec![
                ("Authorization".to_owned(), basic(user, password)),
                ("SOAPAction".to_owned(), format!("urn:{action}")),
            ],
            body: format!("<e:Envelope><e:Body><n:{action}>{content}</n:{action}></e:Body></e:Envelope>").into(),
            client: IpAddr::V4(Ipv4Addr::LOCALHOST),
        };
        let response = self.control.respond(&request);
        let body = String::from_utf8_lossy(&response.body).into_owned();
        let values = body.split("<ns:return>").skip(1).filter_map(|rest| rest.split("</ns:return>").next());
        (response.status, values.map(str::to_owned).collect())
    }

    fn users(&self, status: u16, action: &str, content: &str) -> Vec<String> {
        let (got, values) = self.soap("admin", "admin", USERS, action, content);
        assert_eq!(got, status, "{action}");
        values
    }
}

#[test]
fn users_roles_and_passwords_are_managed() {
    let server = Server::start();
    let anna = "<userName>anna</userName><credential>secret1</credential><roleList>Internal/creator</roleList>";
    server.users(202, "addUser", anna);
    server.users(500, "addUser", anna);
    server.users(500, "addUser", "<userName>bert</userName><credential>a b c</credential>");
    assert_eq!(server.users(200, "isExistingUser", "<userName>anna</userName>"), ["true"]);
    assert_eq!(server.users(200, "listUsers", "<filter>an*</filter>"), ["anna"]);
    server.users(200, "addRole", "<roleName>readers</roleName><userList>anna</userList>");
    assert_eq!(server.users(200, "isExistingRole", "<roleName>Readers</roleName>"), ["true"]);
    assert!(server.users(200, "getRoleNames", "").contains(&"readers".to_owned()));
    assert_eq!(server.users(200, "getUserListOfRole", "<roleName>readers</roleName>"), ["anna"]);
    let change = "<userName>anna</userName><deletedRoles>readers</deletedRoles><newRoles>Internal/publisher</newRoles>";
    server.users(202, "updateRoleListOfUser", change);
    let roles = server.users(200, "getRoleListOfUser", "<userName>anna</userName>");
    assert_eq!(roles, ["Internal/creator", "Internal/publisher", "Internal/everyone"]);
    let change = "<roleName>readers</roleName><newUsers>anna</newUsers>";
    server.users(202, "updateUserListOfRole", change);
    server.users(200, "deleteRole", "<roleName>readers</roleName>");
    let roles = server.users(200, "getRoleListOfUser", "<userName>anna</userName>");
    assert!(!roles.contains(&"readers".to_owned()), "{roles:?}");
    let login = |password: &str| format!("<userName>anna</userName><credential>{password}</credential>");
    assert_eq!(server.users(200, "authenticate", &login("secret1")), ["true"]);
    server.users(202, "updateCredentialByAdmin", "<userName>anna</userName><newCredential>secret2</newCredential>");
    assert_eq!(server.users(200, "authenticate", &login("secret1")), ["false"]);
    assert_eq!(server.soap("anna", "secret2", USERS, "listUsers", "").0, 401, "not an administrator");
    server.users(202, "deleteUser", "<userName>anna</userName>");
    assert_eq!(server.users(200, "isExistingUser", "<userName>anna</userName>"), ["false"]);
}

#[test]
fn an_inactive_organization_is_not_served() {
    let server = Server::start();
    let tenant = |action: &str, content: &str| server.soap("admin", "admin", TENANTS, action, content);
    let body = "<tenantDomain>test.com</tenantDomain><admin>admin</admin><adminPassword>admin</adminPassword>";
    assert_eq!(tenant("addSkeletonTenant", body).0, 200);
    let scopes = "apim:api_view apim:api_create apim:api_publish";
    let token = server.token("admin@test.com", "admin", scopes);
    server.published(&token, "Echo", "/echo");
    assert_eq!(server.gateway.served.lock().unwrap().apis.len(), 1);
    assert_eq!(server.soap("admin@test.com", "admin", TENANTS, "deactivateTenant", "").0, 401);
    let domain = "<tenantDomain>test.com</tenantDomain>";
    assert_eq!(tenant("deactivateTenant", domain).0, 200);
    assert!(server.gateway.served.lock().unwrap().apis.is_empty());
    server.expect(401, "GET", "/api/am/publisher/v4/apis", &token, &Value::Null);
    assert_eq!(tenant("activateTenant", domain).0, 200);
    assert_eq!(server.gateway.served.lock().unwrap().apis.len(), 1);
    server.expect(200, "GET", "/api/am/publisher/v4/apis", &token, &Value::Null);
}
