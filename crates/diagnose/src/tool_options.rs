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
    ToolOption {
        tool: "sed",
        fix: CodeFix::BufferOutput,
        given: &["-u", "--unbuffered"],
        text: "leave out -u",
    },
    ToolOption { tool: "sed", fix: CodeFix::Flush, given: &[], text: "sed -u" },
    ToolOption { tool: "tcpdump", fix: CodeFix::Flush, given: &[], text: "tcpdump -l" },
    ToolOption { tool: "dd", fix: CodeFix::BufferOutput, given: &[], text: "a larger block, such as bs=64K" },
    ToolOption { tool: "dd", fix: CodeFix::BufferInput, given: &[], text: "a larger block, such as bs=64K" },
];

/// Returns the option of an installed tool that does what a fix asks for, as words of a fix.
pub(crate) fn tool_option(image: &Image, fix: CodeFix) -> Option<&'static str> {
    let tool = image.exe.exact().rsplit('/').next().unwrap_or_default();
    let given = |option: &ToolOption| {
        option.given.is_empty() || image.argv.iter().any(|word| option.given.contains(&word.exact()))
    };
    let mut options = TOOL_OPTIONS.iter().filter(|option| option.tool == tool && option.fix == fix);
    options.find(|option| given(option)).map(|option| option.text)
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
    }
}
