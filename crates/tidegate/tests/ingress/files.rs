//! Static directories.

use std::{fs, os::unix::fs::symlink};

use crate::{
    rig::Rig,
    support::wire::{Reply, Wire},
};

const HOST: &str = "files.example";

fn start() -> (Rig, tempfile::TempDir) {
    let root = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = root.path().join("public").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("index.html", "home");
    write("a.txt", "0123456789");
    write("folder/index.html", "folder");
    write(".git/config", "secret");
    write(".well-known/x", "known");
    fs::write(root.path().join("outside"), "outside").unwrap();
    symlink(root.path().join("outside"), root.path().join("public/linked")).unwrap();
    let path = root.path().join("public");
    let rig = Rig::with(|setup| setup.set("apps.files.domains", HOST).set("apps.files.root", path));
    (rig, root)
}

fn ask(rig: &Rig, method: &str, path: &str, lines: &str) -> Reply {
    let request = format!("{method} {path} HTTP/1.1\r\nHost: {HOST}\r\n{lines}\r\n");
    Wire::tcp(rig.server.apps).unwrap().exchange(request.as_bytes()).unwrap()
}

#[test]
fn files_are_answered_and_nothing_beside_them() {
    let (rig, _root) = start();
    for (path, status, text) in [
        ("/", 200, "home"),
        ("/a.txt?x=1", 200, "0123456789"),
        ("/folder/", 200, "folder"),
        ("/.well-known/x", 200, "known"),
        ("/linked", 200, "outside"),
        ("/nothing", 404, ""),
        ("/.git/config", 404, ""),
        ("/%2egit/config", 404, ""),
        ("/folder/../.git/config", 404, ""),
        ("/../outside", 404, ""),
        ("/%2e%2e/outside", 404, ""),
        ("//outside", 404, ""),
    ] {
        let reply = ask(&rig, "GET", path, "");
        assert_eq!((reply.status, reply.text().as_str()), (status, text), "{path}");
    }
    assert_eq!(ask(&rig, "GET", "/..%2foutside", "").status, 400);
    assert_eq!(ask(&rig, "POST", "/a.txt", "Content-Length: 0\r\n").status, 405);
}

#[test]
fn conditions_and_ranges_are_understood() {
    let (rig, _root) = start();
    let whole = ask(&rig, "GET", "/a.txt", "");
    let modified = whole.header("last-modified").expect("files have a time");
    assert_eq!(ask(&rig, "GET", "/a.txt", &format!("If-Modified-Since: {modified}\r\n")).status, 304);
    let part = ask(&rig, "GET", "/a.txt", "Range: bytes=2-4\r\n");
    assert_eq!(
        (part.status, part.text().as_str(), part.header("content-range")),
        (206, "234", Some("bytes 2-4/10"))
    );
    assert_eq!(ask(&rig, "GET", "/a.txt", "Range: bytes=20-\r\n").status, 416);
}
