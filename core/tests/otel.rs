//! Requests as spans and metrics of OpenTelemetry, between real clients and servers.
#![expect(clippy::unwrap_used, reason = "tests")]
#![expect(deprecated, reason = "what the specification has deprecated works on")]

use std::collections::BTreeMap;
use std::time::Duration;

use opentelemetry::baggage::BaggageExt;
use opentelemetry::trace::{FutureExt, SpanKind, Status, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context as Spans, KeyValue};
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use serde_json::{Value, json};
use tricorn::client::{Client, ClientOptions, Handlers, Target};
use tricorn::http::HttpOptions;
use tricorn::jsonrpc::RawJson;
use tricorn::otel::Telemetry;
use tricorn::prelude::*;
use tricorn::server::CreateMessageRequestParams;
use tricorn::{CallOptions, Handler, Reply, TraceContext};

const PATIENCE: Duration = Duration::from_secs(20);
const ERAS: [&str; 2] = ["2025-11-25", "2026-07-28"];

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// One side's providers with what they were told.
struct Told {
    tracers: SdkTracerProvider,
    spans: InMemorySpanExporter,
    meters: SdkMeterProvider,
    metrics: InMemoryMetricExporter,
}

impl Told {
    fn new() -> Self {
        let (spans, metrics) = (InMemorySpanExporter::default(), InMemoryMetricExporter::default());
        let tracers = SdkTracerProvider::builder().with_simple_exporter(spans.clone()).build();
        // Looked at when a test says so.
        let reader = PeriodicReader::builder(metrics.clone()).with_interval(Duration::from_secs(3600)).build();
        let meters = SdkMeterProvider::builder().with_reader(reader).build();
        Self { tracers, spans, meters, metrics }
    }

    fn telemetry(&self) -> Telemetry {
        Telemetry::with_providers(&self.tracers, &self.meters)
    }

    fn spans(&self) -> Vec<SpanData> {
        self.spans.get_finished_spans().unwrap()
    }

    fn span(&self, name: &str) -> SpanData {
        let all = self.spans();
        let found: Vec<_> = all.iter().filter(|span| span.name == name).collect();
        assert_eq!(found.len(), 1, "{name}: {all:?}");
        found[0].clone()
    }

    /// Returns the number of measurements for each combination of attributes.
    fn measured(&self, name: &str) -> Vec<(Value, u64)> {
        self.meters.force_flush().unwrap();
        let all = self.metrics.get_finished_metrics().unwrap();
        let metric = all.last().unwrap().scope_metrics().flat_map(|scope| scope.metrics()).find(|m| m.name() == name);
        let metric = metric.unwrap_or_else(|| panic!("no {name}"));
        assert_eq!(metric.unit(), "s");
        let AggregatedMetrics::F64(MetricData::Histogram(histogram)) = metric.data() else { panic!("no histogram") };
        let points = histogram.data_points().map(|point| {
            assert_eq!(point.bounds().collect::<Vec<_>>()[..3], [0.01, 0.02, 0.05]);
            (said(point.attributes()), point.count())
        });
        points.collect()
    }
}

fn said<'a>(attributes: impl IntoIterator<Item = &'a KeyValue>) -> Value {
    let all = attributes.into_iter().map(|pair| (pair.key.to_string(), pair.value.as_str().into_owned()));
    json!(all.collect::<BTreeMap<_, _>>())
}

/// A model that says in which trace it was asked.
struct Model;

impl Handler for Model {
    fn call(&self, cx: Context, _: RawJson, reply: Reply) {
        let trace = cx.trace_context();
        reply.text(trace.and_then(|trace| trace.parent_id().map(str::to_owned)).unwrap_or_default());
    }
}

fn server(told: &Told) -> Server {
    let tracer = told.tracers.tracer("the program");
    Server::new("s")
        .middleware(told.telemetry())
        .tool("work", "", move |_: Nothing, cx: Context| {
            let tracer = tracer.clone();
            async move {
                // Also when the handler has waited, its spans are the request's.
                tokio::task::yield_now().await;
                drop(tracer.start("inside"));
                let tenant = Spans::current().baggage().get("tenant").map(|value| value.as_str().to_owned());
                Ok(json!({"trace": cx.trace_context(), "tenant": tenant}).to_string())
            }
        })
        .tool("ask", "", |_: Nothing, cx: Context| async move {
            let question = CreateMessageRequestParams::new(9).user(&tricorn::model::Content::text("where?"));
            Ok(cx.sample(&question).await?.text())
        })
        .tool("fail", "", |_: Nothing| async move { Err::<String, _>(HandlerError::new("no")) })
        .tool("wait", "", |_: Nothing, cx: Context| async move {
            cx.progress(1.0, None, None);
            std::future::pending::<()>().await;
            Ok(String::new())
        })
        .resource(Resource::new("x://a", "a"), || async { Ok("text") })
        .prompt(Prompt::new("p"), || async { Ok("hello") })
}

fn handlers(told: &Told) -> Handlers {
    Handlers::new().sampling(std::sync::Arc::new(Model)).middleware(told.telemetry())
}

/// Runs a test between one client and one server, over each transport, in each era.
async fn everywhere(test: impl AsyncFn(&Client, &Told, &Told)) {
    for revision in ERAS {
        let options = ClientOptions::new().revision(revision);
        let (ours, theirs) = (Told::new(), Told::new());
        let client = Client::in_memory_with(&server(&theirs), &options, &handlers(&ours)).await.unwrap();
        test(&client, &ours, &theirs).await;
        let (ours, theirs) = (Told::new(), Told::new());
        let serving = server(&theirs).serve_http(HttpOptions::new().port(0)).await.unwrap();
        let target = Target::from_text(serving.url()).unwrap();
        let client = Client::connect_with(&target, &options, &handlers(&ours)).await.unwrap();
        test(&client, &ours, &theirs).await;
        client.close().await;
        serving.close();
    }
}

async fn call(client: &Client, name: &str) -> CallToolResult {
    tokio::time::timeout(PATIENCE, client.call_tool(name, json!({}))).await.unwrap().unwrap()
}

#[tokio::test]
async fn client_and_server_are_one_trace() {
    everywhere(async |client, ours, theirs| {
        let root = Spans::new().with_span(ours.tracers.tracer("the program").start("root"));
        let root = root.with_baggage([KeyValue::new("tenant", "a b")]);
        let result = call(client, "work").with_context(root.clone()).await;
        root.span().end();
        let (top, sent) = (ours.span("root"), ours.span("tools/call work"));
        let (served, inside) = (theirs.span("tools/call work"), theirs.span("inside"));
        for (span, parent, kind) in [
            (&sent, top.span_context.span_id(), SpanKind::Client),
            (&served, sent.span_context.span_id(), SpanKind::Server),
            (&inside, served.span_context.span_id(), SpanKind::Internal),
        ] {
            assert_eq!(span.parent_span_id, parent, "{}", span.name);
            assert_eq!(span.span_context.trace_id(), top.span_context.trace_id(), "{}", span.name);
            assert_eq!(span.span_kind, kind);
            assert_eq!(span.status, Status::Unset);
        }
        assert!(served.parent_span_is_remote && served.links.is_empty());
        // What the handler sees is its own span, for what it calls by other means.
        let seen: Value = serde_json::from_str(&result.text()).unwrap();
        let own = format!("00-{}-{}-01", top.span_context.trace_id(), served.span_context.span_id());
        assert_eq!(seen, json!({"trace": {"traceparent": own, "baggage": "tenant=a%20b"}, "tenant": "a b"}));
        let revision = client.revision().to_string();
        let mut expected = json!({
            "mcp.method.name": "tools/call", "gen_ai.tool.name": "work", "gen_ai.operation.name": "execute_tool",
            "mcp.protocol.version": revision,
        });
        if client.transport() == "http" {
            expected["network.transport"] = json!("tcp");
            expected["network.protocol.name"] = json!("http");
        }
        assert_eq!(said(&sent.attributes), expected);
        assert_eq!(ours.measured("mcp.client.operation.duration"), [(expected.clone(), 1)]);
        assert_eq!(theirs.measured("mcp.server.operation.duration"), [(expected.clone(), 1)]);
        let mut attributes = said(&served.attributes);
        let attributes = attributes.as_object_mut().unwrap();
        assert!(attributes.remove("jsonrpc.request.id").is_some_and(|id| id.as_str() > Some("")));
        let session = attributes.remove("mcp.session.id").map(|id| id.as_str().unwrap().to_owned());
        assert_eq!(session, client.session_id());
        assert_eq!(json!(attributes), expected);
    })
    .await;
}

#[tokio::test]
async fn what_a_handler_asks_belongs_to_its_span() {
    everywhere(async |client, ours, theirs| {
        let asked = call(client, "ask").await.text();
        let sent = ours.span("tools/call ask");
        // In rounds the same request is served twice; the question is of the first time.
        let served = theirs.spans();
        let served: Vec<_> = served.iter().filter(|span| span.name == "tools/call ask").collect();
        assert_eq!(served.len(), if client.revision().to_string() == ERAS[1] { 2 } else { 1 });
        assert!(served.iter().all(|span| span.parent_span_id == sent.span_context.span_id()));
        assert!(served.iter().all(|span| span.status == Status::Unset), "{served:?}");
        assert_eq!(asked, served[0].span_context.span_id().to_string());
    })
    .await;
}

#[tokio::test]
async fn a_request_that_fails_is_an_error_of_both() {
    everywhere(async |client, ours, theirs| {
        assert!(call(client, "fail").await.is_error);
        let error = client.read_resource("x://none").await.unwrap_err();
        let code = error.code().unwrap().to_string();
        client.get_prompt("p", json!({})).await.unwrap();
        client.read_resource("x://a").await.unwrap();
        for told in [ours, theirs] {
            let failed = told.span("tools/call fail");
            assert_eq!(said(&failed.attributes)["error.type"], "tool_error");
            // What the model reads stays out of it.
            assert_eq!(failed.status, Status::error(""));
            let reads: Vec<_> = told.spans().into_iter().filter(|span| span.name == "resources/read").collect();
            let attributes = said(&reads[0].attributes);
            assert_eq!(attributes["error.type"], json!(code));
            assert_eq!(attributes["rpc.response.status_code"], json!(code));
            assert_eq!(attributes["mcp.resource.uri"], "x://none");
            assert!(matches!(&reads[0].status, Status::Error { description } if description.contains("x://none")));
            assert_eq!(
                (said(&reads[1].attributes)["mcp.resource.uri"].clone(), &reads[1].status),
                (json!("x://a"), &Status::Unset)
            );
            let prompt = said(&told.span("prompts/get p").attributes);
            assert_eq!((&prompt["gen_ai.prompt.name"], prompt.get("gen_ai.operation.name")), (&json!("p"), None));
        }
        let measured = theirs.measured("mcp.server.operation.duration");
        let of = |key: &str, value: &str| measured.iter().filter(|(all, _)| all[key] == value).count();
        assert_eq!((measured.len(), of("error.type", "tool_error"), of("error.type", &code)), (4, 1, 1));
        // A URI has too many values for a metric.
        assert!(measured.iter().all(|(all, _)| all.get("mcp.resource.uri").is_none()), "{measured:?}");
    })
    .await;
}

#[tokio::test]
async fn a_request_that_is_given_up_is_one_too() {
    everywhere(async |client, ours, theirs| {
        let (begun, begins) = tokio::sync::oneshot::channel();
        let begun = std::sync::Mutex::new(Some(begun));
        let options = CallOptions::new().on_progress(move |_| {
            if let Some(begun) = begun.lock().unwrap().take() {
                let _ = begun.send(());
            }
        });
        tokio::select! {
            result = client.call_tool_with("wait", json!({}), &options) => panic!("{result:?}"),
            begins = tokio::time::timeout(PATIENCE, begins) => begins.unwrap().unwrap(),
        }
        // The server hears of it later.
        let ended = async {
            let has = |told: &Told| told.spans().iter().any(|span| span.name == "tools/call wait");
            while !has(ours) || !has(theirs) {
                call(client, "work").await;
            }
        };
        tokio::time::timeout(PATIENCE, ended).await.unwrap();
        for told in [ours, theirs] {
            let span = told.span("tools/call wait");
            assert_eq!(said(&span.attributes)["error.type"], "cancelled");
            assert!(matches!(span.status, Status::Error { .. }));
        }
    })
    .await;
}

#[tokio::test]
async fn what_the_caller_says_by_hand_stays() {
    let (ours, theirs) = (Told::new(), Told::new());
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let options = ClientOptions::new().trace_context(move || TraceContext::new(Some(parent), Some("v=1"), None).ok());
    let client = Client::in_memory_with(&server(&theirs), &options, &handlers(&ours)).await.unwrap();
    // What the client's options say is the parent where no span is current …
    call(&client, "work").await;
    let sent = ours.span("tools/call work");
    assert_eq!(sent.parent_span_id.to_string(), "00f067aa0ba902b7");
    assert_eq!(sent.span_context.trace_id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(sent.span_context.trace_state().header(), "v=1");
    assert_eq!(theirs.span("tools/call work").parent_span_id, sent.span_context.span_id());
    // … and what is in `_meta` is the server's parent, and none of ours.
    let by_hand = json!({"traceparent": parent.replace("b7-01", "b8-00")});
    client.call_tool_with("ask", json!({}), &CallOptions::new().meta(&by_hand)).await.unwrap();
    assert_eq!(ours.span("tools/call ask").parent_span_id, sent.parent_span_id);
    // Who does not record it has the server not record it either.
    assert!(theirs.spans().iter().all(|span| span.name != "tools/call ask"));
}

#[tokio::test]
async fn a_call_that_becomes_a_task_is_one_trace() {
    for revision in ERAS {
        let (ours, theirs) = (Told::new(), Told::new());
        let server = Server::new("s")
            .middleware(theirs.telemetry())
            .tasks(TaskOptions::new().task_poll_interval(Duration::from_millis(10)))
            .tool_with(
                Tool::new("job", "").task_support(tricorn::model::TaskSupport::Required),
                |_: Nothing| async move {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    Ok("done")
                },
            );
        let handlers = handlers(&ours).tasks(TaskOptions::new()).unwrap();
        let options = ClientOptions::new().revision(revision);
        let client = Client::in_memory_with(&server, &options, &handlers).await.unwrap();
        let options = CallOptions::new().task(None);
        let job = client.call_tool_with("job", json!({}), &options);
        assert_eq!(tokio::time::timeout(PATIENCE, job).await.unwrap().unwrap().text(), "done");
        let sent = ours.span("tools/call job");
        let served = theirs.spans();
        assert!(served.iter().any(|span| span.name.starts_with("tasks/")), "{revision}: {served:?}");
        for span in served {
            assert_eq!(span.parent_span_id, sent.span_context.span_id(), "{revision}: {}", span.name);
            assert_eq!(span.span_context.trace_id(), sent.span_context.trace_id(), "{revision}: {}", span.name);
        }
    }
}

#[tokio::test]
async fn what_brings_an_answer_to_a_task_belongs_to_who_waits_for_it() {
    let (ours, theirs) = (Told::new(), Told::new());
    let form = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let server = Server::new("s").tasks(TaskOptions::new().task_poll_interval(Duration::from_millis(10))).tool_with(
        Tool::new("asks", "").task_support(tricorn::model::TaskSupport::Required),
        move |_: Nothing, cx: Context| {
            let form = form.clone();
            async move { Ok(cx.elicit("a?", &form).await?.content["a"].to_string()) }
        },
    );
    let server = server.middleware(theirs.telemetry());
    struct Answers;
    impl Handler for Answers {
        fn call(&self, _: Context, _: RawJson, reply: Reply) {
            reply.value(RawJson::from_value(&json!({"action": "accept", "content": {"a": "1"}})));
        }
    }
    let handlers = handlers(&ours).elicitation(std::sync::Arc::new(Answers)).tasks(TaskOptions::new()).unwrap();
    let options = ClientOptions::new().revision(ERAS[1]);
    let client = Client::in_memory_with(&server, &options, &handlers).await.unwrap();
    let handle = client.call_tool_task("asks", json!({}), None, &CallOptions::new()).await.unwrap();
    let tracer = ours.tracers.tracer("test");
    let root = opentelemetry::Context::new().with_span(tracer.start("root"));
    tokio::time::timeout(PATIENCE, handle.wait().with_context(root.clone())).await.unwrap().unwrap();
    root.span().end();
    let (top, sent) = (ours.span("root").span_context, ours.span("tasks/update"));
    assert_eq!((sent.parent_span_id, sent.span_context.trace_id()), (top.span_id(), top.trace_id()));
    assert_eq!(theirs.span("tasks/update").parent_span_id, sent.span_context.span_id());
}
