//! Who calls: users with roles, the scopes of roles, OAuth2 clients, keys and tokens.

pub(crate) mod clients;
pub(crate) mod keys;
pub mod passwords;
pub(crate) mod scopes;
pub(crate) mod tokens;
pub(crate) mod users;

/// The organization of users without a domain.
pub(crate) const SUPER_ORGANIZATION: &str = "carbon.super";

/// The role that may do everything.
pub(crate) const ADMIN_ROLE: &str = "admin";

/// An authenticated caller.
#[derive(Debug, Clone, Default)]
pub(crate) struct Caller {
    /// The name, without the organization.
    pub(crate) name: String,
    pub(crate) organization: String,
    pub(crate) roles: Vec<String>,
    /// With their prefixes.
    pub(crate) scopes: Vec<String>,
}

impl Caller {
    /// Whether it has a scope.
    pub(crate) fn has(&self, scope: &str) -> bool {
        self.scopes.iter().any(|known| known == scope)
    }

    /// Whether it is an administrator.
    pub(crate) fn is_admin(&self) -> bool {
        self.roles.iter().any(|role| role == ADMIN_ROLE)
    }

    /// Whether it has one of some roles, whatever the case.
    pub(crate) fn has_role_of(&self, roles: &[&str]) -> bool {
        self.roles.iter().any(|role| roles.iter().any(|wanted| wanted.eq_ignore_ascii_case(role)))
    }

    /// The name as other products show it: with the organization unless it is the first one.
    pub(crate) fn shown(&self) -> String {
        shown(&self.name, &self.organization)
    }
}

/// A name with its organization, unless that is the first one.
pub(crate) fn shown(name: &str, organization: &str) -> String {
    if organization == SUPER_ORGANIZATION { name.to_owned() } else { format!("{name}@{organization}") }
}

/// Name and organization of `user`, `user@carbon.super`, `user@mail.com@tenant.com`. A domain that is no organization is part
/// of the name: user names may be mail addresses.
pub(crate) fn split_name(name: &str, is_organization: impl Fn(&str) -> bool) -> (&str, &str) {
    let name = name.strip_prefix("PRIMARY/").unwrap_or(name);
    match name.rsplit_once('@') {
        Some((user, domain)) if domain == SUPER_ORGANIZATION || is_organization(domain) => (user, domain),
        _ => (name, SUPER_ORGANIZATION),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_organizations() {
        let known = |domain: &str| domain == "test.com";
        for (name, expected) in [
            ("admin", ("admin", "carbon.super")),
            ("admin@carbon.super", ("admin", "carbon.super")),
            ("PRIMARY/anna@test.com", ("anna", "test.com")),
            ("anna@mail.org", ("anna@mail.org", "carbon.super")),
            ("anna@mail.org@test.com", ("anna@mail.org", "test.com")),
        ] {
            assert_eq!(split_name(name, known), expected);
        }
    }
}
