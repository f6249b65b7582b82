//! Buffers of the observed processes that could not be read: that a recording has no pending bytes of them proves nothing.

use serde::{Deserialize, Serialize};

/// One kind of buffers that no walker reads, or that could not be read, with the processes that have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct UnreadableBuffers {
    /// The subject of a sentence: "Java's own buffers".
    pub buffers: String,
    pub pids: Vec<u32>,
}

impl UnreadableBuffers {
    /// Returns the buffers and their processes: "Java's own buffers (pid 42)".
    pub fn with_processes(&self) -> String {
        match self.pids.as_slice() {
            [] => self.buffers.clone(),
            [pid] => format!("{} (pid {pid})", self.buffers),
            pids => format!("{} ({} processes)", self.buffers, pids.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_processes_are_counted() {
        let of =
            |pids: &[u32]| UnreadableBuffers { buffers: "Java's own buffers".into(), pids: pids.to_vec() };
        assert_eq!(of(&[42]).with_processes(), "Java's own buffers (pid 42)");
        assert_eq!(of(&[1, 2, 3]).with_processes(), "Java's own buffers (3 processes)");
        assert_eq!(of(&[]).with_processes(), "Java's own buffers");
    }
}
