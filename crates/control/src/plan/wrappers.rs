//! Programs that start the command in their arguments: env(1), timeout(1), sudo(8) and others.

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
static WRAPPERS: [Wrapper; 14] = [
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
];
/// The wrappers that remove variables from the environment.
const CLEANERS: [&str; 2] = ["sudo", "doas"];
/// The options by which env(1) removes them.
const CLEANING_OPTIONS: [&str; 3] = ["-", "-i", "--ignore-environment"];
/// Programs that have a process of a service start the command: no child of theirs runs it.
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
}

/// Returns the command that a wrapper starts; None for other programs, and if its arguments have no command.
pub(super) fn command(program: &ResolvedProgram) -> Option<WrappedCommand> {
    // A script can have any name.
    if program.script {
        return None;
    }
    let wrapper = WRAPPERS.iter().find(|wrapper| program.names.iter().any(|name| name == wrapper.name))?;
    let arguments = &program.arguments;
    let mut keeps_environment = !CLEANERS.contains(&wrapper.name);
    let mut operands = wrapper.operands;
    let mut ends_options = false;
    let mut at = 0;
    while let Some(word) = arguments.get(at).map(|word| word.to_string_lossy()) {
        at += 1;
        if !ends_options && word.starts_with('-') {
            ends_options = word == "--";
            keeps_environment &= wrapper.name != "env" || !CLEANING_OPTIONS.contains(&&*word);
            at += usize::from(wrapper.takes_next_word(&word));
            continue;
        }
        ends_options = true;
        let is_assignment = matches!(wrapper.name, "env" | "sudo") && word.contains('=');
        if is_assignment {
            continue;
        }
        if operands == 0 {
            // `flock FILE -c SCRIPT` has no command.
            let found = WrappedCommand { wrapper: wrapper.name, at: at - 1, keeps_environment };
            return Some(found).filter(|_| !word.starts_with('-'));
        }
        operands -= 1;
    }
    None
}

impl Wrapper {
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
        ] {
            assert_eq!(of(text), Some((expected.into(), true)), "{text}");
        }
        for (text, expected) in
            [("env -i A=1 a", "a"), ("env - a", "a"), ("sudo -u me -E A=1 a b", "a b"), ("doas a", "a")]
        {
            assert_eq!(of(text), Some((expected.into(), false)), "{text}");
        }
        for text in ["env", "env -u A", "timeout 5", "taskset -p 17", "cat x", "flock file"] {
            assert_eq!(of(text), None, "{text}");
        }
        let script = ResolvedProgram { script: true, ..program("time a") };
        assert_eq!(command(&script), None, "another program of this name");
    }
}
