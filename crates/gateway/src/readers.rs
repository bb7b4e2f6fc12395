//! The parsers of foreign text as plain functions, for fuzz targets.

use std::sync::Arc;

use bytes::Bytes;
use penstock_message::{Headers, Message};

use crate::gotemplate;
use crate::policy::interceptor::read_reply;
use crate::policy::operation::{class, synapse};
use crate::policy::{graphql, lambda};

/// What an interceptor service's answer makes of a message with these fields: the changed message, or the answer the
/// service gives itself. The error says what in it cannot be used.
pub fn interceptor_reply(reply: &[u8], headers: Headers, compat: bool) -> Result<Message, String> {
    read_reply(reply, headers, compat)
}

/// What a message of MCP says, written again for another server; `None` when it is none.
pub fn mcp_message(bytes: &[u8]) -> Option<Bytes> {
    crate::mcp::rewritten(bytes)
}

/// A message on a connection to a GraphQL API: its id and its query, when it has them; `None` when it is
/// none that can be read in one way only.
pub fn graphql_message(text: &str) -> Option<(Option<String>, Option<String>)> {
    graphql::asked(text)
}

/// Topic and callback of a request to a hub; `None` if it is rejected.
pub fn hub_request(query: &str, form: &str) -> Option<(String, String)> {
    crate::websub::requested(query, form)
}

/// The file of subscriptions, written again; `None` when it is none.
pub fn hub_file(bytes: &[u8]) -> Option<Vec<u8>> {
    crate::websub::rewritten(bytes)
}

/// The file of events, written again as far as it can be read; `None` when it is none.
pub fn hub_journal(bytes: &[u8]) -> Option<Vec<u8>> {
    crate::websub::journal_rewritten(bytes)
}

/// Fills a template of actions (`.gotmpl`).
pub fn action_template(template: &str, values: &[(Arc<str>, Arc<str>)]) -> Result<String, String> {
    gotemplate::render(template, values).map_err(|error| error.to_string())
}

/// Fills a template of a sequence (`.j2`).
pub fn sequence_template(template: &str, values: &[(Arc<str>, Arc<str>)]) -> Result<String, String> {
    synapse::fill(template, values).map_err(|error| error.to_string())
}

/// Whether a JSON body keeps limits that are all this number, and what of an answer of a function reaches the client.
pub fn policy_payload(bytes: &[u8], limit: usize) -> (bool, Option<Message>) {
    let keeps = std::str::from_utf8(bytes).is_ok_and(|text| class::keeps_limits(text, limit));
    (keeps, lambda::client_answer(bytes))
}

/// The file of revoked tokens, written again; `None` when it is none.
pub fn revoked_file(bytes: &[u8]) -> Option<Vec<u8>> {
    penstock_identity::rewritten(bytes)
}
