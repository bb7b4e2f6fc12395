//! What the fuzz targets check, free of any fuzzing engine: `fuzz_targets/` hands these functions to libFuzzer, and
//! `src/main.rs` feeds them mutations of the seeds with a stable compiler.
//!
//! A target is a function of bytes that panics when a property does not hold. To add one: a module here, a row in
//! [`TARGETS`], a file in `fuzz_targets/`, a `[[bin]]` in Cargo.toml, seeds in `seeds/`.

pub mod api_project;
pub mod body;
pub mod dataservices;
pub mod freemarker;
pub mod graphql;
pub mod http1;
pub mod http2_frames;
pub mod interceptor;
pub mod jmx;
pub mod json_mapping;
pub mod json_schema;
pub mod jsonpath;
pub mod mail;
pub mod mcp;
pub mod multipart;
pub mod policy_payload;
pub mod policy_template;
pub mod proxy_protocol;
pub mod restapi;
pub mod socket_message;
pub mod stylesheet;
pub mod synapse;
pub mod token;
pub mod websocket;
pub mod websub;
pub mod wssecurity;
pub mod xml;
pub mod xpath_parser;
pub mod xpath_regex;
pub mod xpath_stream;
pub mod xsd;

/// One target.
pub struct Target {
    /// Its name, which is also that of its seed folder.
    pub name: &'static str,
    /// What it checks.
    pub check: fn(&[u8]),
    /// Pieces of text that mutations put in: what random bytes would rarely hit on.
    pub dictionary: &'static [&'static str],
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "api_project", check: api_project::import, dictionary: api_project::DICTIONARY },
    Target { name: "body", check: body::body, dictionary: body::DICTIONARY },
    Target { name: "dataservices", check: dataservices::sources, dictionary: dataservices::DICTIONARY },
    Target { name: "freemarker", check: freemarker::template, dictionary: freemarker::DICTIONARY },
    Target { name: "graphql", check: graphql::graphql, dictionary: graphql::DICTIONARY },
    Target { name: "http1", check: http1::http1, dictionary: http1::DICTIONARY },
    Target { name: "http2_frames", check: http2_frames::frames, dictionary: http2_frames::DICTIONARY },
    Target { name: "interceptor", check: interceptor::reply, dictionary: interceptor::DICTIONARY },
    Target { name: "jmx", check: jmx::plan, dictionary: jmx::DICTIONARY },
    Target { name: "json_mapping", check: json_mapping::mapping, dictionary: json_mapping::DICTIONARY },
    Target { name: "json_schema", check: json_schema::schema, dictionary: json_schema::DICTIONARY },
    Target { name: "jsonpath", check: jsonpath::path, dictionary: jsonpath::DICTIONARY },
    Target { name: "mail", check: mail::mail, dictionary: mail::DICTIONARY },
    Target { name: "mcp", check: mcp::message, dictionary: mcp::DICTIONARY },
    Target { name: "multipart", check: multipart::form, dictionary: multipart::DICTIONARY },
    Target { name: "policy_payload", check: policy_payload::payload, dictionary: policy_payload::DICTIONARY },
    Target { name: "policy_template", check: policy_template::template, dictionary: policy_template::DICTIONARY },
    Target { name: "proxy_protocol", check: proxy_protocol::header, dictionary: proxy_protocol::DICTIONARY },
    Target { name: "restapi", check: restapi::resource, dictionary: restapi::DICTIONARY },
    Target { name: "socket_message", check: socket_message::message, dictionary: socket_message::DICTIONARY },
    Target { name: "stylesheet", check: stylesheet::stylesheet, dictionary: stylesheet::DICTIONARY },
    Target { name: "synapse", check: synapse::expression, dictionary: synapse::DICTIONARY },
    Target { name: "token", check: token::token, dictionary: token::DICTIONARY },
    Target { name: "websocket", check: websocket::frames, dictionary: websocket::DICTIONARY },
    Target { name: "websub", check: websub::hub, dictionary: websub::DICTIONARY },
    Target { name: "xml", check: xml::reader, dictionary: xml::DICTIONARY },
    Target { name: "xpath_parser", check: xpath_parser::parser, dictionary: xpath_parser::DICTIONARY },
    Target { name: "xpath_regex", check: xpath_regex::regex, dictionary: xpath_regex::DICTIONARY },
    Target { name: "xpath_stream", check: xpath_stream::stream, dictionary: xml::DICTIONARY },
    Target { name: "wssecurity", check: wssecurity::header, dictionary: wssecurity::DICTIONARY },
    Target { name: "xsd", check: xsd::schema, dictionary: xsd::DICTIONARY },
];
