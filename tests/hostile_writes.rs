//! Root's weir writes for a process of another user only what that process itself could have written.

mod common;

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use common::programs::compile_c;
use common::{KillOnDrop, is_root, run, skip, text, wait_for, wait_until_let_go, weir};

const NOBODY: u32 = 65534;

/// A directory that everybody can enter, with the program; None if the test cannot run here.
fn folder(test: &str) -> Option<tempfile::TempDir> {
    if !is_root() {
        skip(test, "it needs root");
        return None;
    }
    let dir = tempfile::tempdir().expect("a directory");
    assert!(compile_c("hostile/writes", &[], dir.path()), "gcc builds its program");
    for path in [dir.path().to_path_buf(), dir.path().join("writes")] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).expect("a mode");
    }
    Some(dir)
}

/// Makes a file that everybody can write, with this mode.
fn file(dir: &Path, mode: u32) -> PathBuf {
    let path = dir.join("file");
    fs::write(&path, "").expect("a file");
    fs::set_permissions(&path, Permissions::from_mode(mode)).expect("a mode");
    path
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("its metadata").mode() & 0o7777
}

/// Returns the command that runs the program as another user.
fn as_nobody(dir: &Path, arguments: &[&str]) -> Vec<String> {
    let id = NOBODY.to_string();
    let words = ["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"];
    let program = dir.join("writes").display().to_string();
    words
        .into_iter()
        .map(String::from)
        .chain([program])
        .chain(arguments.iter().map(ToString::to_string))
        .collect()
}

/// Starts a command and returns it when it has printed "ready".
fn start(words: &[String]) -> KillOnDrop {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child: Child = command.spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    KillOnDrop(child)
}

/// Ends a program by a line of input. Returns its exit code.
fn end(program: &mut KillOnDrop) -> Option<i32> {
    program.0.stdin.take().expect("a pipe").write_all(b"\n").expect("it reads");
    program.0.wait().expect("its end").code()
}

fn flush(dir: &Path, program: &KillOnDrop) -> Output {
    run(dir, &["flush", "--wait", "100ms", &program.0.id().to_string()])
}

/// Runs the program on this file under `weir run --rescue`, and kills it. Returns weir's exit code.
fn run_and_kill(dir: &Path, path: &str) -> Option<i32> {
    let words = as_nobody(dir, &["file", path]);
    let mut arguments = vec!["run", "--rescue", "--"];
    arguments.extend(words.iter().map(String::as_str));
    let mut command = weir(dir, &arguments);
    let mut run =
        KillOnDrop(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts"));
    let mut line = String::new();
    BufReader::new(run.0.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    let child = fs::read_to_string(format!("/proc/{0}/task/{0}/children", run.0.id())).expect("its children");
    assert!(Command::new("kill").args(["-KILL", child.trim()]).status().expect("kill").success());
    run.0.wait().expect("its end").code()
}

#[test]
fn flush_takes_the_set_user_id_bit_as_the_process_would() {
    let Some(dir) = folder("flush_takes_the_set_user_id_bit_as_the_process_would") else { return };
    let path = file(dir.path(), 0o6777);
    let mut program = start(&as_nobody(dir.path(), &["file", &path.display().to_string()]));
    let output = flush(dir.path(), &program);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!((fs::read_to_string(&path).expect("text").as_str(), mode(&path)), ("payload ", 0o777));
    assert_eq!(end(&mut program), Some(0), "it goes on");
    assert_eq!(fs::read_to_string(&path).expect("text"), "payload end", "nothing is written twice");
}

#[test]
fn rescue_takes_the_set_user_id_bit_as_the_process_would() {
    let Some(dir) = folder("rescue_takes_the_set_user_id_bit_as_the_process_would") else { return };
    let path = file(dir.path(), 0o6777);
    assert_eq!(run_and_kill(dir.path(), &path.display().to_string()), Some(137));
    assert_eq!((fs::read_to_string(&path).expect("text").as_str(), mode(&path)), ("payload ", 0o777));
}

#[test]
fn bounded_delay_takes_the_set_user_id_bit_as_the_process_would() {
    let Some(dir) = folder("bounded_delay_takes_the_set_user_id_bit_as_the_process_would") else { return };
    let path = file(dir.path(), 0o6777);
    let words = as_nobody(dir.path(), &["file", &path.display().to_string()]);
    let mut arguments = vec!["run", "--max-delay", "20ms", "--"];
    arguments.extend(words.iter().map(String::as_str));
    let mut command = weir(dir.path(), &arguments);
    let mut run = KillOnDrop(command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts"));
    wait_for("the bytes", || fs::read_to_string(&path).expect("text") == "payload ");
    assert_eq!(mode(&path), 0o777);
    assert_eq!(end(&mut run), Some(0));
    assert_eq!(fs::read_to_string(&path).expect("text"), "payload end", "nothing is written twice");
}

#[test]
fn a_socket_gets_the_identity_of_the_process() {
    use rustix::net::{RecvAncillaryMessage, RecvFlags, recvmsg, sockopt};
    let Some(dir) = folder("a_socket_gets_the_identity_of_the_process") else { return };
    let path = dir.path().join("socket");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    fs::set_permissions(&path, Permissions::from_mode(0o777)).expect("a mode");
    sockopt::set_socket_passcred(&socket, true).expect("SO_PASSCRED");
    let program = start(&as_nobody(dir.path(), &["socket", &path.display().to_string()]));
    assert!(flush(dir.path(), &program).status.success());
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
    let mut control = rustix::net::RecvAncillaryBuffer::new(&mut space);
    let mut data = [0; 99];
    let mut vector = [std::io::IoSliceMut::new(&mut data)];
    let message = recvmsg(&socket, &mut vector, &mut control, RecvFlags::DONTWAIT).expect("a message");
    let sender = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmCredentials(sender) => {
            Some((sender.uid.as_raw(), sender.pid.as_raw_nonzero().get() as u32))
        }
        _ => None,
    });
    assert_eq!(sender, Some((NOBODY, program.0.id())));
    assert_eq!(&data[..message.bytes], b"payload ");
}

#[test]
fn a_file_of_procfs_is_refused() {
    let Some(dir) = folder("a_file_of_procfs_is_refused") else { return };
    let mut program = start(&as_nobody(dir.path(), &["file", "/proc/self/oom_score_adj"]));
    let output = flush(dir.path(), &program);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("it is a file of procfs"), "{}", text(&output.stderr));
    assert_eq!(end(&mut program), Some(3), "its own write is invalid");
}

#[test]
fn a_filter_of_the_process_judges_the_write() {
    let Some(dir) = folder("a_filter_of_the_process_judges_the_write") else { return };
    let path = file(dir.path(), 0o6777);
    let mut program = start(&as_nobody(dir.path(), &["filtered", &path.display().to_string()]));
    let output = flush(dir.path(), &program);
    if text(&output.stderr).contains("a seccomp filter that weir cannot take") {
        return skip("a_filter_of_the_process_judges_the_write", "the kernel shows no filters");
    }
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!((fs::read_to_string(&path).expect("text").as_str(), mode(&path)), ("payload ", 0o777));
    assert_eq!(end(&mut program), Some(0));
    assert_eq!(fs::read_to_string(&path).expect("text"), "payload end", "nothing is written twice");

    let path = file(dir.path(), 0o666);
    let program = start(&as_nobody(dir.path(), &["refused", &path.display().to_string()]));
    let output = flush(dir.path(), &program);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("EPERM"), "{}", text(&output.stderr));
    assert_eq!(fs::read_to_string(&path).expect("text"), "");
    wait_until_let_go(program.0.id());
}

#[test]
fn no_signal_comes_from_a_write_of_weir() {
    let Some(dir) = folder("no_signal_comes_from_a_write_of_weir") else { return };
    let program = start(&as_nobody(dir.path(), &["pipe"]));
    let output = flush(dir.path(), &program);
    assert!(text(&output.stderr).contains("EPIPE"), "{}", text(&output.stderr));
    let path = file(dir.path(), 0o666);
    let limited = [
        &["prlimit", "--fsize=3"].map(String::from)[..],
        &as_nobody(dir.path(), &["file", &path.display().to_string()]),
    ]
    .concat();
    let other = start(&limited);
    let output = flush(dir.path(), &other);
    assert!(text(&output.stderr).contains("EFBIG"), "{}", text(&output.stderr));
    assert_eq!(fs::read_to_string(&path).expect("text"), "pay", "up to the limit of the process");
    for program in [program, other] {
        wait_until_let_go(program.0.id());
        let status = fs::read_to_string(format!("/proc/{}/status", program.0.id())).expect("its status");
        assert!(status.contains("SigPnd:\t0000000000000000"), "{status}");
    }
}

#[test]
fn saved_bytes_belong_to_the_user_of_the_process() {
    let Some(dir) = folder("saved_bytes_belong_to_the_user_of_the_process") else { return };
    assert_eq!(run_and_kill(dir.path(), "/dev/full"), Some(137));
    let saved: Vec<String> =
        common::names(dir.path()).into_iter().filter(|name| name.starts_with("weir-rescue-")).collect();
    assert_eq!(saved.len(), 2, "{saved:?}");
    for name in saved {
        let metadata = fs::metadata(dir.path().join(&name)).expect("its metadata");
        assert_eq!(
            (metadata.uid(), metadata.gid(), metadata.mode() & 0o777),
            (NOBODY, NOBODY, 0o600),
            "{name}"
        );
    }
}
