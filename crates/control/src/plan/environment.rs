//! The plan's environment: what is set for the command, and taken from it.

use std::ffi::OsString;
use std::path::PathBuf;

use super::Plan;
use crate::preload;
use crate::runtimes::{self, Hook};

/// Where what is loaded lies.
#[derive(Debug, Clone, Default)]
pub struct InjectedFiles {
    /// The library, and what it does.
    pub library: Option<(PathBuf, preload::PreloadConfig)>,
    /// The folder of the hooks' folders.
    pub hooks: Option<PathBuf>,
}

/// Variables and their values; None takes one away.
pub type EnvironmentChanges = Vec<(String, Option<OsString>)>;

impl Plan {
    /// The hooks that are to lie in [`Place::hooks`]; none when none is loaded.
    pub fn hooks_used(&self) -> Vec<&'static Hook> {
        let mut hooks: Vec<&'static Hook> = Vec::new();
        for hook in runtimes::ALL.iter().filter_map(|runtime| runtime.hook) {
            let wanted = self.hooks.is_some() && !hooks.iter().any(|one| one.folder == hook.folder);
            // A module that is loaded for nothing costs a start, and Python has a walker for delays.
            let python_or_perl = matches!(hook.folder, "python" | "perl");
            let by_delay = self.hooks.as_deref().is_some_and(|mode| mode.starts_with("delay:"));
            let walked = python_or_perl && by_delay && self.runtime.name != "PyPy";
            if wanted && !walked {
                hooks.push(hook);
            }
        }
        hooks
    }

    /// What is set in the command's environment, of which `get` tells what is there.
    pub fn settings(
        &self,
        place: &InjectedFiles,
        get: impl Fn(&str) -> Option<OsString>,
    ) -> EnvironmentChanges {
        let mut settings: EnvironmentChanges = Vec::new();
        for (name, value) in &self.variables {
            settings.push((name.to_string(), Some(value).filter(|value| !value.is_empty()).map(Into::into)));
        }
        if let (Some(mode), Some(folder)) = (&self.hooks, &place.hooks) {
            settings.push(("WEIR_HOOK".into(), Some(mode.into())));
            for hook in self.hooks_used() {
                let folder = folder.join(hook.folder);
                let all = hook.variables.iter().flat_map(|variable| variable.settings(&folder, &get));
                settings.extend(all.map(|(name, value)| (name, Some(value))));
            }
        }
        if let Some((library, wishes)) = &place.library {
            let variables = wishes.environment(library, get("LD_PRELOAD"));
            settings.extend(variables.map(|(name, value)| (name.to_string(), Some(value))));
        }
        settings
    }
}
