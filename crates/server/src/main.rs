//! The binary: command line, files, environment, wiring, reload, admin port.
//!
//! It is the only crate that knows all others, the file system and the process. What a request does is the engine's
//! business, what an artifact means the compiler's.
//!
//! Start reading at `command/` (what can be typed), then `load/` (paths to inputs), `build.rs` (inputs to a program) and
//! `serve/` (threads, ports, reload, the end); `adapter/` deploys APIs; `management/` is the management API of Micro Integrator; `suite/` runs unit tests.

mod adapter;
mod allocator;
mod build;
mod command;
mod compare;
mod config;
mod control;
mod databases;
mod load;
mod log;
mod management;
mod migration;
mod registry;
mod rest;
mod serve;
mod suite;

#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

fn main() -> std::process::ExitCode {
    command::main()
}
