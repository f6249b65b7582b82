//! Options of installed tools that change their buffering. Their users do not change the code.

use weir_model::trace::Image;

use crate::code_fix::CodeFix;

/// Options of a tool, by the name of its executable, and the words of a fix.
struct ToolOption {
    tool: &'static str,
    fix: CodeFix,
    /// The fix applies only to a command with one of these options; empty: to every command.
    given: &'static [&'static str],
    text: &'static str,
}

const TOOL_OPTIONS: &[ToolOption] = &[
    ToolOption {
        tool: "grep",
        fix: CodeFix::BufferOutput,
        given: &["--line-buffered"],
        text: "leave out --line-buffered",
    },
    ToolOption { tool: "grep", fix: CodeFix::Flush, given: &[], text: "grep --line-buffered" },
    ToolOption { tool: "sed", fix: CodeFix::BufferOutput, given: SED_UNBUFFERED, text: "leave out -u" },
    ToolOption { tool: "sed", fix: CodeFix::BufferInput, given: SED_UNBUFFERED, text: "leave out -u" },
    ToolOption { tool: "sed", fix: CodeFix::Flush, given: &[], text: "sed -u" },
    ToolOption {
        tool: "jq",
        fix: CodeFix::BufferOutput,
        given: &["--unbuffered"],
        text: "leave out --unbuffered",
    },
    ToolOption { tool: "jq", fix: CodeFix::Flush, given: &[], text: "jq --unbuffered" },
    ToolOption { tool: "tcpdump", fix: CodeFix::Flush, given: &[], text: "tcpdump -l" },
    ToolOption { tool: "dd", fix: CodeFix::BufferOutput, given: &[], text: "a larger block, such as bs=64K" },
    ToolOption { tool: "dd", fix: CodeFix::BufferInput, given: &[], text: "a larger block, such as bs=64K" },
];

const SED_UNBUFFERED: &[&str] = &["-u", "--unbuffered"];

/// Returns the name of the executable without its directory.
pub(crate) fn program_name(image: &Image) -> &str {
    image.exe.exact().rsplit('/').next().unwrap_or_default()
}

/// Returns the name of the program that an executable with many programs (busybox, toybox) was called by.
pub(crate) fn applet(image: &Image) -> Option<&str> {
    let is_box = |name: &str| matches!(name, "busybox" | "toybox");
    let called = image.argv.first()?.exact().rsplit('/').next()?;
    match is_box(program_name(image)) {
        true if is_box(called) => image.argv.get(1).map(|word| word.exact()),
        is_many => is_many.then_some(called),
    }
}

/// Returns the option of an installed tool that does what a fix asks for, as words of a fix.
pub(crate) fn tool_option(image: &Image, fix: CodeFix) -> Option<&'static str> {
    // The programs of busybox lack other options.
    let tool = applet(image).filter(|name| *name == "dd").unwrap_or(program_name(image));
    let given = |option: &ToolOption| {
        option.given.is_empty() || image.argv.iter().any(|word| option.given.contains(&word.exact()))
    };
    let mut options = TOOL_OPTIONS.iter().filter(|option| option.tool == tool && option.fix == fix);
    options.find(|option| given(option)).map(|option| option.text)
}

/// Returns how to undo the missing buffers of `python -u`.
pub(crate) fn python_option(image: &Image, fd: i32, fix: CodeFix) -> Option<&'static str> {
    let is_python = ["python", "pypy"].iter().any(|name| program_name(image).starts_with(name));
    if !is_python || !matches!(fd, 1 | 2) || fix != CodeFix::BufferOutput {
        return None;
    }
    // Options precede the script. A word can have several; after one that takes a value, the rest of the word is its value.
    let mut words = image.argv.iter().skip(1).map(|word| word.exact());
    while let Some(options) = words.next()?.strip_prefix('-') {
        let end = options.find(['c', 'm', 'W', 'X']).unwrap_or(options.len());
        match options[end..].chars().next() {
            _ if options[..end].contains('u') && !options.starts_with('-') => return Some("leave out -u"),
            Some('c' | 'm') => return None,
            Some(_) if options.len() == end + 1 => _ = words.next(),
            _ => {}
        }
    }
    None
}

/// Returns how to undo a small buffer that stdbuf(1) set. `previous` is the image that executed the program.
pub(crate) fn stdbuf_option(previous: &Image, fd: i32, fix: CodeFix) -> Option<&'static str> {
    let is_stdbuf = program_name(previous) == "stdbuf";
    let (short, long, text) = match (fd, fix) {
        (0, CodeFix::BufferInput) => ('i', "--input", "leave out stdbuf -i"),
        (1, CodeFix::BufferOutput) => ('o', "--output", "leave out stdbuf -o"),
        (2, CodeFix::BufferOutput) => ('e', "--error", "leave out stdbuf -e"),
        _ => return None,
    };
    // The options of stdbuf precede the command, and each takes a value.
    let sets = |word: &str| {
        word.starts_with(long) || word.starts_with('-') && word.chars().nth(1).is_some_and(|c| c == short)
    };
    let mut words = previous.argv.iter().skip(1).map(|word| word.exact());
    let mut is_set = false;
    while let Some(word) = words.next().filter(|word| word.starts_with('-') && *word != "--") {
        is_set |= sets(word);
        if word.len() == 2 || word.starts_with("--") && !word.contains('=') {
            words.next();
        }
    }
    (is_stdbuf && is_set).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_left_out_only_if_it_was_given() {
        let grep = |words: &[&str]| Image {
            exe: "/usr/bin/grep".into(),
            argv: words.iter().map(|word| (*word).into()).collect(),
            ..Image::default()
        };
        let lines = grep(&["grep", "--line-buffered", "x"]);
        assert_eq!(tool_option(&lines, CodeFix::BufferOutput), Some("leave out --line-buffered"));
        assert_eq!(tool_option(&grep(&["grep", "x"]), CodeFix::BufferOutput), None);
        assert_eq!(tool_option(&grep(&["grep", "x"]), CodeFix::Flush), Some("grep --line-buffered"));
        assert_eq!(tool_option(&Image::default(), CodeFix::Flush), None);
        let boxed = |words: &[&str]| Image { exe: "/usr/bin/busybox".into(), ..grep(words) };
        for words in [&["busybox", "dd", "bs=1"][..], &["dd", "bs=1"]] {
            assert_eq!(
                tool_option(&boxed(words), CodeFix::BufferInput),
                Some("a larger block, such as bs=64K")
            );
        }
        assert_eq!(tool_option(&boxed(&["busybox", "grep", "x"]), CodeFix::Flush), None);
        let jq = Image {
            exe: "/usr/bin/jq".into(),
            argv: vec!["jq".into(), "--unbuffered".into()],
            ..Image::default()
        };
        assert_eq!(tool_option(&jq, CodeFix::BufferOutput), Some("leave out --unbuffered"));
    }

    #[test]
    fn an_option_of_python_is_left_out_only_if_python_got_it() {
        let option = |words: &[&str], fd: i32, fix: CodeFix| {
            let argv = words.iter().map(|word| (*word).into()).collect();
            python_option(&Image { exe: "/usr/bin/python3.11".into(), argv, ..Image::default() }, fd, fix)
        };
        let output = |words: &[&str]| option(words, 1, CodeFix::BufferOutput);
        for given in [
            &["python3", "-u", "x.py"][..],
            &["python", "-Bu", "-c", "1"],
            &["python", "-X", "dev", "-u", "x"],
        ] {
            assert_eq!(output(given), Some("leave out -u"), "{given:?}");
        }
        for other in [
            &["python3", "x.py", "-u"][..],
            &["python3", "-c", "-u"],
            &["python3", "-Wu", "x"],
            &["python3", "--us"],
        ] {
            assert_eq!(output(other), None, "{other:?}");
        }
        let input = ["python3", "-u", "x.py"];
        assert_eq!(option(&input, 0, CodeFix::BufferInput), None);
        assert_eq!(option(&input, 3, CodeFix::BufferOutput), None, "a file of open()");
    }

    #[test]
    fn stdbuf_is_left_out_for_the_stream_that_it_changed() {
        let option = |words: &[&str], fd: i32, fix: CodeFix| {
            let argv = words.iter().map(|word| (*word).into()).collect();
            let exe = format!("/usr/bin/{}", words[0]);
            stdbuf_option(&Image { exe: exe.into(), argv, ..Image::default() }, fd, fix)
        };
        let output = |words: &[&str]| option(words, 1, CodeFix::BufferOutput);
        assert_eq!(output(&["stdbuf", "-o0", "sed", "s/1/2/"]), Some("leave out stdbuf -o"));
        assert_eq!(output(&["stdbuf", "-i", "0", "--output=L", "x"]), Some("leave out stdbuf -o"));
        assert_eq!(output(&["stdbuf", "-i0", "grep", "-o", "x"]), None, "an option of the command");
        assert_eq!(output(&["stdbuf", "--input", "-o", "x"]), None, "a value");
        assert_eq!(output(&["env", "-o0", "sed"]), None);
        let input = option(&["stdbuf", "-i0", "x"], 0, CodeFix::BufferInput);
        assert_eq!(input, Some("leave out stdbuf -i"));
        assert_eq!(option(&["stdbuf", "-o0", "x"], 1, CodeFix::Flush), None);
    }
}
