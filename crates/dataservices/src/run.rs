//! Running requests: queries one after another, nested ones for each row, and their rows as elements.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use penstock_engine::database::{
    Batch, CallPlace, DatabaseError, Databases, Query as SqlQuery, RowQuery, Rows, SqlValue, Transaction, Yields,
};
use penstock_engine::ports::LocalFuture;
use penstock_message::double_to_text;

use crate::delimited;
use crate::fault::{DataServiceFault, FaultCode};
use crate::model::{DataService, Mapping, Operation, Output, OutputValue, Query, QueryCall, Returns, SourceKind};
use crate::node::{Content, Node};
use crate::parameter::{Caller, Converted, Direction, Given, GivenParameters};
use crate::response::Writer;
use crate::statement::{PlaceValue, SqlKind, SqlText, Statement};
use crate::temporal;

/// What a request asks for.
#[derive(Debug)]
pub enum Work {
    /// One operation.
    Single(usize, GivenParameters),
    /// One operation with several sets of parameters, all or none of them.
    Batch(usize, Vec<GivenParameters>),
    /// Several operations, all or none of them; the result is that of the last.
    Boxed(Vec<(usize, GivenParameters)>, BoxFrame),
}

/// What is around the result of a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoxFrame {
    /// The element of a request box.
    Response,
    /// Nothing: the result is that of `end_boxcar`.
    None,
}

/// A request that runs.
pub struct Run {
    /// The service.
    pub service: Arc<DataService>,
    /// The databases.
    pub databases: Arc<dyn Databases>,
    /// Who calls.
    pub caller: Caller,
}

/// Queries inside queries: more is a query that calls itself.
const DEPTH_MAX: usize = 16;

impl Work {
    /// The operation whose result is returned.
    pub fn last_operation(&self) -> Option<usize> {
        match self {
            Work::Single(operation, _) | Work::Batch(operation, _) => Some(*operation),
            Work::Boxed(items, _) => items.last().map(|(operation, _)| *operation),
        }
    }

    fn calls<'s>(&'s self, service: &'s DataService) -> impl Iterator<Item = &'s Arc<QueryCall>> + 's {
        let operations: Vec<usize> = match self {
            Work::Single(operation, _) | Work::Batch(operation, _) => vec![*operation],
            Work::Boxed(items, _) => items.iter().map(|(operation, _)| *operation).collect(),
        };
        operations.into_iter().flat_map(|operation| service.operations[operation].calls.iter())
    }

    /// Whether all changes are made or none. One statement alone is either done or not.
    pub fn needs_transaction(&self, service: &DataService) -> bool {
        let is_one = || {
            let mut calls = self.calls(service);
            let is_plain = |call: &Arc<QueryCall>| {
                service.queries[call.query].result.as_ref().is_none_or(|mapping| !mapping.has_calls())
            };
            calls.next().is_some_and(is_plain) && calls.next().is_none()
        };
        let is_single = matches!(self, Work::Single(..));
        self.calls(service).any(|call| service.writes(call)) && !(is_single && is_one())
    }
}

/// Runs a request and writes its result.
pub async fn run(run: Run, work: Work, mut writer: Writer) -> Result<(), DataServiceFault> {
    let is_transaction = work.needs_transaction(&run.service);
    let session = if is_transaction { run.databases.begin() } else { run.databases.session() };
    let running = Running { run, session, exports: RefCell::default() };
    let outcome = running.work(work, &mut writer).await;
    let ended = if outcome.is_ok() { running.session.commit().await } else { running.session.rollback().await };
    outcome?;
    ended.map_err(|error| DataServiceFault::of_database("commit", &error))
}

struct Running {
    run: Run,
    session: Rc<dyn Transaction>,
    /// Values that later requests of a box see.
    exports: RefCell<GivenParameters>,
}

/// The rows of a query.
struct Cursor {
    source: CursorSource,
    batch: std::vec::IntoIter<Vec<SqlValue>>,
    columns: Arc<[Arc<str>]>,
    left: usize,
}

enum CursorSource {
    Database(Box<dyn Rows>),
    File(delimited::DelimitedReader),
    /// All rows are in the batch.
    Nothing,
}

/// A row with the names of its columns.
struct Row {
    columns: Arc<[Arc<str>]>,
    values: Vec<SqlValue>,
}

impl Row {
    fn get(&self, column: &str, by_number: bool) -> Option<&SqlValue> {
        let by_name = || self.columns.iter().position(|name| name.eq_ignore_ascii_case(column));
        let number = || column.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let index = if by_number { number().or_else(by_name) } else { by_name().or_else(number) };
        self.values.get(index?)
    }
}

impl Running {
    async fn work(&self, work: Work, writer: &mut Writer) -> Result<(), DataServiceFault> {
        match work {
            Work::Single(operation, given) => {
                writer.begin(false);
                self.operation(operation, given, Some(&mut *writer)).await?;
                writer.end(false);
            }
            Work::Batch(operation, all) => {
                writer.begin(false);
                self.batch(operation, all, writer).await?;
                writer.end(false);
            }
            Work::Boxed(items, frame) => {
                let is_framed = frame == BoxFrame::Response;
                writer.begin(is_framed);
                let count = items.len();
                for (index, (operation, mut given)) in items.into_iter().enumerate() {
                    given.complete_with(&self.exports.borrow());
                    let is_last = index + 1 == count;
                    let returns = self.returns_something(operation);
                    if is_last && !returns {
                        self.operation(operation, given, None).await?;
                        writer.nothing();
                    } else {
                        self.operation(operation, given, is_last.then_some(&mut *writer)).await?;
                    }
                }
                writer.end(is_framed);
            }
        }
        Ok(())
    }

    fn returns_something(&self, operation: usize) -> bool {
        let operation = &self.run.service.operations[operation];
        operation.returns_status || self.run.service.result_of(operation).is_some()
    }

    async fn batch(
        &self,
        operation: usize,
        all: Vec<GivenParameters>,
        writer: &mut Writer,
    ) -> Result<(), DataServiceFault> {
        let service = self.run.service.clone();
        let definition = &service.operations[operation];
        let result = service.result_of(definition);
        if let Some(mapping) = result {
            writer.open(mapping, &service.namespace);
        }
        for given in all {
            let described = given.describe();
            let named = |fault: DataServiceFault| fault.of_request(&definition.name, described.clone());
            for (index, call) in definition.calls.iter().enumerate() {
                let is_last = index + 1 == definition.calls.len();
                let into = (is_last && result.is_some()).then_some(&mut *writer);
                self.call(call, &given, into, false).await.map_err(named)?;
            }
        }
        match result {
            Some(mapping) => writer.close(mapping),
            None if definition.returns_status => writer.status(),
            None => {}
        }
        Ok(())
    }

    async fn operation(
        &self,
        operation: usize,
        given: GivenParameters,
        mut writer: Option<&mut Writer>,
    ) -> Result<(), DataServiceFault> {
        let service = self.run.service.clone();
        let definition: &Operation = &service.operations[operation];
        let described = given.describe();
        let named = |fault: DataServiceFault| fault.of_request(&definition.name, described.clone());
        let count = definition.calls.len();
        for (index, call) in definition.calls.iter().enumerate() {
            let into = if index + 1 == count { writer.as_deref_mut() } else { None };
            self.call(call, &given, into, true).await.map_err(named)?;
        }
        if let (Some(writer), None, true) = (writer, service.result_of(definition), definition.returns_status) {
            writer.status();
        }
        Ok(())
    }

    /// Runs a query of an operation and writes its rows; without a writer they are read for what they export.
    async fn call(
        &self,
        call: &QueryCall,
        given: &GivenParameters,
        mut writer: Option<&mut Writer>,
        has_frame: bool,
    ) -> Result<(), DataServiceFault> {
        let service = &self.run.service;
        let query = &service.queries[call.query];
        let parameters = self.arguments(call, query, given, None)?;
        let Some(mapping) = &query.result else {
            let mut cursor = self.open(query, &parameters).await?;
            while self.next(query, &mut cursor).await?.is_some() {}
            return Ok(());
        };
        let is_visible = self.run.caller.has_any(&call.roles);
        let mut cursor = self.open(query, &parameters).await?;
        if let (Some(writer), true) = (&mut writer, has_frame) {
            writer.open(mapping, &service.namespace);
        }
        let mut loose = Vec::new();
        while let Some(row) = self.next(query, &mut cursor).await? {
            let mut node = self.row(mapping, &row, &parameters);
            if mapping.has_calls() {
                self.resolve(&mut node, &parameters, &row, 1).await?;
            }
            let Some(writer) = writer.as_deref_mut().filter(|_| is_visible) else { continue };
            match mapping.row {
                Some(_) => writer.row(&node),
                None => {
                    if let Content::Children(children) = node.content {
                        loose.extend(children);
                    }
                }
            }
            writer.pause().await;
        }
        if let Some(writer) = writer {
            if mapping.row.is_none() {
                writer.contents(&loose);
            }
            if has_frame {
                writer.close(mapping);
            }
        }
        Ok(())
    }

    /// The values of a query's parameters, by the arguments of a call.
    fn arguments(
        &self,
        call: &QueryCall,
        query: &Query,
        given: &GivenParameters,
        row: Option<&Row>,
    ) -> Result<GivenParameters, DataServiceFault> {
        let column = |name: &str| {
            let value = row?.get(name, false)?;
            Some(Given::Scalar(text_of(value)))
        };
        let mut parameters = GivenParameters::default();
        for argument in &call.arguments {
            let found = match argument.kind {
                "column" => column(&argument.from).or_else(|| given.get(&argument.from).cloned()),
                _ => given.get(&argument.from).cloned().or_else(|| column(&argument.from)),
            };
            let definition = query.parameters.iter().find(|parameter| parameter.name == argument.parameter);
            match found {
                Some(found) => parameters.set(argument.parameter.clone(), found),
                None if definition.is_some_and(|definition| definition.default.is_some() || definition.is_optional) => {
                }
                None => {
                    let message = format!(
                        "Error in 'CallQuery.extractParams', cannot find parameter with type:{} name:{}",
                        argument.kind, argument.written
                    );
                    return Err(DataServiceFault::new(FaultCode::IncompatibleParameters, message));
                }
            }
        }
        let exports = self.exports.borrow();
        for parameter in &query.parameters {
            if parameters.get(&parameter.name).is_none() {
                let passed = if call.arguments.is_empty() { given.get(&parameter.name) } else { None };
                let passed = passed.or_else(|| exports.get(&parameter.name));
                if let Some(found) = parameter.or_default(passed, &self.run.caller) {
                    parameters.set(parameter.name.clone(), found);
                }
            } else if let Some(found) = parameter.or_default(parameters.get(&parameter.name), &self.run.caller) {
                parameters.set(parameter.name.clone(), found);
            }
        }
        Ok(parameters)
    }

    async fn open(&self, query: &Query, given: &GivenParameters) -> Result<Cursor, DataServiceFault> {
        let source = &self.run.service.sources[query.source];
        let left = query.rows_max.unwrap_or(usize::MAX);
        let none = || (Vec::new().into_iter(), Arc::<[Arc<str>]>::from([]));
        let source = match (&source.kind, &query.statement) {
            (SourceKind::Delimited(file), _) => {
                let reader = delimited::DelimitedReader::open(file).await;
                CursorSource::File(reader.map_err(|error| unreadable(&query.id, &error))?)
            }
            (SourceKind::Database(database), Statement::Sql(sql)) => {
                let row_query = row_query(query, sql, given)?;
                let counts = query.returns == Returns::UpdatedRowCount;
                let rows = self.session.rows(database, row_query).await;
                let mut rows = rows.map_err(|error| DataServiceFault::of_database(&query.id, &error))?;
                if !counts {
                    CursorSource::Database(rows)
                } else {
                    let failed = |error: DatabaseError| DataServiceFault::of_database(&query.id, &error);
                    let mut changed = 0;
                    while let Some(batch) = rows.next().await.map_err(failed)? {
                        changed += batch.changed;
                    }
                    let row = vec![SqlValue::Integer(changed as i64)];
                    let batch = vec![row].into_iter();
                    return Ok(Cursor { source: CursorSource::Nothing, batch, columns: ["1".into()].into(), left });
                }
            }
            (SourceKind::Workbook(file), Statement::Sheet(sheet)) => {
                let rows = file.rows(sheet).await.map_err(|error| unreadable(&query.id, &error))?;
                let (columns, batch) = (rows.columns, rows.rows.into_iter());
                return Ok(Cursor { source: CursorSource::Nothing, batch, columns, left });
            }
            (SourceKind::Database(_) | SourceKind::Workbook(_), _) => {
                let message = format!("the query `{}` has no statement", query.id);
                return Err(DataServiceFault::new(FaultCode::Unknown, message));
            }
        };
        let (batch, columns) = none();
        Ok(Cursor { source, batch, columns, left })
    }

    async fn next(&self, query: &Query, cursor: &mut Cursor) -> Result<Option<Row>, DataServiceFault> {
        loop {
            if cursor.left == 0 {
                return Ok(None);
            }
            if let Some(values) = cursor.batch.next() {
                cursor.left -= 1;
                return Ok(Some(Row { columns: cursor.columns.clone(), values }));
            }
            let batch = match &mut cursor.source {
                CursorSource::Nothing => None,
                CursorSource::Database(rows) => {
                    rows.next().await.map_err(|error| DataServiceFault::of_database(&query.id, &error))?
                }
                CursorSource::File(reader) => reader.next().await.map_err(|error| unreadable(&query.id, &error))?,
            };
            let Some(Batch { columns, rows, .. }) = batch else { return Ok(None) };
            cursor.columns = columns;
            cursor.batch = rows.into_iter();
        }
    }

    /// A row as an element, with places for the results of nested queries.
    fn row(&self, mapping: &Mapping, row: &Row, given: &GivenParameters) -> Node {
        let mut node = Node::parent(mapping.row.clone().unwrap_or_default(), None, Vec::new());
        node.is_list = true;
        self.fill(&mut node, &mapping.outputs, mapping.by_number, row, given);
        node
    }

    fn fill(&self, node: &mut Node, outputs: &[Output], by_number: bool, row: &Row, given: &GivenParameters) {
        let mut children = Vec::with_capacity(outputs.len());
        for output in outputs.iter().filter(|output| self.run.caller.has_any(&output.roles)) {
            let content = match &output.value {
                OutputValue::Column(column) => value_content(row.get(column, by_number), output),
                OutputValue::Parameter(name) => text_content(given.text(name).cloned(), output),
                OutputValue::Constant(text) => Content::Value(text.clone(), output.kind),
                OutputValue::Call(call) if self.run.caller.has_any(&call.roles) => Content::Pending(call.clone()),
                OutputValue::Call(_) => continue,
                OutputValue::Complex(inner) => {
                    let mut complex = Node::parent(output.name.clone(), output.namespace.clone(), Vec::new());
                    self.fill(&mut complex, inner, by_number, row, given);
                    children.push(complex);
                    continue;
                }
            };
            if let (Some((name, is_array)), Content::Value(text, _)) = (&output.export, &content) {
                self.export(name, *is_array, text);
            }
            match content {
                Content::Value(text, _) if output.is_attribute => node.attributes.push((output.name.clone(), text)),
                _ if output.is_attribute => {}
                Content::Null if output.is_optional => {}
                content => children.push(Node {
                    name: output.name.clone(),
                    namespace: output.namespace.clone(),
                    attributes: Vec::new(),
                    is_list: false,
                    content,
                }),
            }
        }
        node.content = Content::Children(children);
    }

    fn export(&self, name: &Arc<str>, is_array: bool, text: &Arc<str>) {
        let mut exports = self.exports.borrow_mut();
        match is_array {
            true => exports.add(name, Some(text.clone())),
            false => exports.set(name.clone(), Given::Scalar(Some(text.clone()))),
        }
    }

    /// Runs the nested queries of a row and puts their results in their places.
    fn resolve<'a>(
        &'a self,
        node: &'a mut Node,
        given: &'a GivenParameters,
        row: &'a Row,
        depth: usize,
    ) -> LocalFuture<'a, Result<(), DataServiceFault>> {
        Box::pin(async move {
            let Content::Children(children) = &mut node.content else { return Ok(()) };
            for child in children {
                match &child.content {
                    Content::Pending(call) => {
                        let call = call.clone();
                        *child = self.nested(&call, given, row, depth).await?;
                    }
                    Content::Children(_) => self.resolve(child, given, row, depth).await?,
                    _ => {}
                }
            }
            Ok(())
        })
    }

    async fn nested(
        &self,
        call: &QueryCall,
        given: &GivenParameters,
        outer: &Row,
        depth: usize,
    ) -> Result<Node, DataServiceFault> {
        if depth > DEPTH_MAX {
            let message = format!("queries are nested deeper than {DEPTH_MAX}: one calls itself");
            return Err(DataServiceFault::new(FaultCode::Unknown, message));
        }
        let query = &self.run.service.queries[call.query];
        let parameters = self.arguments(call, query, given, Some(outer))?;
        let mut cursor = self.open(query, &parameters).await?;
        let Some(mapping) = &query.result else {
            while self.next(query, &mut cursor).await?.is_some() {}
            return Ok(Node::parent("".into(), None, Vec::new()));
        };
        let mut children = Vec::new();
        while let Some(row) = self.next(query, &mut cursor).await? {
            let mut node = self.row(mapping, &row, &parameters);
            if mapping.has_calls() {
                self.resolve(&mut node, &parameters, &row, depth + 1).await?;
            }
            match (&mapping.row, node.content) {
                (Some(_), content) => children.push(Node { content, ..node }),
                (None, Content::Children(inner)) => children.extend(inner),
                (None, _) => {}
            }
        }
        Ok(Node::parent(mapping.element.clone(), mapping.namespace.clone(), children))
    }
}

fn unreadable(query: &str, error: &str) -> DataServiceFault {
    let fault = DataServiceFault::new(FaultCode::Unknown, format!("Error in running the query `{query}`."));
    DataServiceFault { nested: Some(error.to_owned()), ..fault }
}

/// The statement of a query for given parameters.
fn row_query(query: &Query, sql: &SqlText, given: &GivenParameters) -> Result<RowQuery, DataServiceFault> {
    let is_update = query.statement.kind() == SqlKind::Update;
    let mut values = Vec::with_capacity(query.parameters.len());
    for parameter in &query.parameters {
        let converted = match parameter.direction {
            Direction::Out => None,
            _ => Some(parameter.convert(given.get(&parameter.name))?),
        };
        values.push(match converted {
            None => PlaceValue::Written,
            Some(Converted::Scalar(value)) => PlaceValue::Bound(value),
            Some(Converted::List(list)) => PlaceValue::List(list),
            Some(Converted::Text(text)) => PlaceValue::Text(text),
            Some(Converted::Absent) if parameter.is_optional && is_update => PlaceValue::Absent,
            Some(Converted::Absent) if parameter.is_optional => PlaceValue::Bound(SqlValue::Null),
            Some(Converted::Absent) => {
                let message = format!(
                    "Error in 'SQLQuery.processPreNormalQuery', cannot find parameter with type:query-param name:{}",
                    parameter.written
                );
                return Err(DataServiceFault::new(FaultCode::IncompatibleParameters, message));
            }
        });
    }
    let (text, bound) = sql.statement(&|index| values.get(index).cloned().unwrap_or(PlaceValue::Written));
    let yields = match (&query.returns, query.statement.kind()) {
        (Returns::Keys(columns), _) => Yields::Keys(columns.clone()),
        (_, SqlKind::Call) => Yields::Call(call_places(query, sql)),
        _ => Yields::Rows,
    };
    Ok(RowQuery {
        query: SqlQuery { sql: text.into(), values: bound },
        is_interleaved: query.result.as_ref().is_some_and(Mapping::has_calls),
        yields,
        timeout: query.timeout,
    })
}

fn call_places(query: &Query, sql: &SqlText) -> Vec<CallPlace> {
    let place = |index: usize| {
        let Some(parameter) = query.parameters.get(index) else { return CallPlace::In };
        match parameter.direction {
            Direction::In => CallPlace::In,
            Direction::Out => CallPlace::Out(parameter.written.clone()),
            Direction::InOut => CallPlace::InOut(parameter.written.clone()),
        }
    };
    sql.places().map(place).collect()
}

/// A value as text; `None` is null.
fn text_of(value: &SqlValue) -> Option<Arc<str>> {
    Some(match value {
        SqlValue::Null => return None,
        SqlValue::Text(text) | SqlValue::Decimal(text) => text.clone(),
        SqlValue::Integer(number) => number.to_string().into(),
        SqlValue::Double(number) => double_to_text(*number).into(),
        SqlValue::Boolean(flag) => (if *flag { "true" } else { "false" }).into(),
        SqlValue::Bytes(bytes) => STANDARD.encode(bytes).into(),
        SqlValue::Temporal(text) => temporal::to_schema(text).into(),
    })
}

fn value_content(value: Option<&SqlValue>, output: &Output) -> Content {
    text_content(value.and_then(text_of), output)
}

fn text_content(text: Option<Arc<str>>, output: &Output) -> Content {
    match text {
        Some(text) => Content::Value(text, output.kind),
        None => Content::Null,
    }
}
