//! Paths in the one form in which rules see them.
//!
//! Escapes are decoded once, `\` is `/`, slashes that follow each other are one, `.` and `..` are resolved,
//! query and fragment are cut off. What a backend may take for the same page falls under the same rule:
//! rules compare without case, and a slash at the end does not matter.

use smallvec::SmallVec;

/// How much of a path rules see: more than the longest prefix that a rule may have.
pub const PATH_BYTES_MAX: usize = 256;

/// A path as rules see it, at most [`PATH_BYTES_MAX`] bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Normal<'a>(&'a [u8]);

/// Where a path is written out that is not in its normal form already.
#[derive(Debug, Default)]
pub struct PathBuffer(SmallVec<[u8; PATH_BYTES_MAX]>);

impl<'a> Normal<'a> {
    /// A path that has been normal before: one that was recorded.
    #[must_use]
    pub const fn recorded(path: &'a [u8]) -> Self {
        Self(path)
    }

    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Whether the path begins so, whatever the case; a slash at the end of `prefix` asks for that folder,
    /// with or without it.
    #[must_use]
    pub fn begins_with(self, prefix: &[u8]) -> bool {
        let begins = |prefix: &[u8]| {
            self.0.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        };
        let folder =
            prefix.strip_suffix(b"/").is_some_and(|folder| folder.len() == self.0.len() && begins(folder));
        begins(prefix) || folder
    }
}

impl PathBuffer {
    /// The normal form of a request's target: a path, or a whole URL.
    pub fn normalise<'a>(&'a mut self, raw: &'a [u8]) -> Normal<'a> {
        if !is_normal(raw) {
            self.0.clear();
            write_normal(path_of(raw), &mut self.0);
            return Normal(cut(&self.0));
        }
        Normal(cut(raw))
    }
}

/// Whether different programs may read the path differently: an escaped slash, backslash, control or escape,
/// or a backslash as such. A proxy does better to refuse it than to guess.
#[must_use]
pub fn is_ambiguous(raw: &[u8]) -> bool {
    let path = path_of(raw);
    let escapes = (0..path.len()).filter_map(|index| escaped(&path[index..]).map(|byte| (index, byte)));
    path.contains(&b'\\')
        || escapes.into_iter().any(|(index, byte)| match byte {
            b'/' | b'\\' | 0x7f => true,
            b'%' => path[index + 3..].get(..2).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit)),
            byte => byte < 0x20,
        })
}

fn is_normal(raw: &[u8]) -> bool {
    let mut previous = 0;
    raw.first() == Some(&b'/')
        && raw.iter().all(|byte| {
            let plain = match byte {
                b'%' | b'\\' | b'?' | b'#' => false,
                b'/' | b'.' => previous != b'/',
                _ => true,
            };
            previous = *byte;
            plain
        })
}

/// The path of a target, without query and fragment, and without the scheme and authority of a URL.
fn path_of(raw: &[u8]) -> &[u8] {
    let end = raw.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(raw.len());
    let target = &raw[..end];
    if matches!(target.first(), Some(b'/' | b'\\')) {
        return target;
    }
    let Some(authority) = target.windows(3).position(|three| three == b"://").map(|at| at + 3) else {
        return target;
    };
    let path = target[authority..].iter().position(|byte| *byte == b'/');
    path.map_or(b"/", |path| &target[authority + path..])
}

fn write_normal(path: &[u8], out: &mut SmallVec<[u8; PATH_BYTES_MAX]>) {
    let mut writer = Writer { out, start: 0, length: 0, is_dots: true, beyond: 0 };
    writer.begin(b'/');
    let mut index = 0;
    while let Some(raw) = path.get(index) {
        let decoded = escaped(&path[index..]);
        index += if decoded.is_some() { 3 } else { 1 };
        match decoded.unwrap_or(*raw) {
            b'/' | b'\\' => writer.end(true),
            byte => writer.write(byte),
        }
    }
    writer.end(false);
}

/// Writes segments, as much of them as is kept: what lies beyond is only counted, since `..` may take it back.
struct Writer<'a> {
    out: &'a mut SmallVec<[u8; PATH_BYTES_MAX]>,
    /// Where the present segment begins; [`PATH_BYTES_MAX`] if that is beyond what is kept.
    start: usize,
    /// Of the present segment.
    length: usize,
    /// Whether the present segment has had nothing but dots.
    is_dots: bool,
    /// Segments that began beyond what is kept.
    beyond: usize,
}

impl Writer<'_> {
    fn write(&mut self, byte: u8) {
        self.keep(byte);
        self.length += 1;
        self.is_dots &= byte == b'.';
    }

    fn keep(&mut self, byte: u8) {
        if self.out.len() < PATH_BYTES_MAX {
            self.out.push(byte);
        }
    }

    /// Begins a segment behind `slash`.
    fn begin(&mut self, slash: u8) {
        self.keep(slash);
        (self.start, self.length, self.is_dots) = (self.out.len(), 0, true);
    }

    fn end(&mut self, slash: bool) {
        match self.length {
            0 => return,
            1 if self.is_dots => self.out.truncate(self.start),
            2 if self.is_dots => {
                self.out.truncate(self.start);
                self.leave();
            }
            _ => {
                self.beyond += usize::from(self.start == PATH_BYTES_MAX);
                if slash {
                    return self.begin(b'/');
                }
            }
        }
        (self.start, self.length, self.is_dots) = (self.out.len(), 0, true);
    }

    /// Takes the last segment back.
    fn leave(&mut self) {
        if self.beyond > 0 {
            self.beyond -= 1;
            return;
        }
        let parent = self.out.strip_suffix(b"/").unwrap_or(self.out);
        let slash = parent.iter().rposition(|byte| *byte == b'/');
        self.out.truncate(slash.map_or(1, |slash| slash + 1));
    }
}

fn escaped(bytes: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = bytes else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(*high)? * 16 + digit(*low)?)
}

fn cut(path: &[u8]) -> &[u8] {
    &path[..path.len().min(PATH_BYTES_MAX)]
}

#[cfg(test)]
mod tests;
