//! Programs on Windows: servers as child processes, and all that they start. This program plays the servers, too.
#![cfg_attr(windows, expect(clippy::unwrap_used, reason = "tests"))]

#[cfg(not(windows))]
fn main() {}

#[cfg(windows)]
#[tokio::main]
async fn main() -> tricorn::Result<std::process::ExitCode> {
    windows::main().await
}

#[cfg(windows)]
mod windows {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::process::{Command, Stdio};
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};

    use serde_json::json;
    use tricorn::Events;
    use tricorn::prelude::*;

    /// The longest anything is waited for.
    const PATIENCE: Duration = Duration::from_secs(20);

    #[derive(Deserialize, JsonSchema)]
    struct Nothing {}

    #[derive(Deserialize, JsonSchema)]
    struct Said {
        text: String,
    }

    #[derive(Deserialize, JsonSchema)]
    struct Place {
        port: u16,
    }

    fn server() -> Server {
        Server::new("windows")
            .tool("echo", "Say the same", |Said { text }: Said| async { Ok(text) })
            .tool("print", "Print", |Said { text }: Said| async move {
                writeln!(std::io::stdout(), "{text}")?;
                Ok("printed")
            })
            .tool("grandchild", "Start a program that goes on", |Place { port }: Place| async move {
                Command::new(std::env::current_exe()?).args(["--goes-on", &port.to_string()]).spawn()?;
                Ok("started")
            })
            .tool("child", "Start a program that reads its input to the end", |_: Nothing| async {
                let child = Command::new(std::env::current_exe()?).arg("--reads").stdout(Stdio::piped()).spawn()?;
                let read = tokio::task::spawn_blocking(|| child.wait_with_output()).await??;
                Ok(String::from_utf8_lossy(&read.stdout).trim().to_owned())
            })
            .tool("arguments", "Say what it was started with", |_: Nothing| async {
                Ok(std::env::args().skip(1).collect::<Vec<_>>().join("|"))
            })
    }

    fn own() -> String {
        std::env::current_exe().unwrap().to_str().unwrap().to_owned()
    }

    async fn connected(target: &Target) -> Client {
        Client::connect(target, &ClientOptions::default()).await.unwrap()
    }

    async fn call(client: &Client, tool: &str, arguments: serde_json::Value) -> String {
        client.call_tool(tool, arguments).await.unwrap().text()
    }

    /// Waits for a program that goes on, and gives what ends with it.
    fn seen(listener: &TcpListener) -> TcpStream {
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn is_gone(mut stream: TcpStream) -> bool {
        match stream.read(&mut [0]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }

    async fn calls_and_large_messages() {
        let client = connected(&Target::command(own(), ["--serve"])).await;
        for text in ["", "ä", &"x".repeat(3 << 20)] {
            assert_eq!(call(&client, "echo", json!({"text": text})).await, text);
        }
        let many = (0..200).map(|n| {
            let client = client.clone();
            tokio::spawn(async move { call(&client, "echo", json!({"text": n.to_string()})).await })
        });
        for (n, call) in many.collect::<Vec<_>>().into_iter().enumerate() {
            assert_eq!(call.await.unwrap(), n.to_string());
        }
        assert_eq!(call(&client, "child", json!({})).await, "0 bytes");
        let begun = Instant::now();
        client.close().await;
        assert!(begun.elapsed() < Duration::from_millis(1900), "it leaves by itself: {:?}", begun.elapsed());
    }

    struct Heard(Arc<Mutex<Vec<String>>>);

    impl Events for Heard {
        fn stderr(&self, line: &str) {
            self.0.lock().unwrap().push(line.to_owned());
        }
    }

    async fn what_is_printed_goes_to_standard_error() {
        let target = json!({"command": own(), "args": ["--serve"], "stderr": "event"}).to_string();
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let (target, handlers) = (Target::parse(&target).unwrap(), Handlers::new().events(Heard(heard.clone())));
        let client = Client::connect_with(&target, &ClientOptions::default(), &handlers).await.unwrap();
        assert_eq!(call(&client, "print", json!({"text": "some ä"})).await, "printed");
        client.close().await;
        let lines = heard.lock().unwrap().clone();
        assert!(lines.iter().any(|line| line == "some ä"), "{lines:?}");
    }

    async fn a_grandchild_ends_with_its_server() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = connected(&Target::command(own(), ["--serve"])).await;
        call(&client, "grandchild", json!({"port": listener.local_addr().unwrap().port()})).await;
        let stream = seen(&listener);
        client.close().await;
        assert!(is_gone(stream));
    }

    fn a_killed_client_leaves_nobody_behind() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let mut client = Command::new(own()).args(["--connect", &port]).spawn().unwrap();
        let stream = seen(&listener);
        client.kill().unwrap();
        client.wait().unwrap();
        assert!(is_gone(stream));
    }

    async fn programs_are_found_as_on_a_command_line() {
        let folder = std::env::temp_dir().join(format!("tricorn programs {}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("tool"), "#!/bin/sh\nexit 3\n").unwrap();
        std::fs::write(folder.join("tool.cmd"), format!("@\"{}\" --serve %*\r\n", own())).unwrap();
        let env = json!({"Path": format!("{};{}", folder.display(), std::env::var("PATH").unwrap())});
        let target = |args| Target::parse(&json!({"command": "tool", "args": args, "env": env}).to_string()).unwrap();
        let client = connected(&target(json!(["a b", "c"]))).await;
        assert_eq!(call(&client, "arguments", json!({})).await, "--serve|a b|c");
        client.close().await;
        let refused = Client::connect(&target(json!(["a\nb"])), &ClientOptions::default()).await.expect_err("unsafe");
        assert!(refused.message().contains("batch file"), "{}", refused.message());
        let line = format!("\"{}\" --serve \"x y\"", own());
        let client = connected(&line.parse().unwrap()).await;
        assert_eq!(call(&client, "arguments", json!({})).await, "--serve|x y");
        client.close().await;
        let missing = Client::connect(&Target::command("no-such-tool", [""; 0]), &ClientOptions::default()).await;
        let message = missing.expect_err("none").message().to_owned();
        assert!(message.contains("with the ending") && message.contains("folders of PATH"), "{message}");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// A server whose output nobody reads any more ends when it says something.
    fn a_broken_output_is_seen_by_a_write() {
        let mut child =
            Command::new(own()).arg("--serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let ping = |id: u8| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n");
        input.write_all(ping(1).as_bytes()).unwrap();
        output.read_line(&mut String::new()).unwrap();
        drop(output);
        let end = Instant::now() + PATIENCE;
        while child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < end, "it goes on");
            let _ = input.write_all(ping(2).as_bytes());
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(child.wait().unwrap().success());
    }

    /// A server that is closed while it waits for input leaves the streams to the program, and to another server.
    fn streams_are_given_back() {
        let mut child =
            Command::new(own()).arg("--twice").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "between\n");
        input.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n").unwrap();
        line.clear();
        output.read_line(&mut line).unwrap();
        assert!(line.contains("\"id\":7"), "{line}");
        drop(input);
        assert!(child.wait().unwrap().success());
    }

    async fn twice() -> tricorn::Result<ExitCode> {
        let first = server();
        let own = first.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(200)).await;
            own.close();
        });
        first.serve_stdio().await?;
        writeln!(std::io::stdout(), "between")?;
        server().run().await
    }

    #[cfg(feature = "http")]
    async fn http() {
        let mut child = Command::new(own())
            .args(["--serve", "--http", "0"])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let ready = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("ready ").map(str::to_owned));
        let client = connected(&ready.unwrap().parse().unwrap()).await;
        assert_eq!(call(&client, "echo", json!({"text": "ä"})).await, "ä");
        client.close().await;
        child.kill().unwrap();
        child.wait().unwrap();
        for target in ["unix:///run/mcp.sock", "http+unix://x/mcp"] {
            let none = Client::connect(&target.parse().unwrap(), &ClientOptions::default()).await.expect_err("none");
            assert!(none.message().contains("there are no Unix-domain sockets"), "{}", none.message());
        }
    }

    pub(super) async fn main() -> tricorn::Result<ExitCode> {
        let args: Vec<String> = std::env::args().skip(1).collect();
        match args.first().map(String::as_str) {
            Some("--serve") => return server().run().await,
            Some("--twice") => return twice().await,
            Some("--reads") => {
                let count = std::io::stdin().read_to_end(&mut Vec::new())?;
                writeln!(std::io::stdout(), "{count} bytes")?;
                return Ok(ExitCode::SUCCESS);
            }
            Some("--goes-on") => {
                let _stream = TcpStream::connect(format!("127.0.0.1:{}", args[1]))?;
                std::thread::sleep(Duration::from_secs(600));
                return Ok(ExitCode::SUCCESS);
            }
            Some("--connect") => {
                let client = connected(&Target::command(own(), ["--serve"])).await;
                call(&client, "grandchild", json!({"port": args[1].parse::<u16>().unwrap()})).await;
                std::thread::sleep(Duration::from_secs(600));
                return Ok(ExitCode::SUCCESS);
            }
            _ => {}
        }
        let step = |name: &str| {
            let _ = writeln!(std::io::stderr(), "{name}");
        };
        step("calls");
        calls_and_large_messages().await;
        step("printed");
        what_is_printed_goes_to_standard_error().await;
        step("grandchild");
        a_grandchild_ends_with_its_server().await;
        step("killed client");
        a_killed_client_leaves_nobody_behind();
        step("broken output");
        a_broken_output_is_seen_by_a_write();
        step("given back");
        streams_are_given_back();
        #[cfg(feature = "http")]
        {
            step("http");
            http().await;
        }
        step("programs");
        programs_are_found_as_on_a_command_line().await;
        step("all passed");
        Ok(ExitCode::SUCCESS)
    }
}
