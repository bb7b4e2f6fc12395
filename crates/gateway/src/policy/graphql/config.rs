//! Configuration of GraphQL APIs.

/// What GraphQL APIs may be asked when neither they nor the plans of their callers say less.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphQlConfig {
    /// Fields inside fields.
    pub depth_max: Option<u64>,
    /// What fields count together.
    pub complexity_max: Option<u64>,
    /// Whether backends may be asked about their schema.
    pub introspection: bool,
}

impl Default for GraphQlConfig {
    fn default() -> GraphQlConfig {
        GraphQlConfig { depth_max: None, complexity_max: None, introspection: true }
    }
}
