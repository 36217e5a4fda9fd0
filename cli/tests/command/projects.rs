//! New projects, which run and whose tests pass, and bundles of them.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::place::{command, node_modules, node_path, python};

/// A folder in which the command runs, with no user's settings.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, inside: &str) -> PathBuf {
        self.0.path().join(inside)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap()
    }

    fn run(&self, folder: &str, args: &[&str]) -> (i32, String, String) {
        let words = command();
        let mut program = Command::new(&words[0]);
        program.args(&words[1..]).args(args).current_dir(self.path(folder)).stdin(Stdio::null());
        program.env("HOME", self.0.path()).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        program.env_remove("VIRTUAL_ENV").env("PATH", node_path());
        if let Some(python) = python() {
            program.env("VIRTUAL_ENV", Path::new(&python).parent().unwrap().parent().unwrap());
        }
        let output = program.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().trim_end().to_owned();
        (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
    }

    fn done(&self, folder: &str, args: &[&str]) -> String {
        let (status, stdout, stderr) = self.run(folder, args);
        assert_eq!(status, 0, "{args:?}: {stderr}");
        stdout
    }

    /// The files of a bundle.
    fn unpacked(&self, bundle: &str) -> BTreeMap<String, Vec<u8>> {
        let mut archive = zip::ZipArchive::new(std::fs::File::open(self.path(bundle)).unwrap()).unwrap();
        let names: Vec<_> = archive.file_names().map(str::to_owned).collect();
        let read = |name: String| {
            let mut bytes = Vec::new();
            archive.by_name(&name).unwrap().read_to_end(&mut bytes).unwrap();
            (name, bytes)
        };
        names.into_iter().map(read).collect()
    }
}

/// The judgement of the format's own tool, `@anthropic-ai/mcpb`, where it is installed: `TRICORN_MCPB` names it.
fn judge(place: &Place, manifest: &[u8]) {
    let Some(tool) = std::env::var_os("TRICORN_MCPB") else {
        return eprintln!("the manifest is not judged by mcpb (TRICORN_MCPB)");
    };
    std::fs::write(place.path("manifest.json"), manifest).unwrap();
    let judged = Command::new(tool).arg("validate").arg(place.path("manifest.json")).output().unwrap();
    assert!(judged.status.success(), "{}", String::from_utf8_lossy(&judged.stdout));
}

fn output(program: &str, args: &[&str], folder: &Path) {
    let output = Command::new(program).args(args).current_dir(folder).env("PATH", node_path()).output().unwrap();
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{program} {args:?}: {}", said.join("\n"));
}

#[test]
fn a_python_project_runs_and_its_tests_pass() {
    let Some(python) = python() else { return eprintln!("left out: there is no Python (TRICORN_PYTHON)") };
    let place = Place::new();
    place.done("", &["new", "my-server", "--lang", "python"]);
    let listed: Value = serde_json::from_str(&place.done("my-server", &["list", "server.py", "--json"])).unwrap();
    assert_eq!((&listed["server"]["name"], &listed["tools"][0]["name"]), (&json!("my-server"), &json!("add")));
    assert_eq!(place.done("my-server", &["call", "server.py", "add", "a=1", "b=2"]), "3");
    output(&python, &["-m", "pytest", "-q", "-p", "no:cacheprovider"], &place.path("my-server"));
}

#[test]
fn a_python_bundle_has_all_that_it_needs_and_no_secrets() {
    if python().is_none() {
        return eprintln!("left out: there is no Python (TRICORN_PYTHON)");
    }
    let place = Place::new();
    place.done("", &["new", "weather", "--lang", "python"]);
    for (path, text) in [
        ("weather/.env", "KEY=canary-1"),
        ("weather/deploy/id_rsa", "canary-2"),
        ("weather/deploy/own.pem", "-----BEGIN PRIVATE KEY-----\ncanary-3"),
        ("weather/notes/private.md", "canary-4"),
        ("weather/.mcpbignore", "notes/\n!.env\n"),
        ("weather/data/cities.json", "[]"),
    ] {
        place.write(path, text);
    }
    let before = place.read("weather/server.py");
    let server = before.replace(
        "app = Server(\"weather\", version=\"0.1.0\")",
        "import os\napp = Server(\"weather\", version=\"0.1.0\", title=\"Weather\", description=\"Forecasts\")\nassert os.environ[\"API_KEY\"]",
    );
    let prompt = "@app.prompt\ndef ask(city: str) -> str:\n    \"\"\"Ask\"\"\"\n    return f\"The weather in {city}?\"\n\n\nif __name__";
    place.write("weather/server.py", &server.replace("if __name__", prompt));
    let args = ["pack", "server.py", "-o", "../w.mcpb", "--author", "Ada", "--env", "API_KEY=canary-5", "--json"];
    let (status, _, stderr) =
        place.run("weather", &["pack", "server.py", "-o", "../w.mcpb", "--env", "API_KEY=x", "--no-check"]);
    assert!(status == 2 && stderr.contains("--author"), "{stderr}");
    let said: Value = serde_json::from_str(&place.done("weather", &args)).unwrap();
    assert_eq!((&said["checked"], &said["server"]), (&json!(true), &Value::Null));
    assert_eq!(said["leftOut"], json!([".env", "deploy/id_rsa", "deploy/own.pem"]));

    let files = place.unpacked("w.mcpb");
    for (name, bytes) in &files {
        assert!(!String::from_utf8_lossy(bytes).contains("canary-"), "{name} has a secret in it");
    }
    for name in
        ["run.py", "server/server.py", "server/data/cities.json", "lib/tricorn/__init__.py", "lib/msgspec/__init__.py"]
    {
        assert!(files.contains_key(name), "{name} is missing");
    }
    assert!(!files.keys().any(|name| name.contains("pytest")), "more than the server needs");
    let manifest: Value = serde_json::from_slice(&files["manifest.json"]).unwrap();
    assert_eq!(manifest["name"], "weather");
    assert_eq!((&manifest["display_name"], &manifest["description"]), (&json!("Weather"), &json!("Forecasts")));
    assert_eq!(manifest["tools"], json!([{"name": "add", "description": "Add two numbers."}]));
    let prompts = json!([{"name": "ask", "description": "Ask", "arguments": ["city"], "text": "The weather in ${arguments.city}?"}]);
    assert_eq!(manifest["prompts"], prompts);
    assert_eq!(manifest["server"]["mcp_config"]["env"], json!({"API_KEY": "${user_config.api_key}"}));
    assert_eq!(manifest["user_config"]["api_key"]["sensitive"], true);
    assert!(manifest["compatibility"]["platforms"].is_array(), "the engine is compiled: {manifest}");
    judge(&place, &files["manifest.json"]);

    // The same once more is the same bytes, and the registry gets their digest.
    let again = ["--no-check", "--server-json", "../server.json", "--name", "io.github.ada/weather"];
    let at = ["--download", "https://example.com/w.mcpb"];
    let again: Value = serde_json::from_str(&place.done("weather", &[&args[..], &again, &at].concat())).unwrap();
    assert_eq!(again["sha256"], said["sha256"]);
    let entry: Value = serde_json::from_str(&place.read("server.json")).unwrap();
    assert_eq!(entry["packages"][0]["fileSha256"], said["sha256"]);
    assert_eq!((&entry["title"], &entry["description"]), (&json!("Weather"), &json!("Forecasts")));
    let asked = json!([{"name": "API_KEY", "isRequired": true, "isSecret": true}]);
    assert_eq!(entry["packages"][0]["environmentVariables"], asked);
}

#[test]
fn a_bundle_that_would_not_run_elsewhere_is_not_made() {
    if python().is_none() {
        return eprintln!("left out: there is no Python (TRICORN_PYTHON)");
    }
    let place = Place::new();
    place.done("", &["new", "weather", "--lang", "python"]);
    // A file that the server reads, and that does not come along.
    let text = place.read("weather/server.py");
    place.write(
        "weather/server.py",
        &format!("from pathlib import Path\n\nPath(__file__).with_name('.env').read_text()\n{text}"),
    );
    place.write("weather/.env", "KEY=x");
    let (status, stdout, stderr) = place.run("weather", &["pack", "server.py", "--author", "Ada"]);
    assert!(status == 1 && stdout.is_empty() && stderr.contains("the bundle does not run elsewhere"), "{stderr}");
    assert!(stderr.contains("FileNotFoundError"), "it says why: {stderr}");
    assert!(!place.path("weather/weather.mcpb").exists());
    let left: Vec<_> =
        std::fs::read_dir(place.path("weather")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".mcpb")), "{left:?}");
}

#[test]
fn a_typescript_project_runs_and_its_bundle_too() {
    let Some((modules, strips)) = node_modules() else {
        return eprintln!("left out: there is no package for Node.js (TRICORN_NODE_MODULES)");
    };
    let place = Place::new();
    place.done("", &["new", "my-server", "--lang", "typescript"]);
    let link = place.path("my-server/node_modules");
    #[cfg(unix)]
    std::os::unix::fs::symlink(&modules, link).unwrap();
    #[cfg(windows)]
    std::os::windows::fs::symlink_dir(&modules, link).unwrap();
    let mut server = "src/server.ts";
    if !strips {
        // The same without types, of which it has none, for a Node.js that does not know them.
        for name in ["app", "server", "app.test"] {
            let text = place.read(&format!("my-server/src/{name}.ts")).replace("./app.ts", "./app.mjs");
            place.write(&format!("my-server/src/{name}.mjs"), &text);
        }
        server = "src/server.mjs";
    }
    assert_eq!(place.done("my-server", &["call", server, "add", "a=1", "b=2"]), "3");
    let test = server.replace("server", "app.test");
    output("node", &["--test", &test], &place.path("my-server"));
    let said = place.done("my-server", &["pack", server, "--author", "Ada", "--json"]);
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&said["bundle"], &said["checked"]), (&json!("my-server.mcpb"), &json!(true)));
    let files = place.unpacked("my-server/my-server.mcpb");
    let entry = format!("server/{server}");
    for name in [&*entry, "server/package.json", "node_modules/tricorn/package.json", "node_modules/zod/package.json"] {
        assert!(files.contains_key(name), "{name} is missing");
    }
    assert!(!files.keys().any(|name| name.starts_with("node_modules/typescript/")), "more than the server needs");
    let manifest: Value = serde_json::from_slice(&files["manifest.json"]).unwrap();
    assert_eq!(manifest["server"]["mcp_config"]["args"], json!([format!("${{__dirname}}/{entry}")]));
    judge(&place, &files["manifest.json"]);
}

#[test]
fn projects_of_every_language_are_whole() {
    let place = Place::new();
    for (language, own) in [
        ("python", "server.py"),
        ("typescript", "src/app.ts"),
        ("rust", "src/main.rs"),
        ("swift", "Sources/MyServer/Server.swift"),
    ] {
        let folder = format!("{language}/my-server");
        std::fs::create_dir(place.path(language)).unwrap();
        let listed = place.done(language, &["new", "my-server", "--lang", language, "--dry-run"]);
        assert!(!place.path(&folder).exists(), "{language}: --dry-run has written");
        assert_eq!(place.done(language, &["new", "my-server", "--lang", language]), listed);
        for path in listed.lines() {
            let text = place.read(&format!("{language}/{path}"));
            assert!(
                !text.contains("{{name}}") && !text.contains("{{type}}") && !text.contains("{{version}}"),
                "{path}"
            );
        }
        let has = |path: &str| listed.lines().any(|line| line.replace('\\', "/") == format!("my-server/{path}"));
        assert!(
            [own, "README.md", ".gitignore", ".github/workflows/test.yml"].iter().all(|path| has(path)),
            "{listed}"
        );
        // A screen of a README.
        assert!(place.read(&format!("{folder}/README.md")).lines().count() <= 30, "{language}");
    }
    let cargo: toml::Table = place.read("rust/my-server/Cargo.toml").parse().unwrap();
    assert_eq!(cargo["package"]["name"].as_str(), Some("my-server"));
    let python: toml::Table = place.read("python/my-server/pyproject.toml").parse().unwrap();
    assert_eq!(python["project"]["name"].as_str(), Some("my-server"));
    let npm: Value = serde_json::from_str(&place.read("typescript/my-server/package.json")).unwrap();
    assert_eq!(npm["name"], "my-server");
}
