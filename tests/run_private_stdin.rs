//! `weir run --private-stdin`: programs that the command starts do not read its input, nor that of its loops.

mod common;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use common::{disk_dir, run, skip, text, weir};

/// Shells that load the library.
const SHELLS: [&[&str]; 5] = [&["bash"], &["dash"], &["mksh"], &["ksh"], &["busybox", "sh"]];

/// A loop over a file, whose child reads all input that it gets.
const LOOP: &str = "while read h; do cat > /dev/null; echo \"$h\"; done < hosts\n";

/// Commands whose output is the same with and without --private-stdin: the input is meant for the child.
const FOR_THE_CHILD: [&str; 9] = [
    "{ head -n 1; cat; } < hosts",
    "read h < hosts; { head -n 1; cat; } < hosts",
    "while read h; do :; done < hosts; { head -n 1; cat; } < hosts",
    "while read h; do wc -l < hosts; done < hosts",
    "while read h; do sort < other; done < hosts",
    "while read h; do echo piped | cat; done < hosts",
    "while read h; do cat <<X\ndocument $h\nX\ndone < hosts",
    "exec 3< hosts; while read h <&3; do cat <&3; done",
    "cat hosts | (read h; exec sort -r)",
];

/// Commands and their output with --private-stdin: the shell reads the input itself.
const FOR_THE_SHELL: [(&str, &str); 5] = [
    ("while read a; do while read b; do cat; echo $a$b; done < other; cat; done < hosts", "1x1y2x2y3x3y"),
    ("cat hosts | while read h; do cat; echo $h; done", "123"),
    ("while read h; do x=$(cat); (cat); cat | cat; echo $h; done < hosts", "123"),
    ("while read h; do weir-no-such-command 2> /dev/null; sh -c 'cat; cat'; echo $h; done < hosts", "123"),
    ("while read h; do (read x; cat; echo $h$x); done < hosts", "123"),
];

fn prepare(dir: &Path) {
    std::fs::write(dir.join("hosts"), "1\n2\n3\n").unwrap();
    std::fs::write(dir.join("other"), "x\ny\n").unwrap();
    std::fs::write(dir.join("loop.sh"), LOOP).unwrap();
}

fn has(shell: &[&str]) -> bool {
    let found = Command::new(shell[0]).arg("--help").stdin(Stdio::null()).output().is_ok();
    if !found {
        skip(&format!("private stdin of {}", shell[0]), "the shell is not here");
        return false;
    }
    // busybox has a package that is linked statically, for which --private-stdin says that it has no effect.
    let ldd = format!("ldd \"$(command -v {})\"", shell[0]);
    let is_dynamic =
        Command::new("sh").args(["-c", &ldd]).output().is_ok_and(|output| output.status.success());
    if !is_dynamic {
        skip(&format!("private stdin of {}", shell[0]), "the shell is linked statically here");
    }
    is_dynamic
}

/// Runs a script in a shell under `weir run --private-stdin`, without standard input of its own.
fn private(dir: &Path, shell: &[&str], script: &str) -> Output {
    let words = [&["run", "--private-stdin", "--"], shell, &["-c", script]].concat();
    weir(dir, &words).stdin(Stdio::null()).output().unwrap()
}

fn joined(output: &Output) -> String {
    text(&output.stdout).replace('\n', "")
}

#[test]
fn a_loop_over_a_file_sees_every_line() {
    let dir = disk_dir();
    prepare(dir.path());
    for shell in SHELLS.into_iter().filter(|shell| has(shell)) {
        let words = [&["run", "--private-stdin", "--"], shell, &["loop.sh"]].concat();
        let output = run(dir.path(), &words);
        assert_eq!((joined(&output).as_str(), text(&output.stderr).as_str()), ("123", ""), "{shell:?}");
        for (script, lines) in FOR_THE_SHELL {
            assert_eq!(joined(&private(dir.path(), shell, script)), lines, "{shell:?}: {script}");
        }
    }
}

#[test]
fn input_that_is_meant_for_a_child_stays() {
    let dir = disk_dir();
    prepare(dir.path());
    for shell in SHELLS.into_iter().filter(|shell| has(shell)) {
        for script in FOR_THE_CHILD {
            let mut bare = Command::new(shell[0]);
            bare.args(&shell[1..]).args(["-c", script]).current_dir(dir.path()).stdin(Stdio::null());
            let bare = joined(&bare.output().unwrap());
            assert!(!bare.is_empty(), "{shell:?}: {script}");
            assert_eq!(joined(&private(dir.path(), shell, script)), bare, "{shell:?}: {script}");
        }
    }
}

/// The command's own input is private too; another open file of the same inode is not.
#[test]
fn the_commands_own_input_is_private_but_not_its_file() {
    let dir = disk_dir();
    prepare(dir.path());
    let script = "read a; echo $a; cat; wc -l < hosts; sh -c cat; read b; echo $b";
    // Without kcmp(2), as in some containers, position and inode tell the same.
    let denied = ["strace", "-qq", "-f", "-o", "/dev/null", "-e", "inject=kcmp:error=EPERM"];
    for tracer in [&[][..], &denied] {
        let words = [tracer, &[common::WEIR, "run", "--private-stdin", "--", "bash", "-c", script]].concat();
        let mut command = Command::new(words[0]);
        let hosts = std::fs::File::open(dir.path().join("hosts")).unwrap();
        let output = command.args(&words[1..]).current_dir(dir.path()).stdin(hosts).output().unwrap();
        assert_eq!(joined(&output), "132", "{tracer:?}: {}", text(&output.stderr));
    }
}

/// system(3) and popen(3) start their shell in libc.
#[test]
fn the_input_of_awk_is_private_for_its_commands() {
    let dir = disk_dir();
    prepare(dir.path());
    let script = "awk '{ system(\"cat\"); \"cat; echo e\" | getline x; print $0 x }' < hosts";
    assert_eq!(joined(&private(dir.path(), &["sh"], script)), "1e2e3e");
    let python = "import os\nos.read(0, 2)\npid = os.posix_spawnp('cat', ['cat'], os.environ)\nos.waitpid(pid, 0)\n\
                  print(os.read(0, 2))\n";
    std::fs::write(dir.path().join("spawn.py"), python).unwrap();
    assert_eq!(joined(&private(dir.path(), &["sh"], "python3 spawn.py < hosts")), "b'2\\n'");
}

/// Python starts programs by vfork(2), whose child shares the memory of its parent but not its descriptors.
#[test]
fn a_child_of_vfork_keeps_the_input_that_it_is_given() {
    let dir = disk_dir();
    prepare(dir.path());
    let python = "import subprocess as s, sys; print(sys.stdin.readline(), end='', flush=True)\n\
                  for stdin in [None, s.PIPE, open('other')]:\n    \
                  print(s.run(['cat'], stdin=stdin, stdout=s.PIPE).stdout)\n";
    std::fs::write(dir.path().join("x.py"), python).unwrap();
    let many: String = (0..20_000).map(|number| format!("{number}\n")).collect();
    std::fs::write(dir.path().join("many"), many).unwrap();
    let output = private(dir.path(), &["sh"], "python3 x.py < many");
    assert_eq!(text(&output.stdout), "0\nb''\nb''\nb'x\\ny\\n'\n", "{}", text(&output.stderr));
}

#[test]
fn a_static_shell_is_reported() {
    let dir = disk_dir();
    let source = "int main(void) { return 0; }\n";
    std::fs::write(dir.path().join("still.c"), source).unwrap();
    let mut compiler = Command::new("cc");
    assert!(
        compiler
            .args(["-static", "still.c", "-o", "still"])
            .current_dir(dir.path())
            .status()
            .unwrap()
            .success()
    );
    let output = run(dir.path(), &["run", "--private-stdin", "--", "./still"]);
    assert!(output.status.success());
    let errors = text(&output.stderr);
    assert!(
        errors.lines().count() == 1 && errors.contains("not for a file that the command reads"),
        "{errors}"
    );
}
