//! With gathered calls real programs have the same output, exit status, files and rest of standard input as bare.

mod support;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use support::{coalesced, directory, program};

const DELAY: Duration = Duration::from_millis(5);

/// The effects of a run that other programs can see.
#[derive(PartialEq)]
struct VisibleEffects {
    status: i32,
    output: Vec<u8>,
    files: BTreeMap<String, Vec<u8>>,
    left_over: Vec<u8>,
}

fn input() -> Vec<u8> {
    (0..400)
        .flat_map(|line| format!("{line} the quick brown fox {}\n", line * 7919 % 1000).into_bytes())
        .collect()
}

fn files(dir: &Path, under: &Path, into: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(under).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.file_name().is_some_and(|name| name == ".git") {
            continue; // it holds times; the scripts compare git's own answers
        }
        let name = entry.strip_prefix(dir).unwrap().display().to_string();
        if entry.is_dir() {
            files(dir, &entry, into);
        } else {
            into.insert(name, std::fs::read(&entry).unwrap_or_default());
        }
    }
}

/// Runs a script in a shell, with files or pipes as its standard streams.
fn run(shell: &str, script: &str, pipes: bool, gathered: bool) -> VisibleEffects {
    let (room, input) = (directory(), input());
    let (dir, side) = (room.path().join("dir"), room.path().join("side"));
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("data"), &input).unwrap();
    let mut command = Command::new(shell);
    command.args(["-c", script, shell]).current_dir(&dir).env("COPY", program_copy()).env("LC_ALL", "C");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("HOME", &dir).env_remove("PYTHONUNBUFFERED");
    std::fs::write(&side, &input).unwrap();
    let mut file = File::open(&side).unwrap();
    let (mut from, mut to) = std::io::pipe().unwrap();
    let (mut out_from, out_to) = std::io::pipe().unwrap();
    let out_path = room.path().join("out");
    to.write_all(&input).unwrap(); // it fits into the pipe
    drop(to);
    let reader = std::thread::spawn(move || {
        let mut all = Vec::new();
        out_from.read_to_end(&mut all).map(|_| all).unwrap()
    });
    if pipes {
        command.stdin(from.try_clone().unwrap()).stderr(out_to.try_clone().unwrap()).stdout(out_to);
    } else {
        let out = File::create(&out_path).unwrap();
        drop(out_to);
        command.stdin(file.try_clone().unwrap()).stderr(out.try_clone().unwrap()).stdout(out);
    }
    let status = if gathered {
        coalesced(&mut command, DELAY, |_| {}).status
    } else {
        let status = command.status().unwrap();
        std::os::unix::process::ExitStatusExt::signal(&status)
            .map_or(status.code().unwrap_or(-1), |n| 128 + n)
    };
    drop(command);
    let piped = reader.join().unwrap();
    let output = if pipes { piped } else { std::fs::read(&out_path).unwrap() };
    let mut left_over = Vec::new();
    if pipes {
        from.read_to_end(&mut left_over).unwrap();
    } else {
        let _ = file.stream_position();
        file.read_to_end(&mut left_over).unwrap();
    }
    let mut found = BTreeMap::new();
    files(&dir, &dir, &mut found);
    VisibleEffects { status, output, files: found, left_over }
}

fn program_copy() -> &'static Path {
    static COPY: std::sync::OnceLock<std::path::PathBuf> = std::sync::OnceLock::new();
    COPY.get_or_init(|| program("cc", "copy"))
}

fn show(bytes: &[u8]) -> String {
    let end = &bytes[bytes.len().saturating_sub(300)..];
    format!("{} bytes, at the end {:?}", bytes.len(), String::from_utf8_lossy(end))
}

/// Compares bare and gathered runs of each script, with files and with pipes.
fn compare(shell: &str, scripts: &[&str]) {
    for (script, pipes) in scripts.iter().flat_map(|script| [(script, false), (script, true)]) {
        let (bare, ours) = (run(shell, script, pipes, false), run(shell, script, pipes, true));
        let what = format!("{shell} -c {script:?}, {}", if pipes { "pipes" } else { "files" });
        assert_eq!(
            bare.status,
            ours.status,
            "status: {what}: {} | {}",
            show(&bare.output),
            show(&ours.output)
        );
        assert!(
            bare.output == ours.output,
            "output: {what}: {} | {}",
            show(&bare.output),
            show(&ours.output)
        );
        assert!(
            bare.left_over == ours.left_over,
            "input: {what}: {} | {}",
            show(&bare.left_over),
            show(&ours.left_over)
        );
        assert!(bare.files == ours.files, "files: {what}");
    }
}

const SHARED_INPUT: &[&str] = &[
    "n=0; while read -r l; do n=$((n+1)); echo \"$n:$l\"; done",
    "read -r a; head -c 100; read -r b; echo \"[$a][$b]\"",
    "for i in 1 2 3 4 5; do read -r l; echo \"$l\"; cat </dev/null; done; sed -n '1,2p;2q'; cat | cksum",
    "while read -r l; do case $l in 9*) (read -r m; echo \"child $m\");; esac; done; echo end",
    "while read -r l; do echo \"$l\" >>log; [ \"${l%% *}\" = 50 ] && break; done; wc -c <log; read -r x; echo \"$x\"",
    "i=0; while [ $i -lt 300 ]; do echo line $i; i=$((i+1)); done >f; while read -r l; do echo \"$l\"; done <f | cksum",
    "exec 3<data; while read -r a <&3 && read -r b; do echo \"$a|$b\"; done; read -r c <&3; echo \"$c\"",
    "i=0; while [ $i -lt 50 ]; do printf x; [ $i = 25 ] && echo err >&2; i=$((i+1)); done",
    "trap 'echo caught' USR1; i=0; while [ $i -lt 40 ]; do echo $i; [ $i = 20 ] && kill -USR1 $$; i=$((i+1)); done",
    "i=0; while [ $i -lt 30 ]; do echo $i; i=$((i+1)); done; exec cat",
    "i=0; while [ $i -lt 30 ]; do echo $i; i=$((i+1)); done; kill -TERM $$",
    "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo $i; done >&2; exit 7",
    "{ while read -r l; do echo \"$l\"; done; } >a 2>&1; cat a a >b; cmp a data; cksum b",
];

#[test]
fn dash_shares_its_input() {
    compare("dash", SHARED_INPUT);
}

#[test]
fn bash_shares_its_input() {
    compare("bash", SHARED_INPUT);
}

#[test]
fn mksh_shares_its_input() {
    compare("mksh", SHARED_INPUT);
}

#[test]
fn tools() {
    compare(
        "sh",
        &[
            "$COPY",
            "$COPY | $COPY | $COPY",
            "head -c 700 | $COPY; $COPY <data | cksum",
            "dd bs=1 count=500 2>/dev/null; dd bs=1 count=1000 2>/dev/null | cksum",
            "dd bs=1 count=3000 of=o 2>/dev/null; dd bs=7 if=data of=o conv=notrunc seek=20 2>/dev/null; cksum o",
            "dd bs=3 skip=100 if=data 2>/dev/null | dd bs=5 2>/dev/null | cksum",
            "tar cf t.tar --mtime=@0 --owner=0 --group=0 data; tar tf t.tar; mkdir x; tar xf t.tar -C x; cmp x/data data; rm t.tar",
            "git init -q .; git add data; git -c user.name=a -c user.email=a@b commit -qm x; git status --short; \
             git cat-file -p HEAD:data | cksum; git fsck 2>&1 | head -3",
            "sed -n '3p;5q'; sed -u 2q; cat | head -1",
            "sed -u 's/fox/cat/' | tail -3; sort -n data | uniq | head -5; cut -d' ' -f2 data | sort | uniq -c",
            "gzip -c data | gunzip -c | cmp - data; xargs -n 40 echo <data | cksum; tee a b <data | cksum",
            "sqlite3 d.db 'create table t(a); insert into t values(1),(2); select sum(a) from t;'; rm d.db; wc; od -c data | tail -2",
        ],
    );
}

#[test]
fn languages() {
    compare(
        "sh",
        &[
            "python3 -c 'import os
for i in range(300): os.write(1, b\"%d,\" % i)
while True:
    b = os.read(0, 1)
    if b in (b\"\", b\"5\"): break
    os.write(1, b)
os.write(2, b\"end\")'; head -2",
            "python3 -c 'import os
f = os.open(\"g\", os.O_RDWR | os.O_CREAT)
for i in range(2000):
    os.write(f, b\"%04d\" % i)
    if i % 97 == 0:
        os.lseek(f, -4, 1); assert os.read(f, 4) == b\"%04d\" % i; assert os.fstat(f).st_size == 4 * i + 4
d = os.dup(f)
for i in range(50): os.write(d if i % 2 else f, b\"ab\")
os.lseek(f, 0, 0); print(len(os.read(d, 100000)))'",
            "python3 -c 'import os
a = os.open(\"h\", os.O_WRONLY | os.O_CREAT | os.O_APPEND); b = os.open(\"h\", os.O_RDONLY)
for i in range(300):
    os.write(a, b\"x%d\" % i)
    if i > 200: print(os.read(b, 3))
for i in range(20): os.write(a, b\"A\")
if os.fork() == 0:
    for i in range(20): os.write(a, b\"B\")
    os._exit(3)
print(os.wait()[1])
for i in range(20): os.write(a, b\"C\")'",
            "python3 -c 'import os, mmap
f = os.open(\"m\", os.O_RDWR | os.O_CREAT); os.ftruncate(f, 4096); m = mmap.mmap(f, 4096)
for i in range(100):
    os.write(f, b\"z\")
    assert m[i:i+1] == b\"z\", i'",
            "python3 -c 'import os, threading
def w(n):
    for i in range(200): os.write(1, b\"t\")
for i in range(30): os.write(1, b\".\")
t = threading.Thread(target=w, args=(1,)); t.start(); t.join()
for i in range(30): os.write(1, b\"-\")'",
            "perl -e 'while (sysread(STDIN, $b, 1)) { syswrite(STDOUT, $b eq \"q\" ? \"Q\" : $b); last if ++$n == 900 } print \"buffered\\n\"; syswrite(STDERR, \"e\") for 1..20; exit 4'; cat",
            "perl -e '$SIG{ALRM} = sub { syswrite(STDOUT, \"!\") }; for (1..400) { syswrite(STDOUT, \"a\"); kill ALRM => $$ if $_ % 50 == 0 }'",
            "perl -e 'for (1..50) { syswrite(STDOUT, \"p\") } if (!fork) { syswrite(STDOUT, \"c\") for 1..50; kill 9, $$ } wait; syswrite(STDOUT, $? ? \"k\" : \"?\") for 1..20'",
        ],
    );
}
