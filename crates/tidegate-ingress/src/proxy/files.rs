//! Static directories.

use std::path::Path;

use bytes::Bytes;
use http::{Request, Response, Uri, request::Parts};
use http_body_util::Empty;
use tower_http::services::{ServeDir, fs::ServeFileSystemResponseBody};

/// Files of `root`; a folder is answered by its `index.html`.
pub(super) fn of(root: &Path) -> ServeDir {
    ServeDir::new(root).precompressed_gzip().precompressed_br()
}

/// Answers from the directory: conditional and range requests too.
///
/// A path with a hidden part (`.git`, `.env`) is answered as one that is not there; `.well-known` is public by
/// its definition. Links are followed: what is linked in the directory is meant to be served.
pub(super) async fn answer(
    directory: &mut ServeDir,
    asked: &mut Parts,
) -> Response<ServeFileSystemResponseBody> {
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.method_mut() = asked.method.clone();
    let is_hidden = has_hidden_part(asked.uri.path());
    *request.uri_mut() =
        if is_hidden { Uri::from_static("/.hidden/") } else { std::mem::take(&mut asked.uri) };
    *request.headers_mut() = std::mem::take(&mut asked.headers);
    match directory.try_call(request).await {
        Ok(response) => response,
        Err(error) => {
            tracing::warn!(kind = "file-failing", %error, "a file of an app can't be read");
            let mut response = Response::new(ServeFileSystemResponseBody::default());
            *response.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
            response
        }
    }
}

/// Whether a part of the path begins with a dot, escaped or not.
fn has_hidden_part(path: &str) -> bool {
    path.split('/').any(|part| {
        let dotted = part.starts_with('.') || part.to_ascii_lowercase().starts_with("%2e");
        dotted && part != ".well-known"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_parts_are_found_however_written() {
        for (path, hidden) in [
            ("/", false),
            ("/a/b.html", false),
            ("/.well-known/acme-challenge/x", false),
            ("/.git/config", true),
            ("/a/.env", true),
            ("/%2eenv", true),
            ("/%2Egit/config", true),
            ("/../etc/passwd", true),
        ] {
            assert_eq!(has_hidden_part(path), hidden, "{path}");
        }
    }
}
