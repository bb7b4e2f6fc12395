//! `<query id="…">`: the statement, its parameters and its result.

use std::sync::Arc;
use std::time::Duration;

use penstock_compile::{Compiler, Element};
use penstock_engine::database::{DataSource, Location};

use super::source::DEFAULT_ID;
use super::{Names, result};
use crate::model::{Query, Returns, RowSource, SourceKind};
use crate::parameter::{DefaultValue, Direction, Parameter, SqlType, Validator};
use crate::sheet::SheetQuery;
use crate::statement::{SqlText, Statement};

/// Steps of a pattern that goes back for one value. Patterns of addresses need hundreds.
const BACKTRACK_MAX: usize = 100_000;

pub(super) fn read(cx: &mut Compiler<'_>, el: &Element<'_>, names: &Names, sources: &[RowSource]) -> Option<Query> {
    let id = el.attribute("id")?;
    let name = el.attribute("useConfig").unwrap_or(DEFAULT_ID);
    let source = match names.sources.get(name) {
        Some(Some(source)) => *source,
        Some(None) => {
            // What is wrong with the source has been reported.
            el.accept_all();
            return None;
        }
        None => {
            el.accept_all();
            cx.error(el.attribute_place("useConfig"), format!("`{name}` is not the id of a <config>"));
            return None;
        }
    };
    for event in ["input-event-trigger", "output-event-trigger", "inputNamespace"] {
        el.attribute(event);
    }
    let database = match &sources[source].kind {
        SourceKind::Database(database) => Some(&**database),
        SourceKind::Delimited(_) | SourceKind::Workbook(_) => None,
    };
    let mut parameters = Vec::new();
    for parameter in el.elements("param") {
        parameters.extend(read_parameter(cx, &parameter));
    }
    // Places without names are those of `ordinal`; without ordinals the order counts.
    parameters.sort_by_key(|(ordinal, _)| ordinal.unwrap_or(usize::MAX));
    let parameters: Vec<Parameter> = parameters.into_iter().map(|(_, parameter)| parameter).collect();
    let mut properties = Properties::default();
    for property in el.elements("properties").flat_map(|list| list.elements("property")).collect::<Vec<_>>() {
        properties.read(&property);
    }
    let result = match el.child("result") {
        Some(found) => result::read(cx, &found, names),
        None => None,
    };
    let keys = el.attribute("keyColumns").unwrap_or_default();
    let keys = || keys.split(',').map(str::trim).filter(|name| !name.is_empty()).map(Arc::from).collect();
    let returns = match (el.flag("returnGeneratedKeys", false), el.flag("returnUpdatedRowCount", false)) {
        (true, _) => Returns::Keys(keys()),
        (false, true) => Returns::UpdatedRowCount,
        (false, false) => Returns::Rows,
    };
    let statement = match database {
        Some(database) => sql(cx, el, &parameters, &properties, dialect(database)),
        None => match (&sources[source].kind, el.child("excel")) {
            (SourceKind::Workbook(_), Some(excel)) => sheet(cx, &excel).map(Statement::Sheet),
            (SourceKind::Workbook(_), None) => {
                cx.error(el.place(), "a query of a workbook needs <excel> with <workbookname>");
                None
            }
            _ => Some(Statement::Rows),
        },
    };
    el.finish_knowing(cx, &["sql", "excel", "param", "result", "properties"]);
    Some(Query {
        id: id.into(),
        source,
        statement: statement?,
        parameters,
        result,
        returns,
        rows_max: properties.rows_max,
        timeout: properties.timeout,
    })
}

/// Reads `<excel>`. Rows count from 1; `-1` is no limit.
fn sheet(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<SheetQuery> {
    let text = |name: &str| el.child_text(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let number = |name: &str| text(name).and_then(|text| text.parse::<i64>().ok());
    let has_header = text("hasheader").is_some_and(|text| text.eq_ignore_ascii_case("true"));
    let query = SheetQuery {
        sheet: text("workbookname").map(Arc::from),
        first_row: number("startingrow").filter(|row| *row > 0).unwrap_or(1) as usize,
        rows_max: number("maxrowcount").filter(|count| *count >= 0).map(|count| count as usize),
        header_row: has_header.then(|| number("headerrow").filter(|row| *row > 0).unwrap_or(1) as usize),
    };
    el.finish_knowing(cx, &["workbookname", "hasheader", "startingrow", "headerrow", "maxrowcount"]);
    if query.sheet.is_none() {
        cx.error(el.place(), "<excel> needs <workbookname>, the name of the sheet");
        return None;
    }
    Some(query)
}

#[derive(Default)]
struct Properties {
    rows_max: Option<usize>,
    timeout: Option<Duration>,
    is_call: bool,
}

impl Properties {
    /// Those about fetching tune a driver of Java; rows always come in batches.
    fn read(&mut self, el: &Element<'_>) {
        let name = el.attribute("name").unwrap_or_default();
        let text = el.text();
        let count = || text.trim().parse::<usize>().ok().filter(|count| *count > 0);
        match name.rsplit('.').next().unwrap_or(name) {
            "max_rows" => self.rows_max = count(),
            "query_timeout" => self.timeout = count().map(|seconds| Duration::from_secs(seconds as u64)),
            "force_stored_proc" => self.is_call = text.trim().eq_ignore_ascii_case("true"),
            _ => {}
        }
    }
}

fn sql(
    cx: &mut Compiler<'_>,
    el: &Element<'_>,
    parameters: &[Parameter],
    properties: &Properties,
    dialect: Option<&str>,
) -> Option<Statement> {
    for element in ["sparql", "excel", "gspread", "expression", "scraperVariable"] {
        if let Some(other) = el.child(element) {
            other.accept_all();
            cx.error(other.place(), format!("<{element}> is not supported: the source is a database"));
            return None;
        }
    }
    let texts: Vec<Element<'_>> = el.elements("sql").collect();
    // The address in the artifact says the dialect, also when the configuration maps it to another database.
    let is_of_dialect = |text: &&Element<'_>| {
        let listed = text.attribute("dialect").unwrap_or_default();
        dialect.is_some_and(|dialect| listed.split(',').any(|one| one.trim().eq_ignore_ascii_case(dialect)))
    };
    let plain = texts.iter().find(is_of_dialect);
    let plain = plain.or_else(|| texts.iter().find(|text| text.attribute("dialect").is_none_or(str::is_empty)));
    let plain = plain.or(texts.first());
    let Some(text) = plain else {
        cx.error(el.place(), "<query> needs <sql>");
        return None;
    };
    let names: Vec<&str> = parameters.iter().map(|parameter| &*parameter.name).collect();
    if parameters.iter().any(|parameter| parameter.kind == SqlType::QueryString) {
        let message = "a parameter of the type QUERY_STRING becomes a part of the statement: a client that \
                       sends it chooses what the database does";
        cx.warn(text.place(), message);
    }
    Some(Statement::Sql(SqlText::parse(&text.text(), &names, properties.is_call)))
}

/// `mysql` of `jdbc:mysql://host/orders`.
fn dialect(source: &DataSource) -> Option<&str> {
    match (&source.location, &source.definition) {
        (Location::Url(url), _) => url.trim().strip_prefix("jdbc:")?.split(':').next(),
        (Location::Name(_), Some(definition)) => dialect(definition),
        (Location::Name(_), None) => None,
    }
}

fn read_parameter(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<(Option<usize>, Parameter)> {
    let name = el.required(cx, "name")?.trim();
    let kind_name = el.attribute("sqlType").unwrap_or("STRING");
    let Some(kind) = SqlType::from_name(kind_name) else {
        let message = format!("Found Unsupported data type : {kind_name} as input parameter.");
        cx.error(el.attribute_place("sqlType"), message);
        return None;
    };
    let direction = match el.attribute("type").unwrap_or("IN").to_ascii_uppercase().as_str() {
        "OUT" => Direction::Out,
        "INOUT" => Direction::InOut,
        _ => Direction::In,
    };
    el.attribute("structType");
    let ordinal = el.attribute("ordinal").and_then(|text| text.trim().parse().ok());
    let mut validators = Vec::new();
    for child in el.children() {
        validators.extend(validator(cx, &child));
    }
    let parameter = Parameter {
        name: name.to_lowercase().into(),
        written: name.into(),
        kind,
        direction,
        is_array: el.attribute("paramType").is_some_and(|kind| kind.eq_ignore_ascii_case("ARRAY")),
        is_optional: el.flag("optional", false),
        default: el.attribute("defaultValue").filter(|text| !text.is_empty()).map(DefaultValue::parse),
        forces_default: el.flag("forceDefault", false),
        validators,
    };
    el.finish(cx);
    Some((ordinal, parameter))
}

fn validator(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<Validator> {
    let text = |name: &str| el.attribute(name).map(str::trim).filter(|text| !text.is_empty());
    let found = match el.name() {
        "validateLongRange" => {
            let bound = |name, default| text(name).map_or(Some(default), |text| text.parse::<i64>().ok());
            Some((bound("minimum", i64::MIN), bound("maximum", i64::MAX)))
                .and_then(|(min, max)| Some(Validator::LongRange(min?, max?)))
        }
        "validateDoubleRange" => {
            let bound = |name, default| text(name).map_or(Some(default), |text| text.parse::<f64>().ok());
            Some((bound("minimum", f64::MIN), bound("maximum", f64::MAX)))
                .and_then(|(min, max)| Some(Validator::DoubleRange(min?, max?)))
        }
        "validateLength" => {
            let bound = |name, default| text(name).map_or(Some(default), |text| text.parse::<usize>().ok());
            Some((bound("minimum", 0), bound("maximum", usize::MAX)))
                .and_then(|(min, max)| Some(Validator::Length(min?, max?)))
        }
        "validatePattern" => {
            let pattern = el.required(cx, "pattern")?;
            // Java matches the whole value.
            let whole = format!("^(?:{pattern})$");
            match fancy_regex::RegexBuilder::new(&whole).backtrack_limit(BACKTRACK_MAX).build() {
                Ok(regex) => Some(Validator::Pattern(pattern.into(), Box::new(regex))),
                Err(error) => {
                    cx.error(
                        el.attribute_place("pattern"),
                        format!("the pattern is not a regular expression: {error}"),
                    );
                    return None;
                }
            }
        }
        "validateCustom" => {
            el.accept_all();
            let message = "<validateCustom> names a Java class, which Penstock does not run: without it values would not \
                           be checked";
            cx.error(el.place(), message);
            return None;
        }
        other => {
            cx.error(el.place(), format!("<param> does not know the validator <{other}>"));
            return None;
        }
    };
    if found.is_none() {
        cx.error(el.place(), format!("<{}> needs numbers as `minimum` and `maximum`", el.name()));
    }
    el.finish(cx);
    found
}
