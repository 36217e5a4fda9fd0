//! The files of new projects.

use crate::arguments::Language;

/// Paths and texts, with `{{name}}`, `{{type}}` and `{{version}}` in them.
type Files = [(&'static str, &'static str)];

macro_rules! files {
    ($language:literal: $($path:literal from $file:literal),+ $(,)?) => {
        &[$(($path, include_str!(concat!("../../../templates/", $language, "/", $file)))),+]
    };
}

/// First steps in a new project, by language.
pub(super) const FIRST: [&str; 4] = [
    "python -m venv .venv && .venv/bin/pip install tricorn pytest && .venv/bin/python -m pytest",
    "npm install && npm test",
    "cargo test",
    "read README.md: Swift needs a library beside it",
];

pub(super) fn of(language: Language) -> &'static Files {
    match language {
        Language::Python => files!("python":
            "README.md" from "README.md",
            "pyproject.toml" from "pyproject.toml",
            "server.py" from "server.py",
            "tests/test_server.py" from "tests/test_server.py",
            ".github/workflows/test.yml" from "test.yml",
            ".gitignore" from "gitignore",
        ),
        Language::Typescript => files!("typescript":
            "README.md" from "README.md",
            "package.json" from "package.json",
            "tsconfig.json" from "tsconfig.json",
            "src/app.ts" from "src/app.ts",
            "src/server.ts" from "src/server.ts",
            "src/app.test.ts" from "src/app.test.ts",
            ".github/workflows/test.yml" from "test.yml",
            ".gitignore" from "gitignore",
        ),
        Language::Rust => files!("rust":
            "README.md" from "README.md",
            "Cargo.toml" from "Cargo.toml.in",
            "src/main.rs" from "src/main.rs",
            ".github/workflows/test.yml" from "test.yml",
            ".gitignore" from "gitignore",
        ),
        Language::Swift => files!("swift":
            "README.md" from "README.md",
            "Package.swift" from "Package.swift.in",
            "Sources/{{type}}/Server.swift" from "Server.swift",
            "Tests/{{type}}Tests/ServerTests.swift" from "ServerTests.swift",
            ".github/workflows/test.yml" from "test.yml",
            ".gitignore" from "gitignore",
        ),
    }
}
