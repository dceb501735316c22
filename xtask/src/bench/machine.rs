//! The machine that was measured on.

use std::{fs, path::Path};

/// One line: processor, cores, memory, kernel, and the disk of `folder`.
pub(crate) fn describe(folder: &Path) -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(':')).map_or("unknown", |(_, value)| value.trim()).to_owned()
    };
    let processors = read("/proc/cpuinfo");
    let processor = field(&processors, "model name");
    // The machine's, not those that this process may run on: a bench may be pinned.
    let cores = processors.lines().filter(|line| line.starts_with("processor")).count();
    let memory_kib = field(&read("/proc/meminfo"), "MemTotal");
    let memory_kib: u64 = memory_kib.trim_end_matches(" kB").parse().unwrap_or(0);
    let kernel = read("/proc/sys/kernel/osrelease");
    let disk = disk(&read("/proc/mounts"), folder);
    format!(
        "{processor}, {cores} cores, {} GiB, Linux {}, {disk}; client and server on the same machine",
        memory_kib.div_ceil(1 << 20),
        kernel.trim()
    )
}

/// The file system and device of the mount that `folder` lies in.
fn disk(mounts: &str, folder: &Path) -> String {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    let fields = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        Some((fields.next()?, Path::new(fields.next()?), fields.next()?))
    });
    let holding = fields.filter(|(_, mount, _)| folder.starts_with(mount));
    let innermost = holding.max_by_key(|(_, mount, _)| mount.as_os_str().len());
    innermost.map_or_else(|| "unknown disk".to_owned(), |(device, _, kind)| format!("{kind} on {device}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_mount_counts() {
        let mounts = "/dev/vda / ext4 rw 0 0\ntmpfs /no-such/mount tmpfs rw 0 0\n";
        for (folder, expected) in [
            ("/no-such", "ext4 on /dev/vda"),
            ("/no-such/mount/data", "tmpfs on tmpfs"),
            ("relative", "unknown disk"),
        ] {
            assert_eq!(disk(mounts, Path::new(folder)), expected, "{folder}");
        }
    }
}
