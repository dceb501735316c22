//! What a reload changes.

use super::{Fault, Loaded, Scope};

/// The keys that differ between the configuration in force and a new one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reload {
    /// Keys whose change takes effect at once.
    pub applied: Vec<String>,
    /// Keys whose change waits for a restart.
    pub waiting: Vec<String>,
}

/// Compares a freshly read configuration with the one in force.
///
/// # Errors
/// The new configuration's faults; the one in force stays, whole.
pub fn compare(in_force: &Loaded, new: &Loaded) -> Result<Reload, Vec<Fault>> {
    let stops = |fault: &&Fault| matches!(fault.scope, Scope::Fatal | Scope::Guard);
    let faults: Vec<_> = new.faults.iter().filter(stops).cloned().collect();
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut paths: Vec<_> =
        in_force.settings.iter().chain(new.settings.iter()).map(|(path, _)| path).collect();
    paths.sort_unstable();
    paths.dedup();
    let mut reload = Reload::default();
    for path in paths {
        let (before, after) = (in_force.settings.setting(path), new.settings.setting(path));
        let value = |setting: Option<&super::Setting>| setting.and_then(|setting| setting.value.clone());
        let reloads = after.or(before).is_some_and(|setting| setting.spec.reloads);
        if value(before) != value(after) {
            let keys = if reloads { &mut reload.applied } else { &mut reload.waiting };
            keys.push(path.to_owned());
        }
    }
    Ok(reload)
}
