//! The binary: command line, files, environment, wiring, reload, admin port.
fn main() {}
