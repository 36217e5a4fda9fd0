//! `cargo xtask release`: one version everywhere, the changelog cut, a commit and a tag. It publishes nothing: pushing the
//! tag starts `.github/workflows/release.yml`, which does.

mod changelog;
mod places;
mod version;

use crate::{place, report};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};
use version::Version;

/// A release to make.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// X.Y.Z, or a pre-release: X.Y.Z-alpha.N, X.Y.Z-beta.N, X.Y.Z-rc.N
    ///
    /// crates.io, npm and the tag have a pre-release as it is given. On PyPI, maturin makes X.Y.ZaN, X.Y.ZbN and X.Y.ZrcN of
    /// it, and pip installs it when told to; on npm it gets the tag "next", on GitHub the mark of a pre-release.
    version: String,
    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// The branch that releases are made on
    #[arg(long, default_value = "main")]
    branch: String,
}

/// A release that nothing speaks against.
struct Plan {
    version: Version,
    tag: String,
    /// The new text of each file.
    files: BTreeMap<&'static str, String>,
    /// Each place of the version, as one reads it.
    places: Vec<String>,
    /// The entries of the changelog.
    notes: String,
}

/// Releases, or says what would be.
pub(crate) fn main(options: &Options) -> Result<bool> {
    let (root, branch) = (place::root(), &options.branch);
    let plan = plan(root, options, &today()?)?;
    plan.places.iter().for_each(report::line);
    report::line(format!("{}: {} lines of notes", changelog::PATH, plan.notes.lines().count()));
    let push = format!("git push --atomic origin {branch} {}", plan.tag);
    if options.dry_run {
        report::line(format!(
            "nothing is changed; without --dry-run: a commit, the tag {}, and then: {push}",
            plan.tag
        ));
    } else {
        make(root, &plan)?;
        report::line(format!("committed and tagged as {}; nothing is published before: {push}", plan.tag));
    }
    Ok(true)
}

/// Places that have another version, and a changelog that cannot be cut; for `cargo xtask tidy`.
pub(crate) fn faults(read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let text = read(changelog::PATH).unwrap_or_default();
    places::disagreements(read).into_iter().chain(changelog::faults(&text)).collect()
}

/// Looks at everything that could speak against the release, and changes nothing.
fn plan(root: &Path, options: &Options, date: &str) -> Result<Plan> {
    let version: Version = options.version.parse()?;
    let tag = format!("v{version}");
    may_commit(root, &options.branch, &tag)?;
    let read = |path: &str| std::fs::read_to_string(root.join(path)).ok();
    let apart = places::disagreements(read);
    if !apart.is_empty() {
        bail!("the packages have several versions: make them one before a release\n{}", apart.join("\n"));
    }
    let present = places::present(read)?;
    let text = read(changelog::PATH).with_context(|| format!("there is no {}", changelog::PATH))?;
    let newest = changelog::newest(&text);
    if version < present || newest.as_ref().is_some_and(|newest| version <= *newest) {
        let last = newest.filter(|newest| *newest >= present).unwrap_or(present);
        bail!("{version} is not after {last}, which is there already: give a later version");
    }
    let cut = changelog::cut(&text, &version, date)?;
    let (mut files, places) = places::with(&version, read)?;
    files.insert(changelog::PATH, cut.text);
    Ok(Plan { version, tag, files, places, notes: cut.notes })
}

/// Refuses a branch, a tree or a tag that a release cannot be made with.
fn may_commit(root: &Path, branch: &str, tag: &str) -> Result<()> {
    let here = git(root, &["symbolic-ref", "--short", "HEAD"]).unwrap_or_else(|_| "no branch".to_owned());
    if here != branch {
        bail!("releases are made on {branch}, this is {here}: switch to it, or name another one with --branch");
    }
    let changed = git(root, &["status", "--porcelain"])?;
    if let Some(first) = changed.lines().next() {
        let first = first.trim();
        bail!("the tree is not clean ({} files, first {first:?}): commit or remove them", changed.lines().count());
    }
    if !git(root, &["tag", "--list", tag])?.is_empty() {
        bail!("there is a tag {tag} already: give a later version, as a version is released once");
    }
    Ok(())
}

/// Writes, commits and tags. Files are put back when there is no commit.
fn make(root: &Path, plan: &Plan) -> Result<()> {
    let subject = format!("Release {}", plan.version);
    let paths: Vec<&str> = plan.files.keys().copied().collect();
    if let Err(error) = commit(root, plan, &subject, &paths) {
        git(root, &[&["checkout", "--quiet", "HEAD", "--"][..], &paths].concat())
            .context("the files could not be put back: \"git checkout HEAD -- .\" does")?;
        return Err(error.context("no commit was made, and the files are as before"));
    }
    // Verbatim: git takes lines with "#" for comments, and these are headings.
    let message = root.join(git(root, &["rev-parse", "--git-path", "RELEASE_NOTES"])?);
    std::fs::write(&message, format!("{subject}\n\n{}\n", plan.notes))
        .with_context(|| format!("cannot write {}", message.display()))?;
    let file = message.to_string_lossy();
    let tagged = git(root, &["tag", "--annotate", "--cleanup=verbatim", "--file", &file, &plan.tag]);
    drop(std::fs::remove_file(&message));
    tagged.map(drop).with_context(|| {
        format!("the commit {subject:?} is there and has no tag: \"git reset --hard HEAD~1\" takes it back")
    })
}

fn commit(root: &Path, plan: &Plan, subject: &str, paths: &[&str]) -> Result<()> {
    for (path, text) in &plan.files {
        std::fs::write(root.join(path), text).with_context(|| format!("cannot write {path}"))?;
    }
    git(root, &[&["commit", "--quiet", "--message", subject, "--"][..], paths].concat()).map(drop)
}

/// Runs git, and gives what it prints. It may ask for the words that open a signing key.
fn git(root: &Path, args: &[&str]) -> Result<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(root).args(args).stdin(Stdio::inherit());
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(name);
    }
    let done = command.output().context("cannot start git, which a release is made with")?;
    if !done.status.success() {
        bail!("git {}: {}", args[0], String::from_utf8_lossy(&done.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&done.stdout).trim_end().to_owned())
}

/// The date in UTC, as `2026-11-28`.
fn today() -> Result<String> {
    Ok(date(SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")?.as_secs() / 86_400))
}

/// The date so many days after 1970 began.
fn date(mut days: u64) -> String {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let mut month = 1;
    for length in [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A repository with the files of this one that a release changes, gone when it is dropped.
    struct Repository(PathBuf);

    impl Drop for Repository {
        fn drop(&mut self) {
            drop(std::fs::remove_dir_all(&self.0));
        }
    }

    impl Repository {
        fn new(name: &str) -> Self {
            let this = Self(std::env::temp_dir().join(format!("tricorn-release-{}-{name}", std::process::id())));
            drop(std::fs::remove_dir_all(&this.0));
            for path in places::paths() {
                let file = this.0.join(path);
                std::fs::create_dir_all(file.parent().expect("a folder")).expect("a new folder");
                std::fs::copy(place::root().join(path), &file).expect("a copy");
            }
            this.change("CHANGELOG.md", |_| {
                "# Changelog\n\n## 0.2.0 (unreleased)\n\n### Servers\n\n- One.\n".to_owned()
            });
            this.git(&["init", "--quiet", "--initial-branch", "main"]);
            let quiet = [("commit.gpgSign", "false"), ("tag.gpgSign", "false"), ("core.hooksPath", "/dev/null")];
            for (name, value) in [("user.name", "A"), ("user.email", "a@example.com")].into_iter().chain(quiet) {
                this.git(&["config", name, value]);
            }
            this.commit("Begin");
            this
        }

        fn git(&self, args: &[&str]) -> String {
            git(&self.0, args).expect("git works")
        }

        fn commit(&self, subject: &str) {
            self.git(&["add", "--all"]);
            self.git(&["commit", "--quiet", "--message", subject]);
        }

        fn change(&self, path: &str, how: impl FnOnce(String) -> String) {
            let before = std::fs::read_to_string(self.0.join(path)).unwrap_or_default();
            std::fs::write(self.0.join(path), how(before)).expect("it is written");
        }

        fn plan(&self, version: &str, branch: &str) -> Result<Plan> {
            let options = Options { version: version.to_owned(), dry_run: false, branch: branch.to_owned() };
            plan(&self.0, &options, "2026-11-28")
        }

        fn refused(&self, version: &str) -> String {
            format!("{:#}", self.plan(version, "main").err().expect("refused"))
        }
    }

    #[test]
    fn a_release_is_a_commit_and_a_tag_with_the_notes() {
        let here = Repository::new("made");
        let plan = here.plan("97.0.0-rc.1", "main").expect("nothing speaks against it");
        make(&here.0, &plan).expect("it is made");
        assert_eq!(here.git(&["log", "--format=%s"]), "Release 97.0.0-rc.1\nBegin");
        assert_eq!(here.git(&["status", "--porcelain"]), "");
        assert_eq!(here.git(&["cat-file", "-t", "v97.0.0-rc.1"]), "tag");
        assert_eq!(here.git(&["rev-parse", "v97.0.0-rc.1^{commit}"]), here.git(&["rev-parse", "HEAD"]));
        let message = here.git(&["tag", "--list", "--format=%(contents)", "v97.0.0-rc.1"]);
        assert_eq!(message, "Release 97.0.0-rc.1\n\n### Servers\n\n- One.");
        let changed = here.git(&["show", "--name-only", "--format=", "HEAD"]);
        let mut expected: Vec<&str> = places::paths().chain([changelog::PATH]).collect();
        expected.sort_unstable();
        expected.dedup();
        let mut changed: Vec<&str> = changed.lines().collect();
        changed.sort_unstable();
        assert_eq!(changed, expected);
        let log = std::fs::read_to_string(here.0.join("CHANGELOG.md")).expect("it is there");
        assert!(log.contains("## 97.0.0 (unreleased)\n\n## 97.0.0-rc.1 (2026-11-28)\n\n### Servers"), "{log}");
        assert!(!here.0.join(".git/RELEASE_NOTES").exists());
        let read = |path: &str| std::fs::read_to_string(here.0.join(path)).ok();
        assert_eq!(faults(read), Vec::<String>::new(), "what is released is tidy");
    }

    #[test]
    fn the_first_release_may_have_the_present_version_and_no_second_one() {
        let here = Repository::new("first");
        let present = places::present(|path| std::fs::read_to_string(here.0.join(path)).ok()).expect("a version");
        let present = present.to_string();
        make(&here.0, &here.plan(&present, "main").expect("nobody has it yet")).expect("it is made");
        assert!(here.refused(&present).contains("there is a tag"));
        here.git(&["tag", "--delete", &format!("v{present}")]);
        here.change("CHANGELOG.md", |log| log.replacen("(unreleased)\n", "(unreleased)\n\n- More.\n", 1));
        here.commit("More");
        assert!(here.refused(&present).contains(&format!("is not after {present}")));
        assert!(here.plan("98.0.0", "main").is_ok());
    }

    #[test]
    fn a_release_is_refused_with_a_reason() {
        let here = Repository::new("refused");
        assert!(here.refused("1.0").contains("is no version"));
        assert!(here.refused("0.0.1").contains("is not after"));
        let other = format!("{:#}", here.plan("98.0.0", "next").err().expect("refused"));
        assert!(other.contains("made on next, this is main"), "{other}");
        here.git(&["tag", "v98.0.0"]);
        assert!(here.refused("98.0.0").contains("there is a tag v98.0.0"));
        here.git(&["checkout", "--quiet", "--detach"]);
        assert!(here.refused("99.0.0").contains("this is no branch"));
        here.git(&["checkout", "--quiet", "main"]);
        here.change("new", |_| "x".to_owned());
        assert!(here.refused("99.0.0").contains("not clean (1 files, first \"?? new\")"));
        here.commit("New");
        here.change("package.json", |text| text.replacen("\"version\": \"", "\"version\": \"9", 1));
        here.commit("Drift");
        assert!(here.refused("99.0.0").contains("several versions"));
        here.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
        here.change("CHANGELOG.md", |log| log.replace("- One.", ""));
        here.commit("Nothing new");
        assert!(here.refused("99.0.0").contains("has no entry"));
    }

    #[test]
    fn files_are_as_before_when_git_refuses_the_commit() {
        let here = Repository::new("hook");
        let plan = here.plan("97.0.0", "main").expect("nothing speaks against it");
        here.change(".git/index.lock", |_| String::new());
        let refused = format!("{:#}", make(&here.0, &plan).expect_err("git is locked"));
        assert!(refused.contains("could not be put back"), "{refused}");
        std::fs::remove_file(here.0.join(".git/index.lock")).expect("the lock");
        here.git(&["checkout", "HEAD", "--", "."]);
        here.change(".git/hooks/pre-commit", |_| "#!/bin/sh\necho no >&2\nexit 1\n".to_owned());
        here.git(&["config", "core.hooksPath", ".git/hooks"]);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(here.0.join(".git/hooks/pre-commit"), mode).expect("a hook");
        let refused = format!("{:#}", make(&here.0, &plan).expect_err("the hook refuses"));
        assert_eq!(refused, "no commit was made, and the files are as before: git commit: no");
        assert_eq!(here.git(&["status", "--porcelain"]), "");
        assert_eq!(here.git(&["tag", "--list"]), "");
    }

    #[test]
    fn days_become_dates() {
        for (days, expected) in [(0, "1970-01-01"), (59, "1970-03-01"), (11_016, "2000-02-29"), (20_785, "2026-11-28")]
        {
            assert_eq!(date(days), expected);
        }
        assert_eq!(date(19_722), "2023-12-31");
    }
}
