//! Configuration of GraphQL APIs.

/// Limits of GraphQL queries without stricter ones of the API or plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphQlConfig {
    /// Fields inside fields.
    pub depth_max: Option<u64>,
    /// What fields count together.
    pub complexity_max: Option<u64>,
    /// Whether introspection is allowed.
    pub introspection: bool,
}

impl Default for GraphQlConfig {
    fn default() -> GraphQlConfig {
        GraphQlConfig { depth_max: None, complexity_max: None, introspection: true }
    }
}
