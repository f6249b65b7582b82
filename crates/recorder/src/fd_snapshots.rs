//! Reads the descriptors of a process several times within a gap (fd snapshots), without stopping it. A file
//! that the process opens and closes within the gap is found by them, and its position says how much was read
//! or written. `sampling_gaps` gives these bytes to the file's stream.

use foldhash::{HashMap, HashMapExt};
use weir_model::trace::OpenFile;
use weir_model::{StreamKind, Untrusted};
use weir_sys::file_system::status_of_descriptor;
use weir_sys::open_files::{FdInfo, direction_of, fdinfo, open_file};

use crate::Recorder;
use crate::fd_table::{FdEntry, FdTable, first_descriptors};
use crate::gap_attribution::{FdFile, FdProgress};
use crate::open_files::OpenFileTable;
use crate::sampling_gaps::GapMark;

/// Descriptors 0 to 2 are rarely closed, so they are not read.
const FIRST_FD: i32 = 3;

/// Fewest files for which a common directory is reported: fewer are no pattern.
const COMMON_FILES_MIN: usize = 8;
/// Files of ten that must lie below the common directory.
const COMMON_OF_TEN: usize = 9;

/// The fd snapshots of one gap.
#[derive(Debug, Default)]
pub(super) struct FdSnapshots {
    /// Files that were opened in the gap, with the largest position in any snapshot.
    opened: HashMap<FdFile, FdProgress>,
    /// Device and inode of each descriptor at the latest snapshot, and the file's id if it is a regular file.
    latest: HashMap<i32, ((u64, u64), Option<u32>)>,
}

impl FdSnapshots {
    /// Enters the files of the latest snapshot into `table` and `marks`, so that the gap's end recognises them.
    /// Returns all files that were opened in the gap.
    pub fn enter_files(
        self,
        table: &mut FdTable,
        marks: &mut HashMap<i32, GapMark>,
    ) -> HashMap<FdFile, FdProgress> {
        for (fd, (_, file)) in self.latest {
            let Some(file) = file else { continue };
            let progress = self.opened.get(&(fd, file)).copied().unwrap_or_default();
            table.insert(fd, FdEntry { stale: true, ..FdEntry::new(file, false) });
            // The file was opened in the gap, so all bytes up to its position were moved in the gap.
            let position = progress.advance.map(|_| 0);
            marks.insert(fd, GapMark { file, position, access: progress.access, unmoved: false });
        }
        self.opened
    }

    fn read_fd(&mut self, table: &FdTable, files: &mut OpenFileTable, pid: u32, fd: i32) {
        let Ok(status) = status_of_descriptor(pid, fd) else { return };
        let inode = (status.dev, status.ino);
        let is_same = |file: u32| (files.all[file as usize].dev, files.all[file as usize].ino) == inode;
        let before = self.latest.get(&fd).filter(|latest| latest.0 == inode);
        match before {
            None if table.get(&fd).is_some_and(|known| is_same(known.file)) => {}
            None => {
                let file = add_opened(files, pid, fd, inode);
                self.latest.insert(fd, (inode, file.map(|file| file.0)));
                if let Some((file, now)) = file {
                    self.note((fd, file), now);
                }
            }
            Some(&(_, Some(file))) => {
                if let Some(now) = fdinfo(pid, fd).filter(|now| now.ino == inode.1) {
                    self.note((fd, file), now);
                }
            }
            Some(_) => {}
        }
    }

    fn note(&mut self, fd_file: FdFile, now: FdInfo) {
        let progress = self.opened.entry(fd_file).or_default();
        // An O_APPEND file does not begin at position 0.
        let advance = (!now.appends()).then_some(now.position as i64);
        (progress.advance, progress.access) = (advance.max(progress.advance), direction_of(now.flags));
    }
}

/// Adds the regular file of a descriptor. Returns none if the descriptor is closed or reused during the read.
fn add_opened(files: &mut OpenFileTable, pid: u32, fd: i32, inode: (u64, u64)) -> Option<(u32, FdInfo)> {
    let file: OpenFile = open_file(pid, fd).filter(|file| file.kind == StreamKind::File)?;
    // The path is read between two reads of the inode. Inode 0 cannot be compared.
    let now = fdinfo(pid, fd).filter(|now| now.ino == inode.1 && now.ino != 0)?;
    ((file.dev, file.ino) == inode).then(|| (files.add(file), now))
}

impl Recorder {
    /// Takes an fd snapshot of a process in a gap.
    pub(super) fn take_fd_snapshot(&mut self, pid: u32) {
        let Some(mut snapshots) = self.live_process(pid, 0.0).gaps.take_fd_snapshots() else { return };
        let first_new = self.files.all.len() as u32;
        self.with_table(pid, |table, files| {
            let (fds, _) = first_descriptors(pid);
            snapshots.latest.retain(|fd, _| fds.contains(fd));
            for fd in fds.into_iter().filter(|fd| *fd >= FIRST_FD) {
                snapshots.read_fd(table, files, pid, fd);
            }
        });
        self.live_process(pid, 0.0).gaps.put_fd_snapshots(snapshots);
        self.snapshot_files.extend(first_new..self.files.all.len() as u32);
    }

    /// Returns the directory that contains nearly all files that only fd snapshots found.
    pub(super) fn snapshot_directory(&self) -> Option<Untrusted> {
        let paths = self.snapshot_files.iter().filter_map(|&file| self.files.all.get(file as usize));
        common_directory(&paths.map(|file| file.path.exact()).collect::<Vec<_>>()).map(Untrusted::from)
    }
}

/// Returns the innermost directory that contains nine of ten of these paths. Returns none if there are few, or
/// no common directory.
fn common_directory(paths: &[&str]) -> Option<String> {
    let mut found = String::new();
    loop {
        let mut parts: HashMap<&str, usize> = HashMap::new();
        for path in paths {
            let rest = path.strip_prefix(found.as_str()).and_then(|rest| rest.strip_prefix('/'));
            if let Some((part, _)) = rest.and_then(|rest| rest.split_once('/')) {
                *parts.entry(part).or_default() += 1;
            }
        }
        let most = parts.into_iter().max_by_key(|part| part.1);
        match most.filter(|most| most.1 >= COMMON_FILES_MIN && most.1 * 10 >= paths.len() * COMMON_OF_TEN) {
            Some((part, _)) => found = format!("{found}/{part}"),
            None => return Some(found).filter(|found| !found.is_empty()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;

    #[test]
    fn a_short_lived_file_is_known_by_name_and_position() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("short-lived");
        File::create(&path).unwrap().write_all(b"0123456789").unwrap();
        let (mut snapshots, mut files, table) =
            (FdSnapshots::default(), OpenFileTable::new(false), FdTable::new());
        let mut file = File::open(&path).unwrap();
        let (pid, fd) = (std::process::id(), file.as_raw_fd());
        snapshots.read_fd(&table, &mut files, pid, fd);
        file.read_exact(&mut [0; 7]).unwrap();
        snapshots.read_fd(&table, &mut files, pid, fd);
        assert_eq!(
            files.all.iter().map(|file| file.path.exact()).collect::<Vec<_>>(),
            [path.to_str().unwrap()]
        );
        drop(file);
        // Another test may have the descriptor number by now.
        snapshots.latest.clear();
        let opened_in_gap = snapshots.enter_files(&mut FdTable::new(), &mut HashMap::new());
        let progress = FdProgress {
            advance: Some(7),
            access: Some(weir_model::Direction::In),
            unmoved: false,
            unknown_at_start: 0,
        };
        assert_eq!(opened_in_gap, HashMap::from_iter([((fd, 0), progress)]));
    }

    #[test]
    fn the_common_directory_contains_nine_of_ten_files() {
        let mut paths = vec!["/usr/include/linux/a.h"; 10];
        paths.extend(["/usr/include/b.h"; 9]);
        assert_eq!(common_directory(&paths).as_deref(), Some("/usr/include"));
        paths.extend(["/etc/hosts"; 2]);
        assert_eq!(common_directory(&paths).as_deref(), Some("/usr/include"), "nine of ten");
        paths.push("/etc/passwd");
        assert_eq!(common_directory(&paths), None);
        assert_eq!(common_directory(&["/a/b"; 7]), None, "too few");
        assert_eq!(common_directory(&["/a"; 20]), None);
    }

    #[test]
    fn a_file_that_was_open_before_is_not_opened_in_the_gap() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (pid, fd) = (std::process::id(), file.as_raw_fd());
        let (mut snapshots, mut files) = (FdSnapshots::default(), OpenFileTable::new(false));
        let id = files.add(open_file(pid, fd).unwrap());
        let table = FdTable::from_iter([(fd, FdEntry::new(id, false))]);
        snapshots.read_fd(&table, &mut files, pid, fd);
        assert!(snapshots.opened.is_empty() && files.all.len() == 1);
    }
}
