//! The compiler: configuration text becomes a [`Program`](penstock_engine::Program), and everything
//! there is to say about it becomes [`Diagnostic`]s, all at once.
//!
//! It knows no mediator by name (they come in a [`Registry`]), no file system and no clock: it gets
//! [`Input`]s and gives a [`Compilation`].
//!
//! Start reading at [`compile`], then [`Element`] (the cursor that remembers what was read) and
//! [`Expression`] (attribute values bound to an exchange).

pub mod artifact;
mod compiled;
mod compiler;
pub mod connector;
mod diagnostic;
mod element;
pub mod endpoint;
pub mod expression;
mod fragment;
mod guard;
pub mod inbound;
mod missing;
mod operation;
mod parameter;
mod parameters;
mod references;
mod registry;
mod transport;

pub use artifact::{
    ApiFiles, ArtifactKind, ArtifactName, ArtifactStatus, Compilation, FileSource, Input, InputKind, compile,
    compile_with, declare_nothing, is_root_element, withdraw_nothing,
};
pub use compiled::CompiledArtifacts;
pub use compiler::{CompileOptions, Compiler, MessageKeys, NameKind, is_served_unprotected, unprotected};
pub use diagnostic::{Diagnostic, Severity, suggestion};
pub use element::{Element, SYNAPSE, SourceDocument};
pub use expression::{Expression, InlineText, Text};
pub use guard::guarded;
pub use inbound::{Feed, InboundEndpoint, InboundKind, ListenerKind, ProxyListener};
pub use missing::AlwaysFaults;
pub use parameter::Parameter;
pub use parameters::{Parameters, content_hash};
pub use registry::{Classes, ConnectorKind, Effect, Front, HandlerKind, MediatorKind, Registry, Secured, Unsupported};
pub use transport::{MakeSenders, NamedConnections, OpenQueue, OpenStore, StoreKind, TransportKind};
