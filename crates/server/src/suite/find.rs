//! Where the files of a suite are.
//!
//! A suite names them by their path in the project it was written in, which is rarely where it runs: the project may
//! lie elsewhere, or the artifacts may have been collected into other folders. So a path is tried below every folder
//! above the suite first, and then the file's name is looked for around the suite and in the folders that were given.

use std::path::{Component, Path, PathBuf};

/// Folders above a suite that are looked at. Projects are not nested deeper.
const ANCESTORS_MAX: usize = 12;

/// Files that are looked at for one suite.
const FILES_MAX: usize = 50_000;

/// Folders inside folders; deeper is a loop of links.
const DEPTH_MAX: usize = 12;

/// Finds files for one suite.
pub struct Finder {
    /// The folders above the suite, nearest first.
    ancestors: Vec<PathBuf>,
    /// Every file in the folders that were given, then in those around the suite.
    files: Vec<PathBuf>,
}

impl Finder {
    /// Looks around the suite and in `folders`.
    pub fn new(suite: &Path, folders: &[PathBuf]) -> Finder {
        let full = std::fs::canonicalize(suite).unwrap_or_else(|_| suite.to_owned());
        // Shorter names in reports: what is below the working directory is named from there.
        let here = std::env::current_dir().unwrap_or_default();
        let short = |path: &Path| path.strip_prefix(&here).unwrap_or(path).to_owned();
        let ancestors: Vec<PathBuf> = full.ancestors().skip(1).take(ANCESTORS_MAX).map(short).collect();
        let mut files = Vec::new();
        for folder in folders.iter().chain(ancestors.iter().take(2)) {
            list(folder, 0, &mut files);
        }
        Finder { ancestors, files }
    }

    /// The file of a path. `suits` says whether a candidate is of the kind that is wanted.
    pub fn find(&self, path: &str, suits: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
        let relative: PathBuf =
            Path::new(path).components().filter(|part| matches!(part, Component::Normal(_))).collect();
        // The first folder of an old path is the project's name, which is not part of it everywhere.
        let inner: PathBuf = relative.components().skip(1).collect();
        for ancestor in &self.ancestors {
            for candidate in [&relative, &inner] {
                let candidate = ancestor.join(candidate);
                if candidate.is_file() && suits(&candidate) {
                    return Some(candidate);
                }
            }
        }
        self.by_name(&relative, suits)
    }

    /// The file of that name, or of that name with a suffix
    /// (`Orders-1.0.0.xml`, `Orders__4f1c.xml`).
    fn by_name(&self, path: &Path, suits: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
        let stem = path.file_stem()?.to_str()?;
        let mut best: Option<(usize, &PathBuf)> = None;
        for file in &self.files {
            if file.extension() != path.extension() {
                continue;
            }
            let Some(rest) = file.file_stem().and_then(|name| name.to_str()?.strip_prefix(stem)) else { continue };
            let rank = match rest.chars().next() {
                None => 2,
                Some('_') if rest.starts_with("__") => 1,
                Some('-' | '_') if rest[1..].starts_with(|next: char| next.is_ascii_digit()) => 0,
                Some(_) => continue,
            };
            if best.is_none_or(|(other, _)| rank > other) && suits(file) {
                best = Some((rank, file));
            }
        }
        best.map(|(_, file)| file.clone())
    }
}

fn list(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        let path = path.strip_prefix(".").map(Path::to_owned).unwrap_or(path);
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if files.len() >= FILES_MAX || hidden {
            continue;
        }
        if path.is_dir() {
            let built = path.file_name().is_some_and(|name| name == "target" || name == "node_modules");
            if depth < DEPTH_MAX && !built {
                list(&path, depth + 1, files);
            }
        } else {
            files.push(path);
        }
    }
}
