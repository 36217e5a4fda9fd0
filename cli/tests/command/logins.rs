//! Logging in at a real authorization server, whose pages a user without a browser fills in.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::Http;
use crate::place::{command, provider};
use crate::running::Running;
#[cfg(unix)]
use crate::terminal::Terminal;

struct Stage {
    provider: Http,
    server: Http,
    folder: tempfile::TempDir,
}

impl Stage {
    fn new() -> Option<Self> {
        if !cfg!(target_os = "linux") {
            eprintln!("left out: logins would go to the keychain of whoever runs this");
            return None;
        }
        let Some(program) = provider() else {
            eprintln!("left out: there is no authorization server (TRICORN_PROVIDER)");
            return None;
        };
        let mut node = Command::new("node");
        node.arg(program);
        let provider = Http::of(node);
        let auth = json!({"issuer": provider.url, "required_scopes": ["mcp"]}).to_string();
        let server = Http::start(&[("EVERYTHING_AUTH", &auth)]);
        Some(Self { provider, server, folder: tempfile::tempdir().unwrap() })
    }

    fn url(&self) -> &str {
        &self.server.url
    }

    fn made(&self, args: &[&str]) -> Command {
        let words = command();
        let mut program = Command::new(&words[0]);
        program.args(&words[1..]).args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let folder: &Path = self.folder.path();
        // The places of Linux, macOS and Windows; no keychain.
        program.env("XDG_DATA_HOME", folder).env("HOME", folder).env("LOCALAPPDATA", folder);
        program.env_remove("DBUS_SESSION_BUS_ADDRESS").env("XDG_RUNTIME_DIR", folder);
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            program.env_remove(name).env_remove(name.to_lowercase());
        }
        program
    }

    fn run(&self, args: &[&str]) -> (i32, String, String) {
        said(self.made(args).output().unwrap())
    }

    fn begin(&self, args: &[&str]) -> (Running, String, impl Iterator<Item = String> + use<>) {
        let mut child = Running::start(&mut self.made(args));
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let address = lines.find(|line| line.starts_with("http://")).expect("the address of the login page");
        (child, address, lines)
    }

    fn log_in(&self, args: &[&str], denies: bool) -> (i32, String, String) {
        let (child, address, lines) = self.begin(args);
        let end = self.control(&json!({"follow": {"url": address, "user": "ada", "denies": denies}}));
        assert_eq!(end["status"], 200, "{end}");
        let errors: Vec<_> = lines.collect();
        let (status, stdout, _) = said(child.output());
        (status, stdout, errors.join("\n"))
    }

    fn control(&self, wish: &Value) -> Value {
        let place = self.provider.url.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(place).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let body = wish.to_string();
        let head = format!("POST /control HTTP/1.0\r\nHost: {place}\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    fn whoami(&self) -> Value {
        let (status, stdout, stderr) = self.run(&["whoami", self.url(), "--json"]);
        assert_eq!(status, 0, "{stderr}");
        serde_json::from_str(&stdout).unwrap()
    }

    /// Makes the stored token one that has expired, and that nobody takes any more.
    fn age(&self) {
        let folder = self.folder.path().join("tricorn/logins");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let files: Vec<_> = files.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect();
        let [file] = files.as_slice() else { panic!("one login is kept: {files:?}") };
        let mut kept: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let mut login: Value = serde_json::from_str(kept["login"].as_str().unwrap()).unwrap();
        for end in ["expires_at", "renew_at"] {
            login["logins"][0]["token"][end] = 1.into();
        }
        login["logins"][0]["token"]["access_token"] = "worn".into();
        kept["login"] = login.to_string().into();
        std::fs::write(file, kept.to_string()).unwrap();
    }
}

fn said(output: Output) -> (i32, String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().trim_end().to_owned();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

#[test]
fn a_login_is_kept_used_refreshed_and_forgotten() {
    let Some(stage) = Stage::new() else { return };
    let url = stage.url();
    for args in [&["list", url][..], &["whoami", url], &["token", url]] {
        let (status, stdout, stderr) = stage.run(args);
        assert!(status == 4 && stdout.is_empty() && stderr.contains("tricorn login"), "{args:?}: {status} {stderr}");
    }

    let (status, stdout, stderr) = stage.log_in(&["login", url, "--no-browser", "--scope", "mcp mcp"], false);
    assert_eq!(status, 0, "{stderr}");
    assert!(stdout.starts_with(&format!("logged in: {url}\n  issuer   {}\n", stage.provider.url)), "{stdout}");
    for step in [
        "challenge ",
        "resource metadata ",
        "authorization server metadata ",
        "registration ",
        "login in the browser",
        "token ",
    ] {
        assert!(stderr.lines().any(|line| line.starts_with(step)), "no {step:?} in:\n{stderr}");
    }

    let who = stage.whoami();
    assert_eq!(
        (&who[0]["subject"], &who[0]["scopes"], &who[0]["refreshes"]),
        (&json!("ada"), &json!(["mcp"]), &json!(true))
    );
    let (_, shown, _) = stage.run(&["whoami", url]);
    assert!(shown.contains("\n  subject  ada\n  scopes   mcp\n"), "{shown}");
    stage.age();
    assert!(stage.run(&["whoami", url]).1.contains("expired, refreshed when it is used"));
    let (status, token, stderr) = stage.run(&["token", url]);
    assert_eq!((status, token.lines().count()), (0, 1), "{stderr}");
    assert!(!format!("{shown}{stdout}{who}").contains(&token) && !stderr.contains(&token), "a token is shown");
    assert_eq!(stage.run(&["token", url]).1, token, "a token that is good is given as it is");
    let grants = stage.control(&json!({"seen": {}}))["grants"].clone();
    assert_eq!(grants, json!(["authorization_code", "refresh_token"]));
    // Another program can use it, and ours use the login without it.
    let header = format!("Authorization: Bearer {token}");
    assert_eq!(stage.run(&["call", url, "add", "a=1", "b=2", "-H", &header]).1, "3");
    assert_eq!(stage.run(&["call", url, "add", "a=1", "b=2"]).1, "3");
    let bad = stage.run(&["list", url, "-H", "Authorization: Bearer nothing"]);
    assert_eq!(bad.0, 4, "what was given by hand counts: {}", bad.2);
    let (status, stdout, _) = stage.run(&["login", url]);
    assert!(status == 0 && stdout.starts_with("already logged in: "), "{stdout}");

    let gone = format!("logged out of {url}");
    assert_eq!(stage.run(&["logout", url]).1, gone);
    assert_eq!(stage.run(&["logout", url, "--json"]).1, "{\n  \"removed\": false\n}");
    assert_eq!(stage.run(&["whoami", url]).0, 4);
}

#[test]
fn a_login_that_was_taken_back_is_needed_anew() {
    let Some(stage) = Stage::new() else { return };
    let url = stage.url();
    assert_eq!(stage.log_in(&["login", url], false).0, 0);
    stage.age();
    stage.control(&json!({"revoke": {}}));
    for args in [["ping", url], ["token", url]] {
        let (status, stdout, stderr) = stage.run(&args);
        let said = "the stored login does not do any more, and only its user can get another";
        assert!(status == 4 && stdout.is_empty() && stderr.contains(said), "{args:?}: {status} {stderr}");
    }
    // The next login takes its place.
    assert_eq!(stage.log_in(&["login", url], false).0, 0);
    assert_eq!(stage.run(&["call", url, "add", "a=1", "b=2"]).1, "3");
    assert_eq!(stage.whoami().as_array().map(Vec::len), Some(1));
}

#[test]
fn a_bridge_uses_the_login() {
    let Some(stage) = Stage::new() else { return };
    let url = stage.url();
    let (status, stdout, stderr) = stage.log_in(&["login", url, "--json"], false);
    assert_eq!(status, 0, "{stderr}");
    assert_eq!(serde_json::from_str::<Value>(&stdout).unwrap()["subject"], "ada");
    let mut bridge = stage.made(&["run", url, "--http", "127.0.0.1:0"]);
    bridge.stdout(Stdio::null());
    let bridge = Http::of(bridge);
    assert_eq!(stage.run(&["call", &bridge.url, "add", "a=1", "b=2"]).1, "3");
}

#[test]
fn whoever_says_no_is_not_logged_in() {
    let Some(stage) = Stage::new() else { return };
    let url = stage.url();
    let (status, stdout, stderr) = stage.log_in(&["login", url], true);
    assert!(status == 4 && stdout.is_empty() && stderr.contains("access_denied"), "{status} {stdout} {stderr}");
    assert_eq!(stage.run(&["whoami", url]).0, 4);
}

#[cfg(unix)]
#[test]
fn a_browser_is_opened_only_after_asking() {
    let Some(stage) = Stage::new() else { return };
    let folder = stage.folder.path().to_str().unwrap();
    // Whatever opens pages on this machine would leave a file there.
    let (opened, programs) = (stage.folder.path().join("opened"), stage.folder.path().join("programs"));
    std::fs::create_dir(&programs).unwrap();
    let script = format!("#!/bin/sh\necho \"$1\" >> '{}'\n", opened.display());
    for name in ["xdg-open", "open", "gio", "gnome-open", "kde-open", "wslview"] {
        std::fs::write(programs.join(name), &script).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(programs.join(name), mode).unwrap();
    }
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let env =
        [("XDG_DATA_HOME", folder), ("HOME", folder), ("XDG_RUNTIME_DIR", folder), ("PATH", &path), ("BROWSER", "")];
    let place = stage.provider.url.strip_prefix("http://").unwrap();
    let mut terminal = Terminal::start_with(200, &env, &["login", stage.url()]);
    terminal.until(&format!("Open {place} in the browser?"));
    terminal.types("n");
    assert_eq!(terminal.end(), 4);
    assert!(terminal.text().contains("you did not want the page opened") && !opened.exists(), "{}", terminal.text());

    let mut terminal = Terminal::start_with(200, &env, &["login", stage.url()]);
    terminal.until(&format!("Open {place} in the browser?"));
    terminal.types("y");
    let late = Instant::now() + Duration::from_secs(20);
    let address = loop {
        match std::fs::read_to_string(&opened) {
            Ok(text) if text.ends_with('\n') => break text.trim().to_owned(),
            _ => assert!(Instant::now() < late, "nothing was opened:\n{}", terminal.text()),
        }
        std::thread::yield_now();
    };
    assert_eq!(stage.control(&json!({"follow": {"url": address, "user": "bob"}}))["status"], 200);
    assert_eq!(terminal.end(), 0);
    assert!(terminal.text().contains("subject  bob"), "{}", terminal.text());
}
