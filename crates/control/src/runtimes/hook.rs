//! A file that a runtime loads when it starts, and the variables that lead it there.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// A file that a runtime loads when it starts.
#[derive(Debug)]
pub struct Hook {
    /// Its folder, which must hold nothing else.
    pub folder: &'static str,
    /// Its name, which is the runtime's choice.
    pub file: &'static str,
    /// What is in it.
    pub bytes: &'static [u8],
    /// The variables that lead to it.
    pub variables: &'static [Variable],
}

/// How a variable comes to lead to a hook.
#[derive(Debug, Clone, Copy)]
pub enum Variable {
    /// The folder goes in front of a list with colons.
    List(&'static str),
    /// A word goes behind those that are there.
    Word(&'static str, &'static str),
    /// The folder takes the place of what was there, which is kept under another name.
    Folder(&'static str, &'static str),
}

impl Variable {
    /// The settings, for a hook that lies in `folder`.
    pub fn settings(self, folder: &Path, get: impl Fn(&str) -> Option<OsString>) -> Vec<(String, OsString)> {
        let folder = folder.as_os_str();
        match self {
            Self::List(name) => vec![(name.into(), joined(folder, ":", get(name)))],
            Self::Word(name, word) => {
                let old = get(name).filter(|old| !old.is_empty());
                let value = old.map_or_else(|| word.into(), |old| joined(&old, " ", Some(word.into())));
                vec![(name.into(), value)]
            }
            Self::Folder(name, keep) => {
                let kept = get(name).filter(|old| old != folder).map(|old| (keep.to_string(), old));
                kept.into_iter().chain([(name.into(), folder.into())]).collect()
            }
        }
    }
}

fn joined(first: &OsStr, between: &str, second: Option<OsString>) -> OsString {
    let mut value = first.to_os_string();
    if let Some(second) = second.filter(|second| !second.is_empty()) {
        value.push(between);
        value.push(second);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_has_set_is_kept() {
        let get = |name: &str| (name != "NEW").then(|| OsString::from("/own"));
        let set = |variable: Variable| variable.settings(Path::new("/h"), get);
        assert_eq!(set(Variable::List("P")), [("P".into(), "/h:/own".into())]);
        assert_eq!(set(Variable::List("NEW")), [("NEW".into(), "/h".into())]);
        assert_eq!(set(Variable::Word("O", "-rx")), [("O".into(), "/own -rx".into())]);
        assert_eq!(set(Variable::Word("NEW", "-rx")), [("NEW".into(), "-rx".into())]);
        let kept = [("KEPT".into(), "/own".into()), ("T".into(), "/h".into())];
        assert_eq!(set(Variable::Folder("T", "KEPT")), kept);
    }
}
