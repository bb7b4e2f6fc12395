//! Mediators that run foreign code: `<script>` (JavaScript), `<class>` (WebAssembly, and native twins of known Java
//! classes) and `<datamapper>` (JavaScript that a tool generated).
//!
//! They are apart from `mediators` because the two engines, QuickJS and wasmi, take as long to build as all other
//! mediators together. The crate knows no socket and no file.
//!
//! Start reading at [`MEDIATORS`], then `script/mod.rs`.

mod class;
mod datamapper;
mod script;

use penstock_compile::MediatorKind;

/// The mediators of this crate.
pub const MEDIATORS: &[MediatorKind] = &[class::KIND, datamapper::KIND, script::KIND];
