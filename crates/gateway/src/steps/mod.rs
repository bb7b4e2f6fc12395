//! Steps of sequences that no API configures: what answers, refuses, and turns faults into responses.

mod answer_error;
mod answer_options;
mod refuse;
mod respond;

pub(crate) use answer_error::AnswerError;
pub(crate) use answer_options::AnswerOptions;
pub(crate) use refuse::Refuse;
pub(crate) use respond::Respond;
