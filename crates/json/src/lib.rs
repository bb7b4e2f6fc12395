//! JSON: JSONPath in the dialect of the artifacts and RFC 9535, and the mapping between JSON and XML.
