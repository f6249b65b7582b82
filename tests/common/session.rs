//! A program on a terminal of its own, driven by keys; what the terminal shows is read by an emulator.
#![allow(dead_code)] // not every test binary uses everything

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

/// Nothing that is waited for takes longer, not even on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A program with its terminal; killed at the end.
pub struct Session {
    pub child: Child,
    ours: File,
    theirs: File,
    screen: Arc<Mutex<vt100::Parser>>,
    before: Termios,
}

impl Session {
    /// Starts it on a new terminal, which is its controlling one.
    pub fn start(mut command: Command, columns: u16, rows: u16) -> Session {
        let ours =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&ours).expect("grantpt");
        unlockpt(&ours).expect("unlockpt");
        let name = ptsname(&ours, Vec::new()).expect("ptsname");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let (ours, theirs) =
            (File::from(ours), File::from(rustix::fs::open(name, flags, Mode::empty()).unwrap()));
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&theirs, size).expect("a size");
        let before = tcgetattr(&theirs).expect("its settings");
        let end = || theirs.try_clone().expect("dup");
        command.env("TERM", "xterm").stdin(end()).stdout(end()).stderr(end());
        // SAFETY: two system calls are made between fork and exec, and nothing else.
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                Ok(rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?)
            });
        }
        let child = crate::common::with_signals(&mut command).spawn().expect("it starts");
        drop(command);
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        show(ours.try_clone().expect("dup"), Arc::clone(&screen));
        Session { child, ours, theirs, screen, before }
    }

    /// What the terminal shows.
    pub fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// The terminal has another size from now on; the program gets SIGWINCH.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.screen.lock().unwrap().screen_mut().set_size(rows, columns);
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.theirs, size).expect("a size");
    }

    /// Types.
    pub fn keys(&mut self, keys: &str) {
        self.ours.write_all(keys.as_bytes()).expect("it is read");
    }

    /// Waits until the terminal shows all of it.
    pub fn until(&self, what: &str, shown: impl Fn(&str) -> bool) {
        let began = Instant::now();
        while !shown(&self.text()) {
            assert!(began.elapsed() < LIMIT, "{what}:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until it has ended.
    pub fn end(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("waitpid") {
                return status;
            }
            assert!(began.elapsed() < LIMIT, "it does not end:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Is the terminal as it was before: its settings, the screen, the cursor?
    pub fn is_restored(&self) -> bool {
        let now = tcgetattr(&self.theirs).expect("its settings");
        let modes = |one: &Termios| (one.local_modes, one.input_modes, one.output_modes);
        let parser = self.screen.lock().unwrap();
        modes(&now) == modes(&self.before)
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

fn show(mut from: File, screen: Arc<Mutex<vt100::Parser>>) {
    std::thread::spawn(move || {
        let mut block = [0; 4096];
        while let Ok(got @ 1..) = from.read(&mut block) {
            screen.lock().unwrap().process(&block[..got]);
        }
    });
}
