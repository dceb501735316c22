//! What a server tells about itself, and what is wrong with it for a store.

/// The few lines of `INFO` that matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerFacts {
    /// Valkey tells the version of Redis that it is compatible with.
    pub(crate) version: String,
    evicts: Option<String>,
    appends: bool,
}

impl ServerFacts {
    /// Reads the answer to `INFO`; none if it says no version.
    pub(crate) fn read(info: &str) -> Option<Self> {
        let field = |name: &str| {
            let value = |line: &'_ str| line.strip_prefix(name)?.strip_prefix(':').map(str::to_owned);
            info.lines().find_map(value)
        };
        let bounded = field("maxmemory").is_some_and(|bytes| bytes != "0");
        // The others remove nothing, or only what expires by itself: no row does.
        let policy = field("maxmemory_policy").filter(|policy| policy.starts_with("allkeys-"));
        Some(Self {
            version: field("redis_version")?,
            evicts: policy.filter(|_| bounded),
            appends: field("aof_enabled").is_some_and(|enabled| enabled == "1"),
        })
    }

    /// Whether it has all commands that the store uses.
    pub(crate) fn is_new_enough(&self) -> bool {
        let mut parts = self.version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (6, 2)
    }

    /// Why the server may lose rows before they expire.
    pub(crate) fn ways_to_forget(&self) -> Vec<String> {
        let evicts = self.evicts.iter().map(|policy| {
            format!("maxmemory-policy {policy} removes all counts when memory is full; set it to noeviction")
        });
        let loses = (!self.appends).then(|| {
            "appendonly is off: a crash of the server loses what it counted since its last snapshot"
                .to_owned()
        });
        evicts.chain(loses).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(version: &str, maxmemory: &str, policy: &str, aof: &str) -> ServerFacts {
        let info = format!(
            "# Server\r\nredis_version:{version}\r\nmaxmemory:{maxmemory}\r\nmaxmemory_human:1G\r\n\
             maxmemory_policy:{policy}\r\naof_enabled:{aof}\r\n"
        );
        ServerFacts::read(&info).unwrap()
    }

    #[test]
    fn versions() {
        let table = [
            ("6.2.0", true),
            ("7.0.15", true),
            ("10.0.0", true),
            ("6.0.16", false),
            ("5.9.9", false),
            ("unstable", false),
        ];
        for (version, right) in table {
            assert_eq!(facts(version, "0", "noeviction", "1").is_new_enough(), right, "{version}");
        }
        assert_eq!(ServerFacts::read("# Server\r\n"), None);
    }

    #[test]
    fn ways_to_forget() {
        let table = [
            ("noeviction", "1000", "1", 0),
            ("allkeys-lru", "0", "1", 0),
            ("allkeys-lru", "1000", "1", 1),
            ("volatile-ttl", "1000", "1", 0),
            ("noeviction", "0", "0", 1),
            ("volatile-lru", "1000", "0", 1),
            ("allkeys-random", "1000", "0", 2),
        ];
        for (policy, maxmemory, aof, ways) in table {
            let found = facts("7.0.0", maxmemory, policy, aof).ways_to_forget();
            assert_eq!(found.len(), ways, "{policy}, {maxmemory}, {aof}: {found:?}");
        }
    }
}
