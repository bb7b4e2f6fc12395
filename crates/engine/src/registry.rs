//! Resources of the registry that flows write: kept in memory for all cores, and by a [`RegistryKeeper`] for the next start.
//!
//! What was written stands before what artifacts define. Keys lead below the registry and nowhere else.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use penstock_xml::{Document, ParseOptions};

use crate::ports::LocalFuture;
use crate::{Place, Resource, Resources};

/// A resource is configuration or state that people read, not a store of messages.
const VALUE_BYTES_MAX: usize = 1 << 20;

/// Resources that flows made. A key made of what clients send must not fill memory and disk.
const ENTRIES_MAX: usize = 10_000;

/// Properties of one resource: each write goes through all of them, and writes their file anew.
const PROPERTIES_MAX: usize = 1_000;

/// What all of them hold together.
const TOTAL_BYTES_MAX: usize = 64 << 20;

/// Folders inside folders.
const SEGMENTS_MAX: usize = 32;

/// Names of files are at most 255 bytes long, and there are endings.
const SEGMENT_BYTES_MAX: usize = 200;

/// How keys begin, what they begin with here, and the folder of Micro Integrator that they lead to.
const ROOTS: [(&str, &str, &str); 8] = [
    ("gov:", "gov:", "governance"),
    ("governance:", "gov:", "governance"),
    ("conf:", "conf:", "config"),
    ("config:", "conf:", "config"),
    ("local:", "local:", "local"),
    ("/_system/governance/", "gov:", "governance"),
    ("/_system/config/", "conf:", "config"),
    ("/_system/local/", "local:", "local"),
];

/// Where a resource is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryPath {
    /// `conf:folder/name`.
    pub key: Arc<str>,
    /// `config/folder/name`. Invariant: every part is a plain name, so that it stays below the folder it is joined to.
    pub file: String,
}

impl RegistryPath {
    /// Reads a key as artifacts write it. Without a beginning it is one of `gov:`, as in Micro Integrator.
    pub fn parse(key: &str) -> Result<RegistryPath, String> {
        let root = ROOTS.iter().find_map(|(start, scheme, folder)| Some((key.strip_prefix(start)?, scheme, folder)));
        let (path, scheme, folder) = root.unwrap_or((key, &"gov:", &"governance"));
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let is_plain = |part: &&str| {
            !part.starts_with('.')
                && part.len() <= SEGMENT_BYTES_MAX
                && !part.contains(['\\', ':', '@'])
                && !part.contains(char::is_control)
        };
        if parts.is_empty() || parts.len() > SEGMENTS_MAX || !parts.iter().all(is_plain) {
            return Err(format!("`{key}` is not a key of a resource that can be written, such as `conf:folder/name`"));
        }
        let path = parts.join("/");
        Ok(RegistryPath { key: format!("{scheme}{path}").into(), file: format!("{folder}/{path}") })
    }
}

/// Keeps resources for the next start.
pub trait RegistryKeeper: Send + Sync {
    /// Stores one; resolves when it is stored. Requests are stored in order.
    fn keep(&self, path: RegistryPath, resource: Arc<Resource>) -> LocalFuture<'static, Result<(), String>>;

    /// Removes one that was kept, in the same order.
    fn remove(&self, path: RegistryPath) -> LocalFuture<'static, Result<(), String>>;
}

/// What flows wrote. One for the process.
#[derive(Default)]
pub struct Registry {
    written: RwLock<Written>,
    /// Whether anything was: most configurations write nothing, and ask no lock.
    any: AtomicBool,
    keeper: Option<Box<dyn RegistryKeeper>>,
}

#[derive(Default)]
struct Written {
    entries: HashMap<Arc<str>, Arc<Resource>>,
    bytes: usize,
}

impl fmt::Debug for Registry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Registry")
    }
}

impl Registry {
    /// With what earlier runs wrote.
    pub fn new(earlier: Vec<(RegistryPath, Resource)>, keeper: Box<dyn RegistryKeeper>) -> Registry {
        let registry = Registry { keeper: Some(keeper), ..Registry::default() };
        let mut written = registry.lock();
        for (path, resource) in earlier {
            written.bytes += bytes_of(&resource);
            written.entries.insert(path.key, Arc::new(resource));
        }
        registry.any.store(!written.entries.is_empty(), Ordering::Release);
        drop(written);
        registry
    }

    fn lock(&self) -> RwLockWriteGuard<'_, Written> {
        self.written.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// A resource that was written.
    pub fn get(&self, key: &str) -> Option<Arc<Resource>> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let path = RegistryPath::parse(key).ok()?;
        self.written.read().unwrap_or_else(PoisonError::into_inner).entries.get(&path.key).cloned()
    }

    /// Everything that was written, by its key.
    pub fn entries(&self) -> Vec<(Arc<str>, Arc<Resource>)> {
        let written = self.written.read().unwrap_or_else(PoisonError::into_inner);
        written.entries.iter().map(|(key, resource)| (key.clone(), resource.clone())).collect()
    }

    /// Removes a resource that was written; `None` when none was. What artifacts define under that key counts again.
    pub fn remove(&self, key: &str) -> Option<LocalFuture<'static, Result<(), String>>> {
        let path = RegistryPath::parse(key).ok()?;
        let mut written = self.lock();
        let removed = written.entries.remove(&path.key)?;
        written.bytes -= bytes_of(&removed);
        Some(match &self.keeper {
            Some(keeper) => keeper.remove(path),
            None => Box::pin(std::future::ready(Ok(()))),
        })
    }

    /// Writes a resource whole: content, media type, no properties beyond those it has.
    pub fn put_as(
        &self,
        key: &str,
        value: &str,
        media_type: &str,
        defined: &Resources,
    ) -> Result<LocalFuture<'static, Result<(), String>>, String> {
        let stored = self.put(key, value, defined)?;
        let path = RegistryPath::parse(key)?;
        let mut written = self.lock();
        if let Some(resource) = written.entries.get_mut(&path.key) {
            let Resource { bytes, is_xml, at, properties, .. } = &**resource;
            let media_type = Some(media_type.into());
            let (bytes, properties) = (bytes.clone(), properties.clone());
            *resource = Arc::new(Resource { bytes, media_type, is_xml: *is_xml, at: at.clone(), properties });
        }
        Ok(stored)
    }

    /// Writes the content of a resource (`conf:folder/name`), or one of its properties (`conf:folder/name@property`); the
    /// rest of it stays as it was, or as `defined` has it. Every core sees it at once; the future resolves when it is kept.
    pub fn put(
        &self,
        name: &str,
        value: &str,
        defined: &Resources,
    ) -> Result<LocalFuture<'static, Result<(), String>>, String> {
        let (key, property) = match name.rsplit_once('@') {
            Some((key, property)) => (key, Some(property).filter(|property| !property.is_empty())),
            None => (name, None),
        };
        let path = RegistryPath::parse(key)?;
        if value.len() + property.map_or(0, str::len) > VALUE_BYTES_MAX {
            return Err(format!("a value of the registry has at most {VALUE_BYTES_MAX} bytes, not {}", value.len()));
        }
        let is_xml = property.is_none() && is_xml(value);
        let mut written = self.lock();
        let before = written.entries.get(&path.key).cloned();
        let base = before.clone().or_else(|| defined.get(&path.key).cloned());
        let resource = Arc::new(changed(base.as_deref(), &path, property, value, is_xml));
        if property.is_some() && resource.properties.len() > PROPERTIES_MAX {
            return Err(format!("a resource of the registry has at most {PROPERTIES_MAX} properties"));
        }
        let bytes = written.bytes - before.as_deref().map_or(0, bytes_of) + bytes_of(&resource);
        let is_full = bytes > TOTAL_BYTES_MAX || (before.is_none() && written.entries.len() >= ENTRIES_MAX);
        if is_full {
            return Err(format!(
                "flows wrote {} resources of {} bytes to the registry, which is all there is room for",
                written.entries.len(),
                written.bytes
            ));
        }
        written.bytes = bytes;
        written.entries.insert(path.key.clone(), resource.clone());
        self.any.store(true, Ordering::Release);
        // Under the lock, so that files are written in the order of the values.
        Ok(match &self.keeper {
            Some(keeper) => keeper.keep(path, resource),
            None => Box::pin(std::future::ready(Ok(()))),
        })
    }
}

/// A resource with another content, or another value of a property.
fn changed(
    base: Option<&Resource>,
    path: &RegistryPath,
    property: Option<&str>,
    value: &str,
    is_xml: bool,
) -> Resource {
    let mut properties = base.map(|base| base.properties.clone()).unwrap_or_default();
    let (bytes, is_xml, media_type) = match property {
        Some(property) => {
            properties.retain(|(name, _)| **name != *property);
            properties.push((property.into(), value.into()));
            match base {
                Some(base) => (base.bytes.clone(), base.is_xml, base.media_type.clone()),
                None => (bytes::Bytes::new(), false, None),
            }
        }
        None => (bytes::Bytes::copy_from_slice(value.as_bytes()), is_xml, Some("text/plain".into())),
    };
    let at = base.map_or_else(|| Place { file: path.key.clone(), line: 1, column: 1 }, |base| base.at.clone());
    Resource { bytes, media_type, is_xml, at, properties }
}

/// Micro Integrator reads what it can as XML.
fn is_xml(value: &str) -> bool {
    value.trim_start().starts_with('<') && Document::parse(value.to_owned(), &ParseOptions::default()).is_ok()
}

fn bytes_of(resource: &Resource) -> usize {
    let properties: usize = resource.properties.iter().map(|(name, value)| name.len() + value.len()).sum();
    resource.bytes.len() + properties
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_lead_below_the_registry() {
        for (key, expected) in [
            ("conf:/a/b.txt", Some(("conf:a/b.txt", "config/a/b.txt"))),
            ("governance:a", Some(("gov:a", "governance/a"))),
            ("/_system/config/a//b/", Some(("conf:a/b", "config/a/b"))),
            ("local:a", Some(("local:a", "local/a"))),
            ("a/b", Some(("gov:a/b", "governance/a/b"))),
            ("conf:", None),
            ("conf:..", None),
            ("conf:a/../../b", None),
            ("gov:.hidden", None),
            ("gov:a\\..\\b", None),
            ("gov:a\nb", None),
            ("gov:a\0", None),
            ("file:/etc/passwd", None),
            ("/etc/passwd", Some(("gov:etc/passwd", "governance/etc/passwd"))),
        ] {
            let path = RegistryPath::parse(key).ok();
            assert_eq!(path.as_ref().map(|path| (&*path.key, &*path.file)), expected, "{key:?}");
        }
        assert!(RegistryPath::parse(&format!("gov:{}", "a/".repeat(SEGMENTS_MAX + 1))).is_err());
        assert!(RegistryPath::parse(&format!("gov:{}", "a".repeat(SEGMENT_BYTES_MAX + 1))).is_err());
    }

    fn text(registry: &Registry, key: &str) -> Option<String> {
        registry.get(key).map(|resource| resource.text().into_owned())
    }

    #[test]
    fn content_and_properties_are_written_one_without_the_other() {
        let (registry, mut defined) = (Registry::default(), Resources::default());
        let at = Place { file: "x".into(), line: 1, column: 1 };
        let properties = vec![("a".into(), "1".into())];
        defined.insert("conf:d", Resource { bytes: "defined".into(), media_type: None, is_xml: false, at, properties });
        assert_eq!(text(&registry, "conf:d"), None);
        drop(registry.put("conf:/d@b", "2", &defined).unwrap());
        assert_eq!(text(&registry, "conf:d").as_deref(), Some("defined"));
        assert_eq!(registry.get("conf:d").unwrap().properties.len(), 2);
        drop(registry.put("conf:d", "<new/>", &defined).unwrap());
        drop(registry.put("conf:d@b", "3", &defined).unwrap());
        let resource = registry.get("config:/d").unwrap();
        assert_eq!((&*resource.bytes, resource.is_xml), (b"<new/>".as_slice(), true));
        assert_eq!(resource.properties, [("a".into(), "1".into()), ("b".into(), Arc::<str>::from("3"))]);
    }

    #[test]
    fn room_is_bounded() {
        let (registry, defined) = (Registry::default(), Resources::default());
        let put = |name: &str, value: &str| registry.put(name, value, &defined).map(drop);
        assert!(put("gov:a", &"x".repeat(VALUE_BYTES_MAX + 1)).is_err());
        let large = "x".repeat(VALUE_BYTES_MAX);
        for number in 0..TOTAL_BYTES_MAX / VALUE_BYTES_MAX {
            put(&format!("gov:{number}"), &large).unwrap();
        }
        assert!(put("gov:more", "x").is_err());
        put("gov:0", "y").unwrap();
        put("gov:more", "x").unwrap();
        for number in 0..ENTRIES_MAX {
            let _ = put(&format!("gov:many/{number}"), "");
        }
        assert_eq!(registry.lock().entries.len(), ENTRIES_MAX);
        assert!(put("gov:one/more", "").is_err());
        assert!(put(&format!("gov:0@{large}"), "x").is_err());
        for number in 0..PROPERTIES_MAX {
            put(&format!("gov:0@{number}"), "").unwrap();
        }
        assert!(put("gov:0@more", "").is_err());
        put("gov:0@7", "x").unwrap();
    }
}
