//! Child processes: what they say besides their answers, and how they are ended. None is ever left.
#![cfg(all(feature = "stdio", unix))]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tricorn::client::{Client, ClientOptions, Handlers, Stderr, Target};
use tricorn::{Error, ErrorKind, Events};

/// The longest any test waits for anything.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);

/// Beginning of every script: it holds the pipe, with all that it starts, and can answer the first request.
const PRELUDE: &str = r#"
exec 3>"$HELD"
say() { echo "$1" >&3; }
answer() {
  read -r line
  id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"
}
legacy='{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}'
modern='{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}'
until_the_end() { while read -r line; do :; done; }
"#;

/// A pipe that every process of a test holds: what they say, and by its end that none of them is left.
pub(super) struct Held {
    pub(super) path: PathBuf,
    reader: pipe::Receiver,
}

impl Held {
    pub(super) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tricorn-{}-{name}", std::process::id()));
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let reader = pipe::OpenOptions::new().open_receiver(&path).unwrap();
        Self { path, reader }
    }

    pub(super) fn target(&self, script: &str) -> Target {
        Target::Command {
            command: "sh".into(),
            args: vec!["-c".into(), format!("{PRELUDE}{script}")],
            env: BTreeMap::from([("HELD".into(), Some(self.path.to_str().unwrap().into()))]),
            cwd: None,
            stderr: Stderr::Event,
        }
    }

    /// All that was said, when nobody is left to say more.
    pub(super) async fn rest(&mut self) -> String {
        let mut said = String::new();
        let ended = tokio::time::timeout(PATIENCE, self.reader.read_to_string(&mut said)).await;
        ended.unwrap_or_else(|_| panic!("a process is left")).unwrap();
        said
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

struct Heard(mpsc::UnboundedSender<String>);

impl Events for Heard {
    fn stderr(&self, line: &str) {
        let _ = self.0.send(line.to_owned());
    }

    fn warning(&self, _message: &str) {}
}

async fn connect(target: &Target, grace: Duration) -> (Client, mpsc::UnboundedReceiver<String>) {
    let options = ClientOptions::new().revision("2025-11-25").shutdown_grace(grace);
    let (heard, lines) = mpsc::unbounded_channel();
    let handlers = Handlers::new().events(Heard(heard));
    let client = Client::connect_with(target, &options, &handlers);
    (tokio::time::timeout(PATIENCE, client).await.unwrap().unwrap(), lines)
}

pub(super) async fn close(client: &Client) {
    tokio::time::timeout(PATIENCE, client.close()).await.unwrap();
}

#[tokio::test]
async fn a_child_that_leaves_at_the_end_of_input_is_not_signalled() {
    let mut held = Held::new("polite");
    let target = held.target(r#"trap 'say term' TERM; answer "$legacy"; until_the_end; say left"#);
    let (client, _lines) = connect(&target, Duration::from_secs(60)).await;
    let before = Instant::now();
    close(&client).await;
    assert!(before.elapsed() < PATIENCE, "no step is waited for longer than it takes");
    assert_eq!(held.rest().await, "left\n");
}

#[tokio::test]
async fn a_child_that_stays_is_told_and_then_killed_with_all_its_children() {
    // The first child of the child hears nothing, the second is ended by being told.
    let script = r#"
        trap 'say told' TERM
        (trap '' TERM; exec sleep 600) &
        sleep 600 &
        answer "$legacy"
        while :; do sleep 600; done"#;
    for dropped in [false, true] {
        let mut held = Held::new("stubborn");
        let (client, _lines) = connect(&held.target(script), Duration::from_millis(200)).await;
        if dropped {
            drop(client);
        } else {
            close(&client).await;
        }
        assert_eq!(held.rest().await, "told\n", "dropped: {dropped}");
    }
}

#[tokio::test]
async fn what_a_child_leaves_behind_is_ended() {
    let mut held = Held::new("leaves");
    let target = held.target(r#"sleep 600 & answer "$legacy"; until_the_end; say left"#);
    let (client, _lines) = connect(&target, Duration::from_millis(200)).await;
    close(&client).await;
    assert_eq!(held.rest().await, "left\n");
}

/// The client of the next test, in a process of its own: nothing where it is not asked for.
#[tokio::test]
async fn a_client_that_is_killed() {
    let (Ok(script), Ok(held)) = (std::env::var("TRICORN_TEST_SCRIPT"), std::env::var("HELD")) else { return };
    let args = vec!["-c".into(), script];
    let env = BTreeMap::from([("HELD".into(), Some(held))]);
    let target = Target::Command { command: "sh".into(), args, env, cwd: None, stderr: Stderr::Discard };
    let (client, _lines) = connect(&target, Duration::from_secs(60)).await;
    std::future::pending::<()>().await;
    drop(client);
}

#[tokio::test]
async fn a_client_that_is_killed_leaves_no_server() {
    // A server that leaves at the end of input gets no signal; one that ignores all of them is killed.
    for (name, script, words) in [
        ("leaves", "trap 'say told' TERM; until_the_end; say left", "left\n"),
        ("stays", "(trap '' TERM; exec sleep 600) & trap 'say told; exit' TERM; sleep 600 & wait", "told\n"),
    ] {
        let mut held = Held::new(&format!("killed-{name}"));
        let script = format!("{PRELUDE}answer \"$legacy\"; say open; {script}");
        let mut client = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["child::a_client_that_is_killed", "--exact"])
            .env("TRICORN_TEST_SCRIPT", script)
            .env("HELD", &held.path)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let mut open = [0; 5];
        tokio::time::timeout(PATIENCE, held.reader.read_exact(&mut open)).await.unwrap().unwrap();
        assert_eq!(&open, b"open\n");
        client.kill().unwrap();
        client.wait().unwrap();
        assert_eq!(held.rest().await, words, "{name}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_pipes_of_a_process_that_got_away_are_let_go() {
    let mut held = Held::new("away");
    // Each ends when nobody reads its pipe any more; not for ever, or a failing test would leave them.
    let script = r#"
        away() { setsid sh -c "i=0; while [ \$i -lt 600 ]; do echo $1; i=\$((i+1)); sleep 0.05; done; echo heard >&3" & }
        away '' ; away 'x >&2'
        answer "$legacy"
        until_the_end"#;
    let (client, _lines) = connect(&held.target(script), Duration::from_millis(200)).await;
    close(&client).await;
    assert_eq!(held.rest().await, "");
}

#[tokio::test]
async fn standard_error_reaches_the_events_to_the_last_word() {
    let mut held = Held::new("stderr");
    let target = held.target(r#"echo one >&2; printf 'two\r\n' >&2; answer "$legacy"; until_the_end; echo bye >&2"#);
    let (client, mut lines) = connect(&target, Duration::from_secs(60)).await;
    let mut next = async || tokio::time::timeout(PATIENCE, lines.recv()).await.unwrap();
    assert_eq!((next().await.as_deref(), next().await.as_deref()), (Some("one"), Some("two")));
    close(&client).await;
    held.rest().await;
    assert_eq!(next().await.as_deref(), Some("bye"));
}

#[tokio::test]
async fn a_program_that_never_stops_talking_holds_up_nobody() {
    for script in
        ["exec yes", "exec yes >&2", "while :; do echo '{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}'; done"]
    {
        let held = Held::new("talks");
        let options = ClientOptions::new();
        let (target, handlers) = (held.target(script), Handlers::new());
        let connecting = Client::connect_with(&target, &options, &handlers);
        // Its own timeout is longer: what is measured is that timers go off on this one thread.
        let began = Instant::now();
        let outcome = tokio::time::timeout(Duration::from_secs(2), connecting).await;
        assert!(began.elapsed() < PATIENCE, "{script}: {:?}", began.elapsed());
        assert!(outcome.is_err() || outcome.is_ok_and(|connected| connected.is_err()), "{script}");
    }
}

#[tokio::test]
async fn a_modern_server_that_crashes_once_is_not_taken_for_an_old_one() {
    let mut held = Held::new("crashes");
    // Modern at first, then dead at once, then modern again.
    let script = r#"
        say run
        n=$(cat "$HELD.n" 2>/dev/null || echo 0); echo $((n+1)) >"$HELD.n"
        [ "$n" = 1 ] && { read -r line; exit 3; }
        answer "$modern"; until_the_end"#;
    let target = held.target(script);
    let connect = async || -> Result<Client, Error> {
        tokio::time::timeout(PATIENCE, Client::connect(&target, &ClientOptions::default())).await.unwrap()
    };
    close(&connect().await.unwrap()).await;
    let error = connect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    close(&connect().await.unwrap()).await;
    assert_eq!(held.rest().await, "run\n".repeat(3), "the crash is not tried again with another question");
    std::fs::remove_file(format!("{}.n", held.path.display())).unwrap();
}

#[tokio::test]
async fn what_a_child_that_died_has_said_is_given_to_who_wants_it() {
    for wanted in [true, false] {
        let mut held = Held::new(if wanted { "outlived" } else { "mourned" });
        let script = r#"
            has_tools='{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}'
            answer "$has_tools"
            answer '{"resultType":"complete","tools":[],"ttlMs":3600000,"cacheScope":"private"}'
            read -r line; exit 3"#;
        let cache = tricorn::client::CacheOptions::new().stale_on_error(wanted);
        let options = ClientOptions::new().cache(cache).restart(false);
        let target = held.target(script);
        let client = tokio::time::timeout(PATIENCE, Client::connect(&target, &options)).await.unwrap().unwrap();
        assert!(client.list_tools().await.unwrap().is_empty());
        let error = tokio::time::timeout(PATIENCE, client.ping()).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        let kept = client.list_tools().await.map(|tools| tools.len()).map_err(|error| error.kind());
        assert_eq!(kept, if wanted { Ok(0) } else { Err(ErrorKind::Closed) });
        close(&client).await;
        let error = client.list_tools().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        assert_eq!(held.rest().await, "");
    }
}

#[tokio::test]
async fn a_program_inherits_as_much_of_the_environment_as_it_is_given() {
    let said = async |inherit: Option<tricorn::client::InheritEnv>| {
        let mut held = Held::new("environment");
        let target = held.target(
            r#"say "path:${PATH:+set} cargo:${CARGO_MANIFEST_DIR:+set} own:$OWN"
answer "$modern"; until_the_end"#,
        );
        let Target::Command { command, args, mut env, cwd, stderr } = target else { panic!("a command") };
        env.insert("OWN".into(), Some("1".into()));
        let target = Target::Command { command, args, env, cwd, stderr };
        let mut options = ClientOptions::new();
        if let Some(inherit) = inherit {
            options = options.inherit_env(inherit);
        }
        let client = Client::connect(&target, &options).await.unwrap();
        client.close().await;
        held.rest().await
    };
    // Cargo's own variable is one of those that nobody meant for a server.
    assert_eq!(said(None).await.trim(), "path:set cargo:set own:1");
    assert_eq!(said(Some(false.into())).await.trim(), "path:set cargo: own:1");
    assert_eq!(said(Some(["CARGO_MANIFEST_DIR"].into_iter().collect())).await.trim(), "path:set cargo:set own:1");
    let wrong = ClientOptions::parse(r#"{"inherit_env": "no"}"#).unwrap_err();
    assert!(wrong.message().contains("\"inherit_env\": expected true, false or a list of names"), "{wrong}");
}

#[tokio::test]
async fn a_command_that_is_not_found_says_which_file_is_missing() {
    use std::os::unix::fs::PermissionsExt;
    let folder = std::env::temp_dir().join(format!("tricorn-{}-missing", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let script = folder.join("server.py");
    std::fs::write(&script, "#!/usr/bin/python-of-yesterday -u\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let windows = folder.join("windows.sh");
    std::fs::write(&windows, "#!/bin/sh\r\ntrue\r\n").unwrap();
    std::fs::set_permissions(&windows, std::fs::Permissions::from_mode(0o755)).unwrap();
    for (command, path, part) in [
        (script.to_str().unwrap(), None, "its interpreter \"/usr/bin/python-of-yesterday\""),
        ("server.py", folder.to_str(), "its interpreter \"/usr/bin/python-of-yesterday\""),
        (windows.to_str().unwrap(), None, "its first line ends as on Windows (CR LF)"),
        ("sh -c true", None, "the command is the program alone, \"sh\"; \"-c true\" belongs in \"args\""),
        ("no-such-program", None, "cannot start \"no-such-program\": No such file or directory (os error 2)"),
        ("no-such-program", Some("/nowhere"), "it is in none of the folders of PATH (/nowhere): install it, or give"),
        ("/nowhere/server", None, "there is no file /nowhere/server"),
    ] {
        let env = path.map(|path| ("PATH".to_owned(), Some(path.to_owned()))).into_iter().collect();
        let target =
            Target::Command { command: command.into(), args: Vec::new(), env, cwd: None, stderr: Stderr::Discard };
        let error = Client::connect(&target, &ClientOptions::default()).await.expect_err(command);
        assert_eq!(error.kind(), ErrorKind::Transport);
        assert!(error.message().contains(part), "{}", error.message());
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
