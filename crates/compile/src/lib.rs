//! The compiler: configuration text to programs or all diagnostics.
