//! What is read from the operating system while a load runs: the target's processes and the machine.
pub mod machine;
pub mod process;
pub mod watch;
