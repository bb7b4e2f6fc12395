//! `security`, `securitySchemes`, and the extensions that open or close operations.

use std::sync::Arc;

use penstock_catalog::{Api, Requirement, SecurityMode};

use super::reference::resolve;
use crate::Import;
use crate::document::Item;

/// What the root says of credentials.
pub(crate) fn read_api(import: &mut Import<'_>, root: &Item<'_>, api: &mut Api) {
    let Some(item) = root.get("x-wso2-application-security") else { return };
    if import.flag_of(&item, "optional") == Some(true) {
        api.security.application = SecurityMode::Optional;
    }
    let Some(types) = item.get("security-types") else { return };
    let names = import.texts(&types, "security-types");
    for name in &names {
        if !matches!(&**name, "oauth2" | "api_key" | "basic_auth") {
            import.unprotected(&types.at(), format!("unknown security type `{name}`"));
        }
    }
    let has = |wanted: &str| names.iter().any(|name| &**name == wanted);
    if !names.is_empty() {
        api.security.oauth2 = has("oauth2");
        api.security.api_key = has("api_key");
        api.security.basic = has("basic_auth");
    }
}

/// Whether a level opens (`Some(false)`) or closes what is below it. The publisher writes `x-auth-type` at every operation:
/// only `None` has a meaning, as in Choreo Connect; otherwise exported APIs would stay secured.
pub(crate) fn secured(import: &mut Import<'_>, item: &Item<'_>) -> Option<bool> {
    let disabled = import.flag_of(item, "x-wso2-disable-security");
    let kind = import.text_of(item, "x-auth-type");
    if kind.is_some_and(|kind| kind.eq_ignore_ascii_case("None")) {
        return Some(false);
    }
    disabled.map(|disabled| !disabled)
}

/// The credentials that `security` of an operation or of the root requires, any one of them.
pub(crate) fn requirements(import: &mut Import<'_>, root: Item<'_>, item: &Item<'_>) -> Option<Vec<Requirement>> {
    let list = item.get("security")?;
    if !list.is_list() {
        import.error(&list.at(), format!("`security` must be a list, not {}", list.kind()));
        return None;
    }
    let mut found = Vec::new();
    for alternative in list.items() {
        let mut names = alternative.entries();
        let Some((name, at, scopes)) = names.next() else {
            import.warn(
                &alternative.at(),
                "an empty alternative does not open the operation; `x-wso2-disable-security: true` does",
            );
            continue;
        };
        if names.next().is_some() {
            let message = format!(
                "security schemes are supported as alternatives only; of this combination `{name}` would be required alone"
            );
            import.unprotected(&alternative.at(), message);
        }
        let scopes = import.texts(&scopes, name);
        match scheme(import, root, name) {
            Some(Scheme::OAuth2) => found.push(Requirement::OAuth2(scopes)),
            Some(Scheme::Is(requirement)) => found.push(requirement),
            Some(Scheme::Unknown) => {}
            // Exports name `default` without defining it.
            None => {
                if &**name != "default" {
                    import.warn(&at, format!("the security scheme `{name}` is not defined; a token is required"));
                }
                found.push(Requirement::OAuth2(scopes));
            }
        }
    }
    found.dedup();
    Some(found)
}

enum Scheme {
    OAuth2,
    Is(Requirement),
    Unknown,
}

/// What a scheme of the document is; `None` when it is not defined.
fn scheme(import: &mut Import<'_>, root: Item<'_>, name: &Arc<str>) -> Option<Scheme> {
    let defined = root.get("components").and_then(|components| components.get("securitySchemes"));
    let item = defined.or_else(|| root.get("securityDefinitions"))?.get(name)?;
    let item = resolve(import, root, item)?;
    let kind = import.text_of(&item, "type")?;
    let is = |key: &str, wanted: &str| {
        item.get(key).and_then(|value| value.text().cloned()).is_some_and(|text| text.eq_ignore_ascii_case(wanted))
    };
    Some(match &*kind.to_ascii_lowercase() {
        "oauth2" | "openidconnect" => Scheme::OAuth2,
        "basic" => Scheme::Is(Requirement::Basic),
        "http" if is("scheme", "basic") => Scheme::Is(Requirement::Basic),
        "http" => Scheme::OAuth2,
        // AsyncAPI calls it by the second name.
        "apikey" | "httpapikey" => {
            let field = import.some_text_of(&item, "name")?;
            match () {
                _ if is("in", "header") => Scheme::Is(Requirement::ApiKeyHeader(field)),
                _ if is("in", "query") => Scheme::Is(Requirement::ApiKeyQuery(field)),
                _ => {
                    let message = format!("the API key `{name}` must be `in` a header or the query");
                    import.unprotected(&item.at(), message);
                    Scheme::Unknown
                }
            }
        }
        "mutualtls" => {
            if !root.has("x-wso2-mutual-ssl") {
                let message =
                    format!("the security scheme `{name}` needs `x-wso2-mutual-ssl`, which requires certificates");
                import.unprotected(&item.at(), message);
            }
            Scheme::Unknown
        }
        other => {
            import.unprotected(
                &item.at(),
                format!("the security scheme `{name}` has the type `{other}`, which is not supported"),
            );
            Scheme::Unknown
        }
    })
}

/// The scopes of the first alternative that has any.
pub(crate) fn scopes(requirements: &[Requirement]) -> Vec<Arc<str>> {
    let mut of_each = requirements.iter().filter_map(|requirement| match requirement {
        Requirement::OAuth2(scopes) if !scopes.is_empty() => Some(scopes.clone()),
        _ => None,
    });
    of_each.next().unwrap_or_default()
}
