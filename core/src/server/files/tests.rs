use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use serde_json::json;

/// A directory that goes when the test does.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("tricorn-files-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(path.join("root")).expect("created");
        Self(path)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> &Self {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("created");
        std::fs::write(path, bytes).expect("written");
        self
    }

    fn root(&self) -> Directory {
        Directory::new(self.0.join("root"), "docs://").expect("a directory")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn names(page: &FilePage) -> Vec<&str> {
    page.entries.iter().map(|entry| entry.name.as_str()).collect()
}

fn refused(directory: &Directory, uri: &str) -> String {
    directory.read(uri).expect_err(uri).to_string()
}

#[test]
fn a_directory_is_listed_in_order_page_by_page() {
    let scratch = Scratch::new();
    for name in ["b.md", "a/z.txt", "a/b/c.json", "a.txt", "ä ö.bin", ".hidden", ".git/config", "a-b"] {
        scratch.write(&format!("root/{name}"), b"12345");
    }
    let directory = scratch.root();
    let all = directory.list(None, 100).expect("listed");
    assert_eq!(names(&all), ["a/b/c.json", "a/z.txt", "a-b", "a.txt", "b.md", "ä ö.bin"]);
    assert_eq!((all.next.as_deref(), all.truncated), (None, false));
    let last = serde_json::to_value(&all.entries[5]).expect("json");
    let bytes = "application/octet-stream";
    let uri = "docs://%C3%A4%20%C3%B6.bin";
    assert_eq!(last, json!({"uri": uri, "name": "ä ö.bin", "mimeType": bytes, "size": 5}));
    assert_eq!(directory.read(uri).expect("read").blob.as_deref(), Some("MTIzNDU="));
    assert_eq!(all.entries[2].mime_type, None);

    let (mut found, mut cursor) = (Vec::new(), None::<String>);
    for _ in 0..3 {
        let page = directory.list(cursor.as_deref(), 2).expect("listed");
        found.extend(page.entries);
        cursor = page.next;
    }
    assert_eq!((found, cursor), (all.entries, None));

    let hidden = directory.clone().hidden(true).list(None, 100).expect("listed");
    assert_eq!(names(&hidden)[..2], [".git/config", ".hidden"]);
    let few = directory.clone().max_files(3).list(None, 100).expect("listed");
    assert_eq!((names(&few).len(), few.truncated), (3, true));
    let exact = directory.max_files(6).list(None, 100).expect("listed");
    assert_eq!((names(&exact).len(), exact.truncated), (6, false));
}

#[test]
fn text_is_text_and_the_rest_is_base64() {
    let scratch = Scratch::new();
    scratch
        .write("root/a.json", br#"{"a":1}"#)
        .write("root/i.svg", b"<svg/>")
        .write("root/main.ts", b"let a = 1")
        .write("root/README", "Grüße".as_bytes())
        .write("root/binary", b"a\0b")
        .write("root/latin.txt", b"Gr\xfc\xdfe")
        .write("root/i.png", b"not really");
    let directory = scratch.root();
    let read =
        |name: &str| serde_json::to_value(directory.read(&format!("docs://{name}")).expect("read")).expect("json");
    assert_eq!(read("a.json"), json!({"uri": "docs://a.json", "mimeType": "application/json", "text": "{\"a\":1}"}));
    assert_eq!(read("i.svg")["text"], "<svg/>");
    assert_eq!(read("main.ts")["mimeType"], "text/typescript");
    assert_eq!(read("README"), json!({"uri": "docs://README", "mimeType": "text/plain", "text": "Grüße"}));
    assert_eq!(read("binary")["mimeType"], "application/octet-stream");
    assert_eq!(read("binary")["blob"], "YQBi");
    assert_eq!(read("latin.txt"), json!({"uri": "docs://latin.txt", "mimeType": "text/plain", "blob": "R3L832U="}));
    assert!(read("i.png")["blob"].is_string());
    assert_eq!(refused(&directory.max_bytes(9), "docs://i.png"), "larger than 9 bytes");
}

#[test]
fn nothing_but_names_is_opened() {
    let scratch = Scratch::new();
    scratch.write("secret.txt", b"secret").write("root/a/b.txt", b"b").write("root/.env", b"secret");
    let directory = scratch.root();
    assert!(directory.read("docs://a/b.txt").is_ok());
    assert!(directory.read("docs://%61/b%2Etxt").is_ok());
    for uri in [
        "docs://../secret.txt",
        "docs://%2e%2e/secret.txt",
        "docs://%2E./secret.txt",
        "docs://a/../../secret.txt",
        "docs://a/./b.txt",
        "docs://a%2Fb.txt",
        "docs://..%2fsecret.txt",
        "docs://..%5csecret.txt",
        "docs://..\\secret.txt",
        "docs://a/b.txt%00",
        "docs://a/b.txt%00.png",
    ] {
        assert!(matches!(directory.read(uri), Err(ReadError::Refused(_))), "{uri}");
    }
    let absolute = scratch.0.join("secret.txt");
    let absolute = format!("docs://{}", absolute.display());
    for uri in [
        "docs://",
        "docs://a",
        "docs://a/",
        "docs:///a/b.txt",
        "docs://a//b.txt",
        "docs://b.txt",
        "docs://a/b.txt/c",
        "docs://a/b.txt?x",
        "docs://a/b.txt#x",
        "docs:a/b.txt",
        "other://a/b.txt",
        "docs://%ff",
        "docs://.env",
        "docs://%2eenv",
        "docs://%252e%252e/secret.txt",
        &absolute,
    ] {
        assert!(matches!(directory.read(uri), Err(ReadError::NotFound)), "{uri}");
    }
    assert!(matches!(directory.read(&format!("docs://{}", "x".repeat(5_000))), Err(ReadError::NotFound)));
    assert!(matches!(directory.read(&format!("docs://{}", "x/".repeat(50_000))), Err(ReadError::NotFound)));
    assert!(directory.clone().hidden(true).read("docs://.env").is_ok());
}

#[cfg(unix)]
#[test]
fn links_do_not_lead_out() {
    use std::os::unix::fs::symlink;
    let scratch = Scratch::new();
    scratch.write("secret.txt", b"secret").write("out/b.txt", b"secret").write("root/a/b.txt", b"b");
    let root = scratch.0.join("root");
    for (target, name) in [
        ("../secret.txt", "relative.txt"),
        ("../out", "directory"),
        ("a/b.txt", "inside.txt"),
        ("../b.txt", "a/dangling.txt"),
        ("../root/a/b.txt", "around.txt"),
        ("loop.txt", "loop.txt"),
        (".", "self"),
    ] {
        symlink(target, root.join(name)).expect("linked");
    }
    symlink(scratch.0.join("secret.txt"), root.join("absolute.txt")).expect("linked");
    let directory = scratch.root();
    assert_eq!(names(&directory.list(None, 100).expect("listed")), ["a/b.txt", "inside.txt"]);
    assert_eq!(directory.read("docs://inside.txt").expect("read").text.as_deref(), Some("b"));
    for uri in ["docs://relative.txt", "docs://directory/b.txt", "docs://absolute.txt", "docs://around.txt"] {
        assert_eq!(refused(&directory, uri), "leads out of the directory", "{uri}");
    }
    assert_eq!(refused(&directory, "docs://a/dangling.txt"), "not found");
    assert!(directory.read("docs://loop.txt").is_err());
    // The root itself may be a link: its owner has said so.
    symlink(&root, scratch.0.join("link")).expect("linked");
    let linked = Directory::new(scratch.0.join("link"), "file:///data").expect("a directory");
    assert_eq!(linked.read("file:///data/a/b.txt").expect("read").text.as_deref(), Some("b"));
}

#[cfg(unix)]
#[test]
fn a_directory_that_is_replaced_meanwhile_does_not_lead_out() {
    use std::os::unix::fs::symlink;
    use std::sync::atomic::AtomicBool;
    let scratch = Scratch::new();
    scratch.write("out/b.txt", b"secret").write("root/a/b.txt", b"public");
    let (inside, aside) = (scratch.0.join("root/a"), scratch.0.join("root/aside"));
    let directory = scratch.root();
    let done = AtomicBool::new(false);
    /// Ends the other thread also when this one panics.
    struct Done<'a>(&'a AtomicBool);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    std::thread::scope(|scope| {
        let _done = Done(&done);
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                std::fs::rename(&inside, &aside).expect("moved");
                symlink(scratch.0.join("out"), &inside).expect("linked");
                std::fs::remove_file(&inside).expect("unlinked");
                std::fs::rename(&aside, &inside).expect("moved back");
            }
        });
        let mut read = 0;
        for _ in 0..5_000 {
            if let Ok(contents) = directory.read("docs://a/b.txt") {
                assert_eq!(contents.text.as_deref(), Some("public"));
                read += 1;
            }
            for entry in directory.list(None, 10).map(|page| page.entries).unwrap_or_default() {
                assert!(entry.uri == "docs://a/b.txt" || entry.uri == "docs://aside/b.txt", "{entry:?}");
            }
        }
        assert!(read > 0);
    });
}

// The only one on which `rustix` makes pipes with names.
#[cfg(target_os = "linux")]
#[test]
fn what_is_no_file_is_not_waited_for() {
    let scratch = Scratch::new();
    let pipe = scratch.0.join("root/pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).expect("a pipe");
    let directory = scratch.root();
    assert_eq!(refused(&directory, "docs://pipe"), "not found");
    assert_eq!(directory.list(None, 10).expect("listed"), FilePage::default());
    assert!(matches!(File::new(&pipe, "docs://pipe").expect("a file").read(), Err(ReadError::NotFound)));
}

#[test]
fn one_file_has_one_uri() {
    let scratch = Scratch::new();
    let path = scratch.0.join("root/notes.md");
    let file = File::new(&path, "notes://today").expect("a file");
    assert!(matches!(file.read(), Err(ReadError::NotFound)));
    assert!(matches!(file.entry(), Err(ReadError::NotFound)));
    scratch.write("root/notes.md", b"# Today");
    let entry = serde_json::to_value(file.entry().expect("there")).expect("json");
    assert_eq!(entry, json!({"uri": "notes://today", "name": "notes.md", "mimeType": "text/markdown", "size": 7}));
    assert_eq!(file.read().expect("read").text.as_deref(), Some("# Today"));
    assert!(matches!(file.max_bytes(3).read(), Err(ReadError::TooLarge { limit: 3 })));
}

#[test]
fn what_cannot_be_served_is_said_at_once() {
    let scratch = Scratch::new();
    scratch.write("root/a.txt", b"a");
    let root = scratch.0.join("root");
    let wrong = |root: &Path, uri: &str| Directory::new(root, uri).expect_err("refused").message().to_owned();
    assert!(wrong(&scratch.0.join("nowhere"), "docs://").contains("nowhere: No such file"));
    assert!(wrong(&root.join("a.txt"), "docs://").contains("a.txt: not a directory"));
    assert!(wrong(&root, "docs").contains("starts with no scheme"));
    assert!(wrong(&root, "/docs:x").contains("starts with no scheme"));
    assert!(wrong(&root, "docs://{path}").contains("braces"));
    assert!(File::new(&root, "docs://a").expect_err("refused").message().contains("a directory"));
    assert_eq!(Directory::new(&root, "file:///data").expect("a directory").base(), "file:///data/");
    assert!(scratch.root().covers("docs://x") && !scratch.root().covers("doc://x"));
}
