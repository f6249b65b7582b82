//! A program on a pseudo-terminal: the test types keys, and an emulator interprets what the program draws.
#![allow(dead_code)] // not every test binary uses everything

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Action, Termios, Winsize, tcflow, tcgetattr, tcsetwinsize};

/// The longest wait for a screen or an exit, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A program and its terminal. Kills the program on drop.
pub struct Session {
    pub child: Child,
    /// None once the terminal is closed.
    ends: Option<TerminalEnds>,
    screen: Arc<Mutex<vt100::Parser>>,
    /// The terminal's settings before the program started.
    settings: Termios,
}

struct TerminalEnds {
    master: File,
    slave: File,
    emulator: JoinHandle<()>,
    stop: Arc<AtomicBool>,
}

impl Session {
    /// Starts `command` with a new terminal as its controlling terminal.
    pub fn start(mut command: Command, columns: u16, rows: u16) -> Session {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&master).expect("grantpt");
        unlockpt(&master).expect("unlockpt");
        let name = ptsname(&master, Vec::new()).expect("ptsname");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let (master, slave) =
            (File::from(master), File::from(rustix::fs::open(name, flags, Mode::empty()).unwrap()));
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&slave, size).expect("a size");
        let settings = tcgetattr(&slave).expect("its settings");
        let end = || slave.try_clone().expect("dup");
        command.env("TERM", "xterm").stdin(end()).stdout(end()).stderr(end());
        // SAFETY: the closure only makes two system calls between fork and exec.
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                Ok(rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?)
            });
        }
        let child = crate::common::with_signals(&mut command).spawn().expect("the program starts");
        drop(command);
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let stop = Arc::<AtomicBool>::default();
        let emulator = interpret(master.try_clone().expect("dup"), Arc::clone(&screen), Arc::clone(&stop));
        Session { child, ends: Some(TerminalEnds { master, slave, emulator, stop }), screen, settings }
    }

    fn ends(&self) -> &TerminalEnds {
        self.ends.as_ref().expect("the terminal is open")
    }

    /// Closes the terminal, as a terminal emulator does with its window. The kernel sends SIGHUP to the program.
    pub fn close(&mut self) {
        let ends = self.ends.take().expect("the terminal is open");
        ends.stop.store(true, Ordering::Relaxed);
        ends.emulator.join().expect("it ends");
    }

    /// Stops the output of the terminal, as Ctrl-S does: a write blocks.
    pub fn stop_output(&self) {
        tcflow(&self.ends().slave, Action::OOff).expect("tcflow");
    }

    /// Returns the text on the screen.
    pub fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// Changes the size of the terminal. The kernel sends SIGWINCH to the program.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.screen.lock().unwrap().screen_mut().set_size(rows, columns);
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.ends().slave, size).expect("a size");
    }

    pub fn keys(&mut self, keys: &str) {
        (&self.ends().master).write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    /// Waits until `condition` is true of the text on the screen.
    pub fn until(&self, what: &str, condition: impl Fn(&str) -> bool) {
        let began = Instant::now();
        while !condition(&self.text()) {
            assert!(began.elapsed() < LIMIT, "{what}:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the program has ended.
    pub fn end(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("waitpid") {
                return status;
            }
            assert!(began.elapsed() < LIMIT, "the program does not end:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns true if the terminal's input, output and local modes, screen and cursor are as before the program started.
    pub fn is_restored(&self) -> bool {
        let now = tcgetattr(&self.ends().slave).expect("its settings");
        let modes = |one: &Termios| (one.local_modes, one.input_modes, one.output_modes);
        let parser = self.screen.lock().unwrap();
        modes(&now) == modes(&self.settings)
            && !parser.screen().alternate_screen()
            && !parser.screen().hide_cursor()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn interpret(mut from: File, screen: Arc<Mutex<vt100::Parser>>, stop: Arc<AtomicBool>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut block = [0; 4096];
        while !stop.load(Ordering::Relaxed) {
            let timeout = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
            let mut descriptors = [PollFd::new(&from, PollFlags::IN)];
            if matches!(poll(&mut descriptors, Some(&timeout)), Ok(0) | Err(rustix::io::Errno::INTR)) {
                continue;
            }
            let Ok(got @ 1..) = from.read(&mut block) else { return };
            screen.lock().unwrap().process(&block[..got]);
        }
    })
}
