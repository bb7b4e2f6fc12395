//! The engine: programs, mediators, the one run loop, ports and drain.
