//! `url-mapping` of API resources: `/orders`, `/orders/*`, `*.json`.

/// Which of the mappings fits best: one that is the path, else the one with the most segments in front of its `*`,
/// else the one with the path's extension. Among equals the first wins.
pub(super) fn find<'m>(mappings: impl Iterator<Item = (usize, &'m str)>, sub_path: &str) -> Option<usize> {
    let mut found = None;
    for (index, mapping) in mappings {
        let Some(rank) = rank(mapping, sub_path) else { continue };
        if found.is_none_or(|(best, _)| rank > best) {
            found = Some((rank, index));
        }
    }
    found.map(|(_, index)| index)
}

fn rank<'p>(mapping: &str, sub_path: &'p str) -> Option<usize> {
    let without_query = |path: &'p str| path.split_once('?').map_or(path, |(path, _)| path);
    if let Some(inner) = mapping.strip_prefix('/').and_then(|mapping| mapping.strip_suffix('*')) {
        let Some(inner) = inner.strip_suffix('/') else {
            // `/*` is as good as one segment.
            return inner.is_empty().then_some(1);
        };
        let path = without_query(sub_path.strip_prefix('/').unwrap_or(sub_path));
        let segments = inner.split('/').count();
        return inner.split('/').eq(path.split('/').take(segments)).then_some(segments);
    }
    if let Some(extension) = mapping.strip_prefix('*').filter(|extension| extension.starts_with('.')) {
        return without_query(sub_path).ends_with(extension).then_some(0);
    }
    let mapping = if mapping.len() > 1 { mapping.strip_suffix('/').unwrap_or(mapping) } else { mapping };
    let path = if sub_path == "/" { sub_path } else { sub_path.trim_end_matches('/') };
    let path = without_query(path);
    let path = if path.is_empty() { "/" } else { path };
    (mapping == path).then_some(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_mapping_wins() {
        let mappings = ["/*", "*.json", "/orders/*", "/orders/open/*", "/orders", "/done/"];
        for (path, expected) in [
            ("/orders", Some(4)),
            ("/orders/", Some(4)),
            ("/orders?a=1", Some(4)),
            ("/orders/open/7?a=1", Some(3)),
            ("/orders/open", Some(3)),
            // `/*` stands first and is as good.
            ("/orders/7", Some(0)),
            ("/done", Some(5)),
            ("/z.json?a", Some(0)),
            ("?a=1", Some(0)),
        ] {
            assert_eq!(find(mappings.into_iter().enumerate(), path), expected, "{path}");
        }
        assert_eq!(find(["*.json", "/x"].into_iter().enumerate(), "/z.json?a"), Some(0));
        assert_eq!(find(["/"].into_iter().enumerate(), "?a=1"), Some(0));
        assert_eq!(find(["/x"].into_iter().enumerate(), "/xy"), None);
    }
}
