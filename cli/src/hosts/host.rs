//! The hosts: where each has its file, and the form of an entry in it.
//!
//! Places and forms were read in the hosts' own documentation or sources where they have them, else in reports and guides
//! of others, in November 2026; each says which. `memory` marks what nothing public was found for.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::{Map, Value, json};

use super::edit::Format;
use super::entry::{Entry, Kind, texts};
use super::places::{Places, System};

/// A program that starts servers or connects to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Host {
    /// Claude Desktop
    #[value(alias = "claude")]
    ClaudeDesktop,
    /// Claude Code
    ClaudeCode,
    /// Cursor
    Cursor,
    /// Visual Studio Code
    #[value(name = "vscode", aliases = ["vs-code", "code"])]
    VsCode,
    /// Visual Studio Code, Insiders
    #[value(name = "vscode-insiders", aliases = ["vs-code-insiders", "code-insiders"])]
    VsCodeInsiders,
    /// Windsurf
    Windsurf,
    /// Zed
    Zed,
    /// Gemini CLI
    #[value(alias = "gemini-cli")]
    Gemini,
    /// Codex
    Codex,
    /// Goose
    Goose,
    /// LM Studio
    #[value(alias = "lmstudio")]
    LmStudio,
}

/// The reach of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Scope {
    /// The user's file of the host, for all projects
    #[default]
    User,
    /// That of the project in the current folder, such as .mcp.json, .cursor/mcp.json, .vscode/mcp.json
    Project,
}

/// A file in which a host has servers.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) file: PathBuf,
    pub(super) format: Format,
    /// The members, one in the other, that lead to the table of servers.
    pub(super) root: &'static [&'static str],
    pub(super) scope: &'static str,
}

impl Host {
    /// The name for people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => "Claude Desktop",
            Self::ClaudeCode => "Claude Code",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::VsCodeInsiders => "VS Code Insiders",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
            Self::Gemini => "Gemini CLI",
            Self::Codex => "Codex",
            Self::Goose => "Goose",
            Self::LmStudio => "LM Studio",
        }
    }

    /// The name in commands.
    #[must_use]
    pub fn id(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    pub(super) fn format(self) -> Format {
        match self {
            Self::Codex => Format::Toml,
            Self::Goose => Format::Yaml,
            _ => Format::Json,
        }
    }

    /// The member that has the servers in it.
    pub(super) fn root(self) -> &'static str {
        self.roots()[0]
    }

    fn roots(self) -> &'static [&'static str] {
        match self {
            // Its reference: "servers", an object that maps names to their configurations.
            Self::VsCode | Self::VsCodeInsiders => &["servers"],
            // zed-industries/zed, crates/settings_content/src/project.rs.
            Self::Zed => &["context_servers"],
            // openai/codex, codex-rs/config/src/mcp_types.rs.
            Self::Codex => &["mcp_servers"],
            // Its documentation, "Configuration Overview".
            Self::Goose => &["extensions"],
            _ => &["mcpServers"],
        }
    }

    /// The folder that is there when the host is.
    pub(super) fn folder(self, places: &Places) -> PathBuf {
        match self {
            Self::ClaudeDesktop => claude_desktop(places).remove(0),
            Self::ClaudeCode => places.named("CLAUDE_CONFIG_DIR").unwrap_or_else(|| places.home.clone()),
            // cursor.com/docs/mcp, as guides of others quote it.
            Self::Cursor => places.home.join(".cursor"),
            // Guides of others for the three systems. `code --add-mcp` writes the same file without its comments
            // (microsoft/vscode 253554), removes nothing and has no dry run; an edited file is read at once.
            Self::VsCode => places.config().join("Code").join("User"),
            Self::VsCodeInsiders => places.config().join("Code - Insiders").join("User"),
            // github/github-mcp-server, docs/installation-guides/install-windsurf.md; Windows: guides of others.
            Self::Windsurf => places.home.join(".codeium").join("windsurf"),
            // akitaonrails/ai-memory PR 322, from Zed's own documentation: ~/.config on macOS, too.
            Self::Zed => match places.system {
                System::Windows => places.config().join("Zed"),
                System::Mac => places.home.join(".config").join("zed"),
                // Inside of a Flatpak the user's own folder is named by this variable (zed's paths.rs; memory).
                System::Linux => places.named("FLATPAK_XDG_CONFIG_HOME").unwrap_or_else(|| places.xdg()).join("zed"),
            },
            // geminicli.com/docs/cli/configuration.
            Self::Gemini => places.home.join(".gemini"),
            // CODEX_HOME: reports in its tracker (Dicklesworthstone/mcp_agent_mail_rust 328).
            Self::Codex => places.named("CODEX_HOME").unwrap_or_else(|| places.home.join(".codex")),
            // Its documentation: ~/.config/goose on macOS and Linux, %APPDATA%\Block\goose\config on Windows.
            Self::Goose => match places.system {
                System::Windows => places.config().join("Block").join("goose").join("config"),
                System::Mac => places.home.join(".config").join("goose"),
                System::Linux => places.xdg().join("goose"),
            },
            Self::LmStudio => lm_studio(places),
        }
    }

    /// The user's file.
    pub(super) fn file(self, places: &Places) -> PathBuf {
        let name = match self {
            Self::ClaudeDesktop => "claude_desktop_config.json",
            Self::ClaudeCode => ".claude.json",
            Self::Cursor | Self::VsCode | Self::VsCodeInsiders | Self::LmStudio => "mcp.json",
            Self::Windsurf => "mcp_config.json",
            Self::Zed | Self::Gemini => "settings.json",
            Self::Codex => "config.toml",
            Self::Goose => "config.yaml",
        };
        self.folder(places).join(name)
    }

    /// The file of a project, from its folder.
    pub(super) fn project_file(self) -> Option<&'static str> {
        match self {
            // code.claude.com/docs/en/mcp.
            Self::ClaudeCode => Some(".mcp.json"),
            Self::Cursor => Some(".cursor/mcp.json"),
            // code.visualstudio.com/docs/copilot/reference/mcp-configuration.
            Self::VsCode | Self::VsCodeInsiders => Some(".vscode/mcp.json"),
            // Servers are part of the settings of projects in its sources.
            Self::Zed => Some(".zed/settings.json"),
            Self::Gemini => Some(".gemini/settings.json"),
            // Read for projects that the user trusts (developers.openai.com/codex/mcp, as guides of others quote it).
            Self::Codex => Some(".codex/config.toml"),
            Self::ClaudeDesktop | Self::Windsurf | Self::Goose | Self::LmStudio => None,
        }
    }

    /// All files of the user in which it has servers, and those of the projects around the current folder.
    pub(super) fn sources(self, places: &Places) -> Vec<Source> {
        let source = |file: PathBuf, root, scope| Source { file, format: self.format(), root, scope };
        let mut all = vec![source(self.file(places), self.roots(), "user")];
        match self {
            Self::ClaudeDesktop => {
                let others = claude_desktop(places).into_iter().skip(1);
                all.extend(
                    others.map(|folder| source(folder.join("claude_desktop_config.json"), self.roots(), "user")),
                );
            }
            Self::VsCode | Self::VsCodeInsiders => {
                let folder = self.folder(places);
                // Before the file of its own there was a member of the settings (docker/docs 3712a39).
                all.push(source(folder.join("settings.json"), &["mcp", "servers"], "user"));
                for profile in folders(&folder.join("profiles")) {
                    all.push(source(profile.join("mcp.json"), self.roots(), "profile"));
                }
            }
            _ => {}
        }
        if let Some(file) = self.project_file() {
            for folder in places.folder.ancestors() {
                let file = folder.join(file);
                if all.iter().all(|source| source.file != file) {
                    all.push(source(file, self.roots(), "project"));
                }
            }
        }
        all
    }

    /// The name that the entry has in the file.
    pub(super) fn key(self, name: &str) -> String {
        // aaif-goose/goose, crates/goose/src/config/extensions.rs, name_to_key.
        if self != Self::Goose {
            return name.to_owned();
        }
        let letters = name.chars().filter(|letter| !letter.is_whitespace());
        let key: String = letters
            .map(|letter| if letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-') { letter } else { '_' })
            .collect();
        key.to_lowercase()
    }

    /// Says no to a name that the host would not take.
    pub(super) fn check_name(self, name: &str) -> Result<(), String> {
        // Claude Code says so itself; Codex when it starts the server (memory).
        let is_narrow = matches!(self, Self::ClaudeCode | Self::Codex);
        let is_plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-'));
        if is_narrow && !is_plain {
            return Err(format!(
                "{} takes letters, digits, - and _ in names alone, got \"{name}\": give another with --name",
                self.title()
            ));
        }
        Ok(())
    }

    /// True where the host reads JSON without comments, and loses the file when there are some.
    pub(super) fn is_strict(self) -> bool {
        // anthropics/claude-code 9906 and 69354, tradesdontlie/tradingview-mcp 406.
        matches!(self, Self::ClaudeDesktop | Self::ClaudeCode)
    }

    /// True for a host that is started by a desktop rather than by a shell, and has the `PATH` of that.
    pub(super) fn has_windows(self) -> bool {
        !matches!(self, Self::ClaudeCode | Self::Codex | Self::Gemini)
    }

    /// Tells what is left to be done after the file was changed.
    pub(super) fn hint(self) -> Option<&'static str> {
        match self {
            Self::ClaudeDesktop => Some("Claude Desktop reads its file when it starts: quit it and start it again"),
            Self::Codex | Self::Gemini | Self::Goose => Some("sessions that are open do not see it: start a new one"),
            _ => None,
        }
    }

    /// The entry in the form of this host, and what has to be said of it.
    pub(super) fn value(self, entry: &Entry, places: &Places) -> Result<(Value, Option<String>), String> {
        let mut note = None;
        let mut all = Map::new();
        match &entry.kind {
            Kind::Stdio { command, args, env, cwd } => {
                match self {
                    // `type` is required in its reference.
                    Self::VsCode | Self::VsCodeInsiders | Self::ClaudeCode => {
                        all.insert("type".to_owned(), "stdio".into());
                    }
                    Self::Goose => goose(&mut all, "stdio", &entry.name),
                    _ => {}
                }
                let is_goose = self == Self::Goose;
                all.insert(if is_goose { "cmd" } else { "command" }.to_owned(), command.as_str().into());
                // Zed and Goose refuse an entry without (DeusData/codebase-memory-mcp 24, 1675).
                all.insert("args".to_owned(), json!(args));
                if !env.is_empty() {
                    all.insert(if is_goose { "envs" } else { "env" }.to_owned(), texts(env));
                }
                match cwd {
                    Some(cwd)
                        if matches!(
                            self,
                            Self::Cursor | Self::VsCode | Self::VsCodeInsiders | Self::Gemini | Self::Codex
                        ) =>
                    {
                        all.insert("cwd".to_owned(), cwd.as_str().into());
                    }
                    Some(cwd) => {
                        note = Some(format!("{} starts programs where it likes: {cwd} is left out", self.title()))
                    }
                    None => {}
                }
            }
            // Other than programs is refused: tadata-org/fastapi_mcp 6, supermemoryai/install-mcp PR 17.
            Kind::Http { url, headers } if self == Self::ClaudeDesktop => {
                let (program, words) = places
                    .tricorn
                    .split_first()
                    .ok_or("Claude Desktop starts programs only, and the path of this one is not known")?;
                let mut args = words.to_vec();
                args.extend(["run".to_owned(), url.clone()]);
                args.extend(
                    headers.iter().flat_map(|(name, value)| ["--header".to_owned(), format!("{name}: {value}")]),
                );
                all.insert("command".to_owned(), program.as_str().into());
                all.insert("args".to_owned(), json!(args));
                note = Some("Claude Desktop starts programs only: this command connects to the URL for it".to_owned());
            }
            Kind::Http { url, headers } => {
                let name = match self {
                    Self::Windsurf => "serverUrl",
                    // `url` is the older transport with it.
                    Self::Gemini => "httpUrl",
                    Self::Goose => "uri",
                    _ => "url",
                };
                match self {
                    Self::VsCode | Self::VsCodeInsiders | Self::ClaudeCode => {
                        all.insert("type".to_owned(), "http".into());
                    }
                    Self::Goose => goose(&mut all, "streamable_http", &entry.name),
                    _ => {}
                }
                all.insert(name.to_owned(), url.as_str().into());
                if !headers.is_empty() {
                    // `headers` is ignored by Codex.
                    let name = if self == Self::Codex { "http_headers" } else { "headers" };
                    all.insert(name.to_owned(), texts(headers));
                }
            }
        }
        if self == Self::Goose {
            all.insert("timeout".to_owned(), 300.into());
        }
        Ok((Value::Object(all), note))
    }
}

/// Members that Goose has no defaults for (aaif-goose/goose, crates/goose/src/agents/extension.rs).
fn goose(all: &mut Map<String, Value>, kind: &str, name: &str) {
    all.insert("enabled".to_owned(), true.into());
    all.insert("type".to_owned(), kind.into());
    all.insert("name".to_owned(), name.into());
    all.insert("description".to_owned(), "".into());
}

/// The folders of Claude Desktop, the one that it reads first. From the Store it has one of its own, and ignores the other
/// (anthropics/claude-code 38830, homeassistant-ai/ha-mcp 1046).
fn claude_desktop(places: &Places) -> Vec<PathBuf> {
    let usual = places.config().join("Claude");
    if places.system != System::Windows {
        return vec![usual];
    }
    let local = places.named("LOCALAPPDATA").unwrap_or_else(|| places.home.join("AppData").join("Local"));
    let packages = folders(&local.join("Packages")).into_iter();
    let packages = packages
        .filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("Claude_")));
    let inside =
        packages.map(|path| path.join("LocalCache").join("Roaming").join("Claude")).filter(|path| path.is_dir());
    inside.chain([usual]).collect()
}

/// The home of LM Studio: the one that its pointer names, else an older one, else the usual one (lmstudio-ai/lmstudio.js
/// reads the pointer; others fall back in this way).
fn lm_studio(places: &Places) -> PathBuf {
    let pointer = std::fs::read_to_string(places.home.join(".lmstudio-home-pointer")).unwrap_or_default();
    let pointed = pointer
        .lines()
        .next()
        .map(|line| PathBuf::from(line.trim()))
        .filter(|path| path.is_absolute() && path.is_dir());
    let usual = places.home.join(".lmstudio");
    let older = places.home.join(".cache").join("lm-studio");
    pointed.unwrap_or_else(|| if !usual.is_dir() && older.is_dir() { older } else { usual })
}

/// The folders in a folder, sorted.
fn folders(path: &Path) -> Vec<PathBuf> {
    let all = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut all: Vec<_> = all.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    all.sort();
    all
}
