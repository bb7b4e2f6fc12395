//! `<dblookup>`: queries a database; columns of the first row become properties.

use std::sync::Arc;

use penstock_compile::{Compiler, Element, MediatorKind};
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs};

use crate::database::{self, Manner, Plan};

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "dblookup", compile };

struct DbLookup(Arc<Plan>);

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let manner = Manner {
        logger: "DBLookupMediator",
        failure: "SQL Exception occurred while executing statement",
        // What a message wrote it also reads; a database outside the transaction is queried without it.
        transaction: |exchange, source| {
            exchange.transactions.active.clone().filter(|transaction| transaction.includes(source))
        },
    };
    Some(Box::new(DbLookup(Arc::new(database::compile(el, cx, manner)?))))
}

impl Mediator for DbLookup {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        database::run(self.0.clone(), 0, exchange)
    }

    fn needs(&self) -> Needs {
        self.0.needs()
    }
}
