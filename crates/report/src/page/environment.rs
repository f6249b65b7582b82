//! The machine and the settings of a result, as facts of a page.

use std::collections::BTreeMap;

use crate::number::bytes_like;

/// Names of the machine's properties with their names in a page.
const MACHINE: [(&str, &str); 8] = [
    ("cpu", "Processor"),
    ("cpus", "Processors"),
    ("arch", "Architecture"),
    ("memory_bytes", "Memory"),
    ("kernel", "Kernel"),
    ("virtualization", "Virtualisation"),
    ("fs", "File system"),
    ("mount_options", "Mount options"),
];

/// Returns the facts; properties that are not in `environment` are empty.
pub(crate) fn facts(environment: &BTreeMap<String, String>) -> Vec<(&'static str, String)> {
    let value = |name: &str| match (name, environment.get(name)) {
        ("memory_bytes", Some(bytes)) => {
            bytes.parse().map_or(bytes.clone(), |bytes| bytes_like(bytes, 1 << 30))
        }
        // A line can break behind a space only.
        ("mount_options", Some(options)) => options.replace(',', ", "),
        (_, value) => value.cloned().unwrap_or_default(),
    };
    let mut facts: Vec<(&str, String)> = MACHINE.iter().map(|(name, shown)| (*shown, value(name))).collect();
    facts.push(("Settings", settings(environment)));
    facts
}

/// Returns the settings in one line, without those that are 0, which stand for "not set".
pub(crate) fn settings(settings: &BTreeMap<String, String>) -> String {
    let is_setting = |name: &str| MACHINE.iter().all(|(known, _)| *known != name);
    let shown = settings.iter().filter(|(name, value)| {
        is_setting(name) && (name.ends_with("rotational") || *value != "0") && !value.is_empty()
    });
    shown.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_options_can_be_broken_into_lines() {
        let environment = BTreeMap::from([("mount_options".to_string(), "rw,relatime,discard".to_string())]);
        assert!(facts(&environment).contains(&("Mount options", "rw, relatime, discard".into())));
    }
}
