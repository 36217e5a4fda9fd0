// A server on io.modelcontextprotocol.sdk:mcp, as nobody has published one that a registry starts.
import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.server.McpServer;
import io.modelcontextprotocol.server.McpServerFeatures.SyncPromptSpecification;
import io.modelcontextprotocol.server.McpServerFeatures.SyncResourceSpecification;
import io.modelcontextprotocol.server.McpSyncServerExchange;
import io.modelcontextprotocol.server.transport.StdioServerTransportProvider;
import io.modelcontextprotocol.spec.McpSchema;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;

final class JavaServer {
    private static Map<String, Object> form(String type, String... names) {
        Map<String, Object> properties = new java.util.TreeMap<>();
        for (String name : names) {
            properties.put(name, Map.of("type", type));
        }
        return Map.of("type", "object", "properties", properties, "required", List.of(names));
    }

    private static McpSchema.CallToolResult text(String text) {
        return McpSchema.CallToolResult.builder().addTextContent(text).build();
    }

    private static McpSchema.CallToolResult add(McpSyncServerExchange exchange, McpSchema.CallToolRequest request) {
        int sum = 0;
        for (Object number : request.arguments().values()) {
            sum += ((Number) number).intValue();
        }
        return text(String.valueOf(sum));
    }

    private static McpSchema.CallToolResult fail(McpSyncServerExchange exchange, McpSchema.CallToolRequest request) {
        return McpSchema.CallToolResult.builder().addTextContent("the tool says no").isError(true).build();
    }

    private static McpSchema.CallToolResult elicit(McpSyncServerExchange exchange, McpSchema.CallToolRequest request) {
        var question = McpSchema.ElicitFormRequest.builder("Who is there?", form("string", "username", "email")).build();
        return text(String.valueOf(exchange.createElicitation(question).content()));
    }

    private static McpSchema.CallToolResult sample(McpSyncServerExchange exchange, McpSchema.CallToolRequest request) {
        var prompt = new McpSchema.TextContent(String.valueOf(request.arguments().get("prompt")));
        var messages = List.of(new McpSchema.SamplingMessage(McpSchema.Role.USER, prompt));
        var answer = exchange.createMessage(McpSchema.CreateMessageRequest.builder(messages, 100).build());
        return text(answer.content() instanceof McpSchema.TextContent said ? said.text() : "");
    }

    private static McpSchema.Tool tool(String name, String description, Map<String, Object> input) {
        return McpSchema.Tool.builder(name, input).description(description).build();
    }

    private static McpSchema.ReadResourceResult read(McpSyncServerExchange exchange, McpSchema.ReadResourceRequest asked) {
        return new McpSchema.ReadResourceResult(
            List.of(new McpSchema.TextResourceContents(asked.uri(), "text/plain", "This is a static text.")));
    }

    private static McpSchema.GetPromptResult greet(McpSyncServerExchange exchange, McpSchema.GetPromptRequest asked) {
        var said = new McpSchema.PromptMessage(McpSchema.Role.USER, new McpSchema.TextContent("Hello."));
        return new McpSchema.GetPromptResult("A greeting", List.of(said));
    }

    public static void main(String[] arguments) {
        Map<String, Object> nothing = form("string");
        BiFunction<McpSyncServerExchange, McpSchema.CallToolRequest, McpSchema.CallToolResult> add = JavaServer::add;
        McpServer.sync(new StdioServerTransportProvider(McpJsonDefaults.getMapper()))
            .serverInfo("java", "1.0.0")
            .capabilities(McpSchema.ServerCapabilities.builder().tools(true).resources(false, true).prompts(true).build())
            .toolCall(tool("add", "Add two numbers", form("integer", "a", "b")), add)
            .toolCall(tool("fail", "Fail", nothing), JavaServer::fail)
            .toolCall(tool("test_elicitation", "Ask the user", nothing), JavaServer::elicit)
            .toolCall(tool("test_sampling", "Ask the client's model", form("string", "prompt")), JavaServer::sample)
            .resources(new SyncResourceSpecification(
                McpSchema.Resource.builder("test://static-text", "static-text").mimeType("text/plain").build(),
                JavaServer::read))
            .prompts(new SyncPromptSpecification(
                new McpSchema.Prompt("greet", "A greeting", List.of()), JavaServer::greet))
            .build();
    }
}
