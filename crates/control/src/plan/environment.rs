//! The variables that a plan sets and removes in the command's environment.

use std::ffi::OsString;
use std::path::PathBuf;

use weir_model::RuntimeFix;
use weir_walkers::{Hook, runtimes};

use super::Plan;
use crate::preload::PreloadConfig;

/// The files that are loaded into programs.
#[derive(Debug, Clone, Default)]
pub struct InjectedFiles {
    /// The library's path and configuration.
    pub library: Option<(PathBuf, PreloadConfig)>,
    /// The folder that holds the hooks' folders.
    pub hooks: Option<PathBuf>,
}

/// Variables and their values. None removes the variable.
pub type EnvironmentChanges = Vec<(String, Option<OsString>)>;

impl Plan {
    /// Returns the hooks to install in [`InjectedFiles::hooks`]; empty if the plan loads no hook.
    pub fn hooks_used(&self) -> Vec<&'static Hook> {
        let mut hooks: Vec<&'static Hook> = Vec::new();
        for hook in runtimes().iter().filter_map(|runtime| runtime.hook) {
            let wanted = self.hooks.is_some() && !hooks.iter().any(|one| one.folder == hook.folder);
            // A hook costs start time, so a runtime whose walker bounds the delay gets none for the delay.
            if wanted && !(hook.walker_bounds_delay && self.delay_without_hook()) {
                hooks.push(hook);
            }
        }
        hooks
    }

    /// Returns whether hooks would only bound a delay that walkers bound too. PyPy loads CPython's hook, and has no
    /// walker.
    fn delay_without_hook(&self) -> bool {
        let by_delay = self.hooks.as_deref().is_some_and(|mode| mode.starts_with("delay:"));
        let runtime = self.runtime;
        let needs_hook = runtime.hook.is_some_and(|hook| hook.walker_bounds_delay)
            && matches!(runtime.facts.fixes.max_delay, RuntimeFix::HookSubstitute(_));
        by_delay && !needs_hook
    }

    /// Returns the changes of the command's environment. `get` reads the present one.
    pub fn environment_changes(
        &self,
        files: &InjectedFiles,
        get: impl Fn(&str) -> Option<OsString>,
    ) -> EnvironmentChanges {
        let mut changes: EnvironmentChanges = Vec::new();
        for (name, value) in &self.variables {
            changes.push((name.to_string(), Some(value).filter(|value| !value.is_empty()).map(Into::into)));
        }
        if let (Some(mode), Some(folder)) = (&self.hooks, &files.hooks) {
            changes.push(("WEIR_HOOK".into(), Some(mode.into())));
            for hook in self.hooks_used() {
                let folder = folder.join(hook.folder);
                let all = hook.variables.iter().flat_map(|variable| variable.settings(&folder, &get));
                changes.extend(all.map(|(name, value)| (name, Some(value))));
            }
        }
        if let Some((library, config)) = &files.library {
            let variables = config.environment(library, get("LD_PRELOAD"));
            changes.extend(variables.map(|(name, value)| (name.to_string(), Some(value))));
        }
        changes
    }
}
