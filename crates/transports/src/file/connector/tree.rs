//! Operations on folders: lists, copies, moves and deletions.

use std::cmp::Ordering;

use fancy_regex::Regex;
use penstock_engine::ports::LocalFuture;
use serde_json::{Map, Value as Json};

use super::files::{Files, matches};
use super::outcome::{Code, Done, Failure};
use super::task::{Listing, Order, Transfer};
use crate::file::system::{Entry, WriteMode, join, name_of};

/// Folders within folders; more is a loop of links.
const DEPTH_MAX: usize = 64;

fn too_deep() -> Failure {
    Failure::new(Code::Operation, format!("folders are nested more than {DEPTH_MAX} times"))
}

impl Files {
    pub(super) async fn list(&self, listing: Listing) -> Result<Done, Failure> {
        let path = self.path(&listing.path)?;
        if !self.existing(&path).await?.is_folder {
            return Err(Failure::new(Code::Operation, "Folder is expected."));
        }
        if listing.is_flat {
            let mut files = Vec::new();
            self.list_flat(&path, &listing, 0, &mut files).await?;
            return Ok(Done::report([(
                "files",
                Json::Object(Map::from_iter([("files".to_owned(), Json::Array(files))])),
            )]));
        }
        Ok(Done::report([("directory", self.list_nested(&path, &listing, 0).await?)]))
    }

    /// The files that match and the folders, in the order of the listing.
    async fn sorted(&self, folder: &str, listing: &Listing) -> Result<Vec<Entry>, Failure> {
        let mut entries = self.entries(folder).await?;
        entries.retain(|entry| entry.is_folder || matches(listing.pattern.as_ref(), &entry.name));
        entries.sort_by(|one, other| {
            let order = match listing.order {
                Order::Name => Ordering::Equal,
                Order::Size => one.size.cmp(&other.size),
                Order::Modified => one.modified.cmp(&other.modified),
            };
            let order = order.then_with(|| one.name.cmp(&other.name));
            if listing.descends { order.reverse() } else { order }
        });
        Ok(entries)
    }

    fn list_nested<'a>(
        &'a self,
        folder: &'a str,
        listing: &'a Listing,
        depth: usize,
    ) -> LocalFuture<'a, Result<Json, Failure>> {
        Box::pin(async move {
            if depth > DEPTH_MAX {
                return Err(too_deep());
            }
            let (mut files, mut folders) = (Vec::new(), Vec::new());
            for entry in self.sorted(folder, listing).await? {
                if !entry.is_folder {
                    files.push(Json::String(entry.name));
                } else if depth < listing.depth {
                    folders.push(self.list_nested(&entry.path, listing, depth + 1).await?);
                }
            }
            let mut found = Map::from_iter([("name".to_owned(), Json::String(name_of(folder).to_owned()))]);
            for (name, list) in [("file", files), ("directory", folders)] {
                if !list.is_empty() {
                    found.insert(name.to_owned(), Json::Array(list));
                }
            }
            Ok(Json::Object(found))
        })
    }

    fn list_flat<'a>(
        &'a self,
        folder: &'a str,
        listing: &'a Listing,
        depth: usize,
        files: &'a mut Vec<Json>,
    ) -> LocalFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            if depth > DEPTH_MAX {
                return Err(too_deep());
            }
            for entry in self.sorted(folder, listing).await? {
                if !entry.is_folder {
                    files.push(serde_json::json!({"name": entry.name, "path": entry.path}));
                } else if depth < listing.depth {
                    self.list_flat(&entry.path, listing, depth + 1, files).await?;
                }
            }
            Ok(())
        })
    }

    pub(super) async fn copy(&self, transfer: Transfer) -> Result<Done, Failure> {
        let (source, folder) = (self.path(&transfer.source)?, self.path(&transfer.target)?);
        let entry = self.existing(&source).await?;
        if !entry.is_folder {
            let new_name = transfer.new_name.as_deref();
            let target = self.destination(&folder, &entry.name, new_name, transfer.overwrites).await?;
            if matches(transfer.pattern.as_ref(), &entry.name) {
                self.copy_file(&source, &target).await?;
            }
            return Ok(Done::report([]));
        }
        let target = self.folder_target(&entry, &folder, &transfer).await?;
        self.copy_folder(&source, &target, transfer.pattern.as_ref(), 0).await?;
        Ok(Done::report([]))
    }

    /// Where a folder goes. Without `overwrite` nothing of it may be there.
    async fn folder_target(&self, entry: &Entry, folder: &str, transfer: &Transfer) -> Result<String, Failure> {
        let mut target = folder.to_owned();
        if transfer.includes_parent {
            let new_name = transfer.new_name.as_deref();
            target = self.destination(folder, &entry.name, new_name, true).await?;
        }
        if target == entry.path || target.starts_with(&format!("{}/", entry.path)) {
            return Err(Failure::new(Code::IllegalPath, format!("{target} is in {}", entry.path)));
        }
        if !transfer.overwrites && self.stat(&target).await?.is_some() {
            let there = self.entries(&target).await?;
            let common = |own: &Entry| there.iter().any(|other| other.name == own.name);
            if self.entries(&entry.path).await?.iter().any(common) {
                let text = "Folder or one or more sub-directories already exists and overwrite not allowed";
                return Err(Failure::new(Code::AlreadyExists, text));
            }
        }
        Ok(target)
    }

    async fn copy_file(&self, source: &str, target: &str) -> Result<(), Failure> {
        let system = self.system().await?;
        let gone = || Failure::new(Code::IllegalPath, format!("File or folder not found: {source}"));
        let body = system.read(source).await?.ok_or_else(gone)?;
        Ok(system.write(target, body, WriteMode::Replace).await?)
    }

    fn copy_folder<'a>(
        &'a self,
        source: &'a str,
        target: &'a str,
        pattern: Option<&'a Regex>,
        depth: usize,
    ) -> LocalFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            if depth > DEPTH_MAX {
                return Err(too_deep());
            }
            self.system().await?.create_folder(target).await?;
            for entry in self.entries(source).await? {
                let target = join(target, &entry.name);
                if entry.is_folder {
                    self.copy_folder(&entry.path, &target, pattern, depth + 1).await?;
                } else if matches(pattern, &entry.name) {
                    self.copy_file(&entry.path, &target).await?;
                }
            }
            Ok(())
        })
    }

    pub(super) async fn transfer(&self, transfer: Transfer) -> Result<Done, Failure> {
        let (source, folder) = (self.path(&transfer.source)?, self.path(&transfer.target)?);
        let entry = self.existing(&source).await?;
        if self.stat(&folder).await?.is_none() {
            if !transfer.creates_folders {
                let text = "Target folder does not exist and not configured to create";
                return Err(Failure::new(Code::Operation, text));
            }
            self.system().await?.create_folder(&folder).await?;
        }
        if !entry.is_folder {
            let new_name = transfer.new_name.as_deref();
            let target = self.destination(&folder, &entry.name, new_name, transfer.overwrites).await?;
            self.system().await?.rename(&source, &target).await?;
            return Ok(Done::report([]));
        }
        let target = self.folder_target(&entry, &folder, &transfer).await?;
        self.move_folder(&source, &target, transfer.pattern.as_ref(), 0).await?;
        Ok(Done::report([]))
    }

    /// Moves the files that match, and removes the folders that are empty then.
    fn move_folder<'a>(
        &'a self,
        source: &'a str,
        target: &'a str,
        pattern: Option<&'a Regex>,
        depth: usize,
    ) -> LocalFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            if depth > DEPTH_MAX {
                return Err(too_deep());
            }
            let system = self.system().await?;
            system.create_folder(target).await?;
            for entry in self.entries(source).await? {
                let target = join(target, &entry.name);
                if entry.is_folder {
                    self.move_folder(&entry.path, &target, pattern, depth + 1).await?;
                } else if matches(pattern, &entry.name) {
                    system.rename(&entry.path, &target).await?;
                }
            }
            if pattern.is_none() {
                system.remove_folder(source).await?;
            }
            Ok(())
        })
    }

    pub(super) async fn delete(&self, path: &str, pattern: Option<&Regex>) -> Result<Done, Failure> {
        let path = self.path(path)?;
        let Some(entry) = self.stat(&path).await? else {
            return Err(Failure::new(Code::IllegalPath, format!("File or folder not found: {path}")));
        };
        if !entry.is_folder {
            self.system().await?.remove(&path).await?;
            return Ok(Done::report([]));
        }
        let deleted = self.delete_in(&path, pattern, 0).await?;
        Ok(Done::report([("numOfDeletedFiles", Json::from(deleted))]))
    }

    /// Deletes the files that match; without a pattern the folder as well. Folders count as files, as in Micro Integrator.
    fn delete_in<'a>(
        &'a self,
        folder: &'a str,
        pattern: Option<&'a Regex>,
        depth: usize,
    ) -> LocalFuture<'a, Result<u64, Failure>> {
        Box::pin(async move {
            if depth > DEPTH_MAX {
                return Err(too_deep());
            }
            let system = self.system().await?;
            let mut deleted = 0;
            for entry in self.entries(folder).await? {
                if entry.is_folder {
                    deleted += self.delete_in(&entry.path, pattern, depth + 1).await?;
                } else if matches(pattern, &entry.name) {
                    system.remove(&entry.path).await?;
                    deleted += 1;
                }
            }
            if pattern.is_none() {
                system.remove_folder(folder).await?;
                deleted += 1;
            }
            Ok(deleted)
        })
    }
}
