//! Programs that a test makes. Also for the tests of other crates, which name this file by its path.
#![allow(dead_code)] // not every test binary uses everything

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::Mutex;

/// Copies a program by cp(1). A file that this process itself wrote may still be open in a child that another test has
/// just forked; then execve(2) fails with ETXTBSY.
pub fn copy_program(from: impl AsRef<OsStr>, to: &Path) {
    let mut cp = Command::new("cp");
    let copied = cp.args(["--remove-destination", "--"]).arg(from).arg(to).status().expect("cp");
    assert!(copied.success(), "cp to {}", to.display());
}

/// Returns whether clang++ can build programs with libc++.
pub fn has_libcxx() -> bool {
    let words = ["-stdlib=libc++", "-x", "c++", "-include", "fstream", "-fsyntax-only", "/dev/null"];
    let status = Command::new("clang++").args(words).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// The versions that scripts/free-threaded-python builds.
pub const FREE_THREADED: [&str; 2] = ["3.13", "3.14"];

/// Returns the folder of the free-threaded Pythons that scripts/free-threaded-python has built. It may be absent.
pub fn free_threaded_folder() -> PathBuf {
    profile().with_file_name("free-threaded-python")
}

/// Returns a free-threaded Python of each version, in the search path or built here; none of a version that is in neither.
pub fn free_threaded_pythons() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> =
        std::env::split_paths(&path).chain([free_threaded_folder().join("bin")]).collect();
    let of = |version: &str| {
        let paths = folders.iter().map(|folder| folder.join(format!("python{version}t")));
        paths.into_iter().find(|path| path.is_file())
    };
    FREE_THREADED.into_iter().filter_map(of).collect()
}

/// Returns the version and the path of each Python before 3.9 that pyenv has built.
pub fn old_pythons() -> Vec<(String, PathBuf)> {
    let pyenv = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let pyenv = pyenv.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pyenv")));
    let versions = pyenv.and_then(|root| fs::read_dir(root.join("versions")).ok());
    let entries = versions.into_iter().flatten().flatten().map(|entry| entry.path());
    let of = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.to_owned();
        let minor = (6..=8).find(|minor| name.starts_with(&format!("3.{minor}.")))?;
        let python = path.join("bin/python3");
        python.exists().then(|| (format!("3.{minor}"), python))
    };
    entries.filter_map(of).collect()
}

/// The words of a compiler's command that stand for the source and the program.
pub const SOURCE: &str = "SOURCE";
pub const PROGRAM: &str = "PROGRAM";

/// Runs `compiler WORDS…` and copies the program to `to`. Tests share the programs: one that a test has compiled from the same
/// source with the same words is not compiled again. Returns the output of a compiler that fails, and an error if there is none.
///
/// A program whose source or words name other files is not shared, because these can change.
pub fn compile(compiler: &str, words: &[&str], source: &Path, to: &Path) -> io::Result<Output> {
    let text = fs::read(source).expect("the source");
    let includes = text.windows(10).any(|part| part == b"#include \"");
    if includes || words.iter().any(|word| word.contains('/')) {
        return run_compiler(compiler, words, source, to, source.parent().expect("a directory"));
    }
    let name = source.file_name().expect("a file");
    let mut key = DefaultHasher::new();
    (compiler, version(compiler)?, packages_changed(), words, name, &text).hash(&mut key);
    let dir = shared_programs().join(format!("{:016x}", key.finish()));
    fs::create_dir_all(&dir).expect("the target directory is writable");
    let lock = File::create(dir.join("lock")).expect("a file");
    lock.lock().expect("other tests wait here for the program");
    let output = compile_once(compiler, words, (name, &text), &dir);
    lock.unlock().expect("a locked file");
    let output = output?;
    if output.status.success() {
        copy_program(dir.join("program"), to);
    }
    Ok(output)
}

/// Compiles the C program tests/NAME.c, for example `hostile/names`, to a file with the last part of its name in `dir`. All
/// warnings are errors. Returns false without a compiler, and without the C library that `options` need (-m32, -static).
/// Panics if the program is wrong.
pub fn compile_c(name: &str, options: &[&str], dir: &Path) -> bool {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/{name}.c"));
    let words = [&["-O1", "-Wall", "-Wextra", "-Werror", "-o", PROGRAM, SOURCE], options].concat();
    let program = dir.join(source.file_stem().expect("a file"));
    let Ok(output) = compile("gcc", &words, &source, &program) else { return false };
    let message = String::from_utf8_lossy(&output.stderr);
    eprint!("{message}");
    let needs_library = options.iter().any(|option| *option == "-m32" || option.starts_with("-static"));
    assert!(output.status.success() || needs_library, "gcc does not compile {name}: {message}");
    output.status.success()
}

/// Compiles a source to `program` in its own directory, unless it is there.
fn compile_once(compiler: &str, words: &[&str], source: (&OsStr, &[u8]), dir: &Path) -> io::Result<Output> {
    let program = dir.join("program");
    if program.exists() {
        return Ok(Output { status: ExitStatus::default(), stdout: Vec::new(), stderr: Vec::new() });
    }
    // Debug information names the source, so it stays.
    let (kept, unfinished) = (dir.join(source.0), dir.join("unfinished"));
    fs::write(&kept, source.1).expect("the source");
    let output = run_compiler(compiler, words, &kept, &unfinished, dir)?;
    if output.status.success() {
        fs::rename(unfinished, program).expect("the compiler's program");
    }
    Ok(output)
}

fn run_compiler(
    compiler: &str,
    words: &[&str],
    source: &Path,
    program: &Path,
    dir: &Path,
) -> io::Result<Output> {
    let word = |word: &&str| match *word {
        SOURCE => source.into(),
        PROGRAM => program.into(),
        other => PathBuf::from(other),
    };
    let mut command = Command::new(compiler);
    if is_go(compiler) {
        command.env("GOFLAGS", "-mod=mod").env("GOCACHE", go_cache());
    }
    command.args(words.iter().map(word)).current_dir(dir).output()
}

fn is_go(compiler: &str) -> bool {
    Path::new(compiler).file_name() == Some(OsStr::new("go"))
}

/// Returns the cache of Go's compiler that all tests share, by default the user's. With a new one Go compiles its whole library.
pub fn go_cache() -> PathBuf {
    let of = |name: &str, below: &str| std::env::var_os(name).map(|dir| PathBuf::from(dir).join(below));
    let own = || {
        of("GOCACHE", "")
            .or_else(|| of("XDG_CACHE_HOME", "go-build"))
            .or_else(|| of("HOME", ".cache/go-build"))
    };
    own().unwrap_or_else(|| shared_programs().join("go"))
}

/// Returns the directory of the programs that all tests share: target/PROFILE/test-programs.
fn shared_programs() -> PathBuf {
    profile().join("test-programs")
}

/// Returns target/PROFILE, by the path of this test, which is in its folder `deps`.
fn profile() -> PathBuf {
    let test = std::env::current_exe().expect("this program's path");
    test.parent().and_then(Path::parent).expect("target/PROFILE/deps").to_path_buf()
}

/// Returns what a compiler prints about its version. Fails if it does not start.
fn version(compiler: &str) -> io::Result<Vec<u8>> {
    static VERSIONS: Mutex<BTreeMap<String, Vec<u8>>> = Mutex::new(BTreeMap::new());
    let mut versions = VERSIONS.lock().expect("no test panics here");
    if let Some(version) = versions.get(compiler) {
        return Ok(version.clone());
    }
    let word = if is_go(compiler) { "version" } else { "--version" };
    let version = Command::new(compiler).arg(word).output()?.stdout;
    versions.insert(compiler.into(), version.clone());
    Ok(version)
}

/// Returns when Debian's list of installed packages last changed: a new library changes static programs.
fn packages_changed() -> Option<std::time::SystemTime> {
    fs::metadata("/var/lib/dpkg/status").and_then(|status| status.modified()).ok()
}
