//! A limit on the memory of processes: a control group of the kernel's, version 1 or 2.
//!
//! ```text
//! /sys/fs/cgroup/memory/quorate-lab-PID-N    version 1: memory.limit_in_bytes
//! /sys/fs/cgroup/quorate-lab-PID-N           version 2: memory.max
//! ```
//! What a limited process reads and writes through the system's page cache counts too, so a limit
//! of twice the buffers says how a server does with little of either. Whoever may not make such
//! groups (they are root's) goes on without; who asked for it says so.

use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::host::{create_dir, pause, read_file, write_file};

/// Where the kernel shows the hierarchy of memory: of version 1, and of version 2.
const ROOTS: [(&str, Version); 2] = [
    ("/sys/fs/cgroup/memory", Version::One),
    ("/sys/fs/cgroup", Version::Two),
];

/// A group is removed as soon as its last process is gone, which may take this many looks.
const REMOVALS_MAX: usize = 100;
const REMOVAL_PAUSE: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Version {
    fn limit_file(self) -> &'static str {
        match self {
            Version::One => "memory.limit_in_bytes",
            Version::Two => "memory.max",
        }
    }

    /// The file that counts who was killed for want of memory.
    fn kills_file(self) -> &'static str {
        match self {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        }
    }
}

/// A group; it is removed when this value is dropped, after the processes in it have ended.
#[derive(Debug)]
pub struct MemoryGroup {
    dir: PathBuf,
    version: Version,
}

impl MemoryGroup {
    /// A group whose processes have so much memory together.
    ///
    /// # Errors
    /// `Unsupported` where the kernel offers none; `PermissionDenied` for who is not root.
    pub fn limited_to(bytes: u64) -> Result<MemoryGroup> {
        static GROUPS: AtomicU32 = AtomicU32::new(0);
        let number = GROUPS.fetch_add(1, Ordering::Relaxed);
        let name = format!("quorate-lab-{}-{number}", std::process::id());
        let mut last = Error::new(ErrorKind::Unsupported, "no control groups for memory");
        for (root, version) in ROOTS {
            let dir = Path::new(root).join(&name);
            if create_dir(&dir).is_err() && !dir.exists() {
                continue;
            }
            // From here on the directory goes with the value.
            let group = MemoryGroup { dir, version };
            let limit = group.dir.join(version.limit_file());
            // A group without the controller of memory has no such file, and lets none be made.
            match read_file(&limit).and_then(|_| write_file(&limit, &bytes.to_string())) {
                Ok(()) => return Ok(group),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Words to put before a command, so that it runs in the group from its first moment.
    pub fn launcher(&self) -> [String; 4] {
        let join = "echo $$ > \"$0\"/cgroup.procs && exec \"$@\"";
        let dir = self.dir.display().to_string();
        ["sh", "-c", join, &dir].map(str::to_owned)
    }

    /// The command that runs a program in a group, or outside any.
    pub fn command(group: Option<&MemoryGroup>, program: &Path) -> Command {
        let Some(group) = group else {
            return Command::new(program);
        };
        let [first, rest @ ..] = group.launcher();
        let mut command = Command::new(first);
        command.args(rest).arg(program);
        command
    }

    /// How many of its processes were killed because they wanted more.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn kills(&self) -> Result<u64> {
        let text = read_file(&self.dir.join(self.version.kills_file()))?;
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        let count = count.and_then(|count| count.trim().parse().ok());
        count.ok_or_else(|| Error::other(format!("no oom_kill in {text}")))
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        for _ in 0..REMOVALS_MAX {
            if std::fs::remove_dir(&self.dir).is_ok() || !self.dir.exists() {
                return;
            }
            pause(REMOVAL_PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::run;

    /// Where no group can be made there is nothing to hold.
    #[test]
    fn who_is_in_a_group_is_killed_above_its_limit() {
        let Ok(group) = MemoryGroup::limited_to(32 << 20) else {
            return;
        };
        let dir = group.dir.clone();
        let shell = Path::new("sh");
        let mut small = MemoryGroup::command(Some(&group), shell);
        let said = run(small.args(["-c", "cat /proc/self/cgroup"])).unwrap();
        let name = dir.file_name().unwrap().to_string_lossy().into_owned();
        assert!(said.contains(&name), "{said}");
        assert_eq!(group.kills().unwrap(), 0);
        // tail keeps what has no end of line.
        let large = "head -c 200000000 /dev/zero | tail -c 200000000 > /dev/null";
        let mut command = MemoryGroup::command(Some(&group), shell);
        let _ = command.args(["-c", large]).status();
        assert!(group.kills().unwrap() > 0, "200 MB fit into 32");
        drop(group);
        assert!(!dir.exists(), "{} is left", dir.display());
    }
}
