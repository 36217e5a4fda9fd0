//! The file of a command as Windows finds it: programs are told by their ending, and `npx` is `npx.cmd`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The endings of programs where the environment names none.
const ENDINGS: &str = ".COM;.EXE;.BAT;.CMD";

/// The value of a variable, whose name is written in any case: a program's own before that of this process. `None` where
/// it is taken away.
pub(super) fn variable(
    name: &str,
    env: &BTreeMap<String, Option<String>>,
    outer: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    match env.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)) {
        Some((_, value)) => value.clone(),
        None => outer(name),
    }
}

/// Names that a file of the command may have, best first. A name without an ending is no program: beside `npx.cmd` lies
/// `npx`, a script for other systems.
pub(super) fn names(command: &str, endings: Option<&str>) -> Vec<String> {
    let endings = endings.filter(|endings| !endings.trim().is_empty()).unwrap_or(ENDINGS);
    let endings = || endings.split(';').map(str::trim).filter(|ending| ending.len() > 1 && ending.starts_with('.'));
    let is_program = endings().any(|ending| {
        command.get(command.len().saturating_sub(ending.len())..).is_some_and(|end| end.eq_ignore_ascii_case(ending))
    });
    let with = endings().map(|ending| format!("{command}{}", ending.to_ascii_lowercase()));
    is_program.then(|| command.to_owned()).into_iter().chain(with).collect()
}

/// True if a command names its folder.
pub(super) fn is_path(command: &str) -> bool {
    command.contains(['/', '\\']) || command.as_bytes().get(1) == Some(&b':')
}

/// The first file there is of a command in these folders, or in that which it names, seen from `cwd`.
pub(super) fn find(
    command: &str,
    endings: Option<&str>,
    folders: impl IntoIterator<Item = PathBuf>,
    cwd: Option<&str>,
    is_file: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let names = names(command, endings);
    let from = match is_path(command) {
        true => vec![PathBuf::from(cwd.unwrap_or_default())],
        false => folders.into_iter().filter(|folder| !folder.as_os_str().is_empty()).collect(),
    };
    from.iter().flat_map(|folder| names.iter().map(|name| folder.join(name))).find(|file| is_file(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_told_by_their_ending() {
        assert_eq!(names("npx", None), ["npx.com", "npx.exe", "npx.bat", "npx.cmd"]);
        assert_eq!(names("npx", Some(".EXE; .CMD;;x")), ["npx.exe", "npx.cmd"]);
        assert_eq!(names("a.Exe", Some(".EXE")), ["a.Exe", "a.Exe.exe"]);
        // An ending that is none of a program.
        assert_eq!(names("server.v2", Some(".EXE")), ["server.v2.exe"]);
        assert_eq!(names("é", Some(".EXE")), ["é.exe"]);
    }

    #[test]
    fn the_script_beside_a_program_is_not_taken() {
        let there = ["b/npx", "b/npx.cmd", "c/npx.exe"];
        let is_file = |path: &Path| there.iter().any(|file| Path::new(file) == path);
        let folders = ["", "a", "b", "c"].map(PathBuf::from);
        let found = |command: &str, cwd| find(command, None, folders.clone(), cwd, is_file);
        assert_eq!(found("npx", None), Some("b/npx.cmd".into()));
        assert_eq!(found("npx.exe", None), Some("c/npx.exe".into()));
        assert_eq!(found("npm", None), None);
        assert_eq!(found("./npx", Some("c")), Some("c/./npx.exe".into()));
    }

    #[test]
    fn variables_have_names_in_any_case() {
        let env = BTreeMap::from([("path".to_owned(), Some("own".to_owned())), ("Gone".to_owned(), None)]);
        let outer = |name: &str| Some(name.to_owned());
        assert_eq!(variable("PATH", &env, outer).as_deref(), Some("own"));
        assert_eq!(variable("GONE", &env, outer), None);
        assert_eq!(variable("PATHEXT", &env, outer).as_deref(), Some("PATHEXT"));
    }

    #[test]
    fn a_command_may_name_its_folder() {
        for (command, expected) in [("npx", false), ("a/npx", true), (r"a\npx", true), ("c:npx", true), (".npx", false)]
        {
            assert_eq!(is_path(command), expected, "{command}");
        }
    }
}
