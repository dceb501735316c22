//! What flags make of a policy. It stays the JSON that the server gave: fields that this version does not know
//! are handed back as they came.

use std::{fs, io::Read, path::Path};

use serde_json::{Value, json};
use tidegate_core::json;

use super::ChangeArgs;

pub(super) struct Change(ChangeArgs);

impl Change {
    pub(super) fn new(arguments: ChangeArgs) -> Self {
        Self(arguments)
    }

    /// # Errors
    /// The file can't be read, or what is to be taken out is not there.
    pub(super) fn apply(self, in_force: Value) -> Result<Value, String> {
        let Self(arguments) = self;
        let mut policy = match &arguments.from {
            Some(path) => read(path)?,
            None => in_force,
        };
        if !policy.is_object() {
            return Err("a policy is a JSON object".to_owned());
        }
        let numbers = [
            ("mode", arguments.mode.map(Value::from)),
            ("rps", arguments.rps.map(number)),
            ("burst", arguments.burst.map(Value::from)),
            ("ipv6_prefix", arguments.ipv6_prefix.map(Value::from)),
            ("deny_missing_user_agent", arguments.deny_missing_user_agent.map(Value::from)),
        ];
        for (field, value) in numbers {
            if let Some(value) = value {
                policy[field] = value;
            }
        }
        for (field, more) in [
            ("deny_cidrs", arguments.deny_cidr),
            ("deny_user_agents", arguments.deny_user_agent),
            ("allow_cidrs", arguments.allow_cidr),
        ] {
            add(&mut policy, field, more);
        }
        for network in &arguments.remove_cidr {
            let removed =
                remove(&mut policy, "deny_cidrs", network) | remove(&mut policy, "allow_cidrs", network);
            if !removed {
                return Err(format!("{network} is in neither list"));
            }
        }
        for agent in &arguments.remove_user_agent {
            if !remove(&mut policy, "deny_user_agents", agent) {
                return Err(format!("{agent} is not in the list"));
            }
        }
        Ok(policy)
    }
}

/// Whole numbers without a fraction, as people write them.
fn number(number: f64) -> Value {
    let text = number.to_string();
    text.parse::<u64>().map_or_else(|_| json!(number), Value::from)
}

fn add(policy: &mut Value, field: &str, more: Vec<String>) {
    if more.is_empty() {
        return;
    }
    if !policy[field].is_array() {
        policy[field] = json!([]);
    }
    if let Some(list) = policy[field].as_array_mut() {
        for text in more {
            if !list.iter().any(|entry| text_of(entry) == Some(&text)) {
                list.push(Value::from(text));
            }
        }
    }
}

fn remove(policy: &mut Value, field: &str, text: &str) -> bool {
    // Looked up without making a field that is not there.
    let Some(list) = policy.get_mut(field).and_then(Value::as_array_mut) else { return false };
    let before = list.len();
    list.retain(|entry| text_of(entry) != Some(text));
    list.len() < before
}

/// An entry is a text, or an object that has it as its network.
fn text_of(entry: &Value) -> Option<&str> {
    entry.as_str().or_else(|| entry["cidr"].as_str())
}

fn read(path: &Path) -> Result<Value, String> {
    let mut text = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(POLICY_BYTES_MAX).read_to_end(&mut text).map(drop)
    } else {
        fs::File::open(path).and_then(|file| file.take(POLICY_BYTES_MAX).read_to_end(&mut text)).map(drop)
    };
    read.map_err(|error| format!("reading the policy {}: {error}", path.display()))?;
    let read = json::read(&text).map_err(|error| format!("the policy {}: {error}", path.display()))?;
    // The server would refuse them, but it is not sent the text.
    match read.duplicates.first() {
        Some(place) => Err(format!("the policy {}: {place} is there twice", path.display())),
        None => Ok(read.value),
    }
}

/// More than the server takes.
const POLICY_BYTES_MAX: u64 = 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_change_what_they_name_and_nothing_else() {
        let in_force = json!({
            "mode": "log_only", "rps": 1, "burst": 2, "newer_field": true,
            "deny_cidrs": ["192.0.2.0/24", {"cidr": "198.51.100.0/24", "note": "x"}],
        });
        let change = ChangeArgs {
            rps: Some(5.0),
            deny_cidr: vec!["203.0.113.0/24".into(), "192.0.2.0/24".into()],
            deny_user_agent: vec!["BadBot".into()],
            remove_cidr: vec!["198.51.100.0/24".into()],
            ..ChangeArgs::default()
        };
        let policy = Change::new(change).apply(in_force.clone()).unwrap();
        let expected = json!({
            "mode": "log_only", "rps": 5, "burst": 2, "newer_field": true,
            "deny_cidrs": ["192.0.2.0/24", "203.0.113.0/24"], "deny_user_agents": ["BadBot"],
        });
        assert_eq!(policy, expected);
        let change = ChangeArgs { remove_cidr: vec!["10.0.0.0/8".into()], ..ChangeArgs::default() };
        assert!(Change::new(change).apply(in_force).unwrap_err().contains("10.0.0.0/8"));
        assert_eq!(number(0.5), json!(0.5));
    }
}
