//! `<messageStore name="…" class="…">`: where messages wait. The back end is chosen by the class; its parameters have the
//! names of Micro Integrator.

pub(crate) mod mediator;

use std::sync::Arc;
use std::time::Duration;

use penstock_compile::{
    ArtifactKind, ArtifactName, Compiler, Element, Expression, NameKind, Parameters, StoreKind, suggestion,
    withdraw_nothing,
};
use penstock_engine::database::{DataSource, Location, PoolSettings, Secret};
use penstock_engine::store::{Record, Resequencing, StoreBackend, StoreDefinition, StoreError};
use penstock_engine::{Core, Program, clock};

use crate::stored;

/// The kind. A store is read when it is declared, because `store` mediators and processors refer to it.
pub(crate) const KIND: ArtifactKind = ArtifactKind {
    element: "messageStore",
    name: ArtifactName::Attribute("name"),
    declare,
    build: |_, _, _| {},
    withdraw: withdraw_nothing,
};

/// What diagnostics call a store.
pub(crate) const MESSAGE_STORE: NameKind = NameKind("message store");

/// The package of Micro Integrator's stores.
const PACKAGE: &str = "org.apache.synapse.message.store.impl.";

/// The table of a JDBC store that names none.
const DEFAULT_TABLE: &str = "jdbc_message_store";

/// The expression of the sequence number of a message.
const SEQUENCE_PATH: &str = "store.resequence.id.path";

type Backend = fn(&str, &Parameters, &Element<'_>, &mut Compiler<'_>) -> Option<StoreBackend>;

/// Classes with the name of their package or without it, and how each is read. Transports register those of their brokers.
const CLASSES: [(&str, Backend); 4] = [
    ("memory.InMemoryStore", memory),
    ("org.apache.synapse.message.store.InMemoryMessageStore", memory),
    ("jdbc.JDBCMessageStore", table),
    ("resequencer.ResequenceMessageStore", resequence),
];

/// A store as mediators and processors see it.
pub(crate) struct Store {
    pub(crate) definition: StoreDefinition,
    /// `store.producer.guaranteed.delivery.enable`
    pub(crate) guaranteed: bool,
    /// `store.failover.message.store.name`
    pub(crate) failover: Option<Arc<str>>,
    /// `store.resequence.id.path`
    pub(crate) sequence: Option<Expression>,
}

/// The store of a name in a program.
pub(crate) fn find(program: &Program, name: &str) -> Option<Arc<Store>> {
    program.shared.get::<Store>(name)
}

/// Adds a message at the end of a store.
pub(crate) async fn put(core: &Core, store: &Store, bytes: Vec<u8>, priority: Option<u8>) -> Result<(), StoreError> {
    // A message keeps its number on the way through other stores.
    let sequence = store.sequence.as_ref().and_then(|_| stored::sequence(&bytes));
    let record = Record { id: clock::uuid().into(), priority, sequence, bytes: bytes.into() };
    core.stores()?.open(&store.definition)?.put(record).await
}

fn declare(cx: &mut Compiler<'_>, name: &str, el: &Element<'_>) {
    if !cx.declare(MESSAGE_STORE, name, el.place()) {
        el.accept_all();
        return;
    }
    let parameters = Parameters::read(el, cx, true);
    let class = el.attribute("class").unwrap_or("memory.InMemoryStore");
    let brokers = cx.registry.transports.iter().filter_map(|kind| Some((kind.name, kind.store.as_ref()?)));
    let backend = if let Some((_, backend)) = CLASSES.iter().find(|(known, _)| is_class(class, known)) {
        backend(name, &parameters, el, cx)
    } else if let Some((scheme, kind)) =
        brokers.clone().find(|(_, kind)| kind.classes.iter().any(|known| is_class(class, known)))
    {
        broker(scheme, kind, &parameters, el, cx)
    } else {
        let known = CLASSES.iter().map(|(known, _)| known).chain(brokers.flat_map(|(_, kind)| kind.classes));
        let names = known.map(|known| known.rsplit('.').next().unwrap_or(known));
        let hint = suggestion(class.rsplit('.').next().unwrap_or(class), names);
        let hint = hint.map_or_else(String::new, |meant| format!(", did you mean `{meant}`?"));
        cx.error(el.attribute_place("class"), format!("the class `{class}` is not a message store Penstock has{hint}"));
        el.accept_all();
        return;
    };
    let is_resequencing = matches!(backend, Some(StoreBackend::Table { resequencing: Some(_), .. }));
    let sequence = if is_resequencing { sequence(el, cx) } else { None };
    el.finish(cx);
    let Some(backend) = backend.filter(|_| sequence.is_some() == is_resequencing) else { return };
    let guaranteed = parameters.flag("store.producer.guaranteed.delivery.enable", false);
    let failover = parameters.text("store.failover.message.store.name");
    let definition = StoreDefinition { name: name.into(), backend };
    cx.shared(name, || Store { definition, guaranteed, failover, sequence });
}

fn is_class(class: &str, known: &str) -> bool {
    class == known || class.strip_prefix(PACKAGE) == Some(known)
}

fn memory(_: &str, _: &Parameters, _: &Element<'_>, _: &mut Compiler<'_>) -> Option<StoreBackend> {
    Some(StoreBackend::Memory)
}

fn table(_: &str, parameters: &Parameters, el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<StoreBackend> {
    let location = match (parameters.text("store.jdbc.dsName"), parameters.text("store.jdbc.connection.url")) {
        (Some(name), _) => Location::Name(name),
        (None, Some(url)) if url.contains(";INIT=") => {
            cx.error(parameters.place("store.jdbc.connection.url", el), "`;INIT=` in a JDBC URL is refused");
            return None;
        }
        (None, Some(url)) => Location::Url(url),
        (None, None) => {
            let text = "a JDBC message store needs `store.jdbc.connection.url` or `store.jdbc.dsName`";
            cx.error(el.place(), text);
            return None;
        }
    };
    let table = parameters.text("store.jdbc.table").unwrap_or_else(|| DEFAULT_TABLE.into());
    if !is_table_name(&table) {
        let at = parameters.place("store.jdbc.table", el);
        cx.error(at, format!("`{table}` is not the name of a table: letters, digits, `_` and `.` only"));
        return None;
    }
    let source = Arc::new(DataSource {
        location,
        definition: None,
        user: parameters.text("store.jdbc.username"),
        password: parameters.get("store.jdbc.password").map(Secret::new),
        pool: PoolSettings::default(),
    });
    cx.add_data_source(el.place(), source.clone());
    Some(StoreBackend::Table { source, table, resequencing: None })
}

/// The name stands in SQL, so nothing else may stand in it.
fn is_table_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.'))
}

fn resequence(name: &str, parameters: &Parameters, el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<StoreBackend> {
    if parameters.get("store.resequence.timeout").is_none() {
        cx.error(
            el.place(),
            "a resequencing message store needs `store.resequence.timeout`, in seconds; -1 waits for ever",
        );
        return None;
    }
    let seconds: i64 = parameters.number("store.resequence.timeout", el, cx)?;
    let timeout = u64::try_from(seconds).ok().map(Duration::from_secs);
    match table(name, parameters, el, cx)? {
        StoreBackend::Table { source, table, .. } => {
            Some(StoreBackend::Table { source, table, resequencing: Some(Resequencing { timeout }) })
        }
        other => Some(other),
    }
}

/// The expression of the sequence number; `None` after an error.
fn sequence(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Expression> {
    let of_path = |parameter: &Element<'_>| parameter.attribute("name") == Some(SEQUENCE_PATH);
    let parameter = el.elements("parameter").filter(of_path).last();
    let text = parameter.as_ref().and_then(|parameter| parameter.attribute("expression"));
    let (Some(parameter), Some(text)) = (&parameter, text) else {
        let text = format!("a resequencing message store needs the parameter `{SEQUENCE_PATH}` with an `expression`");
        cx.error(el.place(), text);
        return None;
    };
    Expression::compile(cx, parameter, text, parameter.value_place("expression"))
}

fn broker(
    scheme: &'static str,
    kind: &StoreKind,
    parameters: &Parameters,
    el: &Element<'_>,
    cx: &mut Compiler<'_>,
) -> Option<StoreBackend> {
    if let Some(required) = kind.required.iter().find(|required| parameters.get(required).is_none()) {
        cx.error(el.place(), format!("the message store needs the parameter `{required}`"));
        return None;
    }
    Some(StoreBackend::Broker { scheme, parameters: parameters.all() })
}
