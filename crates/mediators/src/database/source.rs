//! `<connection>`: a pool of its own, or a data source by name.

use std::sync::Arc;
use std::time::Duration;

use penstock_compile::{Compiler, Element};
use penstock_engine::database::{DataSource, Isolation, Location, PoolSettings, Secret};

/// Pool properties of Micro Integrator that choose nothing here: pools make connections when they are needed, prepare every
/// statement once and drop what is broken.
const WITHOUT_EFFECT: [&str; 9] = [
    "autocommit",
    "initialsize",
    "maxopenstatements",
    "minidle",
    "poolstatements",
    "testonborrow",
    "testonreturn",
    "testwhileidle",
    "validationquery",
];

pub(super) fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<DataSource> {
    let connection = el.child("connection");
    let Some(pool) = connection.and_then(|connection| connection.child("pool")) else {
        cx.error(el.place(), format!("<{}> needs <connection><pool>…</pool></connection>", el.name()));
        return None;
    };
    if let Some(connection) = connection {
        connection.finish(cx);
    }
    let found = match pool.child("dsName") {
        Some(name) => named(&pool, &name, cx),
        None => addressed(&pool, cx),
    };
    pool.finish(cx);
    found
}

fn named(pool: &Element<'_>, name: &Element<'_>, cx: &mut Compiler<'_>) -> Option<DataSource> {
    // These say where Java looks names up, not where the database is.
    for unused in ["icClass", "url", "user", "password"] {
        pool.child(unused);
    }
    let text = name.text();
    if text.is_empty() {
        cx.error(name.place(), "<dsName> is empty");
        return None;
    }
    let text = cx.configured(&text, &name.place());
    let definition = cx.data_source_definition(&text);
    let settings = settings(pool, cx);
    let location = Location::Name(text.into());
    Some(DataSource { location, definition, user: None, password: None, pool: settings })
}

fn addressed(pool: &Element<'_>, cx: &mut Compiler<'_>) -> Option<DataSource> {
    let mut missing = false;
    let [_driver, url, user, password] = ["driver", "url", "user", "password"].map(|name| {
        let text = pool.child(name).map(|child| text_of(&child, cx));
        missing |= text.is_none();
        text.unwrap_or_default()
    });
    if missing {
        cx.error(pool.place(), "<pool> needs <dsName>, or <driver>, <url>, <user> and <password>");
        return None;
    }
    let some = |text: &str| (!text.is_empty()).then(|| Arc::<str>::from(text));
    let settings = settings(pool, cx);
    Some(DataSource {
        location: Location::Url(url.as_str().into()),
        definition: None,
        user: some(&user),
        password: some(&password).map(Secret::new),
        pool: settings,
    })
}

/// The text of an element, or of the entry its `key` names.
fn text_of(el: &Element<'_>, cx: &mut Compiler<'_>) -> String {
    let text = match el.attribute("key") {
        Some(key) => match cx.resource(key) {
            Some(resource) => resource.text().trim().to_owned(),
            None => {
                cx.unknown(penstock_compile::NameKind::RESOURCE, key, el.attribute_place("key"));
                String::new()
            }
        },
        None => el.text(),
    };
    cx.configured(&text, &el.place())
}

fn settings(pool: &Element<'_>, cx: &mut Compiler<'_>) -> PoolSettings {
    let mut settings = PoolSettings::default();
    for property in pool.elements("property") {
        let (Some(name), Some(value)) = (property.required(cx, "name"), property.required(cx, "value")) else {
            continue;
        };
        // Below 1 Micro Integrator has no limit; here there always is one.
        let count = || value.trim().parse::<usize>().ok().filter(|count| *count > 0);
        match name {
            "maxactive" => settings.connections_max = count(),
            "maxidle" => settings.idle_max = count(),
            "maxwait" => settings.wait = count().map(|millis| Duration::from_millis(millis as u64)),
            "isolation" => settings.isolation = isolation(value),
            name if WITHOUT_EFFECT.contains(&name) => {}
            name => cx.warn(property.place(), format!("a pool has no property `{name}`")),
        }
        property.finish(cx);
    }
    settings
}

fn isolation(value: &str) -> Option<Isolation> {
    Some(match value.strip_prefix("Connection.TRANSACTION_")? {
        "READ_UNCOMMITTED" => Isolation::ReadUncommitted,
        "READ_COMMITTED" => Isolation::ReadCommitted,
        "REPEATABLE_READ" => Isolation::RepeatableRead,
        "SERIALIZABLE" => Isolation::Serializable,
        _ => return None,
    })
}
