//! `<dbreport>`: writes to a database, by itself or in the message's transaction.

use std::sync::Arc;

use penstock_compile::{Compiler, Element, MediatorKind};
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs};

use crate::database::{self, Manner, Plan};

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "dbreport", compile };

struct DbReport(Arc<Plan>);

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let manner = Manner {
        logger: "DBReportMediator",
        // Micro Integrator's spelling; what reads its log looks for it.
        failure: "Error execuring insert statement",
        transaction: match el.flag("useTransaction", false) {
            true => |exchange, _| exchange.transactions.active.clone(),
            false => |_, _| None,
        },
    };
    Some(Box::new(DbReport(Arc::new(database::compile(el, cx, manner)?))))
}

impl Mediator for DbReport {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        database::run(self.0.clone(), 0, exchange)
    }

    fn needs(&self) -> Needs {
        self.0.needs()
    }
}
