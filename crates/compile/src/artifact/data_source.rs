//! `<datasource>`: a database that artifacts find by its name.

use std::sync::Arc;
use std::time::Duration;

use penstock_engine::database::{DataSource, Location, PoolSettings, Secret};

use super::kind::{ArtifactKind, ArtifactName, withdraw_nothing};
use crate::{Compiler, Element};

/// The kind. A definition is read when it is declared, because other artifacts need it to compile.
pub(super) const KIND: ArtifactKind = ArtifactKind {
    element: "datasource",
    name: ArtifactName::Child("name"),
    declare,
    build: |_, _, _| {},
    withdraw: withdraw_nothing,
};

/// Adds the definition under its name and the name it is looked up by.
fn declare(cx: &mut Compiler<'_>, name: &str, el: &Element<'_>) {
    // The rest tunes a pool of Java.
    el.accept_all();
    let looked_up = el.child("jndiConfig").and_then(|jndi| jndi.child_text("name"));
    let settings = el.child("definition").and_then(|definition| definition.child("configuration"));
    let Some((settings, url)) = settings.and_then(|settings| Some((settings, settings.child_text("url")?))) else {
        cx.warn(el.place(), format!("the data source `{name}` has no <url>; it is ignored"));
        return;
    };
    let count = |name| settings.child_text(name).and_then(|text| text.parse::<usize>().ok()).filter(|count| *count > 0);
    let pool = PoolSettings {
        connections_max: count("maxActive"),
        idle_max: count("maxIdle"),
        wait: count("maxWait").map(|millis| Duration::from_millis(millis as u64)),
        isolation: None,
    };
    let url = cx.configured(&url, &settings.place());
    let user = settings.child_text("username").map(|text| cx.configured(&text, &settings.place()));
    let password = settings.child("password").and_then(|password| {
        if has_secret_alias(&password) {
            let message =
                format!("the password of the data source `{name}` is kept by the secure vault, which is not read");
            cx.warn(password.place(), message);
            return None;
        }
        Some(cx.configured(&password.text(), &settings.place()))
    });
    let source = Arc::new(DataSource {
        location: Location::Url(url.into()),
        definition: None,
        user: user.map(Arc::from),
        password: password.map(Secret::new),
        pool,
    });
    let definitions = &mut cx.program.data_source_definitions;
    for name in looked_up.as_deref().into_iter().chain([name]) {
        definitions.insert(name.into(), source.clone());
        // Names are looked up with and without the folder that Java keeps data sources in.
        let other = name.strip_prefix("jdbc/").map_or_else(|| format!("jdbc/{name}"), str::to_owned);
        definitions.entry(other.into()).or_insert_with(|| source.clone());
    }
}

/// Whether the secure vault of Micro Integrator keeps the text of an element: `svns:secretAlias`.
fn has_secret_alias(el: &Element<'_>) -> bool {
    let document = &el.source.document;
    document.attributes(el.node).any(|attribute| document.local_name(attribute) == "secretAlias")
}
