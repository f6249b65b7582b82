//! Appends the lines of standard input to a file: @NAME@.
//!
//! Build: rustc -O log.rs      Use: ./log FILE < records
//! In a program of your own, use RecordLog with each record and its newline.

use std::fs::{File, OpenOptions};
%if threads
%else
%if line
use std::io::LineWriter;
%end
%end
use std::io::{self, BufRead, Write};
%if dsync
use std::os::unix::fs::OpenOptionsExt;
%end
%if synced
use std::path::Path;
%end
%if threads
%if timer|group
use std::sync::{Arc, Condvar, Mutex};
%else
use std::sync::{Arc, Mutex};
%end
%end
%if timer
use std::thread::{self, JoinHandle};
use std::time::Duration;
%end

%if dsync
/// O_DSYNC of Linux on x86-64, arm and riscv; the crate libc has it for all.
const O_DSYNC: i32 = 0o10000;

%end
%if threads
#[derive(Default)]
struct State {
%if gather
    pending: Vec<u8>,
%end
%if timer
    dirty: bool,
    stopped: bool,
%end
%if group
    written: u64,
    durable: u64,
    syncing: bool,
%end
%if timer|group
    error: Option<io::ErrorKind>,
%end
}

struct Shared {
    file: File,
    state: Mutex<State>,
%if timer|group
    changed: Condvar,
%end
}

%end
pub struct RecordLog {
%if threads
    shared: Arc<Shared>,
%else
%if line
    stream: LineWriter<File>,
%else
    file: File,
%end
%if gather
    pending: Vec<u8>,
%end
%end
%if timer
    timer: JoinHandle<()>,
%end
}

%if gather
const BUFFER_BYTES: usize = @BUFFER@;

%end
%if timer
const PERIOD: Duration = Duration::from_millis(@PERIOD_MS@);

%end
impl RecordLog {
    pub fn open(path: &str) -> io::Result<RecordLog> {
%if dsync
        let file = OpenOptions::new().append(true).create(true).custom_flags(O_DSYNC).open(path)?;
%else
        let file = OpenOptions::new().append(true).create(true).open(path)?;
%end
%if synced
        file.sync_all()?;
        // Without it, a power cut can lose the name of a new file.
        let parent = Path::new(path).parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
%end
%if threads
%if timer|group
        let shared = Arc::new(Shared { file, state: Mutex::default(), changed: Condvar::new() });
%else
        let shared = Arc::new(Shared { file, state: Mutex::default() });
%end
%if timer
        let of_timer = shared.clone();
        let timer = thread::spawn(move || of_timer.run_timer());
        Ok(RecordLog { shared, timer })
%else
        Ok(RecordLog { shared })
%end
%else
%if line
        Ok(RecordLog { stream: LineWriter::with_capacity(@BUFFER@, file) })
%end
%if gather
        Ok(RecordLog { file, pending: Vec::with_capacity(BUFFER_BYTES) })
%end
%if each
        Ok(RecordLog { file })
%end
%end
    }

%if threads
    pub fn record(&self, record: &[u8]) -> io::Result<()> {
        self.shared.record(record)
    }
%else
    pub fn record(&mut self, record: &[u8]) -> io::Result<()> {
%if line
        self.stream.write_all(record)
%end
%if gather
        if self.pending.len() + record.len() > BUFFER_BYTES {
            self.flush()?; // a write has whole records only
        }
        self.pending.extend_from_slice(record);
        Ok(())
%end
%if each
%if sync_record
        self.file.write_all(record)?;
        self.file.sync_data() // fdatasync(2)
%else
        self.file.write_all(record)
%end
%end
    }
%if gather

    fn flush(&mut self) -> io::Result<()> {
        let result = self.file.write_all(&self.pending);
        self.pending.clear();
        result
    }
%end
%end

    /// Call it: drop could not report an error.
%if threads
    pub fn close(self) -> io::Result<()> {
%if timer
        self.shared.state.lock().unwrap().stopped = true;
        self.shared.changed.notify_all();
        self.timer.join().expect("the timer does not panic");
        self.shared.check(&self.shared.state.lock().unwrap())?;
        self.shared.tick()
%else
%if gather
        let mut state = self.shared.state.lock().unwrap();
        self.shared.flush(&mut state)
%else
        Ok(())
%end
%end
    }
%else
    pub fn close(mut self) -> io::Result<()> {
%if line
        self.stream.flush()
%end
%if gather
        self.flush()
%end
%if each
        self.file.flush()
%end
    }
%end
}
%if threads

impl Shared {
%if timer|group
    fn check(&self, state: &State) -> io::Result<()> {
        state.error.map_or(Ok(()), |kind| Err(kind.into()))
    }

%end
%if group
    /// Returns when the record is on the device. One thread syncs for all that have written meanwhile.
    fn record(&self, record: &[u8]) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        self.check(&state)?;
        (&self.file).write_all(record)?;
        state.written += 1;
        let mine = state.written;
        while state.durable < mine {
            self.check(&state)?;
            if state.syncing {
                state = self.changed.wait(state).unwrap();
                continue;
            }
            let covered = state.written;
            state.syncing = true;
            drop(state);
            let synced = self.file.sync_data();
            state = self.state.lock().unwrap();
            state.syncing = false;
            match synced {
                Ok(()) => state.durable = covered,
                Err(error) => state.error = Some(error.kind()),
            }
            self.changed.notify_all();
        }
        Ok(())
    }
%else
    fn record(&self, record: &[u8]) -> io::Result<()> {
%if timer|gather
        let mut state = self.state.lock().unwrap();
%else
        let state = self.state.lock().unwrap();
%end
%if timer
        self.check(&state)?;
        state.dirty = true;
%end
%if gather
        if state.pending.len() + record.len() > BUFFER_BYTES {
            self.flush(&mut state)?; // a write has whole records only
        }
        state.pending.extend_from_slice(record);
        Ok(())
%else
        let written = (&self.file).write_all(record);
        drop(state);
%if sync_record
        written?;
        self.file.sync_data() // fdatasync(2)
%else
        written
%end
%end
    }
%end
%if gather

    fn flush(&self, state: &mut State) -> io::Result<()> {
        let result = (&self.file).write_all(&state.pending);
        state.pending.clear();
        result
    }
%end
%if timer

    /// Writes what is pending, and with a sync forces it to the device.
    fn tick(&self) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        let dirty = std::mem::take(&mut state.dirty);
%if gather
        self.flush(&mut state)?;
%end
        drop(state);
%if period
        if dirty {
            self.file.sync_data()?; // without the lock: records go on meanwhile
        }
%else
        let _ = dirty;
%end
        Ok(())
    }

    fn run_timer(&self) {
        let mut state = self.state.lock().unwrap();
        loop {
            let (waited, end) =
                self.changed.wait_timeout_while(state, PERIOD, |state| !state.stopped).unwrap();
            drop(waited);
            if !end.timed_out() {
                return;
            }
            let result = self.tick();
            state = self.state.lock().unwrap();
            if let Err(error) = result {
                state.error = Some(error.kind()); // the next call returns it
            }
        }
    }
%end
}
%end

fn main() -> io::Result<()> {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: log FILE");
        std::process::exit(2);
    };
%if threads
    let log = RecordLog::open(&path)?;
%else
    let mut log = RecordLog::open(&path)?;
%end
    let mut lines = io::stdin().lock();
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        log.record(&line)?;
        line.clear();
    }
    log.close()
}
