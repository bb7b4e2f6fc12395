//! Places in files, as diagnostics name them.

use penstock_engine::Place;

/// A catalog's place as the engine's.
pub(crate) fn place(at: &penstock_catalog::At) -> Place {
    Place { file: at.file.clone(), line: at.line, column: at.column }
}
