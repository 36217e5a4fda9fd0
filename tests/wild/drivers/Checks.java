// What every client is asked, in the same words: see README.md. A driver says how its client does each.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Pattern;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.ObjectMapper;

final class Checks {
    private static final Duration LIMIT = Duration.ofSeconds(40);
    private static final String TEXT = "grüße 🦄 \" \\ \n\t </script>";
    /** The answer of the client's user to a form. */
    static final Map<String, Object> USER = Map.of("username", "ada", "email", "ada@example.com");
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final ExecutorService THREADS = Executors.newCachedThreadPool(body -> {
        Thread thread = new Thread(body);
        thread.setDaemon(true);
        return thread;
    });

    record Said(boolean error, String text) {}

    /** The answer of the client's model. */
    static String model(String text) {
        return "heard " + text;
    }

    /** A connection. A call is cancelled as its future is. */
    interface Session {
        List<String> tools();

        CompletableFuture<Said> call(String name, Map<String, Object> arguments);

        List<Double> progress(String name, Map<String, Object> arguments) throws Exception;

        String read(String uri);

        String prompt(String name, Map<String, Object> arguments);

        /** The questions of servers that it answers, {@code elicitation} with USER and {@code sampling} with model. */
        Set<String> answers();

        void close();
    }

    interface Connect {
        /** A URL, or a command. */
        Session to(String url, List<String> command) throws Exception;
    }

    private interface Body {
        /** The text is a note beside a check that passed. */
        String run() throws Exception;
    }

    /** This client has no way to do that. */
    private static final class Skip extends Exception {}

    private static void say(String check, Boolean ok, String note) {
        Map<String, Object> line = new TreeMap<>(Map.of("check", check, "note", note));
        line.put("ok", ok);
        System.out.println(JSON.writeValueAsString(line));
        System.out.flush();
    }

    private static boolean check(String name, Body body) {
        CompletableFuture<String> end = new CompletableFuture<>();
        THREADS.execute(() -> {
            try {
                end.complete(body.run());
            } catch (Throwable error) {
                end.completeExceptionally(error);
            }
        });
        try {
            say(name, true, end.get(LIMIT.toSeconds(), TimeUnit.SECONDS));
            return true;
        } catch (TimeoutException late) {
            say(name, false, "no end");
        } catch (ExecutionException | InterruptedException error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            while (cause instanceof ExecutionException && cause.getCause() != null) {
                cause = cause.getCause();
            }
            say(name, cause instanceof Skip ? null : false, cause instanceof Skip ? "" : String.valueOf(cause));
        }
        return false;
    }

    private static void expect(boolean ok, Object said) {
        if (!ok) {
            String text = String.valueOf(said);
            throw new AssertionError("got " + text.substring(0, Math.min(text.length(), 400)));
        }
    }

    private final Session it;

    private Checks(Session it) {
        this.it = it;
    }

    private Said call(String name, Map<String, Object> arguments) throws Exception {
        return it.call(name, arguments).get(LIMIT.toSeconds(), TimeUnit.SECONDS);
    }

    private void sum(int a, int b) throws Exception {
        Said said = call("add", Map.of("a", a, "b", b));
        expect(!said.error() && said.text().contains(String.valueOf(a + b)), said);
    }

    private void real() throws Exception {
        sum(2, 40);
        Said echo = call("echo", Map.of("text", TEXT));
        expect(!echo.error() && echo.text().contains(TEXT), echo);
    }

    private String many() throws Exception {
        List<CompletableFuture<Said>> all = new ArrayList<>();
        for (int n = 0; n < 50; n++) {
            all.add(it.call("add", Map.of("a", n, "b", 1000)));
        }
        for (int n = 0; n < 50; n++) {
            Said said = all.get(n).get(LIMIT.toSeconds(), TimeUnit.SECONDS);
            expect(!said.error() && said.text().contains(String.valueOf(n + 1000)), said);
        }
        return "";
    }

    private int slowCalls(String what) throws Exception {
        Said said = call("test_metrics", Map.of());
        expect(!said.error(), said);
        String flat = said.text().replace("\\", "").replaceAll("\\s", "");
        var found = Pattern.compile("\"" + what + "\":(\\d+)").matcher(flat);
        int last = -1;
        while (found.find()) {
            last = Integer.parseInt(found.group(1));
        }
        return last;
    }

    private String cancel() throws Exception {
        int running = slowCalls("running");
        int cancelled = slowCalls("cancelled");
        CompletableFuture<Said> slow = it.call("slow", Map.of("ms", 20_000));
        // Each question is a round to the server, so nothing spins.
        for (long end = System.nanoTime() + 10_000_000_000L; slowCalls("running") <= running;) {
            if (System.nanoTime() > end) {
                return "each call has a server of its own";
            }
        }
        slow.cancel(true);
        boolean heard = false;
        for (long end = System.nanoTime() + 3_000_000_000L; !heard && System.nanoTime() < end;) {
            heard = slowCalls("cancelled") > cancelled;
        }
        real();
        return heard ? "" : "the client does not tell the server";
    }

    private String progress() throws Exception {
        List<Double> heard = it.progress("count", Map.of("to", 5));
        boolean inOrder = !heard.isEmpty();
        for (int at = 0; at < heard.size(); at++) {
            inOrder = inOrder && heard.get(at) == at + 1;
        }
        expect(inOrder, heard);
        return heard.size() == 5 ? "" : "the client drops a report that arrives with the result";
    }

    private String list() {
        List<String> names = it.tools();
        expect(names.contains("add"), names);
        return names.size() + " tools";
    }

    private String fail() throws Exception {
        Said said = call("fail", Map.of("kind", "tool"));
        expect(said.error() && said.text().contains("the tool says no"), said);
        return "";
    }

    private String resource() {
        String text = it.read("test://static-text");
        expect(text.toLowerCase().contains("static text"), text);
        return "";
    }

    private String prompt() {
        String text = it.prompt("test_prompt_with_arguments", Map.of("arg1", "hello", "arg2", "world"));
        expect(text.contains("hello") && text.contains("world"), text);
        return "";
    }

    /** A tool that has the server ask the client. */
    private String question(String what, String name, Map<String, Object> arguments, String answer) throws Exception {
        if (!it.answers().contains(what)) {
            throw new Skip();
        }
        Said said = call(name, arguments);
        expect(!said.error() && said.text().contains(answer), said);
        return "";
    }

    private String elicitation() throws Exception {
        return question("elicitation", "test_elicitation", Map.of("message", "Who is there?"), "ada@example.com");
    }

    private String sampling() throws Exception {
        return question("sampling", "test_sampling", Map.of("prompt", "a question"), model("a question"));
    }

    static void main(String[] arguments, Connect connect) throws Exception {
        JsonNode plan = JSON.readTree(arguments[arguments.length - 1]);
        JsonNode target = plan.get("target");
        List<String> command = new ArrayList<>();
        target.forEach(word -> command.add(word.asString()));
        String url = target.isString() ? target.asString() : null;
        List<String> without = new ArrayList<>();
        plan.path("without").forEach(name -> without.add(name.asString()));

        Session[] it = new Session[1];
        boolean opened = check("connect", () -> {
            it[0] = connect.to(url, command);
            return "";
        });
        if (!opened) {
            System.exit(0);
        }
        Checks checks = new Checks(it[0]);
        Map<String, Body> bodies = new java.util.LinkedHashMap<>();
        bodies.put("list", checks::list);
        bodies.put("call", () -> {
            checks.real();
            return "";
        });
        bodies.put("tool error", checks::fail);
        bodies.put("50 at once", checks::many);
        bodies.put("cancel", checks::cancel);
        bodies.put("progress", checks::progress);
        bodies.put("resource", checks::resource);
        bodies.put("prompt", checks::prompt);
        bodies.put("elicitation", checks::elicitation);
        bodies.put("sampling", checks::sampling);
        bodies.forEach((name, body) -> {
            if (!without.contains(name)) {
                check(name, body);
            }
        });
        if (url != null) {
            System.out.println("{\"ask\": \"restart\"}");
            System.out.flush();
            new BufferedReader(new InputStreamReader(System.in)).readLine();
            check("restart", () -> {
                try {
                    it[0].call("add", Map.of("a", 20, "b", 3)).get(LIMIT.toSeconds() / 2, TimeUnit.SECONDS);
                    new Checks(it[0]).sum(20, 3);
                    return "";
                } catch (ExecutionException | TimeoutException | AssertionError broken) {
                    try {
                        it[0].close();
                    } catch (RuntimeException ended) {
                        // It is broken.
                    }
                    it[0] = connect.to(url, command);
                    new Checks(it[0]).sum(20, 3);
                    return "with a new connection";
                }
            });
        }
        check("close", () -> {
            it[0].close();
            return "";
        });
        // A client that keeps its program alive after its end is seen by nobody else.
        System.exit(0);
    }
}
