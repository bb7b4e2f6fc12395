//! The engine: compiled programs, the mediators' trait, the one loop that runs them, the ports it
//! reaches the world through.
//!
//! It knows no XML syntax, no mediator and no transport by name.
//!
//! Start reading at [`Fault`] and [`ports`].

mod fault;
pub mod ports;

pub use fault::{Fault, FaultCode, Place, Side, codes};
