//! Files that runtimes load at their start, and the environment variables that control it.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// A file that a runtime loads at its start.
#[derive(Debug)]
pub struct Hook {
    /// The name of a folder that holds nothing but the file.
    pub folder: &'static str,
    /// The file's name, which the runtime prescribes.
    pub file: &'static str,
    #[allow(missing_docs)]
    pub bytes: &'static [u8],
    /// The variables that make the runtime load the file.
    pub variables: &'static [HookVariable],
    /// A walker reads this runtime's buffers, so `--max-delay` needs no hook.
    pub walker_bounds_delay: bool,
}

/// The way in which an environment variable names a hook.
#[derive(Debug, Clone, Copy)]
pub enum HookVariable {
    /// The hook's folder goes to the front of a colon-separated list.
    PathList(&'static str),
    /// `before`, the hook's folder and `after` go behind the words of the variable. A program that replaces another variable, such as
    /// the one with the search path, then keeps the hook.
    #[allow(missing_docs)]
    AppendedWords { variable: &'static str, before: &'static str, after: &'static str },
    /// The hook's folder replaces the value, which moves to the variable `saved_as`.
    #[allow(missing_docs)]
    ReplacedFolder { variable: &'static str, saved_as: &'static str },
}

impl HookVariable {
    /// Returns the variables to set for a hook in `folder`. `get` reads the present environment.
    pub fn settings(self, folder: &Path, get: impl Fn(&str) -> Option<OsString>) -> Vec<(String, OsString)> {
        let folder = folder.as_os_str();
        match self {
            Self::PathList(name) => vec![(name.into(), joined(folder, ":", get(name)))],
            Self::AppendedWords { variable, before, after } => {
                let mut value = get(variable).filter(|old| !old.is_empty()).unwrap_or_default();
                let space = if value.is_empty() { "" } else { " " };
                for part in [OsStr::new(space), before.as_ref(), folder, after.as_ref()] {
                    value.push(part);
                }
                vec![(variable.into(), value)]
            }
            Self::ReplacedFolder { variable, saved_as } => {
                let saved = get(variable).filter(|old| old != folder).map(|old| (saved_as.to_string(), old));
                saved.into_iter().chain([(variable.into(), folder.into())]).collect()
            }
        }
    }
}

fn joined(first: &OsStr, separator: &str, second: Option<OsString>) -> OsString {
    let mut value = first.to_os_string();
    if let Some(second) = second.filter(|second| !second.is_empty()) {
        value.push(separator);
        value.push(second);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_user_are_kept() {
        let get = |name: &str| (name != "NEW").then(|| OsString::from("/own"));
        let set = |variable: HookVariable| variable.settings(Path::new("/h"), get);
        assert_eq!(set(HookVariable::PathList("P")), [("P".into(), "/h:/own".into())]);
        assert_eq!(set(HookVariable::PathList("NEW")), [("NEW".into(), "/h".into())]);
        let words = |variable| set(HookVariable::AppendedWords { variable, before: "-r", after: "/x" });
        assert_eq!(words("O"), [("O".into(), "/own -r/h/x".into())]);
        assert_eq!(words("NEW"), [("NEW".into(), "-r/h/x".into())]);
        let kept = [("KEPT".into(), "/own".into()), ("T".into(), "/h".into())];
        assert_eq!(set(HookVariable::ReplacedFolder { variable: "T", saved_as: "KEPT" }), kept);
    }
}
