//! The mediators, handlers and artifact kinds that a program is compiled with; the binary puts the list together.

use std::sync::Arc;

use penstock_engine::{Mediator, Place, Resource};

use crate::{
    ArtifactKind, ArtifactStatus, Compiler, Element, InboundKind, Input, ListenerKind, TransportKind, artifact,
};

/// A kind of mediator: one file of the `mediators` crate.
pub struct MediatorKind {
    /// The element's local name.
    pub name: &'static str,
    /// Compiles an element. `None` after an error was reported.
    pub compile: fn(&Element<'_>, &mut Compiler<'_>) -> Option<Box<dyn Mediator>>,
}

/// An API handler of Micro Integrator, by its class.
pub struct HandlerKind {
    /// The Java class artifacts name.
    pub class: &'static str,
    /// Compiles a `<handler>`. `None` after an error was reported.
    pub compile: fn(&Element<'_>, &mut Compiler<'_>) -> Option<Box<dyn Mediator>>,
}

/// A connector that runs natively, whether its archive is there or not.
pub struct ConnectorKind {
    /// What its elements begin with: `http` of `<http.get>`.
    pub name: &'static str,
    /// Its operations, `init` among them where it has connections.
    pub operations: &'static [&'static str],
    /// Compiles an operation. `None` after an error was reported.
    pub compile: fn(&Element<'_>, &mut Compiler<'_>) -> Option<Box<dyn Mediator>>,
    /// Compiles the `<….init>` of a local entry into [`Compiler::connections`].
    pub connection: fn(&str, &Element<'_>, &mut Compiler<'_>),
}

/// Classes of Micro Integrator that a [`Front`] has written again, for the mediators of its own policies.
pub trait Classes {
    /// Compiles a `<class>`: `None` when the class is not one of them, `Some(None)` after an error was reported.
    fn compile(&self, name: &str, el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Option<Box<dyn Mediator>>>;
}

/// Compiles artifacts that are not Synapse XML, such as API projects, into the same program.
pub trait Front {
    /// Takes the inputs of [`crate::InputKind::Api`] and says what became of each project.
    fn compile(&self, inputs: &[Input], cx: &mut Compiler<'_>) -> Vec<ArtifactStatus>;
}

/// What enforces the security policy of a proxy service.
pub struct Secured {
    /// Checks a request before the proxy's sequences run.
    pub gate: Box<dyn Mediator>,
    /// Secures the response before it leaves, where the policy wants that.
    pub seal: Option<Box<dyn Mediator>>,
    /// The service is not offered over plain HTTP.
    pub needs_tls: bool,
}

/// All kinds, and the elements that are known and not built yet.
pub struct Registry {
    /// The mediators, a list for each crate that has some.
    pub mediators: &'static [&'static [MediatorKind]],
    /// Artifact kinds beside those of this crate, a list for each crate that has some.
    pub artifacts: &'static [&'static [ArtifactKind]],
    /// The transports.
    pub transports: &'static [TransportKind],
    /// The API handlers.
    pub handlers: &'static [HandlerKind],
    /// The connectors that run natively, beside those of transports.
    pub connectors: &'static [ConnectorKind],
    /// Compiles the security policy of a proxy service. `None` after a problem was reported.
    pub security: fn(&Arc<Resource>, &Place, &mut Compiler<'_>) -> Option<Secured>,
    /// Elements that exist in Micro Integrator.
    pub known: &'static [&'static str],
    /// Elements of Micro Integrator that are not meant to run here.
    pub unsupported: &'static [Unsupported],
}

/// An element of Micro Integrator that does not run here.
pub struct Unsupported {
    /// Its local name.
    pub name: &'static str,
    /// What becomes of a configuration that has it.
    pub effect: Effect,
    /// What it does in Micro Integrator, as a sentence after its name.
    pub what: &'static str,
    /// What to do in place of it.
    pub instead: &'static str,
}

/// What becomes of a configuration with an element that does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It is not served: without the element it would do something else.
    Refused,
    /// It is served without the element, which changes nothing a client could see.
    LeftOut,
}

impl Registry {
    /// The kind of an element.
    pub fn mediator(&self, name: &str) -> Option<&'static MediatorKind> {
        self.mediators.iter().copied().flatten().find(|kind| kind.name == name)
    }

    /// The artifact kind of a root element.
    pub fn artifact(&self, element: &str) -> Option<&'static ArtifactKind> {
        self.artifact_kinds().find(|kind| kind.element == element)
    }

    /// All artifact kinds.
    pub fn artifact_kinds(&self) -> impl Iterator<Item = &'static ArtifactKind> {
        std::iter::once(&artifact::KINDS).chain(self.artifacts).copied().flatten()
    }

    /// The protocols of inbound endpoints.
    pub fn inbound(&self) -> impl Iterator<Item = &'static InboundKind> + Clone {
        self.transports.iter().flat_map(|transport| transport.inbound)
    }

    /// What proxy services listen on, beside HTTP.
    pub fn listeners(&self) -> impl Iterator<Item = &'static ListenerKind> {
        self.transports.iter().flat_map(|transport| transport.listeners)
    }

    /// The connectors that run natively.
    pub fn connectors(&self) -> impl Iterator<Item = &'static ConnectorKind> {
        self.connectors.iter().chain(self.transports.iter().flat_map(|transport| transport.connectors))
    }

    /// The native connector of that name.
    pub fn connector(&self, name: &str) -> Option<&'static ConnectorKind> {
        self.connectors().find(|kind| kind.name == name)
    }

    /// Whether Micro Integrator has that element.
    pub fn is_known_element(&self, name: &str) -> bool {
        self.known.contains(&name)
    }

    /// What there is to say about an element that does not run.
    pub fn unsupported(&self, name: &str) -> Option<&'static Unsupported> {
        self.unsupported.iter().find(|element| element.name == name)
    }

    /// Names of all kinds.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.mediators.iter().copied().flatten().map(|kind| kind.name)
    }
}
