//! Programs as Windows names them: where they are looked for, by which endings, and how a line of text becomes arguments.
//!
//! Paths are text here, with `\` and `/` between their parts, so that all of it can be tested on any system.

/// The endings of what the system starts. Whatever else `PATHEXT` names needs another program.
const STARTABLE: [&str; 4] = [".COM", ".EXE", ".BAT", ".CMD"];

/// The places in which a program is looked for.
pub(crate) struct Search<'a> {
    /// Folders, with `;` between them.
    path: String,
    /// The endings that are tried, in this order.
    endings: Vec<String>,
    /// A relative path counts from here.
    cwd: &'a str,
    is_file: fn(&str) -> bool,
}

impl<'a> Search<'a> {
    /// As a child of this process finds it, whose environment differs by `env`.
    #[cfg(windows)]
    pub(crate) fn new(env: &std::collections::BTreeMap<String, Option<String>>, cwd: Option<&'a str>) -> Self {
        let variable = |name: &str| match env.iter().rfind(|(own, _)| own.eq_ignore_ascii_case(name)) {
            Some((_, own)) => own.clone(),
            None => std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()),
        };
        let is_file = |path: &str| std::path::Path::new(path).is_file();
        let (path, endings) = (variable("PATH").unwrap_or_default(), variable("PATHEXT").unwrap_or_default());
        Self::of(path, &endings, cwd.unwrap_or_default(), is_file)
    }

    fn of(path: String, pathext: &str, cwd: &'a str, is_file: fn(&str) -> bool) -> Self {
        let is_startable = |ending: &&str| STARTABLE.iter().any(|one| one.eq_ignore_ascii_case(ending));
        let mut endings: Vec<String> =
            pathext.split(';').map(str::trim).filter(is_startable).map(str::to_ascii_lowercase).collect();
        if endings.is_empty() {
            endings = STARTABLE.iter().map(|ending| ending.to_ascii_lowercase()).collect();
        }
        Self { path, endings, cwd, is_file }
    }

    /// The file of a command. A file without one of the endings, such as the script for a shell that npm puts beside
    /// `npx.cmd`, is taken for one only where its path is given.
    pub(crate) fn find(&self, command: &str) -> Option<String> {
        if command.is_empty() {
            return None;
        }
        if is_path(command) {
            let file = if is_absolute(command) { command.to_owned() } else { join(self.cwd, command) };
            return self.at(&file).or_else(|| (self.is_file)(&file).then_some(file));
        }
        self.folders().find_map(|folder| self.at(&join(folder, command)))
    }

    fn folders(&self) -> impl Iterator<Item = &str> {
        // A relative folder would depend on where this program happens to be.
        self.path.split(';').map(|folder| folder.trim().trim_matches('"')).filter(|folder| is_absolute(folder))
    }

    fn at(&self, file: &str) -> Option<String> {
        let has_ending = STARTABLE.iter().any(|ending| ends_with(file, ending));
        if has_ending && (self.is_file)(file) {
            return Some(file.to_owned());
        }
        self.endings.iter().map(|ending| format!("{file}{ending}")).find(|file| (self.is_file)(file))
    }

    /// The names that were looked for in vain, and the places.
    pub(crate) fn described(&self, command: &str) -> String {
        let has_ending = STARTABLE.iter().any(|ending| ends_with(command, ending));
        let names = match has_ending {
            true => command.to_owned(),
            false => format!("{command} with the ending {}", self.endings.join(", ")),
        };
        if is_path(command) {
            return format!("there is no {names}");
        }
        let beside = self.folders().map(|folder| join(folder, command)).find(|file| (self.is_file)(file));
        let beside = match beside {
            Some(file) if !has_ending => format!("; {file} is none that Windows starts by itself"),
            _ => String::new(),
        };
        format!("there is no {names} in the {} folders of PATH{beside}", self.folders().count())
    }
}

/// Returns true if cmd.exe reads it.
pub(crate) fn is_batch(file: &str) -> bool {
    ends_with(file, ".bat") || ends_with(file, ".cmd")
}

fn ends_with(text: &str, end: &str) -> bool {
    let at = text.len().checked_sub(end.len());
    at.and_then(|at| text.get(at..)).is_some_and(|tail| tail.eq_ignore_ascii_case(end))
}

fn is_path(command: &str) -> bool {
    command.contains(['\\', '/', ':'])
}

/// True for `C:\…`, `\\host\…` and, on the drive of the process, `\…`.
fn is_absolute(path: &str) -> bool {
    path.starts_with(['\\', '/']) || path.get(1..3).is_some_and(|drive| drive == ":\\" || drive == ":/")
}

fn join(folder: &str, name: &str) -> String {
    match folder.is_empty() || folder.ends_with(['\\', '/']) {
        true => format!("{folder}{name}"),
        false => format!("{folder}\\{name}"),
    }
}

/// The words of a command line, as programs on Windows read theirs (`CommandLineToArgvW` and the C runtime): blanks between
/// them, and quotes around what has blanks. A backslash means something before a quote alone. `None` when a quote is not
/// closed.
pub(crate) fn split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = line.trim_start_matches(is_blank);
    // No program's path has quotes in it: there they begin and end.
    if !rest.is_empty() {
        let (mut word, mut is_quoted) = (String::new(), false);
        let end = rest.find(|c: char| {
            match c {
                '"' => is_quoted = !is_quoted,
                c if is_blank(c) && !is_quoted => return true,
                c => word.push(c),
            }
            false
        });
        if is_quoted {
            return None;
        }
        words.push(word);
        rest = end.map_or("", |end| &rest[end..]);
    }
    loop {
        rest = rest.trim_start_matches(is_blank);
        if rest.is_empty() {
            return Some(words);
        }
        let (word, after) = word(rest)?;
        words.push(word);
        rest = after;
    }
}

/// The word that a line begins with, and what follows.
fn word(line: &str) -> Option<(String, &str)> {
    let (mut word, mut is_quoted, mut rest) = (String::new(), false, line);
    while let Some(c) = rest.chars().next().filter(|c| is_quoted || !is_blank(*c)) {
        let plain = rest.trim_start_matches('\\');
        let slashes = rest.len() - plain.len();
        if slashes > 0 && plain.starts_with('"') {
            word.push_str(&rest[..slashes / 2]);
            rest = plain;
            if slashes % 2 == 1 {
                word.push('"');
                rest = &plain[1..];
            }
        } else if slashes > 0 {
            word.push_str(&rest[..slashes]);
            rest = plain;
        } else if is_quoted && rest.starts_with("\"\"") {
            word.push('"');
            rest = &rest[2..];
        } else if c == '"' {
            is_quoted = !is_quoted;
            rest = &rest[1..];
        } else {
            word.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    (!is_quoted).then_some((word, rest))
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(path: &str, pathext: &str) -> Search<'static> {
        let is_file = |path: &str| {
            [
                r"C:\node\npx",
                r"C:\node\npx.cmd",
                r"C:\node\node.exe",
                r"C:\py\python3.11.exe",
                r"C:\py\server.py",
                r"D:\work\tools\run.bat",
                r"D:\work\tools\odd",
            ]
            .iter()
            .any(|one| one.eq_ignore_ascii_case(path))
        };
        Search::of(path.to_owned(), pathext, r"D:\work", is_file)
    }

    #[test]
    fn programs_are_found_by_the_endings_that_can_be_started() {
        let search = search(r#"relative;C:\node\;"C:\py""#, ".COM;.EXE;.BAT;.CMD;.VBS;.PY");
        for (command, found) in [
            ("npx", Some(r"C:\node\npx.cmd")),
            ("NPX.CMD", Some(r"C:\node\NPX.CMD")),
            ("node", Some(r"C:\node\node.exe")),
            ("python3.11", Some(r"C:\py\python3.11.exe")),
            ("server.py", None),
            ("server", None),
            (r"C:\node\npx", Some(r"C:\node\npx.cmd")),
            ("C:/py/python3.11", None),
            (r"tools\run", Some(r"D:\work\tools\run.bat")),
            (r"tools\odd", Some(r"D:\work\tools\odd")),
            ("", None),
            ("ä", None),
        ] {
            assert_eq!(search.find(command).as_deref(), found, "{command}");
        }
        let described = search.described("server.py");
        assert!(
            described.ends_with(r"in the 2 folders of PATH; C:\py\server.py is none that Windows starts by itself")
        );
        assert!(search.described("x").starts_with("there is no x with the ending .com, .exe, .bat, .cmd in the 2"));
        assert_eq!(search.described(r"C:\x.exe"), r"there is no C:\x.exe");
        assert!(is_batch("a.CMD") && is_batch("b.bat") && !is_batch("bat") && !is_batch("ä"));
    }

    #[test]
    fn without_endings_the_usual_ones_are_tried() {
        assert_eq!(search(r"C:\node", "").find("npx").as_deref(), Some(r"C:\node\npx.cmd"));
        assert_eq!(search(r"C:\node", ".CMD;.EXE").find("node").as_deref(), Some(r"C:\node\node.exe"));
        assert_eq!(search("", "").find("npx"), None);
    }

    #[test]
    fn lines_are_split_as_programs_read_them() {
        for (line, words) in [
            (r#"C:\x\server.exe --flag "a b""#, &[r"C:\x\server.exe", "--flag", "a b"][..]),
            (r#""C:\Program Files\x\y.exe" a"#, &[r"C:\Program Files\x\y.exe", "a"]),
            (r#"x a\\b a\b \"#, &["x", r"a\\b", r"a\b", r"\"]),
            (r#"x "a\\" "b\"c" d\\\"e"#, &["x", r"a\", r#"b"c"#, r#"d\"e"#]),
            (r#"x "" "a""b" c"d e"f"#, &["x", "", r#"a"b"#, "cd ef"]),
            (r"x 'a b'", &["x", "'a", "b'"]),
            (r"\\host\share\a.py b\", &[r"\\host\share\a.py", r"b\"]),
            (r#""C:\x\" a"#, &[r"C:\x\", "a"]),
            ("  x\t ä\r\n ", &["x", "ä"]),
            ("", &[]),
        ] {
            assert_eq!(split(line).expect(line), words, "{line}");
        }
        for open in [r#"x "a"#, r#""C:\x"#, r#"x "a\""#] {
            assert_eq!(split(open), None, "{open}");
        }
    }
}
