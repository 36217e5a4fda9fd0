//! A program that ends unasked: started again in modern revisions, and nothing of it left behind.
#![cfg(all(feature = "stdio", unix))]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tricorn::client::{Change, Client, ClientGroup, ClientOptions, GroupOptions, Handlers, Servers};
use tricorn::jsonrpc::RawJson;
use tricorn::model::SubscriptionFilter;
use tricorn::protocol::Opening;
use tricorn::{CallOptions, Error, ErrorKind, Events, TaskOptions};

use super::child::{Held, PATIENCE, close};

/// Counts its runs, and answers as a modern server: a tool with the number of the run, `die` not at all, `die once` in
/// the second run, `mute` not even at its end.
const SERVER: &str = r#"
n=$(($(cat "$HELD.n" 2>/dev/null || echo 0) + 1)); echo $n >"$HELD.n"
say "run $n"
tools={}
task='"taskId":"t-1","ttlMs":null,"pollIntervalMs":10,"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z"'
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete",%s}}\n' "$id" "$1"; }
told() {
  printf '{"jsonrpc":"2.0","method":"notifications/%s","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}%s}}\n' "$1" "$2" "$3"
}
serve() {
  while read -r line; do
    id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
    case "$line" in
      *'"server/discover"'*) reply '"supportedVersions":["2026-07-28"],"capabilities":{"tools":'$tools',"extensions":{"io.modelcontextprotocol/tasks":{}}},"instructions":"run '$n'","ttlMs":0,"cacheScope":"private"';;
      *'"subscriptions/listen"'*) streams="$streams $id"; told subscriptions/acknowledged $id ',"notifications":{"toolsListChanged":true}';;
      *'"name":"die"'*) kill -9 $$;;
      *'"name":"die once"'*) [ $n = 1 ] && kill -9 $$; reply '"content":[{"type":"text","text":"run '$n'"}]';;
      *'"name":"task"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"task","status":"working",%s}}\n' "$id" "$task";;
      *'"tasks/get"'*)
        [ $n = 1 ] && kill -9 $$
        reply "$task"',"status":"completed","result":{"content":[{"type":"text","text":"run '$n'"}]}';;
      *'"name":"mute"'*) exec >&-; until_the_end; say left; exit;;
      *'"name":"tell"'*) for stream in $streams; do told tools/list_changed $stream; done; reply '"content":[]';;
      *'"tools/list"'*)
        reply '"tools":[{"name":"run-'$n'","inputSchema":{"type":"object"}}],"ttlMs":3600000,"cacheScope":"public"';;
      *'"tools/call"'*) reply '"content":[{"type":"text","text":"run '$n'"}]';;
    esac
  done
}
"#;

/// Before that: it tells of changes, so that somebody listens.
const TELLS: &str = r#"tools='{"listChanged":true}'"#;

/// A program that serves, and does something of its own before.
fn program(name: &str, before: &str) -> (Held, tricorn::client::Target) {
    let held = Held::new(name);
    let target = held.target(&format!("{SERVER}\n{before}\nserve"));
    (held, target)
}

/// Everything that is heard besides answers, one line each.
#[derive(Clone)]
struct Heard(UnboundedSender<String>);

impl Events for Heard {
    fn warning(&self, message: &str) {
        let _ = self.0.send(format!("warning: {message}"));
    }

    fn reopened(&self, opening: &Opening) {
        let _ = self.0.send(format!("reopened: {}", opening.instructions.as_deref().unwrap_or_default()));
    }

    fn closed(&self, reason: &Error) {
        let _ = self.0.send(format!("closed: {}", reason.message()));
    }
}

fn handlers() -> (Handlers, UnboundedReceiver<String>) {
    let (heard, lines) = unbounded_channel();
    (Handlers::new().events(Heard(heard)), lines)
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap()
}

async fn connect(target: &tricorn::client::Target, options: &ClientOptions) -> (Client, UnboundedReceiver<String>) {
    let (handlers, lines) = handlers();
    (within(Client::connect_with(target, options, &handlers)).await.unwrap(), lines)
}

async fn call(client: &Client, name: &str, options: &CallOptions) -> Result<String, Error> {
    let empty = serde_json::Map::new();
    Ok(within(client.call_tool_with(name, empty, options)).await?.text())
}

/// Ends the client; what its processes have said.
async fn over(client: &Client, mut held: Held) -> String {
    close(client).await;
    let said = held.rest().await;
    let _ = std::fs::remove_file(format!("{}.n", held.path.display()));
    said
}

const LOST: &str = "the server ended (signal: 9 (SIGKILL))";

#[tokio::test]
async fn a_call_that_its_server_did_not_survive_fails_and_the_next_one_works() {
    let (held, target) = program("killed", "");
    let (client, mut lines) = connect(&target, &ClientOptions::new()).await;
    let plain = CallOptions::new();
    assert_eq!(call(&client, "t", &plain).await.unwrap(), "run 1");
    assert_eq!(client.instructions().as_deref(), Some("run 1"));
    let error = call(&client, "die", &plain).await.unwrap_err();
    let why = format!("{LOST}; \"tools/call\" was not repeated, because it may have been carried out (idempotent)");
    assert_eq!((error.kind(), error.message()), (ErrorKind::Transport, &*why));
    assert_eq!(lines.recv().await.unwrap(), format!("warning: {LOST}; it is started again when it is needed"));
    assert_eq!(call(&client, "t", &plain).await.unwrap(), "run 2");
    assert_eq!(lines.recv().await.unwrap(), "reopened: run 2");
    assert_eq!(client.instructions().as_deref(), Some("run 2"));
    assert_eq!(over(&client, held).await, "run 1\nrun 2\n");
    assert_eq!(lines.recv().await.unwrap(), "closed: the client was closed");
}

#[tokio::test]
async fn what_may_be_done_twice_is_asked_of_the_next_process() {
    let (held, target) = program("repeated", "");
    let (client, _lines) = connect(&target, &ClientOptions::new()).await;
    let twice = CallOptions::new().idempotent(true);
    assert_eq!(call(&client, "die once", &twice).await.unwrap(), "run 2");
    // A second loss is the caller's.
    let error = call(&client, "die", &twice).await.unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Transport, LOST));
    assert_eq!(over(&client, held).await, "run 1\nrun 2\nrun 3\n");
}

#[tokio::test]
async fn whoever_listens_goes_on_listening() {
    let (held, target) = program("listened", TELLS);
    let (client, _lines) = connect(&target, &ClientOptions::new()).await;
    let mut changes = within(client.listen(SubscriptionFilter::new().tools())).await.unwrap();
    let plain = CallOptions::new();
    call(&client, "die", &plain).await.unwrap_err();
    // Nobody asks for anything: it is the stream that needs the server.
    assert_eq!(within(changes.next()).await.unwrap().unwrap(), Change::ToolsListChanged, "it may have been missed");
    call(&client, "tell", &plain).await.unwrap();
    assert_eq!(within(changes.next()).await.unwrap().unwrap(), Change::ToolsListChanged);
    assert_eq!(client.instructions().as_deref(), Some("run 2"));
    assert_eq!(over(&client, held).await, "run 1\nrun 2\n");
    assert_eq!(within(changes.next()).await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
}

#[tokio::test]
async fn a_program_that_ends_again_and_again_ends_the_client() {
    let (held, target) = program("looping", &format!("{TELLS}; [ $n = 1 ] || exit 3"));
    let (client, mut lines) = connect(&target, &ClientOptions::new()).await;
    let mut changes = within(client.listen(SubscriptionFilter::new().tools())).await.unwrap();
    let plain = CallOptions::new();
    call(&client, "die", &plain).await.unwrap_err();
    let error = call(&client, "t", &plain).await.unwrap_err();
    let why = "the server ended (exit status: 3); starting it again did not help 5 times within 60 s";
    assert_eq!((error.kind(), error.message()), (ErrorKind::Closed, why));
    assert_eq!(within(changes.next()).await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(call(&client, "t", &plain).await.unwrap_err().kind(), ErrorKind::Closed);
    let mut heard = Vec::new();
    while heard.last().is_none_or(|line: &String| !line.starts_with("closed: ")) {
        heard.push(within(lines.recv()).await.unwrap());
    }
    assert_eq!((heard.len(), heard.last().unwrap().as_str()), (7, &*format!("closed: {why}")));
    let runs: String = (1..=6).map(|n| format!("run {n}\n")).collect();
    assert_eq!(over(&client, held).await, runs);
}

#[tokio::test]
async fn a_program_that_is_gone_ends_the_client() {
    let held = Held::new("removed");
    let path = held.path.with_extension("sh");
    let script = held.target(&format!("{SERVER}\nserve"));
    let tricorn::client::Target::Command { args, env, cwd, stderr, .. } = script else { panic!("a command") };
    std::os::unix::fs::symlink("/bin/sh", &path).unwrap();
    let command = path.to_str().unwrap().to_owned();
    let target = tricorn::client::Target::Command { command, args, env, cwd, stderr };
    let (client, _lines) = connect(&target, &ClientOptions::new()).await;
    std::fs::remove_file(&path).unwrap();
    let plain = CallOptions::new();
    call(&client, "die", &plain).await.unwrap_err();
    let error = call(&client, "t", &plain).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert!(error.message().starts_with("cannot start ") && error.message().contains("5 times"), "{error}");
    assert_eq!(over(&client, held).await, "run 1\n");
}

#[tokio::test]
async fn a_client_is_closed_while_its_server_is_started_again() {
    let silent = r#"[ $n = 1 ] || { until_the_end; exit; }"#;
    // The one before does not go: it hears nothing, and is waited for.
    let lingers = r#"[ $n = 1 ] && { (exec >&- 2>&-; trap '' TERM; until_the_end; exec sleep 600) & }"#;
    for (name, before, said) in [("silent", silent, "run 1\nrun 2\n"), ("lingers", lingers, "run 1\n")] {
        let (held, target) = program(name, before);
        let grace = Duration::from_millis(if name == "lingers" { 500 } else { 60_000 });
        let (client, mut lines) = connect(&target, &ClientOptions::new().shutdown_grace(grace)).await;
        let plain = CallOptions::new();
        call(&client, "die", &plain).await.unwrap_err();
        lines.recv().await.unwrap();
        let own = client.clone();
        let waiting = tokio::spawn(async move { call(&own, "t", &CallOptions::new()).await });
        // Given up, and late: neither disturbs.
        let late = call(&client, "t", &CallOptions::new().timeout(Duration::from_millis(200))).await.unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Timeout, "{name}");
        let given_up = tokio::time::timeout(Duration::from_millis(1), call(&client, "t", &plain)).await;
        assert!(given_up.is_err(), "{name}");
        let before = Instant::now();
        assert_eq!(over(&client, held).await, said, "{name}");
        assert!(before.elapsed() < PATIENCE, "{name}");
        assert_eq!(within(waiting).await.unwrap().unwrap_err().kind(), ErrorKind::Closed, "{name}");
    }
}

#[tokio::test]
async fn what_a_process_has_left_behind_is_gone_before_the_next_one_starts() {
    let before = r#"[ $n = 1 ] && { (trap 'say gone; exit' TERM; sleep 600 & wait) >&- 2>&- & }"#;
    let (held, target) = program("remains", before);
    let (client, _lines) = connect(&target, &ClientOptions::new().shutdown_grace(Duration::from_secs(1))).await;
    let plain = CallOptions::new();
    call(&client, "die", &plain).await.unwrap_err();
    assert_eq!(call(&client, "t", &plain).await.unwrap(), "run 2");
    assert_eq!(over(&client, held).await, "run 1\ngone\nrun 2\n");
}

#[tokio::test]
async fn a_process_that_closes_its_output_is_ended_and_followed_by_another() {
    let (held, target) = program("output", "");
    let (client, _lines) = connect(&target, &ClientOptions::new()).await;
    let plain = CallOptions::new();
    let error = call(&client, "mute", &plain).await.unwrap_err();
    assert!(error.message().starts_with("the server closed its output; "), "{error}");
    assert_eq!(call(&client, "t", &plain).await.unwrap(), "run 2");
    assert_eq!(over(&client, held).await, "run 1\nleft\nrun 2\n");
}

#[tokio::test]
async fn a_program_that_has_become_an_old_one_ends_the_client() {
    let before = r#"[ $n = 1 ] || { read -r line
        id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"?"}}\n' "$id"; until_the_end; }"#;
    let (held, target) = program("older", before);
    let (client, mut lines) = connect(&target, &ClientOptions::new()).await;
    let plain = CallOptions::new();
    call(&client, "die", &plain).await.unwrap_err();
    lines.recv().await.unwrap();
    let error = call(&client, "t", &plain).await.unwrap_err();
    let why = "the server was started again: the server does not speak revision 2026-07-28";
    assert!(error.kind() == ErrorKind::Unsupported && error.message().starts_with(why), "{error}");
    assert!(within(lines.recv()).await.unwrap().starts_with("closed: the server was started again: "));
    assert_eq!(call(&client, "t", &plain).await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(over(&client, held).await, "run 1\nrun 2\n");
}

#[tokio::test]
async fn where_there_is_a_session_or_no_wish_the_client_ends() {
    let session = r#"answer '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}'
        read -r line; read -r line; kill -9 $$"#;
    let legacy = ClientOptions::new().revision("2025-11-25");
    for (name, before, options) in [("session", session, legacy), ("unwanted", "", ClientOptions::new().restart(false))]
    {
        let (held, target) = program(name, before);
        let (client, mut lines) = connect(&target, &options).await;
        let plain = CallOptions::new();
        let error = call(&client, "die", &plain).await.unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Closed, LOST), "{name}");
        assert_eq!(within(lines.recv()).await.unwrap(), format!("closed: {LOST}"), "{name}");
        assert_eq!(call(&client, "t", &plain).await.unwrap_err().kind(), ErrorKind::Closed, "{name}");
        assert_eq!(over(&client, held).await, "run 1\n", "{name}");
    }
}

#[tokio::test]
async fn a_task_is_followed_into_the_next_process() {
    let (held, target) = program("followed", "");
    let (client, _lines) = connect(&target, &ClientOptions::new().tasks(TaskOptions::default())).await;
    assert_eq!(call(&client, "task", &CallOptions::new()).await.unwrap(), "run 2");
    assert_eq!(over(&client, held).await, "run 1\nrun 2\n");
}

#[tokio::test]
async fn a_server_of_a_group_is_started_again_for_itself() {
    let ((first, one), (mut second, two)) = (program("one", ""), program("two", ""));
    let servers = Servers::new().server("one", one).server("two", two);
    let group = within(ClientGroup::connect(servers, GroupOptions::new())).await.unwrap();
    let (one, two) = (group.get("one").unwrap(), group.get("two").unwrap());
    let plain = CallOptions::new();
    call(&one, "die", &plain).await.unwrap_err();
    assert_eq!(call(&one, "t", &plain).await.unwrap(), "run 2");
    assert_eq!(call(&two, "t", &plain).await.unwrap(), "run 1");
    assert!(group.failures().is_empty());
    within(group.close()).await;
    assert_eq!(over(&one, first).await, "run 1\nrun 2\n");
    assert_eq!(second.rest().await, "run 1\n");
    let _ = std::fs::remove_file(format!("{}.n", second.path.display()));
}

/// An error of the next process when it is met is no answer to the user's request.
#[tokio::test]
async fn a_program_that_is_met_by_an_error_ends_the_client() {
    let error = r#""error":{"code":-32603,"message":"no database"}"#;
    let refuses = format!(
        r#"[ $n = 1 ] || {{
  read -r line; id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  printf '{{"jsonrpc":"2.0","id":%s,{error}}}\n' "$id"; until_the_end; exit
}}"#
    );
    let (held, target) = program("refusing", &refuses);
    let (client, _lines) = connect(&target, &ClientOptions::new()).await;
    let plain = CallOptions::new();
    call(&client, "die", &plain).await.unwrap_err();
    let error = call(&client, "t", &plain).await.unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Transport, None), "{error}");
    assert!(error.message().starts_with("the server was started again: "), "{error}");
    assert!(error.message().contains("no database"), "{error}");
    assert_eq!(over(&client, held).await, "run 1\nrun 2\n");
}

#[tokio::test]
async fn what_the_process_before_has_said_is_kept_no_longer() {
    let (held, target) = program("kept", "");
    let (client, _lines) = connect(&target, &ClientOptions::new()).await;
    let names = async || {
        let tools = within(client.list_tools()).await.unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let plain = CallOptions::new();
    assert_eq!((names().await, names().await), (vec!["run-1".to_owned()], vec!["run-1".to_owned()]));
    assert_eq!(client.cache_usage().hits, 1);
    call(&client, "die", &plain).await.unwrap_err();
    call(&client, "t", &plain).await.unwrap();
    assert_eq!(names().await, ["run-2"]);
    assert_eq!(over(&client, held).await, "run 1\nrun 2\n");
}

/// The facts of the server that a host has read are a value of its own.
#[tokio::test]
async fn what_the_server_says_of_itself_stays_as_it_was_read() {
    let (held, target) = program("said", "");
    let (client, _lines) = connect(&target, &ClientOptions::new()).await;
    let before: RawJson = client.initialize_result();
    let plain = CallOptions::new();
    call(&client, "die", &plain).await.unwrap_err();
    call(&client, "t", &plain).await.unwrap();
    assert!(before.get().contains("run 1") && client.initialize_result().get().contains("run 2"));
    assert!(client.capabilities().has("tools"));
    assert_eq!(over(&client, held).await, "run 1\nrun 2\n");
}
