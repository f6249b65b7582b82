//! Glances: what a process has open in a pause, at moments in between. It is not stopped for that. A file that it opens and
//! closes in the pause, and that stood somewhere at a glance, is known by that, and to have been read or written so far.

use foldhash::{HashMap, HashMapExt};
use weir_model::StreamKind;
use weir_model::trace::OpenFile;
use weir_sys::open_files::{FdInfo, direction_of, fdinfo, open_file};
use weir_sys::proc;

use crate::Recorder;
use crate::fd_table::{FdEntry, FdTable};
use crate::gap_attribution::{FdFile, FdProgress};
use crate::open_files::OpenFileTable;
use crate::sampling_gaps::GapMark;

/// The first numbers are rarely given again.
const FIRST: i32 = 3;

/// Of so many of the files that were glanced at nothing is said.
const FEW: usize = 8;
/// Those that lie in one directory, or below it, of ten.
const MOST_OF_TEN: usize = 9;

/// All glances of a pause.
#[derive(Debug, Default)]
pub(super) struct FdSnapshots {
    /// The files that were opened in it.
    seen: HashMap<FdFile, FdProgress>,
    /// What the numbers stood for at the last one: the inode, and of a regular file which.
    last: HashMap<i32, ((u64, u64), Option<u32>)>,
}

impl FdSnapshots {
    /// Puts what was open at the last one where that of the beginning stands, so that it is known again; and gives the rest.
    pub fn settle(
        self,
        table: &mut FdTable,
        marks: &mut HashMap<i32, GapMark>,
    ) -> HashMap<FdFile, FdProgress> {
        for (fd, (_, file)) in self.last {
            let Some(file) = file else { continue };
            let kept = self.seen.get(&(fd, file)).copied().unwrap_or_default();
            table.insert(fd, FdEntry { stale: true, ..FdEntry::new(file, false) });
            // It was opened in the pause: all that it has moved on by, it has in it.
            let position = kept.advance.map(|_| 0);
            marks.insert(fd, GapMark { file, position, way: kept.way, still: false });
        }
        self.seen
    }

    fn look_at(&mut self, table: &FdTable, files: &mut OpenFileTable, pid: u32, fd: i32) {
        let Ok(status) = rustix::fs::stat(format!("/proc/{pid}/fd/{fd}").as_str()) else { return };
        let inode = (status.st_dev, status.st_ino);
        let is = |file: u32| (files.all[file as usize].dev, files.all[file as usize].ino) == inode;
        let before = self.last.get(&fd).filter(|last| last.0 == inode);
        match before {
            None if table.get(&fd).is_some_and(|known| is(known.file)) => {}
            None => {
                let file = opened(files, pid, fd, inode);
                self.last.insert(fd, (inode, file.map(|file| file.0)));
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

    fn note(&mut self, place: FdFile, now: FdInfo) {
        let kept = self.seen.entry(place).or_default();
        // Those that are written at their end do not begin at 0.
        let advance = (now.flags & libc::O_APPEND == 0).then_some(now.position as i64);
        (kept.advance, kept.way) = (advance.max(kept.advance), direction_of(now.flags));
    }
}

/// A regular file that was opened by this number, if it is there long enough to be asked for its name and place.
fn opened(files: &mut OpenFileTable, pid: u32, fd: i32, inode: (u64, u64)) -> Option<(u32, FdInfo)> {
    let file: OpenFile = open_file(pid, fd).filter(|file| file.kind == StreamKind::File)?;
    // The name came between the two looks at the inode; of files without a number nothing could be told.
    let now = fdinfo(pid, fd).filter(|now| now.ino == inode.1 && now.ino != 0)?;
    ((file.dev, file.ino) == inode).then(|| (files.add(file), now))
}

impl Recorder {
    /// A process in a pause: what it has open now.
    pub(super) fn glance(&mut self, pid: u32) {
        let Some(mut glances) = self.live_of(pid, 0.0).pauses.glances() else { return };
        let known = self.files.all.len() as u32;
        self.with_table(pid, |table, files| {
            let numbers = proc::descriptors(pid);
            glances.last.retain(|fd, _| numbers.contains(fd));
            for fd in numbers.into_iter().filter(|fd| *fd >= FIRST) {
                glances.look_at(table, files, pid, fd);
            }
        });
        self.live_of(pid, 0.0).pauses.put_back(glances);
        self.glanced.extend(known..self.files.all.len() as u32);
    }

    /// The directory where nearly all of the files lie that were glanced at.
    pub(super) fn glanced_below(&self) -> Option<String> {
        let paths = self.glanced.iter().filter_map(|&file| self.files.all.get(file as usize));
        below(&paths.map(|file| file.path.as_str()).collect::<Vec<_>>())
    }
}

/// The innermost directory that nine of ten of these paths lie below; None: there are few, or they are all over the place.
fn below(paths: &[&str]) -> Option<String> {
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
        match most.filter(|most| most.1 >= FEW && most.1 * 10 >= paths.len() * MOST_OF_TEN) {
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
    fn a_file_of_a_moment_is_known_by_its_name_and_how_far_it_was_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("short-lived");
        File::create(&path).unwrap().write_all(b"0123456789").unwrap();
        let (mut glances, mut files, table) =
            (FdSnapshots::default(), OpenFileTable::new(false), FdTable::new());
        let mut file = File::open(&path).unwrap();
        let (pid, fd) = (std::process::id(), file.as_raw_fd());
        glances.look_at(&table, &mut files, pid, fd);
        file.read_exact(&mut [0; 7]).unwrap();
        glances.look_at(&table, &mut files, pid, fd);
        assert_eq!(
            files.all.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(),
            [path.to_str().unwrap()]
        );
        drop(file);
        // Its number may be that of another test's file now.
        glances.last.clear();
        let seen = glances.settle(&mut FdTable::new(), &mut HashMap::new());
        let kept =
            FdProgress { advance: Some(7), way: Some(weir_model::Direction::In), still: false, stood: 0 };
        assert_eq!(seen, HashMap::from_iter([((fd, 0), kept)]));
    }

    #[test]
    fn where_most_files_lie_is_said_and_no_more() {
        let mut paths = vec!["/usr/include/linux/a.h"; 10];
        paths.extend(["/usr/include/b.h"; 9]);
        assert_eq!(below(&paths).as_deref(), Some("/usr/include"));
        paths.extend(["/etc/hosts"; 2]);
        assert_eq!(below(&paths).as_deref(), Some("/usr/include"), "nine of ten");
        paths.push("/etc/passwd");
        assert_eq!(below(&paths), None);
        assert_eq!(below(&["/a/b"; 7]), None, "too few");
        assert_eq!(below(&["/a"; 20]), None);
    }

    #[test]
    fn what_was_open_before_is_none_of_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (pid, fd) = (std::process::id(), file.as_raw_fd());
        let (mut glances, mut files) = (FdSnapshots::default(), OpenFileTable::new(false));
        let id = files.add(open_file(pid, fd).unwrap());
        let table = FdTable::from_iter([(fd, FdEntry::new(id, false))]);
        glances.look_at(&table, &mut files, pid, fd);
        assert!(glances.seen.is_empty() && files.all.len() == 1);
    }
}
