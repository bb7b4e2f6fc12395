//! Native connectors that need no transport of their own: one folder or file each, and the list. An element
//! `<NAME.OPERATION>` is compiled by the connector of that name, with or without its archive; a local entry with
//! `<NAME.init>` is a connection of it. Each connector has a page in `docs/connectors/`, which is its test.

mod csv;
mod http;
mod utility;

use penstock_compile::ConnectorKind;

/// The native connectors of this crate.
pub const CONNECTORS: &[ConnectorKind] = &[csv::KIND, http::KIND, utility::KIND];
