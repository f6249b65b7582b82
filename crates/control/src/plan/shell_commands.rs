//! The commands that a shell script names, as far as its text shows them without being executed.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// Words after which another command follows.
const PREFIXES: [&str; 15] = [
    "if", "then", "else", "elif", "while", "until", "do", "time", "!", "{", "exec", "command", "nohup",
    "builtin", "coproc",
];
/// Words that begin or end a part of the script that is no command.
const OTHERS: [&str; 10] = ["for", "case", "select", "function", "in", "done", "fi", "esac", "}", "[["];
/// The commands of the shells themselves. Others are looked for in PATH.
const BUILTINS: [&str; 61] = [
    ".",
    ":",
    "[",
    "alias",
    "bg",
    "bind",
    "break",
    "caller",
    "cd",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "declare",
    "dirs",
    "disown",
    "echo",
    "enable",
    "eval",
    "exit",
    "export",
    "false",
    "fc",
    "fg",
    "getopts",
    "hash",
    "help",
    "history",
    "integer",
    "jobs",
    "kill",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "print",
    "printf",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readonly",
    "return",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "test",
    "times",
    "trap",
    "true",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "wait",
    "whence",
];
/// The most commands of one script: the executable of each is read.
const MAX_COMMANDS: usize = 32;

/// Returns the script of a shell's `-c`; None if it has none.
pub(super) fn script(arguments: &[OsString]) -> Option<String> {
    let mut words = arguments.iter();
    let has_c = |word: &&OsString| {
        let word = word.as_bytes();
        word.starts_with(b"-") && !word.starts_with(b"--") && word.contains(&b'c')
    };
    let is_option = |word: &&OsString| word.as_bytes().starts_with(b"-");
    words.by_ref().take_while(is_option).find(has_c)?;
    let script = words.find(|word| !is_option(word))?;
    Some(script.to_string_lossy().into_owned())
}

/// Returns the file of a shell's script: its first argument that is no option. None if it has none.
pub(super) fn script_file(arguments: &[OsString]) -> Option<&OsString> {
    arguments.iter().find(|word| !word.as_bytes().starts_with(b"-")).filter(|_| script(arguments).is_none())
}

/// Returns the simple commands of a script with plain names, without those that the shell executes itself.
pub(super) fn commands(script: &str) -> Vec<Vec<OsString>> {
    let mut found: Vec<Vec<OsString>> = Vec::new();
    let functions = functions(script);
    let is_own = |name: &str| BUILTINS.contains(&name) || functions.contains(name);
    for words in simple_commands(script) {
        let is_assignment = |word: &Word| {
            let name = word.text.split_once('=').map_or("", |(name, _)| name);
            !name.is_empty() && name.chars().all(|one| one.is_alphanumeric() || one == '_')
        };
        let skipped = |word: &&Word| is_assignment(word) || PREFIXES.contains(&word.text.as_str());
        let mut words: Vec<&Word> = words.iter().skip_while(skipped).collect();
        // The name of a coprocess.
        if words.get(1).is_some_and(|word| word.text == "{") {
            words.drain(..2);
        }
        let is_command =
            |name: &&&Word| name.is_plain && !OTHERS.contains(&&*name.text) && !is_own(&name.text);
        let Some(name) = words.first().filter(is_command) else { continue };
        let is_known = found.iter().any(|known| known[0] == *name.text);
        if !is_known && found.len() < MAX_COMMANDS {
            found.push(words.iter().map(|word| OsString::from(&word.text)).collect());
        }
    }
    found
}

/// Returns the names of the functions that a script defines.
fn functions<'a>(script: &'a str) -> HashSet<&'a str> {
    let name_before = |(at, _): (usize, &'a str)| {
        script[..at].trim_end_matches([' ', '\t']).rsplit(|one: char| !is_in_name(one)).next()
    };
    let name_after = |(at, word): (usize, &'a str)| {
        let is_word = script[..at].chars().next_back().is_none_or(|one| !is_in_name(one));
        let name = script[at + word.len()..]
            .trim_start_matches([' ', '\t'])
            .split(|one: char| !is_in_name(one))
            .next();
        name.filter(|_| is_word)
    };
    let by_word = script.match_indices("function ").filter_map(name_after);
    script.match_indices("()").filter_map(name_before).chain(by_word).collect()
}

fn is_in_name(letter: char) -> bool {
    letter.is_alphanumeric() || "_-.".contains(letter)
}

/// A word of a script, without its quotes.
#[derive(Debug, Default)]
struct Word {
    text: String,
    /// The shell expands nothing in it.
    is_plain: bool,
}

/// Splits a script at its operators into commands of words, without redirections.
fn simple_commands(script: &str) -> Vec<Vec<Word>> {
    let (mut commands, mut command, mut word) = (Vec::new(), Vec::new(), None::<Word>);
    let mut letters = script.chars().peekable();
    let mut is_target = false;
    let mut here_documents = Vec::new();
    // Open parentheses of $((…)) and ((…)), in which << shifts bits.
    let mut arithmetic_depth = 0_usize;
    let end_word = |word: &mut Option<Word>, command: &mut Vec<Word>, is_target: &mut bool| {
        if let Some(word) = word.take()
            && !std::mem::take(is_target)
        {
            command.push(word);
        }
    };
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' => end_word(&mut word, &mut command, &mut is_target),
            '<' | '>' => {
                // The number of a descriptor before it is no word.
                word.take_if(|word| word.text.chars().all(|one| one.is_ascii_digit()));
                end_word(&mut word, &mut command, &mut is_target);
                let operator: String =
                    std::iter::from_fn(|| letters.next_if(|one| "<>&|".contains(*one))).collect();
                if letter == '<' && operator == "<" && arithmetic_depth == 0 {
                    here_documents.push(delimiter(&mut letters));
                } else {
                    is_target = true;
                }
            }
            '#' if word.is_none() => while letters.next_if(|one| *one != '\n').is_some() {},
            ';' | '|' | '&' | '\n' | '(' | ')' | '`' => {
                end_word(&mut word, &mut command, &mut is_target);
                is_target = false;
                commands.push(std::mem::take(&mut command));
                match letter {
                    '(' if arithmetic_depth > 0 || letters.peek() == Some(&'(') => arithmetic_depth += 1,
                    ')' => arithmetic_depth = arithmetic_depth.saturating_sub(1),
                    '\n' => here_documents.drain(..).for_each(|end| skip_here_document(&mut letters, &end)),
                    _ => {}
                }
            }
            '\'' | '"' => {
                let word = word.get_or_insert_with(|| Word { is_plain: true, ..Word::default() });
                read_quoted(&mut letters, letter, word);
            }
            '\\' => {
                let next = letters.next().filter(|one| *one != '\n');
                word.get_or_insert_with(|| Word { is_plain: true, ..Word::default() }).text.extend(next);
            }
            _ => {
                let word = word.get_or_insert_with(|| Word { is_plain: true, ..Word::default() });
                word.is_plain &= !"$*?[".contains(letter) || word.text.is_empty() && letter == '[';
                word.text.push(letter);
            }
        }
    }
    end_word(&mut word, &mut command, &mut is_target);
    commands.push(command);
    commands
}

type Letters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Appends the text up to the closing quote, and takes the quote.
fn read_quoted(letters: &mut Letters, quote: char, word: &mut Word) {
    while let Some(one) = letters.next_if(|one| *one != quote) {
        word.is_plain &= quote == '\'' || !"$`".contains(one);
        word.text.push(if quote == '"' && one == '\\' { letters.next().unwrap_or(one) } else { one });
    }
    letters.next();
}

/// Returns the word that ends a here-document, without its quotes. `letters` begins after the operator.
fn delimiter(letters: &mut Letters) -> String {
    while letters.next_if(|one| " \t-".contains(*one)).is_some() {}
    let word =
        std::iter::from_fn(|| letters.next_if(|one| !one.is_whitespace() && !";|&<>()".contains(*one)));
    word.filter(|one| !"'\"\\".contains(*one)).collect()
}

/// Skips the lines of a here-document, whose last one is `end`.
fn skip_here_document(letters: &mut Letters, end: &str) {
    while letters.peek().is_some() {
        let line: String = letters.by_ref().take_while(|one| *one != '\n').collect();
        if line.trim_start_matches('\t') == end {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_scripts() {
        for (text, expected) in [
            ("rg line", "rg"),
            ("python3 mo.py 2>&1", "python3"),
            ("A=1 B='x y' mawk '{print; node}' < in >out 2>>err | sort -u", "mawk,sort"),
            ("if test -f x; then exec node a.js; else guile b; fi # and rg", "node,guile"),
            ("while read -r x; do (erl -x) & done; x=$(swipl y); `sbcl`", "erl,swipl,sbcl"),
            ("$RUN rg; \"$x\" y; 'rg' z", "rg"),
            ("cat <<E\nnode\nE\n", "cat"),
            ("cat <<-'E' | sort\nnode\n\tE\nrg; cut <<<x", "cat,sort,rg,cut"),
            ("rg() { node; }; rg", "node"),
            ("rg () { node; }; rg", "node"),
            ("run_rg() { rg; }; run_rg", "rg"),
            ("a \\\n b&&c||d;!e", "a,c,d,!e"),
            ("for x in node rg; do sed p; done", "sed"),
            ("[ -f x ] && rg", "rg"),
            ("kill -0 $$; declare x; shopt -s y; mapfile z; compgen -c; rg", "rg"),
            ("function g { :; }; function h() { node; }; g; h; myfunction g; rg", "node,myfunction,rg"),
            ("coproc C { cat; }; coproc rg", "cat,rg"),
            ("x=$((1<<2))\nrg; cat <<E\nnode\nE\nsed", "rg,cat,sed"),
            ("x=$((($a)<<($b)<<4))\nrg\n(($x << 1))\nsed; y=$(cat <<E\nnode\nE\n)", "rg,sed,cat"),
            ("case x in a) cat <<E;; b) ;; esac\nnode\nE\n", "cat,b"),
            ("", ""),
        ] {
            let names: Vec<String> =
                commands(text).iter().map(|words| words[0].to_string_lossy().into_owned()).collect();
            assert_eq!(names.join(","), expected, "{text}");
        }
        let words = &commands("mawk -W interactive \"a \\\" b\" >x c")[0];
        assert_eq!(*words, ["mawk", "-W", "interactive", "a \" b", "c"]);
    }

    #[test]
    fn the_script_of_a_shell() {
        let of = |words: &str| script(&words.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(of("-c a b").as_deref(), Some("a"));
        assert_eq!(of("-e -uc a").as_deref(), Some("a"));
        assert_eq!(of("-c -- a").as_deref(), Some("a"));
        assert_eq!((of("file -c a"), of("--norc -c")), (None, None));
        let file = |words: &str| {
            let words: Vec<_> = words.split(' ').map(OsString::from).collect();
            script_file(&words).map(|file| file.to_string_lossy().into_owned())
        };
        assert_eq!(file("-e file -c a").as_deref(), Some("file"));
        assert_eq!((file("-c a b"), file("-i")), (None, None));
    }
}
