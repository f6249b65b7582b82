//! Man pages from the definition of the command line: clap_mangen's sections, but the usage with the arguments of its options, and
//! examples and exit statuses as they are typed.

use std::fmt::Write as _;
use std::io::{self, Write};

use clap::{Arg, Command};
use clap_mangen::Man;

/// Writes the page of `command` in roff. The command must be built ([`Command::build`]).
pub fn page(command: &Command, out: &mut dyn Write) -> io::Result<()> {
    let man = Man::new(command.clone());
    man.render_title(out)?;
    man.render_name_section(out)?;
    out.write_all(synopsis(command).as_bytes())?;
    man.render_description_section(out)?;
    man.render_options_section(out)?;
    if command.get_subcommands().any(|sub| !sub.is_hide_set()) {
        man.render_subcommands_section(out)?;
    }
    let after = command.get_after_long_help().or(command.get_after_help());
    out.write_all(sections(&after.map(ToString::to_string).unwrap_or_default()).as_bytes())?;
    match command.get_version().or(command.get_long_version()) {
        Some(_) => man.render_version_section(out),
        None => Ok(()),
    }
}

/// Escapes a line of text: hyphens are those of options, and a line must not begin a request.
fn escaped(line: &str) -> String {
    let text = line.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

/// Returns the SYNOPSIS: each option with its argument.
fn synopsis(command: &Command) -> String {
    let name = escaped(command.get_bin_name().unwrap_or(command.get_name()));
    let (positionals, options): (Vec<&Arg>, Vec<&Arg>) =
        command.get_arguments().filter(|arg| !arg.is_hide_set()).partition(|arg| arg.is_positional());
    let mut words: Vec<String> = options.into_iter().filter_map(option).collect();
    words.extend(positionals.into_iter().map(positional));
    if command.get_subcommands().any(|sub| !sub.is_hide_set()) {
        words.push(r"[\fISUBCOMMAND\fR]".into());
    }
    // Without filling to both margins and without hyphenation, a break comes only between two options.
    format!(".SH SYNOPSIS\n.ad l\n.nh\n\\fB{name}\\fR {}\n.hy\n.ad b\n", words.join(" "))
}

/// Returns an option with its argument: `[--size SIZE]`. The blank within is not broken.
fn option(arg: &Arg) -> Option<String> {
    let long = arg.get_long().map(|long| format!("\\fB{}\\fR", escaped(&format!("--{long}"))));
    let short = arg.get_short().map(|short| format!("\\fB\\-{short}\\fR"));
    let mut text = [short, long].into_iter().flatten().collect::<Vec<_>>().join("|");
    if text.is_empty() {
        return None;
    }
    if arg.get_action().takes_values() {
        let is_optional = arg.get_num_args().is_some_and(|range| range.min_values() == 0);
        let names = value_names(arg);
        text += &if is_optional { format!("[=\\fI{names}\\fR]") } else { format!("\\ \\fI{names}\\fR") };
    }
    Some(if arg.is_required_set() { text } else { format!("[{text}]") })
}

fn positional(arg: &Arg) -> String {
    let more = if arg.get_num_args().is_some_and(|range| range.max_values() > 1) { "..." } else { "" };
    let text = format!("\\fI{}\\fR{more}", value_names(arg));
    if arg.is_required_set() { text } else { format!("[{text}]") }
}

fn value_names(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    match names {
        [] => escaped(&arg.get_id().as_str().to_uppercase()),
        names => names.iter().map(|name| escaped(name)).collect::<Vec<_>>().join("\\ "),
    }
}

/// Returns the sections of the text below the options: `Examples:` and `Exit status:` with their lines as typed, and the
/// paragraphs without a heading as NOTES.
fn sections(text: &str) -> String {
    let mut roff = String::new();
    let mut has_notes = false;
    for part in text.split("\n\n") {
        let (first, rest) = part.split_once('\n').unwrap_or((part, ""));
        match first.strip_suffix(':').filter(|_| rest.starts_with(' ')) {
            Some(heading) => {
                let _ = writeln!(roff, ".SH \"{}\"\n.in 2n\n.nf", heading.to_uppercase());
                // The text's own indentation instead of the page's, which would leave too few of 80 columns.
                let lines = rest.lines().map(|line| line.strip_prefix("  ").unwrap_or(line));
                lines.for_each(|line| roff += &format!("{}\n", escaped(line)));
                roff += ".fi\n.in\n";
                has_notes = false;
            }
            None if part.trim().is_empty() => {}
            None => {
                roff += if has_notes { ".PP\n" } else { ".SH NOTES\n" };
                part.lines().for_each(|line| roff += &format!("{}\n", escaped(line.trim())));
                has_notes = true;
            }
        }
    }
    roff
}
