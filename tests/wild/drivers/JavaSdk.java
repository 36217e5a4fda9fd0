// The client of io.modelcontextprotocol.sdk:mcp.
import io.modelcontextprotocol.client.McpAsyncClient;
import io.modelcontextprotocol.client.McpClient;
import io.modelcontextprotocol.client.transport.HttpClientStreamableHttpTransport;
import io.modelcontextprotocol.client.transport.ServerParameters;
import io.modelcontextprotocol.client.transport.StdioClientTransport;
import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.spec.McpClientTransport;
import io.modelcontextprotocol.spec.McpSchema;
import java.net.URI;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import reactor.core.publisher.Mono;

final class JavaSdk implements Checks.Session {
    private static final Duration LIMIT = Duration.ofSeconds(30);
    private final List<Double> heard = new CopyOnWriteArrayList<>();
    private final McpAsyncClient client;

    private JavaSdk(String url, List<String> command) {
        client = McpClient.async(transport(url, command))
            .requestTimeout(LIMIT)
            .capabilities(McpSchema.ClientCapabilities.builder().elicitation().sampling().build())
            .elicitation(form -> Mono.just(accepted()))
            .sampling(question -> Mono.just(sampled(question)))
            .progressConsumer(report -> Mono.fromRunnable(() -> heard.add(report.progress())))
            .build();
        client.initialize().block(LIMIT);
    }

    private static McpClientTransport transport(String url, List<String> command) {
        if (url != null) {
            URI there = URI.create(url);
            String base = there.getScheme() + "://" + there.getAuthority();
            return HttpClientStreamableHttpTransport.builder(base).endpoint(there.getPath()).build();
        }
        ServerParameters program = ServerParameters.builder(command.get(0))
            .args(command.subList(1, command.size()))
            .env(System.getenv())
            .build();
        return new StdioClientTransport(program, McpJsonDefaults.getMapper());
    }

    private static McpSchema.ElicitResult accepted() {
        return McpSchema.ElicitResult.builder(McpSchema.ElicitResult.Action.ACCEPT).content(Checks.USER).build();
    }

    private static McpSchema.CreateMessageResult sampled(McpSchema.CreateMessageRequest question) {
        List<McpSchema.SamplingMessage> messages = question.messages();
        String last = textOf(Stream.of(messages.get(messages.size() - 1).content()));
        return McpSchema.CreateMessageResult.builder(McpSchema.Role.ASSISTANT, Checks.model(last), "none").build();
    }

    private static String textOf(Stream<McpSchema.Content> content) {
        return content.map(block -> block instanceof McpSchema.TextContent text ? text.text() : String.valueOf(block))
            .collect(Collectors.joining("\n"));
    }

    private Mono<Checks.Said> ask(McpSchema.CallToolRequest request) {
        return client.callTool(request).map(result -> new Checks.Said(
            Boolean.TRUE.equals(result.isError()), textOf(result.content().stream())));
    }

    @Override
    public List<String> tools() {
        return client.listTools().block(LIMIT).tools().stream().map(McpSchema.Tool::name).toList();
    }

    @Override
    public CompletableFuture<Checks.Said> call(String name, Map<String, Object> arguments) {
        return ask(McpSchema.CallToolRequest.builder(name).arguments(arguments).build()).toFuture();
    }

    @Override
    public List<Double> progress(String name, Map<String, Object> arguments) throws InterruptedException {
        ask(McpSchema.CallToolRequest.builder(name).arguments(arguments).progressToken("count").build()).block(LIMIT);
        // The consumers are those of the client, not of the call, and hear of it a moment later.
        for (int wait = 0; heard.size() < 5 && wait < 100; wait++) {
            Thread.sleep(10);
        }
        return heard;
    }

    @Override
    public String read(String uri) {
        return client.readResource(McpSchema.ReadResourceRequest.builder(uri).build()).block(LIMIT).contents().stream()
            .map(part -> part instanceof McpSchema.TextResourceContents text ? text.text() : "")
            .collect(Collectors.joining("\n"));
    }

    @Override
    public String prompt(String name, Map<String, Object> arguments) {
        var request = McpSchema.GetPromptRequest.builder(name).arguments(arguments).build();
        return textOf(client.getPrompt(request).block(LIMIT).messages().stream().map(McpSchema.PromptMessage::content));
    }

    @Override
    public Set<String> answers() {
        return Set.of("elicitation", "sampling");
    }

    @Override
    public void close() {
        client.closeGracefully().block(LIMIT);
    }

    public static void main(String[] arguments) throws Exception {
        Checks.main(arguments, JavaSdk::new);
    }
}
