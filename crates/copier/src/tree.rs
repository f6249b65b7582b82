//! Copies trees with several threads. Tasks are directories and lists of names; a thread shares its names only when
//! another thread has nothing to do, so that two threads seldom work in one directory.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};

use rustix::fs::FileType;

use crate::context::{Context, Worker};
use crate::directory::{DirItem, read_directory, release_directory};
use crate::entry::{DirPair, Entry};
use crate::node::copy_node;
use crate::options::FollowLinks;

/// The number of names that a thread copies before it checks whether another thread is idle.
const BATCH: usize = 32;
/// More threads were not faster: they wait for the locks of the file system.
const MAX_THREADS: usize = 8;

/// btrfs (statfs(2)): all names and inodes of a subvolume are in one tree with one lock. On 2 processors a second thread took
/// 1.7 times the CPU time and saved none.
const BTRFS: u64 = 0x9123_683e;

/// A part of a tree.
enum TreeTask {
    Root(Arc<DirPair>),
    /// A directory by its name in another one. It is opened when a thread takes it, because a tree has more directories than a
    /// process can have descriptors.
    Directory(Arc<DirPair>, DirItem),
    Names(Arc<DirPair>, Vec<DirItem>),
}

/// The tasks that no thread has begun.
#[derive(Default)]
struct TaskQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
    /// A thread waits for a task.
    is_hungry: AtomicBool,
}

#[derive(Default)]
struct QueueState {
    tasks: Vec<TreeTask>,
    /// Threads that work on a task, which may add more.
    working: usize,
}

impl TaskQueue {
    fn push(&self, task: TreeTask) {
        let mut state = self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        state.tasks.push(task);
        self.is_hungry.store(false, Relaxed);
        drop(state);
        self.changed.notify_one();
    }

    /// Takes a task; waits for one while other threads may still add some. The thread works on it until it drops the second value.
    /// Returns None when all work is done.
    fn take(&self) -> Option<(TreeTask, WorkingThread<'_>)> {
        let mut state = self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        loop {
            if let Some(task) = state.tasks.pop() {
                state.working += 1;
                return Some((task, WorkingThread(self)));
            }
            if state.working == 0 {
                return None;
            }
            self.is_hungry.store(true, Relaxed);
            state = self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }
}

/// A thread that works on a task. The drop ends its work also after a panic: the other threads would wait for ever.
struct WorkingThread<'a>(&'a TaskQueue);

impl Drop for WorkingThread<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        state.working -= 1;
        if state.working == 0 {
            self.0.changed.notify_all();
        }
    }
}

/// Copies everything in a directory pair.
pub(crate) fn copy_tree(context: &Context, worker: &mut Worker, root: Arc<DirPair>) {
    let queue = TaskQueue::default();
    let threads = thread_count(context, &root);
    queue.push(TreeTask::Root(root));
    std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads)
            .map_while(|_| {
                let help = || {
                    let mut worker = Worker::new();
                    work(context, &mut worker, &queue);
                    worker.tally
                };
                std::thread::Builder::new().spawn_scoped(scope, help).ok()
            })
            .collect();
        work(context, worker, &queue);
        for helper in helpers {
            match helper.join() {
                Ok(tally) => worker.tally.add(&tally),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
}

fn thread_count(context: &Context, root: &DirPair) -> usize {
    let is_btrfs = || rustix::fs::fstatfs(&root.target).is_ok_and(|found| found.f_type as u64 == BTRFS);
    match context.options.threads {
        // Questions to the user come one after the other.
        _ if context.options.interactive => 1,
        0 if is_btrfs() => 1,
        0 => std::thread::available_parallelism().map_or(1, |number| number.get().min(MAX_THREADS)),
        chosen => chosen,
    }
}

fn work(context: &Context, worker: &mut Worker, queue: &TaskQueue) {
    while let Some((task, _working)) = queue.take() {
        match task {
            TreeTask::Root(dir) => copy_directory(context, worker, queue, dir),
            TreeTask::Directory(parent, item) => {
                copy_item(context, worker, queue, &parent, &item);
                release_directory(context, worker, parent);
            }
            TreeTask::Names(dir, names) => copy_names(context, worker, queue, dir, names),
        }
    }
}

fn copy_directory(context: &Context, worker: &mut Worker, queue: &TaskQueue, dir: Arc<DirPair>) {
    match read_directory(context, &dir) {
        Ok(names) => copy_names(context, worker, queue, dir, names),
        Err(error) => {
            context.report_error(worker, &error);
            release_directory(context, worker, dir);
        }
    }
}

fn copy_names(
    context: &Context,
    worker: &mut Worker,
    queue: &TaskQueue,
    dir: Arc<DirPair>,
    mut names: Vec<DirItem>,
) {
    let mut batch = 0;
    while let Some(item) = names.pop() {
        if context.control.is_stopping() {
            break;
        }
        batch += 1;
        if batch % BATCH == 0 && names.len() >= 2 * BATCH && queue.is_hungry.load(Relaxed) {
            let rest = names.split_off(names.len() / 2);
            queue.push(TreeTask::Names(Arc::clone(&dir), rest));
        }
        if is_directory(context, &dir, &item) {
            queue.push(TreeTask::Directory(Arc::clone(&dir), item));
        } else {
            copy_item(context, worker, queue, &dir, &item);
        }
    }
    release_directory(context, worker, dir);
}

/// Returns whether a name, or the symbolic link that it is and that the options follow, leads to a directory.
fn is_directory(context: &Context, dir: &Arc<DirPair>, item: &DirItem) -> bool {
    let follow = context.options.follow == FollowLinks::Always;
    match item.kind {
        FileType::Directory => true,
        FileType::Symlink if !follow => false,
        FileType::Symlink | FileType::Unknown => {
            let stat = entry_of(dir, item).source_stat(follow);
            stat.is_ok_and(|stat| stat.kind() == FileType::Directory)
        }
        _ => false,
    }
}

fn entry_of<'a>(dir: &'a Arc<DirPair>, item: &'a DirItem) -> Entry<'a> {
    Entry { dir: Some(dir), source: &item.name, target: &item.name }
}

/// Copies a name, and everything in it if it is a directory.
fn copy_item(context: &Context, worker: &mut Worker, queue: &TaskQueue, dir: &Arc<DirPair>, item: &DirItem) {
    match copy_node(context, worker, &entry_of(dir, item), item.kind) {
        Ok(None) => {}
        Ok(Some(below)) if crosses(context, dir, &below) => release_directory(context, worker, below),
        Ok(Some(below)) => copy_directory(context, worker, queue, below),
        Err(error) => context.report_error(worker, &error),
    }
}

/// Returns whether a directory is on another file system and `-x` excludes its content.
fn crosses(context: &Context, dir: &DirPair, below: &DirPair) -> bool {
    context.options.one_file_system && dir.source_stat.dev != below.source_stat.dev
}

/// Returns the type of a name whose type is not known yet.
pub(crate) const UNKNOWN: FileType = FileType::Unknown;

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::path::Path;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::file_stat::FileStat;

    /// Opens a directory as source and target.
    fn pair(path: &Path) -> Arc<DirPair> {
        let open = || OwnedFd::from(std::fs::File::open(path).expect("a directory"));
        let stat: FileStat = rustix::fs::stat(path).expect("stat").into();
        Arc::new(DirPair {
            source: open(),
            target: open(),
            source_path: path.into(),
            target_path: path.into(),
            source_stat: stat,
            target_stat: stat,
            is_new: false,
            has_default_acl: false,
            parent: None,
        })
    }

    /// Panics without a message.
    fn panic_with(_task: (TreeTask, WorkingThread<'_>)) {
        std::panic::resume_unwind(Box::new(()));
    }

    #[test]
    fn a_panic_in_one_thread_ends_the_wait_of_the_others() {
        let queue = Arc::new(TaskQueue::default());
        queue.push(TreeTask::Root(pair(Path::new("/"))));
        let working = queue.take().expect("the task");
        let (ended, end) = mpsc::channel();
        let waiting = Arc::clone(&queue);
        std::thread::spawn(move || ended.send(waiting.take().is_none()));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| panic_with(working))).is_err());
        assert_eq!(end.recv_timeout(Duration::from_secs(60)), Ok(true));
    }
}
