//! Standard output of Rust's library: the one buffer that a symbol (`std::io::stdio::STDOUT`) leads to.
//!
//! The order of its fields is the compiler's to choose, so the vector of its LineWriter is recognized: its
//! capacity is 1024, as that of no other word there, and there is so much memory where it points to.

use weir_model::Mode;
use weir_model::trace::{Buffer, Walker};

use super::Walk;
use super::read::{PENDING_KEPT, content, steady, structure, word};
use crate::memory::Memory;

/// Of a `OnceLock<ReentrantLock<RefCell<LineWriter<StdoutRaw>>>>`.
const STDOUT_BYTES: usize = 64;
/// Of a LineWriter that was made without asking for a size.
const CAPACITY: u64 = 1024;

/// The standard output of a process.
#[derive(Debug, Clone)]
pub(super) struct Rust {
    /// Where `STDOUT` is.
    pub stdout: u64,
}

impl Walk for Rust {
    fn walker(&self) -> Walker {
        Walker::Rust
    }

    fn buffers(&self, memory: &dyn Memory) -> Vec<Buffer> {
        let copy = structure::<STDOUT_BYTES>(memory, self.stdout);
        let found = copy.and_then(|copy| steady(memory, self.stdout, copy, |copy| self.read(memory, copy)));
        found.into_iter().collect()
    }

    fn for_child(&self, _child: u32) -> Option<Box<dyn Walk>> {
        Some(Box::new(self.clone()))
    }
}

impl Rust {
    /// None before it is first used, and where no part or more than one looks like the vector.
    fn read(&self, memory: &dyn Memory, stdout: &[u8; STDOUT_BYTES]) -> Option<Buffer> {
        let vector = |at: &usize| {
            let [first, second, length] = [0, 8, 16].map(|field| word(stdout, at + field));
            let (capacity, data) = if first == CAPACITY { (first, second) } else { (second, first) };
            (capacity == CAPACITY && length <= CAPACITY && data > u64::from(u16::MAX))
                .then_some((data, length))
        };
        let mut found = (0..STDOUT_BYTES - 16).step_by(8).filter_map(|at| vector(&at));
        let (Some((data, length)), None) = (found.next(), found.next()) else { return None };
        content(memory, data, CAPACITY, CAPACITY)?;
        Some(Buffer {
            walker: Walker::Rust,
            address: self.stdout,
            fd: 1,
            mode: Some(Mode::Line),
            buffer_bytes: CAPACITY,
            pending_bytes: length,
            pending: content(memory, data, length, PENDING_KEPT)?,
            unread_bytes: 0,
            unread: Vec::new(),
        })
    }
}
