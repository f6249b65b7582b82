use super::*;

#[test]
fn another_user_sees_the_arguments_but_not_the_executable() {
    if !rustix::process::geteuid().is_root() {
        let name = "another_user_sees_the_arguments_but_not_the_executable";
        return crate::breakpoint::tests::skip(name, "only root can become another user");
    }
    let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep");
    let (pid, nobody) = (child.id(), 65534);
    let seen = std::thread::spawn(move || {
        // SAFETY: the call takes numbers, and changes the user of this thread alone, which ends.
        assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, nobody, nobody, nobody) }, 0);
        names(pid)
    });
    let (exe, comm, arguments) = seen.join().expect("the names");
    child.kill().and_then(|()| child.wait()).expect("its end");
    assert_eq!((exe.exact(), comm.exact()), ("", "sleep"));
    assert_eq!(arguments, ["sleep", "60"].map(Untrusted::from));
}

#[test]
fn only_some_of_many_numbers_are_read() {
    let _files: Vec<_> = (0..8).map(|_| fs::File::open("/dev/null").unwrap()).collect();
    assert_eq!(some_numbers("/proc/self/fd", 5).len(), 5);
    assert!(numbers("/proc/self/fd").len() >= 8);
    assert!(some_numbers("/no/such/directory", 5).is_empty());
}

#[test]
fn a_process_does_not_hide_behind_its_name() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let (end, wait) = std::sync::mpsc::channel::<()>();
    let named = move || {
        // SAFETY: the string ends with NUL.
        unsafe { libc::prctl(libc::PR_SET_NAME, c"\xff)(\n".as_ptr()) };
        // SAFETY: gettid returns a number and has no other effect.
        sender.send(unsafe { libc::gettid() } as u32).expect("a receiver");
        wait.recv().expect_err("the other end is dropped");
    };
    let thread = std::thread::spawn(named);
    let tid = receiver.recv().expect("a number");
    assert_eq!(status(tid).map(|status| status.tgid as u32), Some(std::process::id()));
    assert!(!is_dead(tid) && last_processor(tid).is_some());
    assert_eq!(label(tid), format!("process {tid} (\\xff)(\\n)"));
    drop(end);
    thread.join().expect("its end");
}

#[test]
fn ignored_signals_have_no_effect() {
    let bit = |signal: i32| 1 << (signal - 1);
    let (child, user) = (bit(libc::SIGCHLD), bit(libc::SIGUSR1));
    assert!(!has_effect(0, 0, 0, 0));
    assert!(!has_effect(child, 0, 0, 0), "ignored by default");
    assert!(has_effect(child, 0, 0, child), "caught");
    assert!(has_effect(user, 0, 0, 0), "kills by default");
    assert!(!has_effect(user, user, 0, user), "blocked");
    assert!(!has_effect(user, 0, user, 0), "ignored");
    assert!(has_effect(child | user, child, 0, user));
}

#[test]
fn io_counters_are_the_first_four_lines() {
    let text = b"rchar: 10\nwchar: 20\nsyscr: 3\nsyscw: 4\nread_bytes: 0\n";
    let counts = IoTotals { read_calls: 3, write_calls: 4, read_bytes: 10, written_bytes: 20 };
    assert_eq!(parse_io(text), Some(counts));
    assert_eq!(parse_io(b"rchar: 10\nwchar: x\nsyscr: 3\nsyscw: 4\n"), None);
    assert_eq!(parse_io(b"rchar: 10\n"), None);
}

#[test]
fn own_counters_grow_with_a_read() {
    let before = own_io(std::process::id()).unwrap();
    fs::read("/proc/self/stat").unwrap();
    assert!(own_io(std::process::id()).unwrap().read_calls > before.read_calls);
}

#[test]
fn counters_that_cannot_be_read_make_the_sum_unknown() {
    let text = || Ok(b"rchar: 10\nwchar: 20\nsyscr: 3\nsyscw: 4\n".to_vec());
    let error = |number| Err(std::io::Error::from_raw_os_error(number));
    let one = IoTotals { read_calls: 3, write_calls: 4, read_bytes: 10, written_bytes: 20 };
    assert_eq!(
        sum_io([text(), error(libc::ESRCH), text(), error(libc::ENOENT)].into_iter()),
        Some(one.plus(one))
    );
    assert_eq!(sum_io([error(libc::ESRCH)].into_iter()), None, "the process has ended");
    assert_eq!(sum_io([text(), error(libc::EACCES)].into_iter()), None);
    assert_eq!(sum_io([error(libc::EACCES)].into_iter()), None);
    assert_eq!(sum_io([Ok(Vec::new())].into_iter()), None);
}

#[test]
fn names_are_those_of_the_kernel() {
    let mut command = std::process::Command::new("sh");
    let mut child =
        command.args(["-c", "read line", "", "last"]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    while !names(child.id()).0.exact().contains("sh") || names(child.id()).2.len() != 5 {
        std::thread::yield_now(); // until the child has called execve(2)
    }
    let (exe, comm, arguments) = names(child.id());
    assert!(exe.exact().starts_with('/'), "{exe}");
    let expected = ["sh", "-c", "read line", "", "last"].map(Untrusted::from).to_vec();
    assert_eq!((comm.exact(), arguments), ("sh", expected));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(names(child.id()), Default::default());
    assert_eq!(
        (split_nul(b""), split_nul(b"\0"), split_nul(b"a")),
        (vec![], vec![Untrusted::default()], vec![Untrusted::from("a")])
    );
}

#[test]
fn a_child_is_a_descendant() {
    let mut child = std::process::Command::new("sleep").arg("5").spawn().unwrap();
    let found = with_descendants(std::process::id());
    assert_eq!(found[0], std::process::id());
    assert!(found.contains(&child.id()));
    child.kill().unwrap();
    child.wait().unwrap();
}
