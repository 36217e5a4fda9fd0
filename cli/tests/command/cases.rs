//! The cases of `tests/cli/*.toml`: arguments, and what is printed.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::http::Http;
use crate::place::{command, everything, python, root};
use crate::running::Running;

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Suite {
    case: Vec<Case>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// `{everything}`, `{command}`, `{url}`, `{protected}` (of a server that wants a login), `{python}` and `{dir}` stand for
    /// what differs from machine to machine.
    args: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    stdin: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    env: BTreeMap<String, String>,
    /// `python`, `node` or `sh`: the case is left out where there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    needs: String,
    #[serde(default)]
    status: i32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    stdout: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    stderr: String,
    /// Files that the case finds in its folder.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    files: BTreeMap<String, String>,
    /// Files that it leaves there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    leaves: BTreeMap<String, String>,
}

/// Masks for the parts of an output that differ each time.
struct Masks {
    texts: Vec<(String, &'static str)>,
    patterns: Vec<(Regex, &'static str)>,
}

impl Masks {
    fn new(dir: &Path, url: &str, protected: &str) -> Self {
        let real = dir.canonicalize().unwrap();
        let mut texts = vec![
            (real.to_str().unwrap().to_owned(), "{dir}"),
            (dir.to_str().unwrap().to_owned(), "{dir}"),
            (url.to_owned(), "{url}"),
            (protected.to_owned(), "{protected}"),
            (command().join(" "), "{command}"),
            (everything(), "{everything}"),
        ];
        // The name of an interpreter is a word like others.
        texts.extend(command().into_iter().filter(|word| word.contains('/')).map(|word| (word, "{command}")));
        texts.extend(python().map(|path| (path, "{python}")));
        let patterns = [
            (r"[0-9]+\.[0-9]+ ms", "N ms"),
            (r#""milliseconds": [0-9.]+"#, "\"milliseconds\": N"),
            (r"[^ ]*tricorn-[A-Za-z0-9]{6}\.", "{saved}."),
            (r" \(os error [0-9]+\)", ""),
            (r"dns error: [^;\n]*", "dns error: {system}"),
            (r"folders of PATH \([^)]*\)", "folders of PATH ({path})"),
            (r"127\.0\.0\.1:[0-9]+", "{address}"),
            (r"(linux|macos|windows) [a-z0-9_]+, [a-z]+", "{platform}"),
            (r"[0-9]+\.[0-9]+\.[0-9]+(-[a-z0-9.]+)?(\n| *engine)", "{version}$2"),
        ];
        let patterns = patterns.map(|(pattern, mask)| (Regex::new(pattern).unwrap(), mask));
        Self { texts, patterns: patterns.into() }
    }

    fn masked(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n");
        let text = self.texts.iter().fold(text, |text, (from, to)| text.replace(from, to));
        self.patterns.iter().fold(text, |text, (from, to)| from.replace_all(&text, *to).into_owned())
    }
}

fn run(case: &mut Case, url: &str, protected: &str) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in &case.files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = text.replace("{everything}", &everything()).replace("{python}", &python().unwrap_or_default());
        std::fs::write(path, text).unwrap();
    }
    let masks = Masks::new(dir.path(), url, protected);
    let filled = |text: &str| {
        let text = text.replace("{everything}", &everything()).replace("{url}", url).replace("{protected}", protected);
        let text = text.replace("{dir}", dir.path().to_str().unwrap());
        text.replace("{python}", &python().unwrap_or_default())
    };
    let words = command();
    let mut program = Command::new(&words[0]);
    program.args(&words[1..]).current_dir(dir.path());
    for word in &case.args {
        if word == "{command}" {
            program.args(&words)
        } else {
            program.arg(filled(word))
        };
    }
    program.env("COLUMNS", "80").env_remove("VIRTUAL_ENV").env_remove("NO_COLOR");
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
        program.env_remove(name).env_remove(name.to_lowercase());
    }
    if let Some(python) = python() {
        program.env("VIRTUAL_ENV", Path::new(&python).parent().unwrap().parent().unwrap());
    }
    program.envs(case.env.iter().map(|(name, value)| (name, filled(value))));
    program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Running::start(&mut program);
    let mut input = child.stdin.take().unwrap();
    // A command that has ended reads nothing.
    let _ = input.write_all(filled(&case.stdin).as_bytes());
    drop(input);
    let output = child.output();
    let (status, stdout) = (output.status.code().unwrap_or(-1), masks.masked(&output.stdout));
    let stderr = masks.masked(&output.stderr);
    let mut wrong = Vec::new();
    if std::env::var_os("TRICORN_BLESS").is_some() {
        (case.status, case.stdout, case.stderr) = (status, stdout, stderr);
        return wrong;
    }
    let mut compare = |what: &str, expected: &str, got: &str| {
        if expected != got {
            wrong.push(format!("{}: {what}\n--- expected\n{expected}\n--- got\n{got}", case.name));
        }
    };
    compare("status", &case.status.to_string(), &status.to_string());
    compare("stdout", &case.stdout, &stdout);
    compare("stderr", &case.stderr, &stderr);
    for (name, text) in &case.leaves {
        let found = std::fs::read(dir.path().join(name)).unwrap_or_default();
        compare(name, text, &masks.masked(&found));
    }
    wrong
}

fn has(needed: &str) -> bool {
    match needed {
        "" => true,
        "python" => python().is_some(),
        "sh" => cfg!(unix),
        other => {
            Command::new(other).arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success())
        }
    }
}

#[test]
fn each_case_prints_what_it_says() {
    let http = Http::start(&[]);
    let auth = r#"{"issuer": "http://127.0.0.1:9", "resource": "http://127.0.0.1/mcp"}"#;
    let protected = Http::start(&[("EVERYTHING_AUTH", auth)]);
    let mut wrong = Vec::new();
    let mut count = 0;
    let mut paths: Vec<_> =
        std::fs::read_dir(root().join("tests/cli")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let lines = Regex::new(r"\[\n((?:    .*,\n)+)\]\n").unwrap();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|ending| ending == "toml")) {
        let text = std::fs::read_to_string(path).unwrap();
        let mut suite: Suite = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for case in suite.case.iter_mut() {
            if has(&case.needs) {
                wrong.extend(run(case, &http.url, &protected.url));
                count += 1;
            } else {
                eprintln!("{}: left out, there is no {}", case.name, case.needs);
            }
        }
        if std::env::var_os("TRICORN_BLESS").is_some() {
            let head: String =
                text.lines().take_while(|line| line.starts_with('#')).map(|line| format!("{line}\n")).collect();
            let written = toml::to_string_pretty(&suite).unwrap();
            // Arguments on one line.
            let written = lines.replace_all(&written, |found: &regex::Captures<'_>| {
                let words: Vec<_> = found[1].lines().map(|line| line.trim().trim_end_matches(',')).collect();
                format!("[{}]\n", words.join(", "))
            });
            std::fs::write(path, format!("{head}\n{written}")).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{} of {count} cases:\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(count > 20, "{count} cases");
}
