//! The benchmark kit: load generator, echo backend and reports.
