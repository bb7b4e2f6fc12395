//! What `<dblookup>` and `<dbreport>` share: the connection and the statements, and running them one after another.

mod source;
mod statement;

use std::sync::Arc;

use penstock_compile::{Compiler, Element};
use penstock_engine::database::{Answer, DataSource, DatabaseError, Query, Transaction};
use penstock_engine::ports::{Level, LocalFuture};
use penstock_engine::{Exchange, Fault, Flow, Needs, Resume};

pub use statement::Statement;

/// A mediator's database and statements.
pub struct Plan {
    /// The database.
    pub source: Arc<DataSource>,
    /// The statements in order.
    pub statements: Vec<Statement>,
    /// What differs between the two mediators.
    pub manner: Manner,
}

/// How statements are run.
pub struct Manner {
    /// Who logs.
    pub logger: &'static str,
    /// How the message of a fault begins.
    pub failure: &'static str,
    /// The transaction a statement belongs to, when there is one it belongs to.
    pub transaction: fn(&Exchange, &DataSource) -> Option<std::rc::Rc<dyn Transaction>>,
}

/// Reads `<connection>` and the `<statement>`s.
pub fn compile(el: &Element<'_>, cx: &mut Compiler<'_>, manner: Manner) -> Option<Plan> {
    let source = source::compile(el, cx);
    let mut statements = Vec::new();
    let mut whole = true;
    for statement in el.elements("statement") {
        match Statement::compile(&statement, cx) {
            Some(statement) => statements.push(statement),
            None => whole = false,
        }
    }
    let source = Arc::new(source?);
    cx.add_data_source(el.place(), source.clone());
    whole.then_some(Plan { source, statements, manner })
}

impl Plan {
    /// What the parameters do with the body.
    pub fn needs(&self) -> Needs {
        self.statements.iter().map(Statement::needs).max().unwrap_or_default()
    }
}

/// Runs the statements from that number on.
pub fn run(plan: Arc<Plan>, number: usize, exchange: &mut Exchange) -> Result<Flow, Fault> {
    let Some(statement) = plan.statements.get(number) else { return Ok(Flow::Next) };
    let query = Query { sql: statement.sql.clone(), values: statement.values(exchange)? };
    let databases = exchange.core().databases()?;
    let answer: LocalFuture<'static, Result<Answer, DatabaseError>> =
        match (plan.manner.transaction)(exchange, &plan.source) {
            Some(transaction) => transaction.run(&plan.source, query),
            None => match exchange.transactions.obstacle(&plan.source, &query) {
                Some(obstacle) => Box::pin(std::future::ready(Err(obstacle))),
                None => databases.run(&plan.source, query),
            },
        };
    Ok(Flow::Wait(Box::pin(async move {
        let answer = answer.await;
        Resume::new(move |exchange: &mut Exchange, ()| {
            let statement = &plan.statements[number];
            let taken = answer
                .map_err(|error| error.message)
                .and_then(|answer| statement.take_results(exchange, answer.row.as_ref()));
            match taken {
                Ok(()) => run(plan, number + 1, exchange),
                Err(cause) => Err(failed(&plan, statement, exchange, &cause)),
            }
        })
    })))
}

/// The fault of Micro Integrator; the cause goes to the log and into `ERROR_DETAIL`.
fn failed(plan: &Plan, statement: &Statement, exchange: &mut Exchange, cause: &str) -> Fault {
    let Manner { logger, failure, .. } = plan.manner;
    exchange.log(Level::Error, logger, &format!("{}: {cause}", plan.source));
    let message = format!("{failure} : {} against DataSource : {}", statement.sql, plan.source);
    let detail = format!("{message}: {cause}");
    Fault { detail: Some(detail.into()), ..Fault::new(message) }
}
