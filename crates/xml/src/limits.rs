//! How much of everything a document may ask for.

/// Bounds on what one document may cost. Every one of them ends in an error of kind
/// [`Limit`](crate::XmlErrorKind::Limit), never in exhausted memory or a stack overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of source text.
    pub source_bytes_max: usize,
    /// Elements inside one another.
    pub depth_max: usize,
    /// Attributes and namespace declarations of one element.
    pub attributes_max: usize,
    /// Bytes of one name.
    pub name_bytes_max: usize,
    /// Bytes that all expanded entities of one document may add up to.
    pub entity_bytes_max: usize,
    /// Entities inside one another.
    pub entity_depth_max: usize,
    /// Nodes of one tree.
    pub nodes_max: usize,
}

impl Limits {
    /// Limits for untrusted peers.
    pub const DEFAULT: Limits = Limits {
        // Larger than any body a gateway should hold in memory at once; the transports set their own, lower bound.
        source_bytes_max: 256 << 20,
        // Real messages stay below 50. Recursive consumers of the tree (templates, comparisons) still fit a thread's stack.
        depth_max: 2_000,
        // Comparing attributes for duplicates is linear in practice; this bounds the tables it needs.
        attributes_max: 10_000,
        // Longer than any generated name seen, short enough that names cannot carry the payload.
        name_bytes_max: 4_096,
        // Documents with entities are hand-written and small; a "billion laughs" reaches this in milliseconds.
        entity_bytes_max: 8 << 20,
        // Nesting of entities beyond this is a loop or an attack.
        entity_depth_max: 24,
        // An index has 32 bits; 16 bytes each makes this a gibibyte of tree.
        nodes_max: 64 << 20,
    };
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}
