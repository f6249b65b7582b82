//! Promises of libweir, as checks of a state.

use super::machine::{Cell, State, Status, THREADS};
use super::run::Machine;
use super::steps::{BUFFER, DRAINED, WRITTEN};

/// State of the stream in the forked child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Child {
    /// `WEIR_FORK_FLUSH`: the parent has flushed, and the child's copy is wiped.
    Flushed,
    /// The same without the wipe: the child writes its copy of the pending bytes at its exit.
    NotWiped,
    /// `WEIR_FORK_KEEP`: the child goes on with its copy.
    Kept,
}

/// Conditions on the states of a model. A byte of a thread has the thread's number and the byte's number in it.
#[derive(Clone, Debug)]
pub struct Promises {
    /// Bytes of a line, which must not be torn.
    pub line: u8,
    /// How many of the accepted bytes of a thread may be missing from the file when the process ends.
    pub missing: u8,
    /// The thread whose accepted bytes exit and fork have loaded before they began.
    pub writer: usize,
    /// The bytes of each thread.
    pub all: [u8; THREADS],
    /// The model ends when the process ends. Otherwise when each thread has ended but the last, which is the timer, and
    /// the file has all bytes.
    pub exits: bool,
    pub child: Child,
    /// The names of the cells. The last is that of the array.
    pub names: &'static [&'static str],
    /// The cells before this one are not in the stream's memory.
    pub first_cell_of_stream: Cell,
}

/// Returns the byte with this number of a thread.
pub fn first_byte(thread: usize) -> u8 {
    (thread as u8 + 1) << 4
}

/// Returns a byte's name in a trace: its thread and number, such as `A0`.
pub fn byte_name(byte: u8) -> String {
    match byte >> 4 {
        0 => "a byte that nobody stored".into(),
        thread => format!("{}{}", char::from(b'A' + thread - 1), byte & 15),
    }
}

/// The parts of a file.
struct Content {
    /// The bytes of each thread.
    bytes: [u8; THREADS],
    /// The thread of an incomplete line at the end.
    begun: Option<usize>,
}

impl Promises {
    /// Returns the name of a cell.
    pub fn name(&self, cell: Cell) -> String {
        let last = self.names.len() - 1;
        let cell = usize::from(cell);
        if cell < last { self.names[cell].into() } else { format!("{}[{}]", self.names[last], cell - last) }
    }

    /// Returns the bytes of a file as text.
    pub fn file_name(&self, file: &[u8]) -> String {
        let bytes: Vec<String> = file.iter().map(|byte| byte_name(*byte)).collect();
        if bytes.is_empty() { "empty".into() } else { bytes.join(" ") }
    }

    fn content(&self, file: &[u8]) -> Result<Content, String> {
        let mut content = Content { bytes: [0; THREADS], begun: None };
        for byte in file {
            let broken = |promise: &str| Err(format!("{promise}: {}", self.file_name(file)));
            let Some(thread) = usize::from(byte >> 4).checked_sub(1).filter(|thread| *thread < THREADS)
            else {
                return broken("the file has a byte that nobody stored");
            };
            if byte & 15 != content.bytes[thread] {
                return broken("the file repeats or misses a byte");
            }
            if content.begun.is_some_and(|begun| begun != thread) {
                return broken("another line is in the middle of a line");
            }
            content.bytes[thread] += 1;
            let complete = content.bytes[thread].is_multiple_of(self.line);
            content.begun = if complete { None } else { Some(thread) };
        }
        Ok(content)
    }

    /// Checks the file after a write.
    pub fn check_file(&self, file: &[u8]) -> Result<(), String> {
        self.content(file).map(|_| ())
    }

    /// Checks the file at the end of the process. `before`: what the writer had accepted when the exit began.
    pub fn check_exit(&self, state: &State, before: u8) -> Result<(), String> {
        let content = self.content(state.file())?;
        let broken = |promise: &str| Err(format!("{promise}: {}", self.file_name(state.file())));
        if content.begun.is_some() {
            return broken("exit tears a line");
        }
        if content.bytes[self.writer] < before {
            return broken("exit loses a line that was accepted before it began");
        }
        let late = |thread: &usize| state.threads[*thread].accepted > content.bytes[*thread] + self.missing;
        if (0..THREADS).any(|thread| late(&thread)) {
            return broken("exit loses a line that was accepted");
        }
        Ok(())
    }

    /// Checks the child's copy of the memory. Its file is its parent's.
    pub fn check_fork(&self, machine: &Machine, state: &mut State, thread: usize) -> Result<(), String> {
        let before = state.threads[thread].registers[usize::from(super::steps::SNAPSHOT)];
        let offset = |cell: Cell| usize::from(state.load(thread, cell));
        let (written, drained) = (offset(WRITTEN), offset(DRAINED));
        let cells = usize::from(BUFFER) + drained..usize::from(BUFFER) + written.max(drained);
        let pending = cells.map(|cell| state.load(thread, cell as Cell));
        match self.child {
            Child::Flushed => {
                if self.content(state.file())?.bytes[self.writer] < before {
                    return Err("the bytes from before the fork are not in the file".into());
                }
            }
            Child::NotWiped => {
                for byte in pending.collect::<Vec<u8>>() {
                    state.append(byte);
                }
            }
            Child::Kept => {
                let all: Vec<u8> = state.file().iter().copied().chain(pending).collect();
                if self.content(&all)?.begun.is_some() || written < drained {
                    let lines = self.file_name(&all);
                    return Err(format!(
                        "the child's copy of {} is in the middle of a call: {lines}",
                        machine.programs[self.writer].name
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns whether the model has ended.
    pub fn is_end(&self, state: &State, threads: usize) -> bool {
        if self.exits || state.exited {
            return state.exited;
        }
        let ended =
            |thread: &super::machine::Thread| thread.status == Status::Ended && thread.stores().is_empty();
        state.threads[..threads - 1].iter().all(ended)
            && self.content(state.file()).is_ok_and(|content| content.bytes == self.all)
    }
}
