//! The project's own description: `pyproject.toml`, `package.json` or `Cargo.toml`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::files::cannot;
use crate::failure::{Failure, Outcome};

/// The folder of a project and what its file says. Without such a file a server is one file alone.
#[derive(Debug, Default)]
pub(super) struct Project {
    /// The folder; none where there is no file that makes it a project.
    pub(super) root: Option<PathBuf>,
    pub(super) name: Option<String>,
    pub(super) version: Option<String>,
    pub(super) description: Option<String>,
    pub(super) author: Option<String>,
    pub(super) license: Option<String>,
    pub(super) homepage: Option<String>,
    pub(super) repository: Option<String>,
    /// Names of the distributions that a Python project depends on.
    pub(super) requires: Vec<String>,
    /// The versions of Node.js that it is for.
    pub(super) node: Option<String>,
}

impl Project {
    /// The project of a file: the nearest folder above it with one of these files.
    pub(super) fn of(file: &Path, markers: &[&str]) -> Outcome<Self> {
        // A virtual environment or a home directory is nobody's project.
        let folders = file.ancestors().skip(1).take(16);
        let home = std::env::home_dir();
        let found = folders
            .take_while(|folder| home.as_deref() != Some(*folder))
            .find_map(|folder| markers.iter().find(|name| folder.join(name).is_file()).map(|name| (folder, *name)));
        let Some((root, marker)) = found else { return Ok(Self::default()) };
        let mut project = Self::read(&root.join(marker))?;
        project.root = Some(root.to_owned());
        Ok(project)
    }

    fn read(path: &Path) -> Outcome<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| cannot("read", path, &error))?;
        let wrong = |error: &dyn std::fmt::Display| {
            let line = error.to_string();
            Failure::misuse(format!("{}: {}", path.display(), line.lines().next().unwrap_or_default()))
        };
        match path.file_name().and_then(|name| name.to_str()) {
            Some("package.json") => Ok(of_npm(&serde_json::from_str(&text).map_err(|error| wrong(&error))?)),
            Some("pyproject.toml") => {
                Ok(of_python(&text.parse().map_err(|error: toml_edit::TomlError| wrong(&error))?))
            }
            Some("Cargo.toml") => Ok(of_cargo(&text.parse().map_err(|error: toml_edit::TomlError| wrong(&error))?)),
            _ => Ok(Self::default()),
        }
    }

    /// Author as git knows them, for projects that name none.
    pub(super) fn author_of_git(&self) -> Option<String> {
        let folder = self.root.as_deref().unwrap_or_else(|| Path::new("."));
        let said = Command::new("git").args(["config", "user.name"]).current_dir(folder).output().ok()?;
        let name = String::from_utf8(said.stdout).ok()?.trim().to_owned();
        (said.status.success() && !name.is_empty()).then_some(name)
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// `Ada <ada@example.com> (https://example.com)` is Ada.
fn person(text: &str) -> String {
    text.split(['<', '(']).next().unwrap_or_default().trim().to_owned()
}

fn of_npm(file: &Value) -> Project {
    let author = text(&file["author"]["name"]).or_else(|| text(&file["author"]).map(|author| person(&author)));
    let repository = text(&file["repository"]["url"]).or_else(|| text(&file["repository"]));
    Project {
        name: text(&file["name"]),
        version: text(&file["version"]),
        description: text(&file["description"]),
        author: author.filter(|author| !author.is_empty()),
        license: text(&file["license"]),
        homepage: text(&file["homepage"]).filter(|url| url.starts_with("http")),
        repository: repository.and_then(|url| address(&url)),
        node: text(&file["engines"]["node"]),
        ..Project::default()
    }
}

fn of_python(file: &toml_edit::DocumentMut) -> Project {
    let Some(project) = file.get("project") else { return Project::default() };
    let text = |item: Option<&toml_edit::Item>| item.and_then(|item| item.as_str()).map(str::to_owned);
    let url = |names: &[&str]| {
        let urls = project.get("urls").and_then(|urls| urls.as_table_like())?;
        let found = urls.iter().find(|(name, _)| names.contains(&name.to_ascii_lowercase().as_str()))?;
        found.1.as_str().map(str::to_owned).filter(|url| url.starts_with("http"))
    };
    let first = project.get("authors").and_then(|authors| authors.as_array()).and_then(|authors| authors.get(0));
    let author = first.and_then(|author| author.as_inline_table()?.get("name")?.as_str().map(str::to_owned));
    let requires = project.get("dependencies").and_then(|all| all.as_array());
    Project {
        name: text(project.get("name")),
        version: text(project.get("version")),
        description: text(project.get("description")),
        author,
        license: text(project.get("license")),
        homepage: url(&["homepage"]),
        repository: url(&["repository", "source", "source code", "github"]).and_then(|url| address(&url)),
        requires: requires.into_iter().flatten().filter_map(|one| one.as_str()).map(str::to_owned).collect(),
        ..Project::default()
    }
}

fn of_cargo(file: &toml_edit::DocumentMut) -> Project {
    let Some(package) = file.get("package") else { return Project::default() };
    let text = |name: &str| package.get(name).and_then(|item| item.as_str()).map(str::to_owned);
    let author = package.get("authors").and_then(|authors| authors.as_array()?.get(0)?.as_str().map(person));
    Project {
        name: text("name"),
        version: text("version"),
        description: text("description"),
        author,
        license: text("license"),
        homepage: text("homepage").filter(|url| url.starts_with("http")),
        repository: text("repository").and_then(|url| address(&url)),
        ..Project::default()
    }
}

/// The page of a repository: `git+https://github.com/a/b.git`, `github:a/b`, `git@github.com:a/b.git`.
fn address(text: &str) -> Option<String> {
    let text = text.strip_prefix("git+").unwrap_or(text);
    let text = text.strip_suffix(".git").unwrap_or(text);
    let at = |host: &str, path: &str| Some(format!("https://{host}/{}", path.trim_matches('/')));
    if let Some(path) = text.strip_prefix("github:") {
        return at("github.com", path);
    }
    if let Some((host, path)) = text.strip_prefix("git@").and_then(|rest| rest.split_once(':')) {
        return at(host, path);
    }
    if let Some(rest) = text.strip_prefix("ssh://git@").or_else(|| text.strip_prefix("git://")) {
        return rest.split_once('/').and_then(|(host, path)| at(host, path));
    }
    // The short form of npm.
    if !text.contains(':') && text.split('/').count() == 2 {
        return at("github.com", text);
    }
    text.starts_with("https://").then(|| text.to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn projects_say_what_they_are() {
        let npm = serde_json::json!({"name": "a", "version": "1.2.3", "author": "Ada <ada@example.com>",
            "repository": {"type": "git", "url": "git+https://github.com/ada/a.git"}, "license": "MIT"});
        let python = "[project]\nname = 'a'\nversion = '1.2.3'\nauthors = [{ name = 'Ada' }]\nlicense = 'MIT'\n\
            dependencies = ['tricorn>=0.1']\n[project.urls]\nSource = 'https://github.com/ada/a'\n";
        let cargo = "[package]\nname = 'a'\nversion = '1.2.3'\nauthors = ['Ada <ada@example.com>']\nlicense = 'MIT'\n\
            repository = 'https://github.com/ada/a'\n";
        for project in [of_npm(&npm), of_python(&python.parse().unwrap()), of_cargo(&cargo.parse().unwrap())] {
            assert_eq!(project.name.as_deref(), Some("a"));
            assert_eq!(project.version.as_deref(), Some("1.2.3"));
            assert_eq!(project.author.as_deref(), Some("Ada"));
            assert_eq!(project.license.as_deref(), Some("MIT"));
            assert_eq!(project.repository.as_deref(), Some("https://github.com/ada/a"));
        }
        for (text, expected) in [
            ("github:a/b", Some("https://github.com/a/b")),
            ("a/b", Some("https://github.com/a/b")),
            ("git@gitlab.com:a/b.git", Some("https://gitlab.com/a/b")),
            ("ssh://git@github.com/a/b.git", Some("https://github.com/a/b")),
            ("file:///a", None),
        ] {
            assert_eq!(address(text).as_deref(), expected, "{text}");
        }
    }
}
