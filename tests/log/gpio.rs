//! GPIO lines. Where the kernel has no chip, a preloaded library replaces it: it has the kernel's structures from
//! linux/gpio.h, so what is tested is weir's side of the interface.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::common::{KillOnDrop, disk_dir, run, skip, text, wait_for, weir, with_signals};
use crate::lines_of;

/// Builds the library; none if there is no C compiler.
fn stand_in(dir: &Path) -> Option<()> {
    std::fs::write(dir.join("gpio.c"), include_str!("gpio_standin.c")).expect("the source");
    let built = Command::new("cc")
        .args([
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-D_GNU_SOURCE",
            "-shared",
            "-fPIC",
            "-o",
            "gpio.so",
            "gpio.c",
            "-ldl",
        ])
        .current_dir(dir)
        .output();
    let made = Command::new("mkfifo").arg(dir.join("edges")).status();
    (built.is_ok_and(|built| built.status.success()) && made.is_ok_and(|made| made.success())).then_some(())
}

/// Starts a collector of line 3 of the chip.
fn start(dir: &Path, line: &str) -> KillOnDrop {
    let mut command =
        weir(dir, &["log", "-o", "out", "--quiet", "--tag", "--stamp", "epoch", "--gpio", line]);
    with_signals(&mut command);
    command.env("LD_PRELOAD", dir.join("gpio.so")).stdin(Stdio::null());
    for name in ["edges", "value", "flags"] {
        command.env(format!("STANDIN_{}", name.to_uppercase()), dir.join(name));
    }
    let child = KillOnDrop(command.spawn().expect("weir starts"));
    wait_for("the request", || dir.join("flags").exists() && dir.join("out").exists());
    child
}

/// Returns a struct gpio_v2_line_event.
fn edge(timestamp_ns: u64, id: u32, number: u32) -> Vec<u8> {
    let mut bytes = timestamp_ns.to_ne_bytes().to_vec();
    for value in [id, 3, number, number] {
        bytes.extend(value.to_ne_bytes());
    }
    bytes.resize(48, 0);
    bytes
}

fn stop(mut child: KillOnDrop) {
    // SAFETY: kill(2) has no memory effects; the child is not reaped yet, so the PID is its own.
    assert_eq!(unsafe { libc::kill(child.0.id() as i32, libc::SIGTERM) }, 0);
    assert!(child.0.wait().expect("it ends").success());
}

#[test]
fn edges_have_the_time_of_the_kernel() {
    let test = "edges_have_the_time_of_the_kernel";
    let dir = disk_dir();
    if stand_in(dir.path()).is_none() {
        return skip(test, "needs cc, linux/gpio.h and mkfifo");
    }
    let child = start(dir.path(), "/dev/gpiochip9:3,pull-up");
    let mut edges = std::fs::File::options().write(true).open(dir.path().join("edges")).expect("the FIFO");
    let ns = |seconds: u64| {
        SystemTime::now().duration_since(UNIX_EPOCH).expect("now").as_nanos() as u64 - seconds * 1_000_000_000
    };
    let (first, second) = (ns(100), ns(50));
    // More than one in one read; then a number that shows that the kernel dropped two.
    edges.write_all(&[edge(first, 1, 1), edge(second, 2, 2)].concat()).expect("written");
    edges.write_all(&edge(ns(1), 1, 5)).expect("written");
    let lines = lines_of(&dir.path().join("out"), 4);
    let stamp = |time: u64| format!("{}.{:06}", time / 1_000_000_000, time / 1000 % 1_000_000);
    assert_eq!(lines[0], format!("{} gpiochip9:3: 1", stamp(first)));
    assert_eq!(lines[1], format!("{} gpiochip9:3: 0", stamp(second)));
    assert!(lines[2].ends_with("weir: weir: 2 records of gpiochip9:3 dropped by the kernel"), "{lines:?}");
    assert!(lines[3].ends_with(" gpiochip9:3: 1"), "{lines:?}");
    // Input, both edges, pull-up, stamps of CLOCK_REALTIME: GPIO_V2_LINE_FLAG_* in linux/gpio.h.
    let flags = std::fs::read_to_string(dir.path().join("flags")).expect("the request");
    assert_eq!(flags, format!("1 3 {:#x} weir log\n", 1 << 2 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 11));
    stop(child);
}

#[test]
fn a_polled_line_logs_its_changes() {
    let test = "a_polled_line_logs_its_changes";
    let dir = disk_dir();
    if stand_in(dir.path()).is_none() {
        return skip(test, "needs cc, linux/gpio.h and mkfifo");
    }
    let set = |value: &str| std::fs::write(dir.path().join("value"), value).expect("written");
    set("0");
    let child = start(dir.path(), "/dev/gpiochip9:3,poll=5ms,active-low");
    for (number, value) in ["0", "1", "0"].into_iter().enumerate() {
        set(value);
        let lines = lines_of(&dir.path().join("out"), number + 1);
        assert!(lines[number].ends_with(&format!(" gpiochip9:3: {value}")), "{lines:?}");
    }
    stop(child);
    assert_eq!(lines_of(&dir.path().join("out"), 3).len(), 3, "only changes are records");
}

#[test]
fn a_chip_that_is_missing_is_named() {
    let dir = disk_dir();
    let output = run(dir.path(), &["log", "-o", "out", "--gpio", "/dev/gpiochip98765:3"]);
    assert_eq!(output.status.code(), Some(1));
    let errors = text(&output.stderr);
    assert!(errors.contains("gpio /dev/gpiochip98765:3: ") && errors.contains("gpioinfo"), "{errors}");
}
