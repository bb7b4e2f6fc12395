//! Watches the target while a load runs.
use super::process::{ProcessTree, Usage};
use crate::figures::TargetUse;
use crate::load::Moment;

/// Measures one process tree over the measured window.
pub struct Watch {
    root: u32,
    tree: Option<ProcessTree>,
    before: Usage,
    resident_bytes_sum: u128,
    samples: u64,
    seen: TargetUse,
}

impl Watch {
    /// Watches this process and its children.
    pub fn new(pid: u32) -> Self {
        Watch {
            root: pid,
            tree: None,
            before: Usage::default(),
            resident_bytes_sum: 0,
            samples: 0,
            seen: TargetUse::default(),
        }
    }

    /// Takes note of a moment of the load.
    pub fn at(&mut self, moment: Moment) {
        match moment {
            Moment::WindowOpens => {
                self.tree = ProcessTree::find(self.root);
                self.before = self.tree.as_ref().map(ProcessTree::usage).unwrap_or_default();
                self.look();
            }
            Moment::Tick(_) => self.look(),
            Moment::WindowCloses => {
                let Some(tree) = &self.tree else { return };
                let after = tree.usage();
                self.seen.cpu = after.cpu - self.before.cpu;
                self.seen.context_switches = after.context_switches.saturating_sub(self.before.context_switches);
            }
        }
    }

    fn look(&mut self) {
        let Some(tree) = &self.tree else { return };
        let (resident_bytes, threads) = tree.memory();
        self.seen.resident_bytes_max = self.seen.resident_bytes_max.max(resident_bytes);
        self.seen.threads = self.seen.threads.max(threads);
        self.resident_bytes_sum += u128::from(resident_bytes);
        self.samples += 1;
    }

    /// What was seen; `None` if the process was not there.
    pub fn finish(mut self) -> Option<TargetUse> {
        self.tree.as_ref()?;
        let average = self.resident_bytes_sum as f64 / self.samples.max(1) as f64;
        self.seen.resident_bytes_average = average;
        Some(self.seen)
    }
}
