//! The guides' protected server and the program that logs in, as their page has them: with a real authorization server
//! (`tests/auth/provider`), a browser, nginx with the settings of the page, and a desktop with a keyring.

mod desktop;

use crate::launch::{self, Listening};
use crate::logins::provider::{Provider, User};
use crate::options::Options;
use crate::pattern::{Captures, Strictness, check, shorten};
use crate::report::Report;
use crate::stateless::nginx::{self, Nginx};
use crate::wire::http::{Connection, Endpoint, Exchange, Request};
use crate::wire::stdio::{Launch, Tail, kill_group, wait_bounded};
use crate::{Failure, Outcome};
use desktop::Desktop;
use serde_json::{Value, json};
use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const EXAMPLES: &str = "examples/guides";
/// For one program that logs in, twice.
const LIMIT: Duration = Duration::from_secs(60);
/// Program that opens a browser, but for systems that do not look for one in `PATH`.
const OPENER: &str = "xdg-open";

/// The names of what is played in every language.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    SCENES.iter().map(|(name, _)| *name)
}

/// Play all scenes.
pub fn run(options: &Options, report: &mut Report) -> Outcome {
    let language = options.language.as_str();
    let programs = Programs::of(language)?;
    let has_opener = cfg!(all(unix, not(target_os = "macos")));
    let (proxy, keyring) = (nginx::find(), desktop::Programs::find());
    for (scene, play) in SCENES {
        let name = format!("{language} {scene}");
        if !options.wants(&name) {
            continue;
        }
        let way = match scene {
            SAYS_NO => None,
            _ if !has_opener => Some("no test can stand in for what opens the browser here".to_owned()),
            PROXIED => proxy.as_ref().err().cloned(),
            SEALED => keyring.as_ref().err().cloned(),
            _ => None,
        };
        match way {
            Some(why) => report.skip(&name, &why),
            None => report.record(&name, play(&programs)),
        }
    }
    Ok(())
}

type Scene = fn(&Programs) -> Outcome;

const PROXIED: &str = "logs in through nginx";
const SEALED: &str = "keeps the login sealed where there is a keychain";
const SAYS_NO: &str = "the user says no";
const SCENES: [(&str, Scene); 4] = [
    ("logs in, and keeps the login", log_in),
    (PROXIED, log_in_through_nginx),
    (SEALED, keep_sealed),
    (SAYS_NO, say_no),
];

/// The command lines of a language.
struct Programs {
    server: Vec<String>,
    client: Vec<String>,
    /// Output of the client.
    prints: String,
}

impl Programs {
    fn of(language: &str) -> Outcome<Self> {
        let root = launch::root()?;
        let at = |path: &str| root.join(path).to_string_lossy().into_owned();
        let program = |topic: &str| match language {
            "rust" => Ok(vec![at("target/release/guides"), topic.to_owned()]),
            "python" => {
                let file = format!("{EXAMPLES}/python/{}.py", topic.replace('-', "_"));
                Ok(vec![at("target/venv/bin/python"), at(&file)])
            }
            "node" => Ok(vec!["node".to_owned(), at(&format!("{EXAMPLES}/node/{topic}.mjs"))]),
            "swift" => Ok(vec![at(&format!("{EXAMPLES}/swift/run")), topic.to_owned()]),
            _ => Err("say --lang rust|python|node|swift".to_owned()),
        };
        let prints = root.join(EXAMPLES).join("log-in.txt");
        let prints = std::fs::read_to_string(&prints).map_err(|error| format!("{}: {error}", prints.display()))?;
        Ok(Self { server: program("protected-server")?, client: program("log-in")?, prints })
    }

    /// A server whose tokens the provider gives; `resource` is its URL for others than this machine.
    fn serve(&self, provider: &Provider, resource: Option<&str>) -> Outcome<Listening> {
        let mut settings = vec![("ISSUER", provider.issuer().to_owned()), ("PORT", "0".to_owned())];
        if let Some(resource) = resource {
            settings.push(("RESOURCE", resource.to_owned()));
            settings.push(("ALLOWED_HOSTS", Endpoint::parse(resource)?.authority));
        }
        let settings: Vec<_> = settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Listening::start(&self.server, &settings)
    }

    /// The client, for this server.
    fn client(&self, url: &str, scratch: &Scratch, flags: &[&str]) -> Launch {
        let words =
            self.client.iter().cloned().chain([url.to_owned()]).chain(flags.iter().map(|flag| (*flag).to_owned()));
        let path = std::env::var("PATH").unwrap_or_default();
        let environment = scratch.places.iter().map(|(name, place)| ((*name).to_owned(), place.clone()));
        let path = ("PATH".to_owned(), format!("{}:{path}", scratch.folder.join("bin").display()));
        Launch { words: words.collect(), environment: environment.chain([path]).collect() }
    }

    /// The client prints what the page says. Gives what it said besides.
    fn logs_in(&self, url: &str, scratch: &Scratch) -> Outcome<Vec<String>> {
        let ended = Ended::of(&self.client(url, scratch, &[]), |_| ())?;
        if ended.is_success && ended.printed == self.prints {
            return Ok(ended.log.lines());
        }
        Err(ended.explained(&format!("expected {:?}", self.prints)))
    }
}

/// A client that has ended.
struct Ended {
    is_success: bool,
    printed: String,
    log: Tail,
}

impl Ended {
    /// Runs it; `beside` is given what it says on its standard error, and dropped with its end.
    fn of<T>(launch: &Launch, beside: impl FnOnce(Tail) -> T) -> Outcome<Self> {
        let mut child = launch.spawn(Stdio::null(), Stdio::piped())?;
        let log = Tail::follow(child.stderr.take().ok_or("no standard error")?);
        let mut output = child.stdout.take().ok_or("no standard output")?;
        let printed = std::thread::spawn(move || {
            let mut text = String::new();
            output.read_to_string(&mut text).map(|_| text)
        });
        let beside = beside(log.clone());
        let status = wait_bounded(&mut child, LIMIT);
        drop(beside);
        kill_group(&mut child);
        let printed = printed.join().ok().and_then(Result::ok).unwrap_or_default();
        let is_success = match &status {
            Ok(status) => status.success(),
            Err(reason) => return Err(format!("{reason}: {printed}\n{}", log.lines().join("\n"))),
        };
        Ok(Self { is_success, printed, log })
    }

    fn explained(&self, why: &str) -> Failure {
        format!("{why}, got {:?}\n{}", self.printed, self.log.lines().join("\n"))
    }
}

/// A folder of a scene's own.
struct Scratch {
    folder: PathBuf,
    /// Variables that tell the client where logins are kept.
    places: Vec<(&'static str, String)>,
}

impl Scratch {
    fn new() -> Outcome<Self> {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("contract-guides-{}-{number}", std::process::id()));
        std::fs::create_dir_all(folder.join("bin")).map_err(|error| error.to_string())?;
        let places = vec![("LOGINS", folder.join("logins").to_string_lossy().into_owned())];
        Ok(Self { folder, places })
    }

    /// From here on the client keeps logins where it does by default, in the session that has this bus.
    fn keep_by_default(&mut self, bus: &str) {
        let data = self.folder.join("data").to_string_lossy().into_owned();
        self.places = vec![("XDG_DATA_HOME", data), ("DBUS_SESSION_BUS_ADDRESS", bus.to_owned())];
    }

    /// The file of the login that is kept by default.
    fn kept(&self) -> Outcome<String> {
        let folder = self.folder.join("data/tricorn/logins");
        let files = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut files = files.filter_map(|file| Some(file.ok()?.path()));
        let file = files.find(|file| file.extension().is_some_and(|end| end == "json"));
        let file = file.ok_or_else(|| format!("no login in {}", folder.display()))?;
        std::fs::read_to_string(file).map_err(|error| error.to_string())
    }

    /// From here on none is.
    fn forget(&self) -> Outcome {
        std::fs::remove_dir_all(self.folder.join("data")).map_err(|error| error.to_string())
    }

    /// Writes the program that opens the browser on this system: it logs in as ada.
    fn put_browser(&self, provider: &Provider) -> Outcome {
        let browser = launch::root()?.join("tests/auth/provider/browser.mjs");
        let script = "const [, browser, url, issuer] = process.argv; \
                      await (await import(browser)).follow(url, issuer, \"ada\", false);";
        let text = format!(
            "#!/bin/sh\nexec node --input-type=module --eval '{script}' '{}' \"$1\" '{}'\n",
            browser.display(),
            provider.issuer()
        );
        let opener = self.folder.join("bin").join(OPENER);
        std::fs::write(&opener, text).map_err(|error| error.to_string())?;
        std::fs::set_permissions(&opener, PermissionsExt::from_mode(0o755)).map_err(|error| error.to_string())
    }

    /// From here on nobody can log in.
    fn take_browser(&self) -> Outcome {
        std::fs::write(self.folder.join("bin").join(OPENER), "#!/bin/sh\nexit 1\n").map_err(|error| error.to_string())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn seen(provider: &Provider, pattern: &Value) -> Outcome {
    check(pattern, &provider.seen()?, Strictness::Subset, &mut Captures::new())
        .map_err(|reason| format!("the authorization server: {reason}"))
}

// ---- scenes ------------------------------------------------------------------------------------------------------

fn log_in(programs: &Programs) -> Outcome {
    let (provider, scratch) = (Provider::start()?, Scratch::new()?);
    let server = programs.serve(&provider, None)?;
    scratch.put_browser(&provider)?;
    programs.logs_in(&server.url, &scratch)?;
    // The second tool needs a scope that nobody has granted yet.
    seen(&provider, &json!({"grants": ["authorization_code", "authorization_code"], "refused": []}))?;
    scratch.take_browser()?;
    programs.logs_in(&server.url, &scratch)?;
    seen(&provider, &json!({"registered": 0, "grants": {"$not": {"$contains": ["authorization_code"]}}}))
}

fn log_in_through_nginx(programs: &Programs) -> Outcome {
    const SECRET: &str = "nobody-may-read-this";
    let (provider, scratch) = (Provider::start()?, Scratch::new()?);
    scratch.put_browser(&provider)?;
    let settings = launch::root()?.join(EXAMPLES).join("nginx.conf");
    let settings = std::fs::read_to_string(&settings).map_err(|error| format!("{}: {error}", settings.display()))?;
    let log = scratch.folder.join("access.log");
    let mut server = None;
    let (program, _) = nginx::find()?;
    let (proxy, addresses) = Nginx::with(&program, 1, |addresses| {
        let address = addresses[0];
        let listening = programs.serve(&provider, Some(&format!("http://{address}/files/mcp")))?;
        let site = site(&settings, address, &listening.endpoint, &log);
        server = Some(listening);
        Ok(vec![site?])
    })?;
    let url = format!("http://{}/files/mcp", addresses[0]);
    programs.logs_in(&url, &scratch)?;
    seen(&provider, &json!({"registered": 1, "grants": ["authorization_code", "authorization_code"], "refused": []}))?;

    // What nobody should send, and some do.
    let endpoint = Endpoint::parse(&url)?;
    let secret = format!("/files/mcp?access_token={SECRET}");
    // It is one process, which has written of a request when it answers the next one.
    for (path, expected) in [(secret.as_str(), 400), ("/.well-known/oauth-protected-resource/files/mcp", 200)] {
        let request = Request { method: "GET".into(), path: path.into(), headers: Vec::new(), body: None };
        let mut exchange = Exchange::start(Connection::open(&endpoint)?, &request, &endpoint.authority)?;
        let status = exchange.head(LIMIT)?.status;
        if status != expected {
            return Err(format!("{path}: expected {expected}, got {status}"));
        }
    }
    let written = std::fs::read_to_string(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    let said = format!("{written}{}", proxy.log.lines().join("\n"));
    if !written.contains(" GET /files/mcp 400 ") || said.contains(SECRET) || said.contains("access_token") {
        return Err(format!("the logs of nginx: {said}"));
    }
    Ok(())
}

fn keep_sealed(programs: &Programs) -> Outcome {
    let (provider, mut scratch) = (Provider::start()?, Scratch::new()?);
    let server = programs.serve(&provider, None)?;
    let refreshes = json!({"registered": 0, "grants": {"$not": {"$contains": ["authorization_code"]}}});
    let expect = |is_so: bool, what: &str, shown: &str| {
        if is_so { Ok(()) } else { Err(format!("expected {what}, got {}", shorten(shown))) }
    };

    // Without a session, as on a server.
    scratch.keep_by_default("unix:path=/nowhere/bus");
    scratch.put_browser(&provider)?;
    let said = programs.logs_in(&server.url, &scratch)?.join("\n");
    expect(!said.contains("keychain"), "nothing about a keychain", &said)?;
    expect(scratch.kept()?.contains("\"login\":"), "an open login", &scratch.kept()?)?;

    // What was kept there is found on a desktop, too.
    let programs_of_it = desktop::Programs::find()?;
    let mut desktop = Desktop::start(&programs_of_it, &scratch.folder.join("desktop"))?;
    scratch.keep_by_default(&desktop.address);
    scratch.take_browser()?;
    seen(&provider, &json!({}))?;
    programs.logs_in(&server.url, &scratch)?;
    seen(&provider, &refreshes)?;

    // What is kept there is sealed, and found again by another process.
    scratch.forget()?;
    scratch.put_browser(&provider)?;
    let said = programs.logs_in(&server.url, &scratch)?.join("\n");
    expect(!said.contains("keychain"), "nothing about a keychain", &said)?;
    let kept = scratch.kept()?;
    expect(kept.contains("\"sealed\":") && !kept.contains("\"login\":"), "a sealed login", &kept)?;
    scratch.take_browser()?;
    seen(&provider, &json!({}))?;
    programs.logs_in(&server.url, &scratch)?;
    seen(&provider, &refreshes)?;

    // A session without a keyring has files, and says why.
    desktop.end_keyring();
    scratch.forget()?;
    scratch.put_browser(&provider)?;
    let said = programs.logs_in(&server.url, &scratch)?;
    let times = said.iter().filter(|line| line.contains("no keychain (nobody on the session bus")).count();
    expect(times == 1, "once that there is no keychain", &said.join("\n"))?;
    expect(scratch.kept()?.contains("\"login\":"), "an open login", &scratch.kept()?)
}

fn say_no(programs: &Programs) -> Outcome {
    let (provider, scratch) = (Provider::start()?, Scratch::new()?);
    let server = programs.serve(&provider, None)?;
    // Where the page is to be opened is on standard error.
    let launch = programs.client(&server.url, &scratch, &["--no-browser"]);
    let ended = Ended::of(&launch, |said| {
        let user = User::before(said, &provider);
        user.denies(true);
        user
    })?;
    let lines: Vec<&str> = ended.printed.lines().collect();
    let metadata = format!("http://{}/.well-known/oauth-protected-resource/mcp", server.endpoint.authority);
    let login = format!("  login in the browser {}/auth: ", provider.issuer());
    let is_told = lines.first().is_some_and(|line| line.starts_with("failed: ") && line.contains("access_denied"))
        && lines.iter().any(|line| line.starts_with(&format!("  resource metadata {metadata} 200: ")))
        && lines.iter().any(|line| line.starts_with(&login));
    if ended.is_success || !is_told {
        return Err(ended.explained("expected the refusal, and what the login did"));
    }
    Ok(())
}

/// The settings of the page, with other addresses and without the certificate.
fn site(settings: &str, address: SocketAddr, server: &Endpoint, log: &Path) -> Outcome<String> {
    let changes = [
        ("listen 443 ssl;", format!("listen {address};"), 1),
        ("ssl_certificate /etc/ssl/example.com.pem;", String::new(), 1),
        ("ssl_certificate_key /etc/ssl/example.com.key;", String::new(), 1),
        ("/var/log/nginx/files.log", log.display().to_string(), 1),
        ("http://127.0.0.1:8000/", format!("http://{}/", server.authority), 2),
    ];
    let mut text = settings.to_owned();
    for (shown, ours, times) in changes {
        if text.matches(shown).count() != times {
            return Err(format!("{EXAMPLES}/nginx.conf: expected {shown:?} {times} times"));
        }
        text = text.replace(shown, &ours);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn the_settings_of_the_page_are_used() {
        let settings = include_str!("../../../examples/guides/nginx.conf");
        let server = Endpoint { authority: "127.0.0.1:2".into(), path: "/mcp".into() };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let text = site(settings, address, &server, Path::new("/tmp/log")).expect("settings");
        for part in ["listen 127.0.0.1:1;", "http://127.0.0.1:2/mcp;", "access_log /tmp/log no_secrets;"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains("ssl"), "{text}");
        assert!(site("nothing", address, &server, Path::new("/tmp/log")).is_err());
    }
}
