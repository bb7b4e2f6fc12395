//! What an artifact kind is: how it is named, declared, built and withdrawn.

use std::fmt;

use crate::{Compiler, Element};

/// A kind of artifact, found by its root element. All artifacts are declared before the first one is built, so that they
/// may refer to each other in any order.
pub struct ArtifactKind {
    /// The local name of the root element; also the kind that reports and metrics show.
    pub element: &'static str,
    /// Where its name stands.
    pub name: ArtifactName,
    /// Reserves its name, and reads what other artifacts need to compile.
    pub declare: fn(&mut Compiler<'_>, &str, &Element<'_>),
    /// Compiles it into the program; mistakes are reported to the compiler.
    pub build: fn(&mut Compiler<'_>, &str, &Element<'_>),
    /// Called after `build` reported an error: replaces by a fault what other artifacts refer to.
    pub withdraw: fn(&mut Compiler<'_>, &str, &Element<'_>),
}

/// Where the name of an artifact stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArtifactName {
    /// In an attribute of the root element.
    Attribute(&'static str),
    /// In a child element.
    Child(&'static str),
    /// It has this one.
    Fixed(&'static str),
}

impl ArtifactName {
    /// The name of an artifact.
    pub(super) fn read(self, root: &Element<'_>) -> Option<String> {
        match self {
            ArtifactName::Attribute(name) => root.attribute(name).map(str::to_owned),
            ArtifactName::Child(name) => root.child_text(name),
            ArtifactName::Fixed(name) => Some(name.to_owned()),
        }
    }
}

impl fmt::Display for ArtifactName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArtifactName::Attribute(name) => write!(out, "the attribute `{name}`"),
            ArtifactName::Child(name) => write!(out, "the child element <{name}>"),
            ArtifactName::Fixed(name) => write!(out, "the name `{name}`"),
        }
    }
}

/// For kinds that no other artifact refers to by name.
pub fn declare_nothing(_cx: &mut Compiler<'_>, _name: &str, _el: &Element<'_>) {}

/// For kinds whose `build` leaves nothing behind when it fails.
pub fn withdraw_nothing(_cx: &mut Compiler<'_>, _name: &str, _el: &Element<'_>) {}
