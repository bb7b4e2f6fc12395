//! API handlers: the Java classes of Micro Integrator that artifacts name, by what they do.

mod basic_auth;
mod cors;

use penstock_compile::HandlerKind;

/// Every handler there is.
pub const HANDLERS: &[HandlerKind] = &[
    HandlerKind { class: "org.wso2.micro.integrator.security.handler.CORSRequestHandler", compile: cors::compile },
    HandlerKind { class: "org.wso2.carbon.integrator.core.handler.CORSRequestHandler", compile: cors::compile },
    HandlerKind {
        class: "org.wso2.micro.integrator.security.handler.RESTBasicAuthHandler",
        compile: basic_auth::compile,
    },
    HandlerKind { class: "org.wso2.rest.BasicAuthHandler", compile: basic_auth::compile },
];
