//! `servers` of AsyncAPI: the backends of an API that nothing else names.

use std::sync::Arc;

use penstock_catalog::{Cluster, Requirement};

use super::requirements;
use crate::Import;
use crate::document::Item;
use crate::openapi::{endpoints, resolve};
use crate::shared::address;

/// What `servers` say.
#[derive(Default)]
pub(super) struct Servers {
    pub production: Option<Arc<Cluster>>,
    pub sandbox: Option<Arc<Cluster>>,
    /// The path of the first address.
    pub path: String,
    pub requirements: Vec<Requirement>,
}

/// `servers`: one called `sandbox` is for sandbox keys, all others are for production.
pub(super) fn read(import: &mut Import<'_>, root: Item<'_>, is_version_3: bool) -> Servers {
    let mut found = Servers { path: "/".to_owned(), ..Servers::default() };
    let Some(list) = root.get("servers") else { return found };
    let (mut production, mut sandbox) = (Vec::new(), Vec::new());
    for (name, at, server) in list.entries() {
        let Some(server) = resolve(import, root, server) else { continue };
        let address_key = if is_version_3 { "host" } else { "url" };
        let address_at = server.get(address_key).map_or(at, |url| url.at());
        let Some(host) = import.some_text_of(&server, address_key) else {
            import.warn(&address_at, format!("the server `{name}` is ignored: it has no `{address_key}`"));
            continue;
        };
        let protocol = import.text_of(&server, "protocol").unwrap_or_default().to_ascii_lowercase();
        let known = if import.sockets { ["ws", "wss"] } else { ["sse", "http"] };
        if !protocol.is_empty() && !known.contains(&&*protocol) && !matches!(&*protocol, "http" | "https") {
            let why = format!("it speaks `{protocol}`, not `{}`", known.join("` or `"));
            import.warn(&address_at, format!("the server `{name}` is ignored: {why}"));
            continue;
        }
        let pathname = import.text_of(&server, "pathname").filter(|_| is_version_3).unwrap_or_default();
        let mut url = endpoints::variables(&format!("{host}{pathname}"), &server);
        if !url.contains("://") {
            let scheme = match &*protocol {
                "" | "sse" => {
                    if import.sockets {
                        "ws"
                    } else {
                        "http"
                    }
                }
                named => named,
            };
            url = format!("{scheme}://{url}");
        }
        let Some(found_address) = address(&url).filter(|found| {
            matches!(found.scheme, "http" | "https") || (import.sockets && matches!(found.scheme, "ws" | "wss"))
        }) else {
            import.warn(&address_at, format!("the server `{name}` is ignored: `{url}` is not an address"));
            continue;
        };
        if production.is_empty() && sandbox.is_empty() {
            found.path = found_address.path.to_owned();
        }
        let requirements = requirements(import, root, &server, is_version_3);
        if found.requirements.is_empty() {
            found.requirements = requirements;
        }
        if &**name == "sandbox" { &mut sandbox } else { &mut production }.push(url.into());
    }
    let cluster = |urls: Vec<Arc<str>>| {
        (!urls.is_empty()).then(|| Arc::new(Cluster { urls, at: list.at(), ..Cluster::default() }))
    };
    (found.production, found.sandbox) = (cluster(production), cluster(sandbox));
    found
}
