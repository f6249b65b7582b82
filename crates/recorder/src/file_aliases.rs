//! Recognises a file that was opened under several names: a link, a path with `..`, a directory with two names.
//! The recording then has `same_as` in the later open file.
//!
//! The inode alone is no proof, because the kernel reuses its number. So two names belong to one file only if
//! both lead to it when the second one is opened.

use foldhash::{HashMap, HashSet};
use weir_model::StreamKind;
use weir_model::Untrusted;
use weir_model::trace::OpenFile;
use weir_sys::file_system::status;

/// The names under which regular files were opened.
#[derive(Debug, Default)]
pub(super) struct FileAliases {
    /// File id of the first open of each (device, inode), until the inode is reused.
    first: HashMap<(u64, u64), u32>,
    /// File ids that were checked.
    checked: HashSet<u32>,
    /// Later names of each first file, so that each is checked once.
    later_names: HashSet<(u32, Untrusted)>,
}

impl FileAliases {
    /// Returns the first open file with this inode if it has another name. Each open file is checked once, when
    /// its inode is known; a repeated name needs no stat(2).
    pub fn first_of(&mut self, id: u32, files: &[OpenFile]) -> Option<u32> {
        let file = &files[id as usize];
        if file.kind != StreamKind::File || file.ino == 0 || !self.checked.insert(id) {
            return None;
        }
        let inode = (file.dev, file.ino);
        let Some(&first) = self.first.get(&inode) else {
            self.first.insert(inode, id);
            return None;
        };
        let known = &files[first as usize];
        if known.path == file.path {
            return None;
        }
        let name = (first, file.path.clone());
        if self.later_names.contains(&name) || same_inode(&known.path, file) {
            self.later_names.insert(name);
            return Some(first);
        }
        self.first.insert(inode, id);
        None
    }
}

/// Returns whether `name` and the path of `file` lead to the same inode now.
fn same_inode(name: &Untrusted, file: &OpenFile) -> bool {
    let inode = |path: &Untrusted| status(&path.to_path()).ok().map(|found| (found.dev, found.ino));
    let current = inode(&file.path);
    // stat(2) and the kernel's own record can differ in the device (btrfs, overlayfs), so only results of
    // stat(2) are compared.
    current.is_some_and(|(_, ino)| ino == file.ino) && current == inode(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use weir_sys::open_files::unknown_file;

    fn file(id: u32, path: &std::path::Path) -> OpenFile {
        let path = path.to_string_lossy().into_owned();
        let (dev, ino) = std::fs::metadata(&path).map_or((1, 77), |found| (found.dev(), found.ino()));
        OpenFile { id, path: path.into(), dev, ino, ..unknown_file(StreamKind::File) }
    }

    #[test]
    fn links_and_detours_are_names_of_one_file() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("sub")).unwrap();
        std::fs::write(at("real"), "x").unwrap();
        std::os::unix::fs::symlink(at("real"), at("link")).unwrap();
        std::fs::hard_link(at("real"), at("hard")).unwrap();
        std::fs::write(at("other"), "x").unwrap();
        let names = ["real", "link", "hard", "sub/../real", "other", "real", "link"];
        let files: Vec<OpenFile> =
            names.iter().enumerate().map(|(id, name)| file(id as u32, &at(name))).collect();
        let mut aliases = FileAliases::default();
        let first: Vec<_> = (0..names.len() as u32).map(|id| aliases.first_of(id, &files)).collect();
        assert_eq!(first, [None, Some(0), Some(0), Some(0), None, None, Some(0)]);
    }

    #[test]
    fn a_reused_inode_is_another_file() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("new"), "x").unwrap();
        let new = file(1, &at("new"));
        // The file was opened under this name and removed; the new file has its inode.
        let gone = OpenFile { id: 0, path: at("gone").to_string_lossy().into_owned().into(), ..new.clone() };
        let link =
            OpenFile { id: 2, path: at("sub/../new").to_string_lossy().into_owned().into(), ..new.clone() };
        std::fs::create_dir(at("sub")).unwrap();
        let files = [gone, new, link];
        let mut aliases = FileAliases::default();
        let first: Vec<_> = (0..3).map(|id| aliases.first_of(id, &files)).collect();
        assert_eq!(first, [None, None, Some(1)], "later files are compared with the new file");
    }

    #[test]
    fn pipes_and_files_without_inode_are_not_checked() {
        let pipe = OpenFile { ino: 5, ..unknown_file(StreamKind::Pipe) };
        let unknown = OpenFile { id: 1, ..unknown_file(StreamKind::File) };
        let mut aliases = FileAliases::default();
        let mut files = [pipe, unknown];
        assert_eq!((aliases.first_of(0, &files), aliases.first_of(1, &files)), (None, None));
        files[1].ino = 9;
        assert!(aliases.first_of(1, &files).is_none() && aliases.first.contains_key(&(0, 9)));
    }
}
