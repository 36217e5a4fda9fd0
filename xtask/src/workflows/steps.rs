//! The parts of a workflow that are read.

use anyhow::Result;
use serde::Deserialize;
use std::collections::BTreeMap;

/// One file.
#[derive(Debug)]
pub(super) struct Workflow {
    pub(super) text: String,
    parsed: Parsed,
}

#[derive(Debug, Deserialize)]
struct Parsed {
    #[serde(default)]
    permissions: Option<serde_yaml_ng::Value>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    jobs: BTreeMap<String, Job>,
}

/// A job and its steps.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Job {
    #[serde(default)]
    pub(super) timeout_minutes: Option<serde_yaml_ng::Value>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) steps: Vec<Step>,
}

/// A step of a job.
#[derive(Debug, Deserialize)]
pub(super) struct Step {
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) uses: Option<String>,
    #[serde(default)]
    pub(super) run: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

/// A step with a script, and the environment that the file gives it.
pub(super) struct Script<'a> {
    pub(super) text: &'a str,
    pub(super) env: BTreeMap<&'a str, &'a str>,
}

impl Workflow {
    pub(super) fn read(text: &str) -> Result<Self> {
        Ok(Self { text: text.to_owned(), parsed: serde_yaml_ng::from_str(text)? })
    }

    pub(super) fn has_permissions(&self) -> bool {
        self.parsed.permissions.is_some()
    }

    pub(super) fn jobs(&self) -> impl Iterator<Item = (&str, &Job)> {
        self.parsed.jobs.iter().map(|(name, job)| (name.as_str(), job))
    }

    /// The names of all steps with a script, as job and step.
    pub(super) fn scripts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.jobs().flat_map(|(name, job)| {
            let scripts = job.steps.iter().filter(|step| step.run.is_some());
            scripts.map(move |step| (name, step.name.as_deref().unwrap_or_default()))
        })
    }

    /// The script of a step.
    pub(super) fn script(&self, job: &str, step: &str) -> Option<Script<'_>> {
        let job = self.parsed.jobs.get(job)?;
        let step = job.steps.iter().find(|one| one.run.is_some() && one.name.as_deref() == Some(step))?;
        let env = [&self.parsed.env, &job.env, &step.env].into_iter().flatten();
        Some(Script {
            text: step.run.as_deref()?,
            env: env.map(|(key, value)| (key.as_str(), value.as_str())).collect(),
        })
    }
}
