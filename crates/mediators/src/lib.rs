//! One file per mediator, and the list.
