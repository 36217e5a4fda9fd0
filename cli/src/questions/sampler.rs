//! A command in the place of a model.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::runtime::Handle;
use tricorn::jsonrpc::RawJson;
use tricorn::{Context, Error, Handler, Reply};

use crate::failure::{Failure, Outcome};
use crate::output::Screen;

/// The longest answer, in bytes.
const MAX_ANSWER: u64 = 8 << 20;

/// Answers `sampling/createMessage`: the request's parameters go to a program's standard input as JSON, and what it
/// prints is the text, or a whole `CreateMessageResult`.
pub(super) struct Sampler {
    program: String,
    arguments: Vec<String>,
    /// The longest time for an answer.
    limit: Option<Duration>,
    screen: Screen,
    runtime: Handle,
}

impl Sampler {
    pub(super) fn new(command: &str, limit: Option<Duration>, screen: &Screen, runtime: &Handle) -> Outcome<Self> {
        let wrong = || Failure::misuse(format!("--sampler {command:?}: expected a command line"));
        let mut words = shlex::split(command).filter(|words| !words.is_empty()).ok_or_else(wrong)?;
        let program = words.remove(0);
        let limit = limit.filter(|limit| !limit.is_zero());
        Ok(Self { program, arguments: words, limit, screen: screen.clone(), runtime: runtime.clone() })
    }
}

impl Handler for Sampler {
    fn call(&self, context: Context, params: RawJson, reply: Reply) {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let (program, limit, screen) = (self.program.clone(), self.limit, self.screen.clone());
        self.runtime.spawn(async move {
            let outcome = tokio::select! {
                outcome = asked(command, &params) => outcome,
                () = context.cancelled() => return,
                why = late(limit) => Err(why),
            };
            match outcome {
                Ok(answer) => reply.value(answer),
                Err(why) => {
                    screen.warn(&format!("--sampler {program}: {why}"));
                    reply.error(Error::rpc(-32603, "the client's model did not answer"));
                }
            }
        });
    }
}

/// Waits for the end of the time, for ever where there is none.
async fn late(limit: Option<Duration>) -> String {
    let Some(limit) = limit else { return std::future::pending().await };
    tokio::time::sleep(limit).await;
    format!("no answer within {} s; --timeout SECONDS waits longer", limit.as_secs_f64())
}

async fn asked(mut command: Command, params: &RawJson) -> Result<RawJson, String> {
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let writing = async {
        if let Some(mut input) = input {
            // It may not care.
            let _ = input.write_all(params.get().as_bytes()).await;
        }
    };
    let reading = async {
        let mut text = String::new();
        match output {
            Some(output) => output.take(MAX_ANSWER).read_to_string(&mut text).await.map(|_| text),
            None => Ok(text),
        }
    };
    let ((), text) = tokio::join!(writing, reading);
    let text = text.map_err(|error| error.to_string())?;
    let status = child.wait().await.map_err(|error| error.to_string())?;
    if !status.success() {
        return Err(status.to_string());
    }
    if let Ok(result @ Value::Object(_)) = serde_json::from_str(&text)
        && result.get("content").is_some()
    {
        return Ok(RawJson::from_value(&result));
    }
    Ok(RawJson::from_value(text.trim_end_matches(['\n', '\r'])))
}
