//! The directory in which an interpreter finds its script again, for the command of a process that has changed its directory.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use weir_control::plan::executable;
use weir_control::plan::program::ResolvedProgram;
use weir_model::{SourceLanguage, os_string_of};

/// Beginnings of the options whose argument is the program, or the name of a module.
const CODE_OPTIONS: [&str; 5] = ["-c", "-e", "-E", "-m", "-r"];

/// Returns the directory in which to start a program again: its own if it has the script of the arguments, or another in which it
/// may have been started (`others`). None if no directory has the script, or if two have different ones.
pub fn script_directory(exe: &str, argv: &[&str], own: &Path, others: &[PathBuf]) -> Option<PathBuf> {
    let scripts = relative_scripts(argv);
    if scripts.is_empty() || !takes_script(exe) || script_in(own, &scripts).is_some() {
        return Some(own.into());
    }
    let mut found = others.iter().filter_map(|other| Some((other, script_in(other, &scripts)?)));
    let (directory, script) = found.next()?;
    found.all(|(_, other)| other == script).then(|| directory.clone())
}

/// Returns the arguments that may be the path of a script: the first that is no option, and the next one if an option before it
/// may take an argument. None if the program is in the arguments or if the path is absolute.
fn relative_scripts<'a>(argv: &[&'a str]) -> Vec<&'a str> {
    let mut scripts = Vec::new();
    let mut after_option = false;
    for word in argv.iter().skip(1) {
        if word.starts_with('-') {
            if CODE_OPTIONS.iter().any(|option| word.starts_with(option)) {
                return Vec::new();
            }
            after_option = true;
            continue;
        }
        scripts.push(*word);
        if !std::mem::take(&mut after_option) {
            break;
        }
    }
    if scripts.iter().any(|script| script.starts_with('/')) { Vec::new() } else { scripts }
}

/// Returns the device and inode of the first of these scripts that a directory has.
fn script_in(directory: &Path, scripts: &[&str]) -> Option<(u64, u64)> {
    let inode = |script: &&str| {
        let about = fs::metadata(directory.join(os_string_of(script))).ok()?;
        Some((about.dev(), about.ino()))
    };
    scripts.iter().find_map(inode)
}

/// Returns whether an executable is an interpreter whose first argument is the path of a script.
fn takes_script(exe: &str) -> bool {
    use SourceLanguage::{Lua, Perl, Php, Python, Ruby, Shell, Tcl};
    let language = executable::runtime(&ResolvedProgram::of(&[os_string_of(exe)])).facts.language;
    [Lua, Perl, Php, Python, Ruby, Shell, Tcl].contains(&language)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_an_argument() {
        assert_eq!(relative_scripts(&["python3", "-u", "a.py", "b"]), ["a.py", "b"]);
        assert_eq!(relative_scripts(&["perl", "a.pl", "b"]), ["a.pl"]);
        for words in
            [&["python3", "-c", "x", "y"][..], &["perl", "/a.pl"], &["bash"], &["python3", "-m", "m"]]
        {
            assert!(relative_scripts(words).is_empty(), "{words:?}");
        }
    }

    #[test]
    fn only_a_directory_with_the_script_is_returned() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for name in ["start", "twin", "empty"] {
            fs::create_dir(path(name)).unwrap();
        }
        fs::write(path("start/a.sh"), "x").unwrap();
        fs::write(path("twin/a.sh"), "x").unwrap();
        let of = |argv: &[&str], own: &str, others: &[&str]| {
            let others: Vec<PathBuf> = others.iter().map(|other| path(other)).collect();
            script_directory("/bin/sh", argv, &path(own), &others)
        };
        let script = ["sh", "a.sh"];
        assert_eq!(of(&script, "start", &["twin"]), Some(path("start")));
        assert_eq!(of(&script, "empty", &["empty", "start", "start/../start"]), Some(path("start")));
        assert_eq!(of(&script, "empty", &["start", "twin"]), None, "two scripts of this name");
        assert_eq!(of(&script, "empty", &[]), None);
        assert_eq!(of(&["sh", "-c", "a.sh"], "empty", &[]), Some(path("empty")));
        assert_eq!(script_directory("/bin/sleep", &["sleep", "9"], Path::new("/"), &[]), Some("/".into()));
    }
}
