use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;

const LONG: Duration = Duration::from_secs(60);

/// A directory that goes with the test.
struct Dir(PathBuf);

impl Dir {
    fn new() -> Self {
        let name = format!("tricorn-logins-{}", crate::random::new_id().expect("randomness"));
        Self(std::env::temp_dir().join(name))
    }

    fn store(&self) -> FileStore {
        FileStore::at(&self.0)
    }

    /// The names of the files, without digests.
    fn ends(&self) -> Vec<String> {
        let mut ends: Vec<_> = fs::read_dir(&self.0)
            .expect("a directory")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
            .map(|name| name.split_once('.').map(|(_, end)| end.to_owned()).expect("an end"))
            .collect();
        ends.sort();
        ends
    }

    fn file(&self, end: &str) -> PathBuf {
        let mut files = fs::read_dir(&self.0).expect("a directory").map(|entry| entry.expect("an entry").path());
        files.find(|path| path.to_str().is_some_and(|path| path.ends_with(end))).expect(end)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn key() -> TokenKey {
    TokenKey::new("https://as.example", "https://mcp.example/mcp")
}

async fn save(store: &FileStore, key: &TokenKey, login: &str) -> Result<()> {
    store.reserve(key, LONG).await?.save(&login.into()).await
}

#[tokio::test]
async fn a_login_outlives_its_store_and_is_apart_from_others() {
    let dir = Dir::new();
    let keys = [("a", "s"), ("b", "s"), ("a", "t"), ("a", "s/"), ("as", "")].map(|(i, s)| TokenKey::new(i, s));
    assert_eq!(dir.store().find("s").await.expect("found"), []);
    assert_eq!(dir.store().load(&keys[0]).await.expect("loaded"), None);
    assert!(!dir.0.exists(), "who only reads makes nothing");
    for (n, key) in keys.iter().enumerate() {
        save(&dir.store(), key, &n.to_string()).await.expect("saved");
    }
    let store = dir.store();
    for (n, key) in keys.iter().enumerate() {
        assert_eq!(store.load(key).await.expect("loaded"), Some(n.to_string().into()));
    }
    let found = store.find("s").await.expect("found");
    assert_eq!(found, [(keys[0].clone(), "0".into()), (keys[1].clone(), "1".into())]);
    let mut reserved = store.reserve(&keys[0], LONG).await.expect("reserved");
    reserved.remove().await.expect("removed");
    reserved.remove().await.expect("removed again");
    assert_eq!(reserved.load().await.expect("loaded"), None);
    let error = reserved.save(&"x".repeat(300_000).into()).await.expect_err("too long");
    assert!(error.message().contains("256 KiB"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_reads() {
    use std::os::unix::fs::PermissionsExt;

    let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
    let dir = Dir::new();
    save(&dir.store(), &key(), "1").await.expect("saved");
    let (file, lock) = (dir.file(".json"), dir.file(".lock"));
    assert_eq!((mode(&dir.0), mode(&file), mode(&lock)), (0o700, 0o600, 0o600));

    set(&file, 0o644);
    assert!(dir.store().load(&key()).await.expect("loaded").is_some());
    assert_eq!(mode(&file), 0o600);

    // A file that somebody else has left under the name of a new one is not written into.
    let new = file.with_extension("new");
    fs::write(&new, "x").expect("written");
    set(&new, 0o666);
    save(&dir.store(), &key(), "2").await.expect("saved");
    assert_eq!((mode(&file), dir.ends()), (0o600, vec!["json".into(), "lock".into()]));

    set(&dir.0, 0o770);
    let error = save(&dir.store(), &key(), "3").await.expect_err("refused");
    assert!(error.message().contains("chmod go-w"), "{error}");
    set(&dir.0, 0o500);
    if fs::write(dir.0.join("x"), "").is_err() {
        let error = save(&dir.store(), &key(), "3").await.expect_err("refused");
        assert!(error.message().contains(dir.0.to_str().expect("a path")), "{error}");
    }
    set(&dir.0, 0o700);
    assert_eq!(dir.store().load(&key()).await.expect("loaded"), Some("2".into()));
}

#[cfg(unix)]
#[tokio::test]
async fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
    let dir = Dir::new();
    save(&dir.store(), &key(), "1").await.expect("saved");
    let file = dir.file(".json");
    fs::remove_file(&file).expect("removed");
    let made = std::process::Command::new("mkfifo").arg(&file).status();
    if !made.is_ok_and(|status| status.success()) {
        return;
    }
    let error = dir.store().load(&key()).await.expect_err("no file");
    assert!(error.message().contains("it is no regular file"), "{error}");
}

#[tokio::test]
async fn what_is_damaged_is_put_aside_and_said_once() {
    let dir = Dir::new();
    let store = dir.store();
    let other = TokenKey::new("https://other.example", "https://other.example");
    save(&store, &other, "other").await.expect("saved");
    let foreign = fs::read(dir.file(".json")).expect("a file");
    let mut reserved = store.reserve(&other, LONG).await.expect("reserved");
    reserved.remove().await.expect("removed");
    drop(reserved);

    let whole = [&b""[..], b"{\"version\":1,\"iss", b"\0\0\0", b"[]", &foreign];
    for (n, damage) in whole.iter().enumerate() {
        save(&store, &key(), "secret").await.expect("saved");
        let file = dir.file(".json");
        fs::write(&file, damage).expect("written");
        let error = match n {
            0 => store.load(&key()).await.expect_err("damaged"),
            1 => store.find(&key().server).await.expect_err("damaged"),
            _ => store.reserve(&key(), LONG).await.expect("reserved").load().await.expect_err("damaged"),
        };
        let end = if n == 0 { "bad".to_owned() } else { format!("bad-{}", n + 1) };
        let bad = file.with_extension(end);
        for part in [file.to_str(), bad.to_str(), Some("log in again")] {
            assert!(error.message().contains(part.expect("text")), "{error}");
        }
        assert!(error.kind() == ErrorKind::Auth && !error.message().contains("secret"));
        assert_eq!(&fs::read(&bad).expect("put aside"), damage);
        assert_eq!(store.load(&key()).await.expect("nothing any more"), None);
    }
    // Nothing is written over it either.
    save(&store, &key(), "1").await.expect("saved");
    fs::write(dir.file(".json"), "damage").expect("written");
    save(&store, &key(), "2").await.expect("saved");
    assert_eq!(fs::read(dir.file(".bad-6")).expect("put aside"), b"damage");
    assert_eq!(store.load(&key()).await.expect("loaded"), Some("2".into()));
}

#[tokio::test]
async fn whoever_has_not_the_lock_moves_nothing() {
    let dir = Dir::new();
    let store = dir.store();
    save(&store, &key(), "1").await.expect("saved");
    let mut reserved = store.reserve(&key(), LONG).await.expect("reserved");
    fs::write(dir.file(".json"), "damage").expect("written");
    let error = store.load(&key()).await.expect_err("damaged");
    assert!(error.message().contains("left as it is"), "{error}");
    reserved.save(&"2".into()).await.expect("saved");
    assert_eq!(store.load(&key()).await.expect("loaded"), Some("2".into()));
}

#[tokio::test]
async fn the_file_of_a_newer_version_is_left_alone() {
    let dir = Dir::new();
    let store = dir.store();
    save(&store, &key(), "1").await.expect("saved");
    let newer = r#"{"version":2,"all":"new"}"#;
    fs::write(dir.file(".json"), newer).expect("written");
    for error in [store.load(&key()).await.err(), save(&store, &key(), "2").await.err()] {
        assert!(error.is_some_and(|error| error.message().contains("newer version")));
    }
    assert_eq!(fs::read_to_string(dir.file(".json")).expect("a file"), newer);
}

/// A keychain that gives this key, and counts how often it is asked.
struct Given(Result<[u8; 32], Option<String>>, Arc<AtomicUsize>);

impl Keys for Given {
    fn key(&self, _: &Path) -> Result<[u8; 32], Option<String>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.clone()
    }
}

#[tokio::test]
async fn with_a_keychain_files_are_sealed_and_without_one_they_are_not() {
    let dir = Dir::new();
    let giving = |key| FileStore::with(dir.0.clone(), Some(Box::new(Given(key, Arc::default()))));
    let sealing = |key: u8| giving(Ok([key; 32]));
    let (silent, absent) = (giving(Err(Some("locked".into()))), giving(Err(None)));
    let text = || fs::read_to_string(dir.file(".json")).expect("a file");

    for store in [&silent, &absent] {
        save(store, &key(), "hidden").await.expect("saved");
        assert!(text().contains("hidden"));
    }
    assert_eq!(sealing(1).load(&key()).await.expect("loaded"), Some("hidden".into()), "what is open stays readable");
    save(&sealing(1), &key(), "hidden").await.expect("saved");
    assert!(!text().contains("hidden"));
    assert_eq!(sealing(1).load(&key()).await.expect("loaded"), Some("hidden".into()));

    for store in [&silent, &absent, &dir.store()] {
        for error in [store.load(&key()).await.err(), save(store, &key(), "other").await.err()] {
            assert!(error.is_some_and(|error| error.message().contains("unlock the keychain")));
        }
    }
    assert_eq!(sealing(1).load(&key()).await.expect("loaded"), Some("hidden".into()), "and nothing is written over it");
    let error = sealing(2).load(&key()).await.expect_err("another key");
    assert!(error.message().contains(".bad"), "{error}");
}

#[tokio::test]
async fn a_keychain_is_asked_once_and_not_before_there_is_something_to_seal_or_to_open() {
    for outcome in [Ok([1; 32]), Err(None)] {
        let dir = Dir::new();
        let asked = Arc::new(AtomicUsize::new(0));
        let store = FileStore::with(dir.0.clone(), Some(Box::new(Given(outcome, asked.clone()))));
        save(&dir.store(), &key(), "open").await.expect("saved");
        assert_eq!(store.find(&key().server).await.expect("found").len(), 1);
        assert_eq!(store.load(&key()).await.expect("loaded"), Some("open".into()));
        assert_eq!(asked.load(Ordering::Relaxed), 0);
        for _ in 0..2 {
            save(&store, &key(), "kept").await.expect("saved");
            assert_eq!(store.load(&key()).await.expect("loaded"), Some("kept".into()));
        }
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }
}

#[tokio::test]
async fn waiting_for_a_login_ends() {
    let dir = Dir::new();
    let (one, other) = (dir.store(), dir.store());
    let first = one.reserve(&key(), LONG).await.expect("reserved");
    let error = other.reserve(&key(), Duration::ZERO).await.err().expect("taken");
    assert!(error.message().contains("somebody else") && error.message().contains("mcp.example"), "{error}");
    let wanted = key();
    let waiting = tokio::spawn(async move { other.reserve(&wanted, LONG).await.map(drop) });
    tokio::task::yield_now().await;
    drop(first);
    waiting.await.expect("done").expect("reserved");
}

#[tokio::test]
async fn who_goes_away_while_it_saves_leaves_the_lock_to_the_work() {
    let dir = Dir::new();
    let store = dir.store();
    for n in 0..50 {
        let mut reserved = store.reserve(&key(), LONG).await.expect("reserved");
        let text = n.to_string().repeat(10_000);
        let mut saving = reserved.save(&text.into());
        // Begun, and given up at once.
        let _done = std::future::poll_fn(|cx| std::task::Poll::Ready(saving.as_mut().poll(cx).is_ready())).await;
        drop(saving);
        drop(reserved);
        let after = store.reserve(&key(), LONG).await.expect("reserved").load().await.expect("loaded");
        assert!(after.is_some_and(|login| login.expose().starts_with(&n.to_string())), "{n}");
    }
}

/// An authorization server that rotates: token `n` gets token `n + 1`, and is used up.
struct Rotating {
    port: u16,
    /// Its actions, a word for each request.
    done: Receiver<&'static str>,
}

impl Rotating {
    /// One that forgives gives the newest token again to whoever shows the one before.
    fn new(forgives: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (tell, done) = channel();
        std::thread::spawn(move || Self::serve(&listener, forgives, &tell));
        Self { port, done }
    }

    fn serve(listener: &TcpListener, forgives: bool, tell: &Sender<&'static str>) {
        let mut newest = 1u64;
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut line = String::new();
            // A client may have been killed meanwhile.
            let _ = BufReader::new(&stream).read_line(&mut line);
            let Ok(shown) = line.trim().parse::<u64>() else { continue };
            let what = match shown {
                n if n == newest => {
                    newest += 1;
                    "rotated"
                }
                n if n + 1 == newest && forgives => "repeated",
                _ => "revoked",
            };
            let answer = if what == "revoked" { "revoked\n".into() } else { format!("{newest}\n") };
            let _ = stream.write_all(answer.as_bytes());
            if tell.send(what).is_err() {
                return;
            }
        }
    }
}

/// As a client does: what comes back is the connection, and the next token.
fn refresh(port: u16, token: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    stream.write_all(format!("{token}\n").as_bytes()).expect("sent");
    let mut answer = String::new();
    BufReader::new(&stream).read_line(&mut answer).expect("an answer");
    (stream, answer.trim().to_owned())
}

async fn refresh_once(store: &FileStore, port: u16, stall: bool) {
    let mut reserved = store.reserve(&key(), LONG).await.expect("reserved");
    let token = reserved.load().await.expect("loaded").expect("a login");
    let (stream, next) = refresh(port, token.expose());
    assert_ne!(next, "revoked");
    if stall {
        // There is nothing but to be killed.
        let _ = BufReader::new(stream).read_line(&mut String::new());
        std::thread::park();
    }
    reserved.save(&next.into()).await.expect("saved");
}

/// Not a test: what the tests below start.
#[tokio::test]
async fn another_process() {
    let Ok(task) = std::env::var("TRICORN_TEST_REFRESH") else { return };
    let mut words = task.splitn(3, ' ');
    let (times, port, dir) = (words.next(), words.next(), words.next());
    let (times, port) = (times.expect("a number"), port.expect("a port").parse().expect("a number"));
    let store = FileStore::at(dir.expect("a directory"));
    for _ in 0..times.parse().unwrap_or(u64::MAX) {
        refresh_once(&store, port, times == "stall").await;
    }
}

/// A child that does not outlive its test.
struct Process(Child);

impl Process {
    /// `times`: a number, `ever` or `stall`.
    fn start(times: &str, port: u16, dir: &Dir) -> Self {
        let (_, module) = module_path!().split_once("::").expect("a module");
        let name = format!("{module}::another_process");
        let child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", &name, "--nocapture"])
            .env("TRICORN_TEST_REFRESH", format!("{times} {port} {}", dir.0.display()))
            .stdout(Stdio::null())
            .spawn()
            .expect("a process");
        Self(child)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn processes_that_share_a_store_use_no_refresh_token_twice() {
    let (dir, server) = (Dir::new(), Rotating::new(false));
    save(&dir.store(), &key(), "1").await.expect("saved");
    let mut processes: Vec<_> = (0..2).map(|_| Process::start("30", server.port, &dir)).collect();
    for _ in 0..10 {
        refresh_once(&dir.store(), server.port, false).await;
    }
    for process in &mut processes {
        assert!(process.0.wait().expect("an end").success());
    }
    assert_eq!(dir.store().load(&key()).await.expect("loaded"), Some("71".into()));
    assert_eq!(server.done.try_iter().filter(|done| *done == "rotated").count(), 70);
}

#[tokio::test]
async fn a_process_that_is_killed_at_any_time_loses_no_login() {
    let (dir, server) = (Dir::new(), Rotating::new(true));
    save(&dir.store(), &key(), "1").await.expect("saved");
    let mut before = 1;
    for round in 1..=12 {
        let process = Process::start("ever", server.port, &dir);
        // In the middle of what follows an answer, whatever that is by now.
        for _ in 0..round {
            assert_ne!(server.done.recv_timeout(LONG).expect("an answer"), "revoked");
        }
        drop(process);
        let login = dir.store().load(&key()).await.expect("whole").expect("a login");
        let now: u64 = login.expose().parse().expect("a number");
        assert!(now >= before, "{before} {now}");
        before = now;
    }
    refresh_once(&dir.store(), server.port, false).await;
    assert!(before > 1 && server.done.try_iter().all(|done| done != "revoked"));
    assert_eq!(dir.ends(), ["json", "lock"], "what was half written has made way");
}

#[tokio::test]
async fn a_process_that_is_killed_between_refresh_and_save_loses_no_login() {
    let (dir, server) = (Dir::new(), Rotating::new(true));
    save(&dir.store(), &key(), "1").await.expect("saved");
    let process = Process::start("stall", server.port, &dir);
    assert_eq!(server.done.recv_timeout(LONG), Ok("rotated"));
    // It has the lock: nobody else shows the token meanwhile.
    assert!(dir.store().reserve(&key(), Duration::ZERO).await.is_err());
    drop(process);
    assert_eq!(dir.store().load(&key()).await.expect("loaded"), Some("1".into()));
    refresh_once(&dir.store(), server.port, false).await;
    assert_eq!(server.done.recv_timeout(LONG), Ok("repeated"));
    assert_eq!(dir.store().load(&key()).await.expect("loaded"), Some("2".into()));
}

#[tokio::test]
async fn there_is_room_before_a_token_is_spent() {
    let dir = Dir::new();
    let store = dir.store();
    save(&store, &key(), "first").await.expect("saved");
    let length = |end: &str| fs::metadata(dir.file(end)).map(|about| about.len()).expect(end);
    let before = length(".json");
    let mut reserved = store.reserve(&key(), LONG).await.expect("reserved");
    reserved.make_room().await.expect("room");
    assert_eq!(length(".new"), before + 16 * 1024);
    reserved.save(&"second".to_owned().into()).await.expect("saved");
    assert!(length(".json") < before + 16 && dir.ends() == ["json", "lock"]);
    assert_eq!(reserved.load().await.expect("read").expect("kept").expose(), "second");
    reserved.make_room().await.expect("room");
    drop(reserved);
    assert_eq!(dir.ends(), ["json", "lock"], "what was not needed is gone");
    assert_eq!(store.load(&key()).await.expect("read").expect("kept").expose(), "second");
    // Where there is none, what was kept stays.
    fs::create_dir(dir.file(".json").with_extension("new")).expect("a directory in the way");
    let mut reserved = store.reserve(&key(), LONG).await.expect("reserved");
    let error = reserved.make_room().await.expect_err("no room");
    assert!(error.message().contains("make room for another token"), "{error}");
    assert_eq!(reserved.load().await.expect("read").expect("kept").expose(), "second");
}

#[tokio::test]
async fn one_asks_the_user_while_others_change_what_is_kept() {
    let dir = Dir::new();
    let (one, other) = (dir.store(), dir.store());
    let turn = one.reserve_login(&key(), Duration::ZERO).await.expect("reserved");
    assert!(turn.is_some());
    let taken = other.reserve_login(&key(), Duration::ZERO).await.err().expect("taken");
    assert_eq!(taken.kind(), ErrorKind::Timeout);
    save(&other, &key(), "kept meanwhile").await.expect("saved");
    drop(turn);
    assert!(other.reserve_login(&key(), Duration::ZERO).await.expect("free").is_some());
    assert_eq!(other.find(&key().server).await.expect("found").len(), 1);
}
