//! A data service as it was compiled: sources, queries, mappings of results, operations and resources.
//!
//! Names of parameters and columns are compared without case, so they are kept in lower case.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use penstock_engine::database::DataSource;
use penstock_message::Method;

use crate::boxcar::Boxcars;
use crate::parameter::Parameter;
use crate::sheet::SheetFile;
use crate::statement::Statement;

/// What a service has when it names no namespace.
pub const DEFAULT_NAMESPACE: &str = "http://ws.wso2.org/dataservice";

/// A data service.
pub struct DataService {
    /// Its name.
    pub name: Arc<str>,
    /// The namespace of requests and results.
    pub namespace: Arc<str>,
    /// The file it was read from.
    pub location: Arc<str>,
    /// Its description, `N/A` without one.
    pub description: Arc<str>,
    /// Where data is.
    pub sources: Vec<RowSource>,
    /// The queries.
    pub queries: Vec<Query>,
    /// Operations, then what resources run.
    pub operations: Vec<Operation>,
    /// The resources, the most specific first.
    pub resources: Vec<RestResource>,
    /// Whether operations take several requests at once.
    pub has_batches: bool,
    /// Whether requests may be put into a box.
    pub has_boxes: bool,
    /// The boxcars of sessions, `None` when there are none.
    pub boxcars: Option<Boxcars>,
}

/// Where data is.
pub struct RowSource {
    /// What it is.
    pub kind: SourceKind,
}

/// What a source of data is.
pub enum SourceKind {
    /// A database.
    Database(Arc<DataSource>),
    /// A file with a row on each line.
    Delimited(DelimitedFile),
    /// A workbook of Excel.
    Workbook(SheetFile),
}

/// A file with a row on each line.
pub struct DelimitedFile {
    /// Where it is.
    pub path: PathBuf,
    /// What stands between values.
    pub separator: char,
    /// The line of the first row, from 1.
    pub first_row: usize,
    /// How many rows are read.
    pub rows_max: Option<usize>,
    /// The line with the names of the columns.
    pub header_row: Option<usize>,
}

/// A query.
pub struct Query {
    /// Its `id`.
    pub id: Arc<str>,
    /// The index of its source.
    pub source: usize,
    /// What it runs.
    pub statement: Statement,
    /// Its parameters, in the order of the places of a statement without names.
    pub parameters: Vec<Parameter>,
    /// What becomes of its rows; without it the query returns nothing.
    pub result: Option<Mapping>,
    /// What its rows are.
    pub returns: Returns,
    /// The maximum of rows.
    pub rows_max: Option<usize>,
    /// How long the database may take.
    pub timeout: Option<Duration>,
}

/// What the rows of a query are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Returns {
    /// Those that the statement selects.
    Rows,
    /// Keys that were generated: these columns, or those that the database chooses.
    Keys(Vec<Arc<str>>),
    /// One row with the number of rows that were changed.
    UpdatedRowCount,
}

/// How rows become elements.
pub struct Mapping {
    /// The element around all rows; empty when there is none.
    pub element: Arc<str>,
    /// The element of a row.
    pub row: Option<Arc<str>>,
    /// The namespace, when it is not the service's.
    pub namespace: Option<Arc<str>>,
    /// Whether columns are meant by number.
    pub by_number: bool,
    /// What a row contains.
    pub outputs: Vec<Output>,
}

impl Mapping {
    /// Whether other queries run for each row.
    pub fn has_calls(&self) -> bool {
        fn any(outputs: &[Output]) -> bool {
            outputs.iter().any(|output| match &output.value {
                OutputValue::Call(_) => true,
                OutputValue::Complex(inner) => any(inner),
                _ => false,
            })
        }
        any(&self.outputs)
    }
}

/// A part of a row.
pub struct Output {
    /// The name of the element or attribute; empty for a query.
    pub name: Arc<str>,
    /// Its namespace, when it is another.
    pub namespace: Option<Arc<str>>,
    /// Whether it is an attribute of the element around it.
    pub is_attribute: bool,
    /// Its type.
    pub kind: ValueKind,
    /// The local name of its type in XML Schema.
    pub schema_type: Arc<str>,
    /// The roles that may see it; empty for all.
    pub roles: Vec<Arc<str>>,
    /// The name under which later requests of a box see it, and whether all its values are kept.
    pub export: Option<(Arc<str>, bool)>,
    /// Whether it is absent when its value is null.
    pub is_optional: bool,
    /// What it contains.
    pub value: OutputValue,
}

/// What a part of a row contains.
pub enum OutputValue {
    /// A column, by its name in lower case or its number.
    Column(Arc<str>),
    /// A parameter of the request.
    Parameter(Arc<str>),
    /// A text.
    Constant(Arc<str>),
    /// Other parts.
    Complex(Vec<Output>),
    /// The result of another query.
    Call(Arc<QueryCall>),
}

/// Types of XML Schema as far as JSON tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ValueKind {
    /// Text.
    #[default]
    Text,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
}

impl ValueKind {
    /// The kind of a type name, with or without a prefix.
    pub fn from_name(name: &str) -> ValueKind {
        match name.rsplit(':').next().unwrap_or(name).to_ascii_lowercase().as_str() {
            "integer" | "int" | "long" | "short" | "byte" | "double" | "float" | "decimal" | "nonnegativeinteger"
            | "positiveinteger" | "unsignedint" | "unsignedlong" => ValueKind::Number,
            "boolean" => ValueKind::Boolean,
            _ => ValueKind::Text,
        }
    }
}

/// A call of a query with its parameters.
pub struct QueryCall {
    /// The index of the query.
    pub query: usize,
    /// The parameters that are passed on.
    pub arguments: Vec<Argument>,
    /// The roles that may see the result; empty for all.
    pub roles: Vec<Arc<str>>,
}

/// `<with-param name query-param|column/>`.
pub struct Argument {
    /// The parameter of the query.
    pub parameter: Arc<str>,
    /// Its name as it was written, for faults.
    pub written: Arc<str>,
    /// The parameter of the request, or the column.
    pub from: Arc<str>,
    /// `query-param` or `column`.
    pub kind: &'static str,
}

/// Something clients call: an operation, or what a resource runs.
pub struct Operation {
    /// Its name; `_getproduct_code` for a resource.
    pub name: Arc<str>,
    /// What it runs; only the result of the last is returned.
    pub calls: Vec<Arc<QueryCall>>,
    /// Whether a request without a result is acknowledged in the body.
    pub returns_status: bool,
    /// Whether the response begins only when all of it is known.
    pub is_buffered: bool,
}

/// A REST resource.
pub struct RestResource {
    /// Its method.
    pub method: Method,
    /// The path as it was written.
    pub written: Arc<str>,
    /// The segments of its path.
    pub path: Vec<Segment>,
    /// The index of what it runs.
    pub operation: usize,
}

/// A segment of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// This text.
    Text(String),
    /// A parameter.
    Variable(Arc<str>),
}

impl DataService {
    /// The operation of a name.
    pub fn operation(&self, name: &str) -> Option<usize> {
        self.operations.iter().position(|operation| *operation.name == *name)
    }

    /// Whether a call changes something, or may.
    pub fn writes(&self, call: &QueryCall) -> bool {
        let query = &self.queries[call.query];
        let nested = query.result.as_ref().map(|mapping| &mapping.outputs);
        query.statement.may_write() || nested.is_some_and(|outputs| self.any_writes(outputs))
    }

    fn any_writes(&self, outputs: &[Output]) -> bool {
        outputs.iter().any(|output| match &output.value {
            OutputValue::Call(call) => self.writes(call),
            OutputValue::Complex(inner) => self.any_writes(inner),
            _ => false,
        })
    }

    /// The mapping of what an operation returns.
    pub fn result_of(&self, operation: &Operation) -> Option<&Mapping> {
        operation.calls.last().and_then(|call| self.queries[call.query].result.as_ref())
    }
}
