//! The configuration: a table of keys, the file, the environment over it, and every fault by name.
//!
//! [`load`] reads everything and never stops at the first fault. [`Loaded::start`] gives a [`Configuration`]
//! only where a process may start with it.

mod apps;
mod build;
mod credentials;
mod environment;
mod families;
mod fault;
mod file;
mod ingress;
mod kind;
mod layer;
mod listeners;
mod names;
mod nearest;
mod parse;
mod reload;
mod settings;
mod show;
mod sources;
mod table;
mod tokens;
mod typed;
mod value;

pub use fault::{Fault, Place, Scope};
pub use kind::{Kind, SECRETS_MAX};
pub use reload::{Reload, compare};
pub use settings::{Setting, Settings};
pub use show::{effective, effective_json, reference};
pub use sources::{FileText, Sources};
pub use table::{KEYS, KeySpec};
pub use tidegate_core::secret::Secret;
pub use tokens::{Ability, Credential, Token};
pub use typed::{
    Admin, AppTls, Client, Configuration, Durability, Forwarded, GuardListener, GuardRules, Ingress, Log,
    LogFormat, Store, StoreKind, Tls,
};
pub use value::{Hidden, Value};

pub(crate) use credentials::shared_with_made;
pub(crate) use listeners::is_private_url;

/// A configuration as it was read, with everything that is wrong with it.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The effective value of every key.
    pub settings: Settings,
    /// What `tidegate call` needs.
    pub client: Client,
    /// Every fault: those that stop the most first, then in the order of their places.
    pub faults: Vec<Fault>,
    configuration: Configuration,
    signing_secrets: Vec<Secret>,
}

/// Reads the sources and checks everything.
#[must_use]
pub fn load(sources: &Sources) -> Loaded {
    let mut faults = sources.faults.clone();
    let mut layer = match &sources.file {
        Some(file) => file::read(&file.path, &file.text, &mut faults),
        None => layer::Layer::default(),
    };
    let mut over = environment::read(&sources.environment, &mut faults)
        .under(environment::read_flags(&sources.flags, &mut faults));
    for (plain, in_file) in
        [("guard.secrets", "guard.secrets_file"), ("guard.operator_token", "guard.operator_token_file")]
    {
        either(plain, in_file, &mut layer, &mut over, &mut faults);
    }
    let settings = Settings::new(layer.under(over), &mut faults);
    let (configuration, client, signing_secrets) = build::build(&settings, &mut faults);
    faults.sort_by_key(|fault| (fault.scope, order(&fault.place)));
    Loaded { settings, client, faults, configuration, signing_secrets }
}

impl Loaded {
    /// The configuration, where a process may start with it. Faults of the guard alone are inside it.
    ///
    /// # Errors
    /// The faults that end the start.
    pub fn start(self) -> Result<Configuration, Vec<Fault>> {
        let fatal: Vec<_> = self.faults.into_iter().filter(|fault| fault.scope == Scope::Fatal).collect();
        if fatal.is_empty() { Ok(self.configuration) } else { Err(fatal) }
    }

    /// The signing secrets that are good, whatever else is wrong with the guard.
    #[must_use]
    pub fn signing_secrets(&self) -> &[Secret] {
        &self.signing_secrets
    }

    /// The configuration whatever its faults, each faulty key at its default: for commands that only need to
    /// know where something is.
    #[must_use]
    pub fn regardless(&self) -> &Configuration {
        &self.configuration
    }
}

/// A secret and the file that holds it exclude each other; the upper layer's choice replaces the lower one's.
fn either(
    plain: &str,
    in_file: &str,
    layer: &mut layer::Layer,
    over: &mut layer::Layer,
    faults: &mut Vec<Fault>,
) {
    if over.has(plain) || over.has(in_file) {
        layer.remove(plain);
        layer.remove(in_file);
    }
    for layer in [layer, over] {
        if layer.has(plain) && layer.has(in_file) {
            let place = layer.place(in_file);
            layer.remove(in_file);
            let message = format!("stands beside {plain}; one of the two is enough");
            faults.push(Fault::new(Scope::Guard, in_file, place, message));
        }
    }
}

/// Lines in their order, then the rest.
fn order(place: &Place) -> usize {
    match place {
        Place::File(_) => 0,
        Place::Line { line, .. } => *line,
        _ => usize::MAX,
    }
}

#[cfg(test)]
mod tests;
