//! Where a configuration is read from.

use std::{
    ffi::OsString,
    fmt,
    fs::File,
    io::{self, Read},
    path::Path,
    sync::Arc,
};

use zeroize::Zeroizing;

use super::fault::{Fault, Place, Scope};

/// A configuration file has some kilobytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Read where it exists and no other file is named.
const DEFAULT_FILE: &str = "./tidegate.toml";

/// What a configuration is read from, the later over the earlier.
#[derive(Default)]
pub struct Sources {
    /// The configuration file.
    pub file: Option<FileText>,
    /// The environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Flags of the command line: key, text, flag.
    pub flags: Vec<(&'static str, String, &'static str)>,
    /// What went wrong in gathering them.
    pub faults: Vec<Fault>,
}

/// A file's name and its text.
pub struct FileText {
    /// The name that faults show.
    pub path: Arc<Path>,
    /// The text, which may hold secrets.
    pub text: Zeroizing<String>,
}

impl Sources {
    /// Reads `file`, or the default one where it exists.
    #[must_use]
    pub fn gather(file: Option<&Path>, environment: Vec<(OsString, OsString)>) -> Self {
        let mut sources = Self { environment, ..Self::default() };
        let path: Arc<Path> = file.unwrap_or(Path::new(DEFAULT_FILE)).into();
        match read(&path) {
            Ok(text) => sources.file = Some(FileText { path, text }),
            Err(error) if file.is_none() && error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let message = format!("the configuration can't be read: {error}");
                sources.faults.push(Fault::new(Scope::Fatal, "", Place::File(path), message));
            }
        }
        sources
    }

    /// Lets a flag set `key`.
    pub fn flag(&mut self, key: &'static str, text: String, flag: &'static str) {
        self.flags.push((key, text, flag));
    }
}

impl fmt::Debug for Sources {
    /// Redacted: every part may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sources(…)")
    }
}

impl fmt::Debug for FileText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileText({})", Place::File(Arc::clone(&self.path)))
    }
}

fn read(path: &Path) -> io::Result<Zeroizing<String>> {
    let mut bytes = Zeroizing::new(Vec::new());
    File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|len| len > FILE_BYTES_MAX) {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than 1 MiB"));
    }
    let text =
        std::str::from_utf8(&bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not UTF-8"))?;
    Ok(Zeroizing::new(text.to_owned()))
}
