//! Command lines in fixes, quoted for a shell.

use weir_model::trace::Image;

use crate::context::RuleContext;

impl RuleContext<'_> {
    /// Returns the command that runs a process's last program under `weir run` with these options.
    pub fn weir_run(&self, options: &str, pid: u32) -> String {
        format!("weir run {options} -- {}", self.command(pid))
    }

    /// Returns the command that runs the whole traced command under `weir run` with these options.
    pub fn weir_run_whole(&self, options: &str) -> String {
        format!("weir run {options} -- {}", join(&self.recording.command))
    }

    /// As [`Self::weir_run`], for the program that the process ran at a time.
    pub fn weir_run_at(&self, options: &str, pid: u32, at_s: f64) -> String {
        let image = self.image_at(pid, at_s).map(|(_, image)| image);
        format!("weir run {options} -- {}", self.image_command(image, pid))
    }

    /// Returns the command of a process's last program.
    pub fn command(&self, pid: u32) -> String {
        self.image_command(self.process(pid).and_then(|process| process.images.last()), pid)
    }

    fn image_command(&self, image: Option<&Image>, pid: u32) -> String {
        let argv = image.map(|image| image.argv.as_slice()).filter(|argv| !argv.is_empty());
        match argv {
            Some(argv) => join(argv),
            None if pid == self.recording.root && !self.recording.command.is_empty() => {
                join(&self.recording.command)
            }
            None => image.map_or("COMMAND".into(), |image| shell_quoted(&image.comm)),
        }
    }
}

fn join(words: &[String]) -> String {
    words.iter().map(|word| shell_quoted(word)).collect::<Vec<_>>().join(" ")
}

/// Returns a word with the quotes that a shell needs.
pub(crate) fn shell_quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%^".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into();
    }
    if word.contains(char::is_control) {
        // A line break would end the line on which the command is shown.
        let escaped: String = word.chars().map(escaped).collect();
        return format!("$'{escaped}'");
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Returns a character as it is written between `$'` and `'`.
fn escaped(c: char) -> String {
    match c {
        '\\' | '\'' => format!("\\{c}"),
        '\n' => "\\n".into(),
        '\t' => "\\t".into(),
        '\r' => "\\r".into(),
        c if c.is_ascii_control() => format!("\\{:03o}", u32::from(c)),
        c => c.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(
            (shell_quoted("a.b"), shell_quoted("it's"), shell_quoted("")),
            ("a.b".into(), "'it'\\''s'".into(), "''".into())
        );
        assert_eq!(shell_quoted("{ print\n\t\"it's\" }"), "$'{ print\\n\\t\"it\\'s\" }'");
    }
}
