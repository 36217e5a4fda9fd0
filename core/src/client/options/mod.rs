mod tap;
mod transport;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

#[cfg(feature = "auth")]
use super::Auth;
use super::target::{Target, check_scheme, is_url};
use super::{CacheOptions, Carried, Stderr, Tapped};
use crate::call::{TaskOptions, TraceSource};
use crate::error::{Error, Result, shortened, shown_url};
use crate::idiom::named;
use crate::jsonrpc::{Limits, RawJson};
use crate::model::{Capabilities, Implementation, TASKS_EXTENSION, check_extension};
use crate::options::{seconds, setters};
use crate::protocol::revision::{Revision, spoken};
use crate::protocol::{Facts, KeepAlive, Role};

/// A server sends more than it is sent: pictures of whole pages in base64 pass 7 MiB, and many a server says each text twice,
/// as content and as data. Other clients take between 10 MiB and any length.
const MAX_MESSAGE_BYTES: usize = 32 << 20;

/// Identity and limits of a client. The same names in every language.
///
/// ```no_run
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use serde_json::json;
/// use tricorn::prelude::*;
///
/// let options = ClientOptions::new()
///     .name("notes-app")
///     .version("1.4.0")
///     .header("X-Team", "blue")
///     .revision("2025-11-25")
///     .extension("com.example/search", json!({"limit": 10}));
/// let client = Client::connect(&"https://example.com/mcp".parse()?, &options).await?;
/// # client.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ClientOptions {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) website_url: Option<String>,
    pub(crate) icons: Option<RawJson>,
    pub(crate) revision: Option<String>,
    pub(crate) request_timeout: f64,
    pub(crate) probe_timeout: f64,
    pub(crate) max_message_bytes: usize,
    pub(crate) max_nesting: usize,
    pub(crate) max_decoded_bytes: usize,
    pub(crate) max_memory: Option<usize>,
    pub(crate) max_in_flight: usize,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) proxy: Option<String>,
    pub(crate) ca: Option<String>,
    pub(crate) cert: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) shutdown_grace: f64,
    pub(crate) restart: bool,
    pub(crate) inherit_env: InheritEnv,
    pub(crate) capabilities: Option<RawJson>,
    pub(crate) extensions: BTreeMap<String, Value>,
    pub(crate) ping_interval: f64,
    pub(crate) ping_timeout: f64,
    pub(crate) tasks: Option<TaskOptions>,
    pub(crate) cache: CacheOptions,
    pub(crate) validate_output: bool,
    pub(crate) record: Option<String>,
    pub(crate) redact: bool,
    #[cfg(feature = "auth")]
    pub(crate) auth: Option<Auth>,
    /// Requests outside the protocol are heard of.
    #[serde(skip)]
    pub(crate) passes_on: bool,
    #[serde(skip)]
    pub(super) trace: TraceSource,
    #[serde(skip)]
    pub(crate) http_transport: Carried,
    #[serde(skip)]
    pub(super) tap: Tapped,
}

impl Default for ClientOptions {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            name: "tricorn".into(),
            version: crate::VERSION.into(),
            title: None,
            description: None,
            website_url: None,
            icons: None,
            revision: None,
            request_timeout: 60.0,
            probe_timeout: 5.0,
            max_message_bytes: MAX_MESSAGE_BYTES,
            max_nesting: limits.max_nesting,
            max_decoded_bytes: limits.max_decoded_bytes,
            max_memory: None,
            max_in_flight: 256,
            headers: BTreeMap::new(),
            proxy: None,
            ca: None,
            cert: None,
            key: None,
            shutdown_grace: 2.0,
            restart: true,
            inherit_env: InheritEnv::All,
            capabilities: None,
            extensions: BTreeMap::new(),
            ping_interval: 0.0,
            ping_timeout: 20.0,
            tasks: None,
            cache: CacheOptions::default(),
            validate_output: true,
            record: None,
            redact: true,
            #[cfg(feature = "auth")]
            auth: None,
            passes_on: false,
            trace: TraceSource::default(),
            http_transport: Carried::default(),
            tap: Tapped::default(),
        }
    }
}

impl ClientOptions {
    /// Every option at its default.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let options = tricorn::client::ClientOptions::new().request_timeout(Duration::from_secs(10)).header("X-User", "ada");
    /// assert_eq!(options.get_headers()["X-User"], "ada");
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Programmatic name. Default `tricorn`.
        name: text;
        /// Version of the program.
        version: text;
        /// Name for people.
        title: some text;
        /// Description for people.
        description: some text;
        /// Web page about it.
        website_url: some text;
        /// The schema's `Icon` objects.
        icons: some RawJson;
        /// Only this revision will do, such as `2025-11-25`, or only one with handshakes (`legacy`) or without
        /// (`modern`). Default: the newest that both sides speak.
        revision: some text;
        /// Time without an answer or progress after which a request is given up; zero for none. Default 60 s.
        request_timeout: time;
        /// Longest time that a server may take to answer the first question before it is taken for a legacy one.
        /// Default 5 s.
        probe_timeout: time;
        /// The longest message in bytes. Default 32 MiB.
        max_message_bytes: usize;
        /// The deepest nesting of a message. Default 128.
        max_nesting: usize;
        /// The most memory that a message's values may take once they are decoded, in bytes and by estimate: many small
        /// ones take a hundred times what their text does. Default 64 MiB.
        max_decoded_bytes: usize;
        /// The most that the whole process keeps for its peers at any time, in bytes: what long messages take until
        /// they are read. All servers and clients of the process draw on it, and the last one to set it sets it for
        /// all. Beyond it an answer is an error. Default: a quarter of the memory that the machine or its control group
        /// has, and 64 MiB at least.
        max_memory: some usize;
        /// Requests awaited at once, further ones wait their turn; and of the server worked on at once. Default 256.
        max_in_flight: usize;
        /// The proxy for all that is asked over HTTP, authorization included: a URL with `http://` or `socks5://`;
        /// empty for none. Default: what `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say, or their names in
        /// small letters.
        proxy: some text;
        /// Authorities whose certificates are trusted besides those of this machine, which `SSL_CERT_FILE`,
        /// `SSL_CERT_DIR` and `NODE_EXTRA_CA_CERTS` may name: PEM, or a file with that. Default: none.
        ca: some text;
        /// The client's own certificate, with those between it and its authority: PEM, or a file with that. Default:
        /// none.
        cert: some text;
        /// The private key that `cert` belongs to: PEM, or a file with that. Default: it is in `cert`.
        key: some text;
        /// Time for each step of ending a child process: its own exit, SIGTERM, SIGKILL. Default 2 s.
        shutdown_grace: time;
        /// Starts a program again that has ended unasked, when it is needed: in revisions without sessions, in others
        /// the client ends with it. At most five times within a minute. Default: yes.
        restart: bool;
        /// The client's capabilities object.
        capabilities: some RawJson;
        /// Time without a message of the server after which it is asked for a sign of life; zero for never, the
        /// default.
        ping_interval: time;
        /// Time after which a server that does not answer that is taken for lost, and the connection ends: more than
        /// what it may be busy for without reading. Default 20 s.
        ping_timeout: time;
        /// Runs sampling and elicitation as tasks, where the server wants that. Default: no tasks.
        tasks: some TaskOptions;
        /// Cache of the server's answers. Default: on, as long as they allow.
        cache: CacheOptions;
        /// Checks what a tool answers (`structuredContent`) against the `outputSchema` that it was listed with, if this
        /// client has listed it; a result that does not fit is an error. Default: yes.
        validate_output: bool;
        /// Records everything that passes as a cassette, in this file, which is replaced: see
        /// [`cassette`](crate::cassette). Default: nothing.
        record: some text;
        /// Leaves secrets out of what is recorded: values of headers, of the target's environment and query, of `auth`,
        /// of members and variables that are named like secrets, and texts that look like them. Default: yes.
        redact: bool;
    }

    #[cfg(feature = "auth")]
    setters! {
        /// Authorization at a protected server. Default: none, other than by `headers`.
        auth: some Auth;
    }

    /// Part of this program's environment that a started program finds, besides the `env` of its target: all of it, a
    /// short list of variables that programs need and that hold no secret, or that list and these names. Default: all.
    #[must_use]
    pub fn inherit_env(mut self, what: impl Into<InheritEnv>) -> Self {
        self.inherit_env = what.into();
        self
    }

    /// Adds a header that is sent with every HTTP request.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Declares an extension of the protocol with these settings, an object: what belongs to it is told, and may be asked.
    /// That for tasks is the option `tasks`. Default: none.
    #[must_use]
    pub fn extension(mut self, id: impl Into<String>, settings: Value) -> Self {
        self.extensions.insert(id.into(), settings);
        self
    }

    /// Returns the revision or the era that alone will do, if one was named.
    #[must_use]
    pub fn get_revision(&self) -> Option<&str> {
        self.revision.as_deref()
    }

    /// Returns the headers that are sent with every HTTP request.
    #[must_use]
    pub const fn get_headers(&self) -> &BTreeMap<String, String> {
        &self.headers
    }

    /// Takes back [`revision`](Self::revision): any that both sides speak will do.
    #[must_use]
    pub fn any_revision(mut self) -> Self {
        self.revision = None;
        self
    }

    /// Takes back [`record`](Self::record), for a connection that is no part of a recording.
    #[must_use]
    pub fn unrecorded(mut self) -> Self {
        self.record = None;
        self
    }

    /// Reads the options from JSON, where times are numbers of seconds.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming the option that is unknown or wrong.
    pub fn parse(text: &str) -> Result<Self> {
        let options: Self = crate::options::read("client options", text)?;
        options.check()?;
        Ok(options)
    }

    pub(crate) fn check(&self) -> Result<()> {
        self.pinned()?;
        KeepAlive::of(self.ping_interval, self.ping_timeout)?;
        self.cache.check()?;
        for (id, settings) in &self.extensions {
            let wrong = |why| Error::misuse(format!("client option \"extensions\": {:?}: {why}", shortened(id, 100)));
            check_extension(id, settings).map_err(wrong)?;
            if id == TASKS_EXTENSION {
                return Err(wrong("switch it on by the option \"tasks\"".to_owned()));
            }
        }
        self.tasks.as_ref().map_or(Ok(()), TaskOptions::check)?;
        #[cfg(feature = "auth")]
        self.auth.as_ref().map_or(Ok(()), Auth::check)?;
        for (name, value) in [
            ("request_timeout", self.request_timeout),
            ("probe_timeout", self.probe_timeout),
            ("shutdown_grace", self.shutdown_grace),
        ] {
            seconds(name, value)?;
        }
        if let Some(other) = self.capabilities.as_ref().filter(|c| !c.is_object()) {
            let got = shortened(&other.to_string(), 60).into_owned();
            return Err(Error::misuse(format!("client option \"capabilities\": expected an object, got {got}")));
        }
        for (name, value) in [
            ("max_message_bytes", self.max_message_bytes),
            ("max_nesting", self.max_nesting),
            ("max_decoded_bytes", self.max_decoded_bytes),
            ("max_memory", self.max_memory.unwrap_or(1)),
            ("max_in_flight", self.max_in_flight),
        ] {
            if value == 0 {
                return Err(Error::misuse(format!("client option {:?}: expected at least 1, got 0", named(name))));
            }
        }
        Ok(())
    }

    pub(crate) fn pinned(&self) -> Result<Option<Revision>> {
        let spoken = spoken("client", self.revision.as_deref())?;
        Ok(spoken.first().copied().filter(|_| spoken.len() == 1))
    }

    pub(crate) fn timeout(&self) -> Option<Duration> {
        seconds("request_timeout", self.request_timeout).ok().filter(|t| !t.is_zero())
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits {
            max_message_bytes: self.max_message_bytes,
            max_nesting: self.max_nesting,
            max_decoded_bytes: self.max_decoded_bytes,
            max_batch: self.max_in_flight,
        }
    }

    pub(crate) fn facts(&self) -> Facts {
        let mut info = Implementation::new(self.name.clone(), self.version.clone());
        (info.title, info.description) = (self.title.clone(), self.description.clone());
        (info.website_url, info.icons) = (self.website_url.clone(), self.icons.clone());
        Facts {
            role: Role::Client,
            info: RawJson::from_value(&info),
            capabilities: self.capabilities.clone().map(Capabilities::new).unwrap_or_default(),
            instructions: None,
            discovery: crate::model::CacheHints::new(),
            // The negotiation makes sure of a pinned one.
            revisions: match self.revision.as_deref() {
                Some(era @ ("legacy" | "modern")) => spoken("client", Some(era)).unwrap_or_default(),
                _ => Revision::ALL.to_vec(),
            },
            methods: Vec::new(),
            passes_on: self.passes_on,
            max_in_flight: self.max_in_flight,
            max_listeners: 0,
            max_queued_notifications: 0,
            keep_alive: KeepAlive::of(self.ping_interval, self.ping_timeout).unwrap_or_default(),
        }
    }
}

/// Part of the environment that a program gets from the one that starts it.
///
/// ```
/// use tricorn::client::{ClientOptions, InheritEnv};
///
/// // The started program finds PATH, HOME and the like in its environment, and this variable; no secrets.
/// let options = ClientOptions::new().inherit_env(InheritEnv::from_iter(["NOTES_DIRECTORY"]));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InheritEnv {
    /// All of it.
    All,
    /// `HOME`, `LOGNAME`, `PATH`, `SHELL`, `TERM`, `USER`; on Windows `APPDATA`, `HOMEDRIVE`, `HOMEPATH`, `LOCALAPPDATA`,
    /// `PATH`, `PATHEXT`, `PROCESSOR_ARCHITECTURE`, `PROGRAMFILES`, `SYSTEMDRIVE`, `SYSTEMROOT`, `TEMP`, `USERNAME`,
    /// `USERPROFILE`.
    Safe,
    /// The same and these.
    Names(Vec<String>),
}

/// Variables that a program needs of its environment.
const SAFE: &[&str] = if cfg!(windows) {
    &[
        "APPDATA",
        "HOMEDRIVE",
        "HOMEPATH",
        "LOCALAPPDATA",
        "PATH",
        "PATHEXT",
        "PROCESSOR_ARCHITECTURE",
        "PROGRAMFILES",
        "SYSTEMDRIVE",
        "SYSTEMROOT",
        "TEMP",
        "USERNAME",
        "USERPROFILE",
    ]
} else {
    &["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"]
};

impl InheritEnv {
    /// The variables that are taken over, when it is not all of them.
    #[cfg_attr(not(feature = "stdio"), expect(dead_code, reason = "of programs"))]
    pub(crate) fn kept(&self) -> Option<Vec<(std::ffi::OsString, std::ffi::OsString)>> {
        let own: &[String] = match self {
            Self::All => return None,
            Self::Safe => &[],
            Self::Names(names) => names,
        };
        let names = SAFE.iter().copied().chain(own.iter().map(String::as_str));
        let kept = names.filter(|name| !name.is_empty() && !name.contains(['=', '\0']));
        // A shell's function, which older ones run as they start.
        let is_function = |value: &std::ffi::OsStr| value.as_encoded_bytes().starts_with(b"()");
        let kept = kept.filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
        Some(kept.filter(|(_, value)| !is_function(value)).collect())
    }
}

impl From<bool> for InheritEnv {
    fn from(all: bool) -> Self {
        if all { Self::All } else { Self::Safe }
    }
}

impl<N: Into<String>> FromIterator<N> for InheritEnv {
    fn from_iter<I: IntoIterator<Item = N>>(names: I) -> Self {
        Self::Names(names.into_iter().map(Into::into).collect())
    }
}

impl<'de> Deserialize<'de> for InheritEnv {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong = |value: &Value| {
            let got = shortened(&value.to_string(), 60).into_owned();
            serde::de::Error::custom(format!("expected true, false or a list of names, got {got}"))
        };
        match Value::deserialize(deserializer)? {
            Value::Bool(all) => Ok(all.into()),
            Value::Array(names) => {
                let text = |name: &Value| name.as_str().map(str::to_owned).ok_or_else(|| wrong(name));
                names.iter().map(text).collect::<Result<_, _>>().map(Self::Names)
            }
            other => Err(wrong(&other)),
        }
    }
}

impl Target {
    /// A URL, the path of a host's `mcp.json` with one server, `replay:FILE` or `replay:FILE?strict` for a cassette, or a
    /// command line: with POSIX quoting, on Windows with that of its programs (double quotes; backslashes are parts of
    /// paths).
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for an empty or unbalanced command line, for a URL that is neither http nor
    /// https, and as [`from_file`](Self::from_file).
    pub fn from_text(text: &str) -> Result<Self> {
        Self::from_given(text, &BTreeMap::new())
    }

    pub(super) fn from_given(text: &str, variables: &BTreeMap<String, String>) -> Result<Self> {
        let text = text.trim();
        if is_url(text) {
            return Ok(Self::Url { url: text.to_owned(), headers: BTreeMap::new() });
        }
        if let Some(replay) = Self::of_cassette(text)? {
            return Ok(replay);
        }
        check_scheme(text)?;
        if is_address(text) {
            // The rest may hold a secret.
            let shown = shortened(text.split(['?', '#']).next().unwrap_or_default(), 100);
            return Err(Error::misuse(format!("target: {shown:?} is no URL: did you mean \"http://{shown}\"?")));
        }
        if super::config::is_path(text) {
            return Self::from_file_with(text, None, variables);
        }
        let mut words = split(text)?.into_iter();
        let Some(command) = words.next() else {
            return Err(Error::misuse("target: empty, expected a URL or a command line"));
        };
        super::config::check_command(text, &command)?;
        Ok(Self::command(command, words))
    }

    fn of_cassette(text: &str) -> Result<Option<Self>> {
        let Some(rest) = text.strip_prefix("replay:") else { return Ok(None) };
        let (file, strict) = match rest.strip_suffix("?strict") {
            Some(file) => (file, true),
            None => (rest, false),
        };
        match file {
            "" => Err(Error::misuse("target \"replay:\": expected replay:FILE, a cassette; tricorn record makes one")),
            file => Ok(Some(Self::Replay { file: file.to_owned(), strict })),
        }
    }

    /// A server of a host's configuration file, `{"mcpServers": {name: target}}` (or `servers`): the one called
    /// `server`, or the only one.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) when the file cannot be read, or does not say which server is meant.
    pub fn from_file(path: impl AsRef<std::path::Path>, server: Option<&str>) -> Result<Self> {
        Self::from_file_with(path, server, &BTreeMap::new())
    }

    /// As [`from_file`](Self::from_file); `variables` say what placeholders stand for that hosts fill, by what is between
    /// their braces: `input:key`, `workspaceFolder`, `TOKEN`. They come before the environment.
    ///
    /// # Errors
    /// As there.
    pub fn from_file_with(
        path: impl AsRef<std::path::Path>,
        server: Option<&str>,
        variables: &BTreeMap<String, String>,
    ) -> Result<Self> {
        super::config::read(path.as_ref(), server, None, variables)
    }

    /// A program and its arguments.
    pub fn command(command: impl Into<String>, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::Command {
            command: command.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            cwd: None,
            stderr: Stderr::default(),
        }
    }

    /// Reads a target from JSON: a string as in [`from_text`](Self::from_text), `{"url", "headers"?}` with
    /// `"type": "sse"` for HTTP+SSE, `{"command", "args"?, "env"?, "cwd"?, "stderr"?}`, `{"file", "server"?}` as in [`from_file`](Self::from_file),
    /// what such a file holds, `{"mcpServers", "server"?}`, or `{"text", "server"?}`, again as in `from_text`. The last
    /// three may say `"stderr"`, too.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming the member that is unknown or wrong.
    pub fn parse(text: &str) -> Result<Self> {
        Self::parse_with(text, &BTreeMap::new())
    }

    /// As [`parse`](Self::parse), with what placeholders stand for, as in [`from_file_with`](Self::from_file_with).
    ///
    /// # Errors
    /// As there.
    #[expect(deprecated, reason = "configuration files name it")]
    pub(crate) fn parse_with(text: &str, variables: &BTreeMap<String, String>) -> Result<Self> {
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Wire {
            url: Option<String>,
            headers: BTreeMap<String, String>,
            command: Option<String>,
            args: Option<Vec<String>>,
            env: Value,
            cwd: Option<String>,
            stderr: Option<String>,
            r#type: Value,
        }
        match serde_json::from_str(text) {
            Ok(Value::String(text)) => return Self::from_given(&text, variables),
            Ok(Value::Object(_)) | Err(_) => {}
            Ok(other) => {
                let (got, expected) = (other.to_string(), "a URL, a path, a command line or an object");
                let got = shortened(&got, 60);
                return Err(Error::misuse(format!("cannot connect to {got}: expected {expected}")));
            }
        }
        if let Some(target) = super::config::named(text, variables)? {
            return Ok(target);
        }
        let wire: Wire = crate::options::read("target", text)?;
        // Hosts' configuration files name the transport; otherwise what the other members say is enough.
        let sse = wire.r#type == "sse";
        check_type(&wire.r#type, wire.url.is_some(), wire.command.is_some())?;
        let stderr = wire.stderr.as_deref().map_or(Ok(Stderr::default()), Stderr::parse)?;
        let mut env = BTreeMap::new();
        match wire.env {
            Value::Null => {}
            Value::Object(members) => {
                for (name, value) in members {
                    let value = match value {
                        Value::Null => None,
                        Value::String(text) => Some(text),
                        other => {
                            return Err(Error::misuse(format!(
                                "target \"env\": {name:?}: expected a string or null, got {}",
                                crate::options::type_of(&other)
                            )));
                        }
                    };
                    env.insert(name, value);
                }
            }
            other => {
                return Err(Error::misuse(format!(
                    "target \"env\": expected an object, got {}",
                    crate::options::type_of(&other)
                )));
            }
        }
        match (wire.url, wire.command) {
            (Some(url), None) if is_url(&url) => {
                let headers = wire.headers;
                Ok(if sse { Self::Sse { url, headers } } else { Self::Url { url, headers } })
            }
            (Some(url), None) => Err(Error::misuse(format!(
                "target \"url\": expected http://, https:// or unix:, got {}",
                shown_url(&url)
            ))),
            (None, Some(line)) => {
                // Without an argument list the command may be a whole command line.
                let (command, args) = match wire.args {
                    Some(_) if line.is_empty() => {
                        return Err(Error::misuse("target \"command\": expected a program, got \"\""));
                    }
                    Some(args) => (line, args),
                    None => {
                        let mut words = split(&line)?.into_iter();
                        let command = words
                            .next()
                            .ok_or_else(|| Error::misuse("target \"command\": expected a program, got \"\""))?;
                        (command, words.collect())
                    }
                };
                Ok(Self::Command { command, args, env, cwd: wire.cwd, stderr })
            }
            _ => Err(Error::misuse("target: expected \"url\" or \"command\", one of them")),
        }
    }
}

/// Hosts write the names of transports in more ways than one.
fn check_type(name: &Value, has_url: bool, has_command: bool) -> Result<()> {
    let member = match name.as_str() {
        None if name.is_null() => return Ok(()),
        Some("stdio") => "command",
        Some("sse" | "http" | "streamable-http" | "streamableHttp" | "streamable_http") => "url",
        _ => {
            let known = "expected \"stdio\", \"http\", \"streamable-http\" or \"sse\"";
            return Err(Error::misuse(format!("target \"type\": {known}, got {name}")));
        }
    };
    match (has_url, has_command) {
        (true, false) if member == "command" => {
            Err(Error::misuse("target \"type\": \"stdio\" has a \"command\", and not a \"url\""))
        }
        (false, true) if member == "url" => {
            Err(Error::misuse(format!("target \"type\": {name} has a \"url\", and not a \"command\"")))
        }
        _ => Ok(()),
    }
}

/// True for a URL without its scheme, a host and a port: no program is called like that.
fn is_address(text: &str) -> bool {
    let authority = text.split(['/', '?', '#']).next().unwrap_or_default();
    let Some((host, port)) = authority.rsplit_once(':') else { return false };
    let is_host = host.len() > 1 && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._[]:".contains(&byte));
    is_host && port.parse::<u16>().is_ok() && !text.contains(char::is_whitespace)
}

/// The words of a command line, by the rules of the platform: those of a POSIX shell, or of programs on Windows.
///
/// # Errors
/// [`Misuse`](crate::ErrorKind::Misuse) for a quote that is not closed.
#[cfg(feature = "stdio")]
pub(crate) fn split(line: &str) -> Result<Vec<String>> {
    #[cfg(windows)]
    let words = super::programs::split(line);
    #[cfg(not(windows))]
    let words = shlex::split(line);
    words.ok_or_else(|| {
        // The rest of the line may be secret.
        let program = shortened(line.split_whitespace().next().unwrap_or_default(), 60);
        Error::misuse(format!("target: a quote is opened and not closed in the arguments of {program:?}"))
    })
}

#[cfg(not(feature = "stdio"))]
fn split(line: &str) -> Result<Vec<String>> {
    Err(Error::misuse(format!("target {line:?}: child processes need the feature \"stdio\"")))
}

impl std::str::FromStr for Target {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::from_text(text)
    }
}

#[cfg(test)]
mod tests;
