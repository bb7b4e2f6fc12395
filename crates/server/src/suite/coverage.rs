//! Which mediators the cases of a suite reached.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs, Program};

/// The mediators of the artifact under test.
#[derive(Default)]
pub struct Coverage {
    steps: Vec<(u32, Arc<AtomicBool>)>,
}

/// A mediator that notes that it ran.
struct Watched {
    inner: Box<dyn Mediator>,
    reached: Arc<AtomicBool>,
}

impl Mediator for Watched {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        self.reached.store(true, Ordering::Relaxed);
        self.inner.run(exchange)
    }

    fn needs(&self) -> Needs {
        self.inner.needs()
    }
}

impl Coverage {
    /// Watches every mediator that stands in the file.
    pub fn watch(program: &mut Program, file: &str) -> Coverage {
        let mut coverage = Coverage::default();
        for sequence in program.sequences_mut() {
            for step in std::mem::take(&mut sequence.steps) {
                let mut step = step;
                if &*step.at.file == file {
                    let reached = Arc::new(AtomicBool::new(false));
                    coverage.steps.push((step.at.line, reached.clone()));
                    step.mediator = Box::new(Watched { inner: step.mediator, reached });
                }
                sequence.steps.push(step);
            }
        }
        coverage
    }

    /// How many mediators there are.
    pub fn total(&self) -> usize {
        self.steps.len()
    }

    /// How many of them ran.
    pub fn reached(&self) -> usize {
        self.steps.iter().filter(|(_, reached)| reached.load(Ordering::Relaxed)).count()
    }

    /// The same in percent; an artifact without mediators is covered.
    pub fn percent(&self) -> usize {
        (self.reached() * 100).checked_div(self.total()).unwrap_or(100)
    }

    /// The lines of mediators that never ran.
    pub fn missed(&self) -> BTreeSet<u32> {
        self.steps.iter().filter(|(_, reached)| !reached.load(Ordering::Relaxed)).map(|(line, _)| *line).collect()
    }
}
