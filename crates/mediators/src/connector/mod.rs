//! Native connectors: one folder each, and the list. An element `<NAME.OPERATION>` is compiled by the connector of that
//! name, with or without its archive; a local entry with `<NAME.init>` is a connection of it. Each connector has a page
//! in `docs/connectors/`, which is its test.

mod http;

use penstock_compile::ConnectorKind;

/// Every native connector.
pub const CONNECTORS: &[ConnectorKind] = &[http::KIND];
