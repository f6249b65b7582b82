//! Files that were opened by several names: a link, a path with `..`, a directory under two names.
//!
//! The inode tells that they are one, but its number may be given again when a file is gone. So two names are believed to
//! be one file's only if both lead to it when the second is opened.

use std::os::unix::fs::MetadataExt;

use foldhash::{HashMap, HashSet};
use weir_model::StreamKind;
use weir_model::trace::OpenFile;

/// The names by which regular files were opened.
#[derive(Debug, Default)]
pub(super) struct FileAliases {
    /// The first opening of each inode, as long as the number was not given again.
    first: HashMap<(u64, u64), u32>,
    /// Openings that were asked about.
    judged: HashSet<u32>,
    /// Other names that were found to be those of these first openings.
    others: HashSet<(u32, String)>,
}

impl FileAliases {
    /// The first opening of the file that `id` is one of, if that was by another name. Each opening is asked about once,
    /// when its inode is known; that of the same name again costs no look at the file system.
    pub fn first_of(&mut self, id: u32, files: &[OpenFile]) -> Option<u32> {
        let file = &files[id as usize];
        if file.kind != StreamKind::File || file.ino == 0 || !self.judged.insert(id) {
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
        if self.others.contains(&name) || lead_to_one(&known.path, file) {
            self.others.insert(name);
            return Some(first);
        }
        self.first.insert(inode, id);
        None
    }
}

/// Whether a name and that of an opening lead to the file that was opened, now.
fn lead_to_one(name: &str, file: &OpenFile) -> bool {
    let inode = |path: &str| std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    let there = inode(&file.path);
    // Device numbers are compared with each other only: some file systems show stat(2) others than they have.
    there.is_some_and(|(_, ino)| ino == file.ino) && there == inode(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_sys::open_files::unknown_file;

    fn file(id: u32, path: &std::path::Path) -> OpenFile {
        let path = path.to_string_lossy().into_owned();
        let (dev, ino) = std::fs::metadata(&path).map_or((1, 77), |found| (found.dev(), found.ino()));
        OpenFile { id, path, dev, ino, ..unknown_file(StreamKind::File) }
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
        let mut known = FileAliases::default();
        let first: Vec<_> = (0..names.len() as u32).map(|id| known.first_of(id, &files)).collect();
        assert_eq!(first, [None, Some(0), Some(0), Some(0), None, None, Some(0)]);
    }

    #[test]
    fn a_number_that_is_given_again_is_another_file() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("new"), "x").unwrap();
        let new = file(1, &at("new"));
        // It was opened under this name, is gone, and its inode is the new file's now.
        let gone = OpenFile { id: 0, path: at("gone").to_string_lossy().into_owned(), ..new.clone() };
        let link = OpenFile { id: 2, path: at("sub/../new").to_string_lossy().into_owned(), ..new.clone() };
        std::fs::create_dir(at("sub")).unwrap();
        let files = [gone, new, link];
        let mut known = FileAliases::default();
        let first: Vec<_> = (0..3).map(|id| known.first_of(id, &files)).collect();
        assert_eq!(first, [None, None, Some(1)], "what follows is compared with the new file");
    }

    #[test]
    fn what_has_no_inode_or_is_no_file_is_asked_about_later_or_never() {
        let pipe = OpenFile { ino: 5, ..unknown_file(StreamKind::Pipe) };
        let unknown = OpenFile { id: 1, ..unknown_file(StreamKind::File) };
        let mut known = FileAliases::default();
        let mut files = [pipe, unknown];
        assert_eq!((known.first_of(0, &files), known.first_of(1, &files)), (None, None));
        files[1].ino = 9;
        assert!(known.first_of(1, &files).is_none() && known.first.contains_key(&(0, 9)));
    }
}
