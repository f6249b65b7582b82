//! Options of interpreters with which they ignore their environment variables, or the hook that a variable names.

use std::ffi::OsString;

/// The options with which the programs of a runtime ignore variables or a hook.
#[derive(Debug, Clone, Copy)]
pub enum IgnoresEnvironment {
    /// No option has this effect.
    Never,
    #[allow(missing_docs)]
    Options(&'static OptionSyntax),
}

/// The syntax of an interpreter's options, which end at the first word that is none: that is the script, and what follows is for it.
#[derive(Debug, Default)]
pub struct OptionSyntax {
    /// Letters whose value is the rest of their word.
    pub with_rest: &'static str,
    /// Letters whose value is the rest of their word, or else the next word.
    pub with_value: &'static str,
    /// As `with_value`, for the program's text or module: the words after it are for the program.
    pub with_program: &'static str,
    /// Long options whose value is the next word, unless `=` follows their name.
    pub long_with_value: &'static [&'static str],
    /// Letters with which the interpreter ignores its variables.
    pub ignores_variables: &'static str,
    /// Letters with which the interpreter ignores a hook only.
    pub ignores_hook: &'static str,
    /// Names, in lower case, by which `--disable` has the interpreter ignore its variables. They can be abbreviated.
    pub disables_variables: &'static [&'static str],
}

/// Parts of the environment that the interpreter ignores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Ignored {
    variables: bool,
    hook: bool,
}

impl IgnoresEnvironment {
    /// Returns whether an interpreter with these arguments ignores its environment variables.
    pub fn ignores_variables(&self, arguments: &[OsString]) -> bool {
        self.ignored(arguments).variables
    }

    /// Returns whether an interpreter with these arguments loads no hook.
    pub fn ignores_hook(&self, arguments: &[OsString]) -> bool {
        let ignored = self.ignored(arguments);
        ignored.variables || ignored.hook
    }

    fn ignored(&self, arguments: &[OsString]) -> Ignored {
        match self {
            Self::Never => Ignored::default(),
            Self::Options(syntax) => syntax.ignored(arguments),
        }
    }
}

impl OptionSyntax {
    fn ignored(&self, arguments: &[OsString]) -> Ignored {
        let mut ignored = Ignored::default();
        let mut words = arguments.iter().map(|word| word.to_string_lossy());
        while let Some(word) = words.next() {
            if let Some(long) = word.strip_prefix("--").filter(|long| !long.is_empty()) {
                let value = if self.long_with_value.contains(&long) { words.next() } else { None };
                self.add_long(long, value.as_deref(), &mut ignored);
                continue;
            }
            let letters = word.strip_prefix('-').unwrap_or_default();
            if letters.is_empty() || letters.starts_with('-') {
                break;
            }
            match self.add_letters(letters, &mut ignored) {
                OptionEnd::Word => {}
                OptionEnd::NextWord => drop(words.next()),
                OptionEnd::Options => break,
            }
        }
        ignored
    }

    fn add_letters(&self, word: &str, ignored: &mut Ignored) -> OptionEnd {
        let mut letters = word.chars();
        while let Some(letter) = letters.next() {
            let rest = letters.as_str();
            ignored.variables |= self.ignores_variables.contains(letter);
            ignored.hook |= self.ignores_hook.contains(letter);
            if self.with_program.contains(letter) {
                return OptionEnd::Options;
            }
            if self.with_value.contains(letter) && rest.is_empty() {
                return OptionEnd::NextWord;
            }
            if self.with_value.contains(letter) || self.with_rest.contains(letter) {
                break;
            }
            // Perl's -dt is one option.
            if letter == 'd' && rest.starts_with('t') {
                letters.next();
            }
        }
        OptionEnd::Word
    }

    /// Adds `--disable=NAME,NAME`, `--disable NAME` or `--disable-NAME`. A later `--enable` of a name has the other effect.
    fn add_long(&self, long: &str, next: Option<&str>, ignored: &mut Ignored) {
        for (verb, is_ignored) in [("disable", true), ("enable", false)] {
            let Some(rest) = long.strip_prefix(verb) else { continue };
            let names =
                next.or_else(|| rest.strip_prefix(['=', '-'])).unwrap_or_default().to_ascii_lowercase();
            let is_meant = |name: &str| {
                !name.is_empty() && self.disables_variables.iter().any(|known| known.starts_with(name))
            };
            if names.split(',').any(is_meant) {
                ignored.variables = is_ignored;
            }
        }
    }
}

/// Extent of a word of option letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OptionEnd {
    Word,
    /// The next word is the value of the last letter.
    NextWord,
    /// The value of the last letter is the program, and the next words are the program's.
    Options,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime_by_id;
    use weir_model::RuntimeId;

    /// Returns whether an interpreter with this command line ignores its variables, and whether it loads no hook.
    fn ignored(runtime: RuntimeId, line: &str) -> (bool, bool) {
        let arguments: Vec<OsString> = line.split(' ').map(Into::into).collect();
        let ignores = runtime_by_id(runtime).unwrap().ignores_environment;
        (ignores.ignores_variables(&arguments), ignores.ignores_hook(&arguments))
    }

    #[test]
    fn options_of_an_interpreter_end_at_its_script() {
        let (nothing, hook, all) = ((false, false), (false, true), (true, true));
        for (line, expected) in [
            ("-E x.py", all),
            ("-bIc pass", all),
            ("-u -sE x.py", all),
            ("-W ignore -I x.py", all),
            ("--check-hash-based-pycs never -I x.py", all),
            ("-S x.py", hook),
            ("-uS -c pass", hook),
            ("x.py -I", nothing),
            ("-c pass -I", nothing),
            ("-m IES", nothing),
            ("-c -I", nothing),
            ("-mIES", nothing),
            ("-Werror::ImportWarning x.py", nothing),
            ("-X Importtime x.py", nothing),
            ("- -I", nothing),
            ("-- -I", nothing),
        ] {
            assert_eq!(ignored(RuntimeId::CPYTHON, line), expected, "python {line}");
        }
        for (line, expected) in [
            ("-T x.pl", all),
            ("-w -lnT x.pl", all),
            ("-l012t x.pl", all),
            ("-e 1 -T", all),
            ("-I t -T x.pl", all),
            ("-dT x.pl", all),
            ("-Mstrict -e 1", nothing),
            ("-eprint(1)", nothing),
            ("-e print('-T')", nothing),
            ("-dt x.pl", nothing),
            ("-i.t -pe 1", nothing),
            ("-F\\t -ane 1", nothing),
            ("x.pl -T", nothing),
            ("-e 1 -- -T", nothing),
        ] {
            assert_eq!(ignored(RuntimeId::PERL, line), expected, "perl {line}");
        }
        for (line, expected) in [
            ("--disable-all a.rb", all),
            ("--disable=all a.rb", all),
            ("--disable-rubyopt a.rb", all),
            ("--disable=gems,RubyOpt a.rb", all),
            ("-W0 --disable rubyopt a.rb", all),
            ("-r json -I lib --disable=rubyo a.rb", all),
            ("--disable=gems a.rb", nothing),
            ("--disable=all --enable=rubyopt a.rb", nothing),
            ("a.rb --disable-all", nothing),
            ("-r --disable-all a.rb", nothing),
        ] {
            assert_eq!(ignored(RuntimeId::RUBY, line), expected, "ruby {line}");
        }
    }
}
