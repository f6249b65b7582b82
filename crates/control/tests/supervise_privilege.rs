//! A set-user-ID program among the command's children runs without its privilege, and the outcome names it.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use common::{folder, output, skip, supervisor, text};

/// Runs a shell that starts the program, as a user without privilege.
fn as_nobody(weir: &Path, program: &Path) -> Output {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.arg(weir).args(["--max-delay", "20", "--", "sh", "-c", &format!("{} -u; exit 7", text(program))]);
    output(command.env("SUPERVISE_OUTCOME", "1"))
}

#[test]
fn a_child_that_loses_its_privilege_is_named() {
    let name = "a_child_that_loses_its_privilege_is_named";
    if !rustix::process::geteuid().is_root() || Command::new("setpriv").arg("-V").output().is_err() {
        return skip(name, "needs root and setpriv");
    }
    let folder = folder();
    let with_mode =
        |path: &Path, mode| fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("a mode");
    with_mode(folder.path(), 0o755);
    let (weir, program) = (folder.path().join("supervise"), folder.path().join("who"));
    common::programs::copy_program(supervisor(), &weir);
    common::programs::copy_program("/usr/bin/id", &program);
    with_mode(&weir, 0o755);
    with_mode(&program, 0o4755);
    let got = as_nobody(&weir, &program);
    let errors = String::from_utf8_lossy(&got.stderr);
    assert_eq!((got.stdout.as_slice(), got.status.code()), (&b"65534\n"[..], Some(7)), "{errors}");
    assert!(errors.contains("(who) is set-user-ID"), "{errors}");
    with_mode(&program, 0o755);
    let errors = as_nobody(&weir, &program).stderr;
    assert!(
        !String::from_utf8_lossy(&errors).contains("set-user-ID"),
        "{}",
        String::from_utf8_lossy(&errors)
    );
}
