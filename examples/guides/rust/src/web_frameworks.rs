//! A to-do list in a web program: a database in the lifespan, typed models with limits, mounted in axum behind a login,
//! tested in memory, and shut down in order.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use serde_json::json;
use tokio::sync::oneshot;
use tricorn::http::HttpOptions;
use tricorn::model::SubscriptionFilter;
use tricorn::prelude::*;

/// A database, and what goes wrong with it.
#[derive(Default)]
struct Database {
    tasks: Mutex<BTreeMap<u32, (String, Task)>>,
}

#[derive(Debug)]
enum StoreError {
    NotFound(u32),
    Full,
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotFound(id) => write!(f, "there is no task {id}"),
            Self::Full => f.write_str("the disk of db-3 is full"),
        }
    }
}

impl std::error::Error for StoreError {}

impl Database {
    fn add(&self, owner: &str, task: Task) -> Result<u32, StoreError> {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let id = u32::try_from(tasks.len() + 1).map_err(|_| StoreError::Full)?;
        tasks.insert(id, (owner.to_owned(), task));
        Ok(id)
    }

    fn get(&self, owner: &str, id: u32) -> Result<Task, StoreError> {
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let found = tasks.get(&id).filter(|(of, _)| of == owner);
        found.map(|(_, task)| task.clone()).ok_or(StoreError::NotFound(id))
    }
}

/// A thing to do.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
struct Task {
    /// In a few words.
    #[schemars(length(min = 1, max = 80))]
    title: String,
    /// From 1, urgent, to 5.
    #[schemars(range(min = 1, max = 5))]
    priority: u8,
}

#[derive(Deserialize, JsonSchema)]
struct Which {
    id: u32,
}

/// User that is signed in, as the login below has found out.
#[derive(Clone)]
struct User(String);

fn user(context: &Context) -> String {
    // In memory, as in the test, nobody is.
    context.host::<User>().map_or_else(|| "guest".to_owned(), |User(name)| name.clone())
}

fn database(context: &Context) -> Result<Arc<Database>, HandlerError> {
    context.state::<Database>().ok_or_else(|| HandlerError::new("there is no database"))
}

fn tasks() -> Server {
    let open = || async { Ok::<_, Error>(Database::default()) };
    let close = |_: Arc<Database>| async { println!("the database is closed") };
    Server::new("tasks")
        .lifespan(open, close)
        .tool("add", "Add a task", async |task: Task, context: Context| {
            // Of this the model reads that it failed, and no more.
            Ok(database(&context)?.add(&user(&context), task)?)
        })
        .tool("get", "Look at a task", async |Which { id }: Which, context: Context| {
            // This it may read.
            database(&context)?.get(&user(&context), id).for_model()
        })
        .tool("whoami", "Who is signed in", async |context: Context| Ok(user(&context)))
}

/// A login as a layer: whoever has no session does not get to the server, and what it knows goes with the request.
async fn login(mut request: Request, next: Next) -> Result<Response, StatusCode> {
    let session = request.headers().get("x-session").and_then(|value| value.to_str().ok());
    let name = match session {
        Some("s-1") => "ada",
        Some("s-2") => "bob",
        _ => return Err(StatusCode::UNAUTHORIZED),
    };
    request.extensions_mut().insert(User(name.to_owned()));
    Ok(next.run(request).await)
}

/// The server without a network, as its tests use it.
async fn tested() -> tricorn::Result<()> {
    let client = Client::in_memory(&tasks(), &ClientOptions::default()).await?;
    println!("in memory: {}", client.call_tool("add", json!({"title": "Test.", "priority": 1})).await?.text());
    println!("{}", client.call_tool("add", json!({"title": "Too much.", "priority": 9})).await?.text());
    client.close().await;
    Ok(())
}

async fn signed_in(url: &str, session: &str) -> tricorn::Result<Client> {
    Client::connect(&url.parse()?, &ClientOptions::new().header("X-Session", session)).await
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    tested().await?;
    let server = tasks();
    let endpoint = server.endpoint(HttpOptions::new())?;
    let app = axum::Router::new().nest_service("/mcp", endpoint).layer(from_fn(login));
    let io = |error: std::io::Error| Error::new(ErrorKind::Transport, error.to_string());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.map_err(io)?;
    let url = format!("http://{}/mcp", listener.local_addr().map_err(io)?);
    // In a program of yours: `tokio::signal::ctrl_c()`.
    let (stop, stopped) = oneshot::channel::<()>();
    let ending = server.clone();
    let serving = tokio::spawn(async move {
        let graceful = axum::serve(listener, app).with_graceful_shutdown(async move {
            drop(stopped.await);
            // Ends what clients listen to, for which axum would wait.
            ending.close();
        });
        graceful.await
    });

    let ada = signed_in(&url, "s-1").await?;
    println!("{}: signed in", ada.call_tool("whoami", json!({})).await?.text());
    println!("added {}", ada.call_tool("add", json!({"title": "Write.", "priority": 2})).await?.text());
    println!("got {}", ada.call_tool("get", json!({"id": 1})).await?.text());
    let bob = signed_in(&url, "s-2").await?;
    println!(
        "{}: {}",
        bob.call_tool("whoami", json!({})).await?.text(),
        bob.call_tool("get", json!({"id": 1})).await?.text()
    );
    if let Err(error) = signed_in(&url, "s-3").await {
        println!("nobody: {}", error.kind().as_str());
    }

    // A client that listens keeps nobody from ending.
    let listening = ada.listen(SubscriptionFilter::new().tools()).await?;
    drop(stop);
    serving.await.map_err(|error| Error::new(ErrorKind::Transport, error.to_string()))?.map_err(io)?;
    println!("the program has ended");
    drop(listening);
    Ok(())
}
