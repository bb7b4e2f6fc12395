//! GraphQL APIs: the operations of a query decide the required credentials.
//!
//! Such an API has one address. Its operations are what a query can ask for, and a query may ask for several at once:
//! credentials are needed when one of them needs any, the token must have a scope of each, and the plan of each counts.
//! So a query is read before it is known who calls, as in API Manager: held against the schema (`QUERY`), and once the
//! caller's rights are known, against scopes and plans (`RIGHTS`). What is sent on are the bytes as they came.
//!
//! Subscriptions use a connection: its handshake passes the same policies, and what is requested
//! on it the same questions (`socket.rs`).
//!
//! Start reading at [`Definition`] and [`QuerySummary`], then `request.rs` (where a request carries its query), `rights.rs` and
//! `socket.rs`.

mod call;
mod config;
mod definition;
mod envelope;
mod request;
mod rights;
mod socket;

use std::rc::Rc;
use std::sync::Arc;

use penstock_catalog::{Api, Operation};
use penstock_compile::Compiler;
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs};
use penstock_graphql::{Checked, OperationKind, Query, Refused};

use self::request::Sent;
use crate::error::{GatewayError, codes};
use crate::policy::{ApiKinds, Phase, PolicyKind};
use crate::{CallContext, ErrorStyle, Gateway, GatewayConfig, Site, client_request};

pub(crate) use self::call::{GraphQlCall, QuerySummary};
pub use self::config::GraphQlConfig;
pub use self::definition::Definition;
pub(crate) use self::envelope::asked;
pub use self::rights::KIND as RIGHTS;
pub(crate) use self::socket::gate;

/// The kind that reads queries.
pub const QUERY: PolicyKind = PolicyKind {
    name: "graphql",
    applies_to: ApiKinds::GRAPHQL.and(ApiKinds::GRAPHQL_SOCKET),
    phase: Phase::Admission,
    request: Some(compile),
    response: None,
};

/// The response to a subscription over HTTP.
const SUBSCRIPTIONS: &str = "Subscriptions are available over WebSocket";

/// The route of such an API: one address, with either method.
pub(crate) fn addresses(api: &Api) -> Vec<Arc<Operation>> {
    let secured = api.operations.iter().any(|operation| operation.secured);
    let address = |method: &str| {
        let (path, at) = ("/".into(), api.at.clone());
        Arc::new(Operation { method: method.into(), path, secured, at, ..Operation::default() })
    };
    vec![address("POST"), address("GET")]
}

/// Runs a policy only for queries that ask for something secured.
pub(crate) struct WhenSecured(pub Box<dyn Mediator>);

impl Mediator for WhenSecured {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let secured = CallContext::of(exchange)?.graphql.query.borrow().as_ref().is_none_or(|asked| asked.secured);
        if secured { self.0.run(exchange) } else { Ok(Flow::Next) }
    }

    fn needs(&self) -> Needs {
        self.0.needs()
    }
}

/// Runs a policy only for requests: what it does to one means nothing to a connection.
pub(crate) struct UnlessSocket(pub Box<dyn Mediator>);

impl Mediator for UnlessSocket {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let is_socket = CallContext::of(exchange)?.opens_socket.get();
        if is_socket { Ok(Flow::Next) } else { self.0.run(exchange) }
    }

    fn needs(&self) -> Needs {
        self.0.needs()
    }
}

/// Reads the query of a request.
struct ReadQuery {
    definition: Arc<Definition>,
    config: Arc<GatewayConfig>,
    by_post: bool,
}

fn compile(gateway: &Gateway, site: &Arc<Site>, _cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let definition = site.graphql.clone()?;
    let by_post = &*site.operation.method == "POST";
    Some(Box::new(ReadQuery { definition, config: gateway.config.clone(), by_post }))
}

impl Mediator for ReadQuery {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let context = CallContext::of(exchange)?;
        if context.opens_socket.get() {
            *context.graphql.query.borrow_mut() = Some(Rc::new(self.handshake(exchange)?));
            return Ok(Flow::Next);
        }
        let sent = match self.by_post {
            true => Sent::by_post(exchange),
            false => Sent::by_get(exchange),
        };
        let sent = sent.map_err(|problem| invalid(problem.to_owned()))?;
        let query =
            Query { text: &sent.query, operation: sent.operation.as_deref(), variables: sent.variables.as_ref() };
        let checked = query.check(&self.definition.schema).map_err(|refused| self.refusal(refused))?;
        if !self.by_post && checked.kind == OperationKind::Mutation {
            return Err(invalid("Mutations are sent with POST".to_owned()).into());
        }
        let asked = self.asked(&checked)?;
        exchange.explain("query", || {
            let Checked { kind, fields, depth, complexity, .. } = &checked;
            format!("{} of {}, depth {depth}, complexity {complexity}", kind.word(), fields.join(", "))
        });
        *context.graphql.query.borrow_mut() = Some(Rc::new(asked));
        // The API has one address, with a slash at its end or without; so has the backend.
        let rest = client_request::below_now(exchange, &context.site).trim_start_matches('/').to_owned();
        exchange.message.url_postfix = Some(rest.into());
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        if self.by_post { Needs::Whole } else { Needs::Nothing }
    }
}

impl ReadQuery {
    /// What the handshake of a connection asks for: nothing yet; any subscription may follow.
    fn handshake(&self, exchange: &Exchange) -> Result<QuerySummary, GatewayError> {
        // A backend that does not speak WebSocket would answer it.
        if request::names_query(exchange) {
            return Err(invalid("A query is sent when the connection is open".to_owned()));
        }
        let subscriptions = &self.definition.operations[OperationKind::Subscription as usize];
        if subscriptions.is_empty() {
            return Err(invalid("The API has no subscriptions".to_owned()));
        }
        let secured = subscriptions.values().any(|index| self.definition.asks_for_credentials(*index));
        Ok(QuerySummary { operations: Vec::new(), secured, depth: 0, complexity: 0 })
    }

    fn asked(&self, checked: &Checked<'_>) -> Result<QuerySummary, GatewayError> {
        if checked.kind == OperationKind::Subscription {
            return Err(invalid(SUBSCRIPTIONS.to_owned()));
        }
        if checked.introspects && !self.config.graphql.introspection {
            return Err(invalid("Questions about the schema are not answered".to_owned()));
        }
        let operations = self.definition.operations_of(checked).map_err(|field| self.not_served(field))?;
        // Introspection alone requires the credentials of secured operations.
        let secured = match operations.is_empty() {
            true => self.definition.secured.contains(&true),
            false => operations.iter().any(|index| self.definition.asks_for_credentials(*index)),
        };
        Ok(QuerySummary { operations, secured, depth: checked.depth, complexity: checked.complexity })
    }

    /// In the schema, and not among the API's operations.
    fn not_served(&self, field: &str) -> GatewayError {
        let code = match self.config.error_style {
            ErrorStyle::ChoreoConnect => codes::NOT_FOUND,
            ErrorStyle::ApiManager => codes::NO_MATCHING_RESOURCE,
        };
        GatewayError::new(code).because(&format!("the API has no operation `{field}`"))
    }

    fn refusal(&self, refused: Refused) -> GatewayError {
        match refused {
            Refused::TooDeep(deepest) => rights::too_deep(None, deepest as u64),
            Refused::Syntax(why) if self.config.compat => invalid("Invalid syntax".to_owned()).because(&why),
            Refused::Invalid(why) if self.config.compat => invalid("Payload is invalid".to_owned()).because(&why),
            Refused::Syntax(why) => invalid(format!("Invalid syntax: {why}")),
            Refused::Invalid(why) => invalid(why),
        }
    }
}

fn invalid(why: String) -> GatewayError {
    GatewayError::described(codes::INVALID_QUERY, why.clone()).because(&why)
}
