//! XML for messages: pull reader, arena tree with namespaces and positions, serializer, limits.
