//! Programs that start the command in their arguments: env(1), timeout(1), sudo(8), strace(1), chroot(8) and others.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use super::program::ResolvedProgram;

/// The syntax of a program's arguments before the command that it starts.
struct Wrapper {
    name: &'static str,
    /// Letters of the options with a value, which is the next word if nothing follows the letter.
    letters: &'static str,
    /// Long options with a value, which is the next word without `=`.
    long: &'static [&'static str],
    /// Number of words between the options and the command.
    operands: usize,
}

impl Wrapper {
    const fn new(name: &'static str, letters: &'static str, operands: usize) -> Self {
        Self { name, letters, long: &[], operands }
    }

    const fn with_long(self, long: &'static [&'static str]) -> Self {
        Self { long, ..self }
    }
}

/// The wrappers, by their manual pages.
static WRAPPERS: [Wrapper; 27] = [
    Wrapper::new("env", "uC", 0).with_long(&["--unset", "--chdir"]),
    Wrapper::new("timeout", "ks", 1).with_long(&["--kill-after", "--signal"]),
    Wrapper::new("nice", "n", 0).with_long(&["--adjustment"]),
    Wrapper::new("nohup", "", 0),
    Wrapper::new("setsid", "", 0),
    Wrapper::new("ionice", "cn", 0).with_long(&["--class", "--classdata"]),
    Wrapper::new("chrt", "TPD", 1),
    Wrapper::new("taskset", "", 1),
    Wrapper::new("stdbuf", "ioe", 0).with_long(&["--input", "--output", "--error"]),
    Wrapper::new("time", "fo", 0).with_long(&["--format", "--output"]),
    Wrapper::new("xargs", "aEILnPsd", 0).with_long(&[
        "--arg-file",
        "--delimiter",
        "--max-args",
        "--max-procs",
        "--replace",
    ]),
    Wrapper::new("flock", "wE", 1).with_long(&["--timeout", "--conflict-exit-code"]),
    Wrapper::new("sudo", "CDghpRrTtUu", 0).with_long(&["--user", "--group", "--chdir"]),
    Wrapper::new("doas", "uC", 0),
    Wrapper::new("unshare", "RwSG", 0).with_long(&[
        "--map-user",
        "--map-users",
        "--map-group",
        "--map-groups",
        "--propagation",
        "--setgroups",
        "--root",
        "--wd",
        "--setuid",
        "--setgid",
        "--monotonic",
        "--boottime",
    ]),
    Wrapper::new("nsenter", "tSG", 0).with_long(&["--target", "--setuid", "--setgid"]),
    Wrapper::new("setpriv", "", 0).with_long(&[
        "--groups",
        "--inh-caps",
        "--ambient-caps",
        "--bounding-set",
        "--rgid",
        "--egid",
        "--regid",
        "--ruid",
        "--euid",
        "--reuid",
        "--securebits",
        "--pdeathsig",
        "--selinux-label",
        "--apparmor-profile",
    ]),
    Wrapper::new("setuidgid", "", 1),
    Wrapper::new("s6-setuidgid", "", 1),
    Wrapper::new("chpst", "uUbe/nlLmdopfct", 0),
    Wrapper::new("softlimit", "acdflmoprst", 0),
    Wrapper::new("prlimit", "op", 0).with_long(&["--output", "--pid"]),
    Wrapper::new("runuser", USER_OPTIONS, 0).with_long(&["--user", "--group", "--supp-group"]),
    Wrapper::new("strace", "abeEIoOpPsSuUX", 0).with_long(&[
        "--attach",
        "--columns",
        "--detach-on",
        "--env",
        "--interruptible",
        "--output",
        "--string-limit",
        "--summary-sort-by",
        "--trace-path",
        "--user",
    ]),
    Wrapper::new("ltrace", "aADeFlnopsuwxX", 0).with_long(&[
        "--align",
        "--config",
        "--indent",
        "--library",
        "--output",
    ]),
    Wrapper::new("chroot", "", 1).with_long(&["--groups", "--userspec"]),
    Wrapper::new("bwrap", "", 0),
];
/// The options of runuser(1) with a value. Without `-u` it starts the user's shell.
const USER_OPTIONS: &str = "ugG";
/// The wrappers that remove variables from the environment.
const CLEANERS: [&str; 2] = ["sudo", "doas"];
/// The options by which env(1) and setpriv(1) remove them.
const CLEANING_OPTIONS: [(&str, &[&str]); 2] =
    [("env", &["-", "-i", "--ignore-environment"]), ("setpriv", &["--reset-env"])];
/// Programs that trace those that they start, or others, by ptrace(2).
const TRACERS: [&str; 7] = ["strace", "ltrace", "gdb", "gdbserver", "lldb", "rr", "proot"];
/// The letters and names of the options by which a wrapper starts the command in another root directory or mount namespace.
const ROOT_OPTIONS: [(&str, &str, &[&str]); 3] =
    [("unshare", "R", &["--root"]), ("nsenter", "amr", &["--all", "--mount", "--root"]), ("chpst", "/", &[])];
/// Programs that have a service start the command, so that none of their children runs it.
const MESSENGERS: [&str; 8] =
    ["docker", "podman", "nerdctl", "kubectl", "ssh", "machinectl", "flatpak", "lxc"];

/// The command in the arguments of a wrapper.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WrappedCommand {
    /// Name of the wrapper.
    pub wrapper: &'static str,
    /// Index of its first word in the arguments.
    pub at: usize,
    /// The command gets the variables of the wrapper.
    pub keeps_environment: bool,
    /// The command has the root directory and the mounts of weir.
    pub keeps_root: bool,
    /// The wrapper traces the command.
    pub traces: bool,
}

impl WrappedCommand {
    /// Returns whether the command is executed as without its wrapper.
    pub fn is_unchanged(&self) -> bool {
        self.keeps_environment && self.keeps_root && !self.traces
    }
}

/// Returns the command that a wrapper starts; None for other programs, and if its arguments have no command.
pub(super) fn command(program: &ResolvedProgram) -> Option<WrappedCommand> {
    // A script can have any name.
    if program.script {
        return None;
    }
    let wrapper = WRAPPERS.iter().find(|wrapper| program.names.iter().any(|name| name == wrapper.name))?;
    let (at, operands) = wrapper.first_word(&program.arguments)?;
    let options = &program.arguments[..at];
    let keeps_environment = !CLEANERS.contains(&wrapper.name) && !wrapper.cleans(options);
    let keeps_root = match wrapper.name {
        "bwrap" => false,
        "chroot" => operands.first().is_some_and(|root| is_root(Path::new(*root))),
        _ => !wrapper.changes_root(options),
    };
    let starts_shell = wrapper.name == "runuser" && !wrapper.has_option(options, "u", &["--user"]);
    let traces = TRACERS.contains(&wrapper.name);
    let found = WrappedCommand { wrapper: wrapper.name, at, keeps_environment, keeps_root, traces };
    // `flock FILE -c SCRIPT` has no command.
    let is_command = !program.arguments[at].to_string_lossy().starts_with('-');
    Some(found).filter(|_| is_command && !starts_shell)
}

/// Returns the name of a program that traces others.
pub(super) fn tracer(program: &ResolvedProgram) -> Option<&'static str> {
    let is_named = |tracer: &&str| !program.script && program.names.iter().any(|name| name == tracer);
    TRACERS.into_iter().find(is_named)
}

fn is_root(path: &Path) -> bool {
    fs::canonicalize(path).is_ok_and(|path| path == Path::new("/"))
}

impl Wrapper {
    /// Returns the index of the first word after options, assignments and operands, and the operands. None if there is none.
    fn first_word<'a>(&self, arguments: &'a [OsString]) -> Option<(usize, Vec<&'a OsString>)> {
        let (mut operands, mut ends_options, mut at) = (Vec::new(), false, 0);
        // Options of bwrap take up to three words. Its callers need no command, because they do not plan for it.
        if self.name == "bwrap" {
            return Some((arguments.len().checked_sub(1)?, operands));
        }
        loop {
            let word = arguments.get(at)?.to_string_lossy();
            let is_assignment = matches!(self.name, "env" | "sudo") && word.contains('=');
            if !ends_options && word.starts_with('-') {
                ends_options = word == "--";
                at += usize::from(self.takes_next_word(&word));
            } else if is_assignment {
                ends_options = true;
            } else if operands.len() == self.operands {
                return Some((at, operands));
            } else {
                ends_options = true;
                operands.push(&arguments[at]);
            }
            at += 1;
        }
    }

    /// Returns whether options remove the variables of the environment.
    fn cleans(&self, options: &[OsString]) -> bool {
        let mut cleaning = CLEANING_OPTIONS.iter().filter(|(name, _)| *name == self.name);
        cleaning.any(|(_, names)| options.iter().any(|word| names.iter().any(|name| word == name)))
    }

    /// Returns whether options give the command another root directory or other mounts.
    fn changes_root(&self, options: &[OsString]) -> bool {
        let mut roots = ROOT_OPTIONS.iter().filter(|(name, ..)| *name == self.name);
        roots.any(|(_, letters, long)| self.has_option(options, letters, long))
    }

    /// Returns whether a word before the command has one of these options. A value that looks like an option counts too.
    fn has_option(&self, options: &[OsString], letters: &str, long: &[&str]) -> bool {
        options.iter().any(|word| {
            let word = word.to_string_lossy();
            if word.starts_with("--") {
                return long.iter().any(|name| word.split('=').next() == Some(*name));
            }
            let Some(word) = word.strip_prefix('-') else { return false };
            let up_to_value = word
                .find(|letter| self.letters.contains(letter))
                .map_or(word, |at| &word[..at + word[at..].chars().next().map_or(0, char::len_utf8)]);
            up_to_value.contains(|letter| letters.contains(letter))
        })
    }

    fn takes_next_word(&self, option: &str) -> bool {
        if option.starts_with("--") {
            return self.long.contains(&option);
        }
        // The first letter with a value ends the word: the rest is the value.
        let mut letters = option.chars().skip(1);
        letters.by_ref().any(|letter| self.letters.contains(letter)) && letters.next().is_none()
    }
}

/// Returns the name of a program that has another process start its command, such as docker.
pub(super) fn messenger(names: &[String]) -> Option<&'static str> {
    MESSENGERS.into_iter().find(|messenger| names.iter().any(|name| name == messenger))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(text: &str) -> ResolvedProgram {
        let mut words = text.split(' ');
        let names = words.by_ref().take(1).map(str::to_owned).collect();
        ResolvedProgram { names, arguments: words.map(Into::into).collect(), ..ResolvedProgram::default() }
    }

    fn of(text: &str) -> Option<(String, bool)> {
        let found = command(&program(text))?;
        let words: Vec<&str> = text.split(' ').skip(1 + found.at).collect();
        Some((words.join(" "), found.keeps_environment))
    }

    #[test]
    fn wrapped_commands() {
        for (text, expected) in [
            ("env A=1 B= python3 -u x", "python3 -u x"),
            ("env -u HOME -C /tmp --unset X A=1 perl x", "perl x"),
            ("timeout 5 cat -n", "cat -n"),
            ("timeout -k 1 --signal KILL -s9 --foreground 5s cat", "cat"),
            ("nice -n 5 a", "a"),
            ("nice -5 a", "a"),
            ("nohup -- a -b", "a -b"),
            ("ionice -c2 -n 7 a", "a"),
            ("chrt -f 10 a", "a"),
            ("taskset -c 0,1 a b", "a b"),
            ("stdbuf -oL -e 0 a", "a"),
            ("time -vo file a", "a"),
            ("xargs -0rn 1 -P2 -I{} sh -c x", "sh -c x"),
            ("flock -n -w 5 file a", "a"),
            ("unshare -fp --mount-proc -w /tmp --propagation slave a b", "a b"),
            ("nsenter -t 1 -n a", "a"),
            ("setpriv --reuid 5 --nnp --clear-groups a", "a"),
            ("setuidgid nobody a", "a"),
            ("s6-setuidgid nobody a b", "a b"),
            ("chpst -u nobody -o 50 -P a", "a"),
            ("softlimit -m 1000000 -o50 a", "a"),
            ("prlimit --nofile=50 -c a", "a"),
            ("runuser -u nobody -- a -b", "a -b"),
            ("chroot --userspec=nobody / a", "a"),
        ] {
            assert_eq!(of(text), Some((expected.into(), true)), "{text}");
        }
        for (text, expected) in [
            ("env -i A=1 a", "a"),
            ("env - a", "a"),
            ("sudo -u me -E A=1 a b", "a b"),
            ("doas a", "a"),
            ("setpriv --reset-env --reuid=5 a", "a"),
        ] {
            assert_eq!(of(text), Some((expected.into(), false)), "{text}");
        }
        for text in [
            "unshare -R root a",
            "unshare --root=root a",
            "nsenter -at 1 a",
            "nsenter --mount=/proc/1/ns/mnt a",
            "chpst -/ root a",
            "chroot /tmp a",
            "bwrap --bind root / a",
        ] {
            let found = command(&program(text)).expect(text);
            assert!(!found.keeps_root && found.keeps_environment && !found.traces, "{text}");
        }
        let found = command(&program("strace -fo /dev/null -e trace=write a b")).unwrap();
        assert!(found.traces && !found.is_unchanged() && found.at == 4, "{found:?}");
        for text in ["runuser nobody -c a", "prlimit -p 17", "strace -p 17"] {
            assert_eq!(of(text), None, "{text}");
        }
        for text in ["env", "env -u A", "timeout 5", "taskset -p 17", "cat x", "flock file"] {
            assert_eq!(of(text), None, "{text}");
        }
        let script = ResolvedProgram { script: true, ..program("time a") };
        assert_eq!(command(&script), None, "another program of this name");
    }
}
