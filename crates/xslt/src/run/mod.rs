//! Running a program: the machine and what it needs beside the program.

mod apply;
mod call;
mod children;
mod context;
mod dispatch;
mod execute;
mod exslt;
mod frame;
pub(crate) mod functions;
mod group;
mod items;
mod keys;
mod machine;
pub(crate) mod number_format;
mod numbering;
pub(crate) mod results;
mod sequence;
mod sink;
mod sort;
mod source;
mod values;

pub use context::{Limits, WriteDocument};
pub(crate) use context::{Run, RunOptions};
pub(crate) use machine::{Machine, Memory};
pub(crate) use sink::{Sink, normalized_id};

use crate::error::XsltError;

/// Errors travel boxed: the good case of every operation should fit in registers.
pub(crate) type Failure = Box<XsltError>;
pub(crate) type Outcome<T> = Result<T, Failure>;
