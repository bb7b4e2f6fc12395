//! `<config id="…">`: where data is, as its properties say.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use penstock_compile::{Compiler, Element};
use penstock_engine::database::{DataSource, Location, PoolSettings, Secret};

use crate::model::{DelimitedFile, RowSource, SourceKind};
use crate::sheet::SheetFile;

/// The older names of properties begin so.
const OLD_PREFIX: &str = "org.wso2.ws.dataservice.";

/// Properties that choose a source which Penstock does not read.
const UNSUPPORTED: [(&str, &str); 11] = [
    ("gspread_datasource", "Google spreadsheets are"),
    ("rdf_datasource", "RDF files are"),
    ("sparql_datasource", "SPARQL endpoints are"),
    ("web_harvest_config", "pages of the web are"),
    ("mongodb_servers", "MongoDB is"),
    ("cassandraservers", "Cassandra is"),
    ("custom_query_datasource_class", "Java classes as sources are"),
    ("custom_tabular_datasource_class", "Java classes as sources are"),
    ("inmemory_datasource_schema", "Java classes as sources are"),
    ("datasourceclassname", "XA data sources, which Java classes implement, are"),
    ("xa_datasource_class", "XA data sources, which Java classes implement, are"),
];

/// The name of a source that has none, and the source of a query that names none.
pub(super) const DEFAULT_ID: &str = "default";

pub(super) fn read(cx: &mut Compiler<'_>, el: &Element<'_>, service: &str, id: &str) -> Option<RowSource> {
    let has_odata = el.flag("enableOData", false);
    let mut properties = HashMap::new();
    for property in el.elements("property") {
        let Some(name) = property.required(cx, "name") else { continue };
        let name = name.strip_prefix(OLD_PREFIX).unwrap_or(name).to_lowercase();
        property.accept_all();
        let text = cx.configured(&property.text(), &property.place());
        properties.insert(name, text);
    }
    el.finish_knowing(cx, &["property"]);
    let get = |names: &[&str]| {
        names.iter().find_map(|name| properties.get(*name)).map(String::as_str).filter(|text| !text.is_empty())
    };
    let kind = if let Some(name) = get(&["carbon_datasource_name", "jndi_resource_name"]) {
        let definition = cx.data_source_definition(name);
        database(
            cx,
            el,
            DataSource {
                location: Location::Name(name.into()),
                definition,
                user: None,
                password: None,
                pool: PoolSettings::default(),
            },
        )
    } else if let Some(path) = get(&["csv_datasource"]) {
        delimited(cx, el, path, &get)?
    } else if let Some(path) = get(&["excel_datasource"]) {
        SourceKind::Workbook(SheetFile { path: local_path(cx, el, "workbook", path)? })
    } else if let Some((_, what)) = UNSUPPORTED.iter().find(|(name, _)| properties.contains_key(*name)) {
        cx.error(el.place(), format!("{what} not supported as a source of data services"));
        return None;
    } else if let Some(url) = get(&["url", "protocol"]) {
        let count = |names: &[&str]| get(names).and_then(|text| text.parse::<usize>().ok()).filter(|count| *count > 0);
        database(
            cx,
            el,
            DataSource {
                location: Location::Url(url.into()),
                definition: None,
                user: get(&["username", "user"]).map(Arc::from),
                password: get(&["password"]).map(Secret::new),
                pool: PoolSettings {
                    connections_max: count(&["maxactive", "maxpoolsize"]),
                    idle_max: count(&["maxidle"]),
                    wait: count(&["maxwait"]).map(|millis| std::time::Duration::from_millis(millis as u64)),
                    isolation: None,
                },
            },
        )
    } else {
        let mut known: Vec<&str> = properties.keys().map(String::as_str).collect();
        known.sort_unstable();
        cx.error(el.place(), format!("Cannot create config with properties: {}", known.join(", ")));
        return None;
    };
    if has_odata && let SourceKind::Database(source) = &kind {
        crate::odata::offer(cx, service, id, source.clone(), el.place());
    }
    Some(RowSource { kind })
}

fn database(cx: &mut Compiler<'_>, el: &Element<'_>, source: DataSource) -> SourceKind {
    let source = Arc::new(source);
    cx.add_data_source(el.place(), source.clone());
    SourceKind::Database(source)
}

fn delimited<'p>(
    cx: &mut Compiler<'_>,
    el: &Element<'_>,
    path: &str,
    get: &dyn Fn(&[&str]) -> Option<&'p str>,
) -> Option<SourceKind> {
    let path = local_path(cx, el, "CSV file", path)?;
    let number = |name: &str| get(&[name]).and_then(|text| text.trim().parse::<i64>().ok());
    let has_header = get(&["csv_hasheader"]).is_some_and(|text| text.eq_ignore_ascii_case("true"));
    let header_row = has_header.then(|| number("csv_headerrow").filter(|row| *row > 0).unwrap_or(1) as usize);
    let separator = get(&["csv_columnseperator", "csv_columnseparator"]).and_then(|text| match text {
        "\\t" | "tab" => Some('\t'),
        text => text.chars().next(),
    });
    Some(SourceKind::Delimited(DelimitedFile {
        path,
        separator: separator.unwrap_or(','),
        first_row: number("csv_startingrow").filter(|row| *row > 0).unwrap_or(1) as usize,
        rows_max: number("csv_maxrowcount").filter(|count| *count >= 0).map(|count| count as usize),
        header_row,
    }))
}

fn local_path(cx: &mut Compiler<'_>, el: &Element<'_>, what: &str, path: &str) -> Option<PathBuf> {
    if path.contains("://") && !path.starts_with("file://") {
        cx.error(el.place(), format!("the {what} `{path}` is not fetched: only files of this machine are read"));
        return None;
    }
    Some(PathBuf::from(path.strip_prefix("file://").unwrap_or(path)))
}
