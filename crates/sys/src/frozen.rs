//! Processes that a freezer of cgroups(7) keeps from running.

use std::path::{Component, Path, PathBuf};

use weir_model::Untrusted;

/// Where systems mount the unified hierarchy, and the freezer of the older one.
const UNIFIED: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
const OLDER: &str = "/sys/fs/cgroup/freezer";

/// Returns the cgroup in which a process is frozen; None if it is not, or if that cannot be read.
pub fn cgroup_of(pid: u32) -> Option<Untrusted> {
    let text = std::fs::read(format!("/proc/{pid}/cgroup")).ok()?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let frozen =
        text.lines().find_map(|line| cgroup_if_frozen(line, |path| std::fs::read_to_string(path).ok()))?;
    Some(frozen.to_string_lossy().into_owned().into())
}

/// Returns the folder of the cgroup in a line of /proc/PID/cgroup if its files say that it is frozen.
fn cgroup_if_frozen(line: &str, read: impl Fn(&Path) -> Option<String>) -> Option<PathBuf> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let path = Path::new(path.strip_prefix('/')?);
    // A cgroup outside of weir's cgroup namespace is not below the mount point.
    if path.components().any(|part| part == Component::ParentDir) {
        return None;
    }
    let folder_if = |mount: &str, path: &Path, file: &str, is_frozen: fn(&str) -> bool| {
        let folder = Path::new(mount).join(path);
        read(&folder.join(file)).is_some_and(|text| is_frozen(&text)).then_some(folder)
    };
    match controllers {
        // Its state alone ("frozen" in cgroup.events) is not enough: a tracer lets a frozen thread leave it for a moment.
        "" => UNIFIED.into_iter().find_map(|mount| {
            let is_asked = |path| folder_if(mount, path, "cgroup.freeze", |text| text.trim_end() == "1");
            path.ancestors().find_map(is_asked)
        }),
        _ if controllers.split(',').any(|one| one == "freezer") => {
            folder_if(OLDER, path, "freezer.state", |text| text.trim_end() != "THAWED")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_cgroup_say_whether_it_is_frozen() {
        let read = |path: &Path| {
            let text = match path.to_str()? {
                "/sys/fs/cgroup/a/cgroup.freeze" => "1\n",
                "/sys/fs/cgroup/a/inner/cgroup.freeze" => "0\n",
                "/sys/fs/cgroup/b/cgroup.freeze" => "0\n",
                "/sys/fs/cgroup/freezer/c/freezer.state" => "FREEZING\n",
                "/sys/fs/cgroup/freezer/d/freezer.state" => "THAWED\n",
                _ => return None,
            };
            Some(text.to_string())
        };
        let frozen = |line| cgroup_if_frozen(line, read).map(|path| path.display().to_string());
        assert_eq!(frozen("0::/a").as_deref(), Some("/sys/fs/cgroup/a"));
        assert_eq!(frozen("0::/a/inner").as_deref(), Some("/sys/fs/cgroup/a"));
        assert_eq!(frozen("7:cpu,freezer:/c").as_deref(), Some("/sys/fs/cgroup/freezer/c"));
        for line in ["0::/b", "7:freezer:/d", "7:cpu:/c", "0::/../a", "0::/none", "", "0:"] {
            assert_eq!(frozen(line), None, "{line}");
        }
    }
}
