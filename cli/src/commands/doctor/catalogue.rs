//! All findings: what is wrong, and how it is mended. `tests/doctor/faults.toml` has the same, with sources.

use super::report::Severity::{self, Error, Warning};

/// A part of the examination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Area {
    Process,
    Opening,
    Capabilities,
    Schemas,
    Paging,
    Calls,
    Http,
    Auth,
}

impl Area {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Opening => "opening",
            Self::Capabilities => "capabilities",
            Self::Schemas => "schemas",
            Self::Paging => "paging",
            Self::Calls => "calls",
            Self::Http => "http",
            Self::Auth => "auth",
        }
    }
}

/// A kind of finding.
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) severity: Severity,
    pub(super) area: Area,
    /// The hosts that mind; empty where all do.
    pub(super) profile: &'static str,
    pub(super) wrong: &'static str,
    pub(super) fix: &'static str,
}

/// The kind of this name.
pub(super) fn check(name: &str) -> Option<&'static Check> {
    CHECKS.iter().find(|check| check.name == name)
}

type Row = (&'static str, Severity, Area, &'static str, &'static str, &'static str);

const fn of((name, severity, area, profile, wrong, fix): Row) -> Check {
    Check { name, severity, area, profile, wrong, fix }
}

/// Kinds of findings, in the order in which they are reported.
#[rustfmt::skip]
pub(super) static CHECKS: &[Check] = &[
    of(("no-start", Error, Area::Process, "", "The server cannot be started.", "Give a command that exists: check the name, the PATH and that the file may be executed.")),
    of(("dies-early", Error, Area::Process, "", "The server ends before its first answer.", "Run the command by hand and mend what the last line of stderr says.")),
    of(("dies", Error, Area::Process, "", "The server ends in the middle of its work.", "Catch what goes wrong in a request, and answer it with an error.")),
    of(("slow-start", Warning, Area::Process, "", "The first answer takes more than 2 s.", "Load what is heavy when it is first used, not when the program starts.")),
    of(("noise", Error, Area::Process, "", "There is something on stdout that is no message.", "Write logs and banners to stderr: stdout is for messages only.")),
    of(("multi-line", Error, Area::Process, "", "A message is spread over several lines.", "Write JSON without line breaks, one message a line.")),
    of(("not-utf8", Error, Area::Process, "", "What the server writes is not UTF-8.", "Write UTF-8 without a byte order mark, whatever the locale is.")),
    of(("ignores-eof", Error, Area::Process, "", "The server goes on after its stdin has ended.", "End the process when stdin ends.")),
    of(("ignores-term", Warning, Area::Process, "", "The server goes on after SIGTERM.", "Leave SIGTERM its effect, or end soon after it.")),
    of(("orphan", Error, Area::Process, "", "The server leaves processes behind.", "End child processes with the server.")),
    of(("spins-after-eof", Error, Area::Process, "", "The server burns a core after its stdin has ended.", "End the process when a read gives nothing.")),
    of(("blocks-on-stderr", Warning, Area::Process, "", "The server stops when nobody reads its stderr.", "Log less, or drop log lines that cannot be written.")),
    of(("probe-hangs", Warning, Area::Opening, "", "The server does not answer `server/discover`, which newer clients ask first.", "Answer unknown methods with the error -32601.")),
    of(("probe-kills", Warning, Area::Opening, "", "The server ends at `server/discover`, which newer clients ask first.", "Answer unknown methods with the error -32601.")),
    of(("wrong-revision", Error, Area::Opening, "", "The server agrees to revisions that it does not speak.", "Answer with the revision that was asked for if it is known, and with the newest known one if not.")),
    of(("no-info", Error, Area::Opening, "", "The server does not say its name and version.", "Give serverInfo a name and a version.")),
    of(("id-retyped", Error, Area::Opening, "", "Answers have another id than the question.", "Give the id back as it came: 7 is not \"7\".")),
    of(("result-and-error", Error, Area::Opening, "", "An answer has both a result and an error, or neither.", "Give either a result or an error.")),
    of(("unknown-not-32601", Warning, Area::Opening, "", "An unknown method is not refused with -32601.", "Answer unknown methods with the error -32601.")),
    of(("garbage-kills", Error, Area::Opening, "", "The server ends at a message that is no JSON.", "Answer with the error -32700 and go on.")),
    of(("ping-silent", Error, Area::Opening, "", "`ping` gets no result.", "Answer `ping` with an empty result.")),
    of(("no-resultType", Error, Area::Opening, "", "Results lack resultType.", "Give each result `resultType`: `complete` where it is one.")),
    of(("no-ttl", Warning, Area::Opening, "", "Results lack ttlMs and cacheScope.", "Give results of lists, of resources/read and of server/discover `ttlMs` and `cacheScope`; 0 means: do not keep it.")),
    of(("takes-no-meta", Warning, Area::Opening, "", "Requests without the envelope of 2026-07-28 are served.", "Refuse them with -32602: each request says its revision and the client's capabilities.")),
    of(("tools-lie", Error, Area::Capabilities, "", "Tools are declared, and tools/list does not give them.", "Answer tools/list, with an empty list if need be, or do not declare tools.")),
    of(("lists-lie", Error, Area::Capabilities, "", "Resources or prompts are declared, and their list does not give them.", "Answer resources/list and prompts/list, with an empty list if need be, or do not declare them.")),
    of(("undeclared", Warning, Area::Capabilities, "", "There are tools, and the capability is missing.", "Declare `tools`: clients do not ask otherwise.")),
    of(("subscribe-lies", Error, Area::Capabilities, "", "Subscriptions are declared and refused.", "Take subscriptions, or leave `subscribe` out of the capability.")),
    of(("complete-lies", Error, Area::Capabilities, "", "Completions are declared, and completion/complete is not known.", "Answer completion/complete, or do not declare completions.")),
    of(("loglevel-lies", Error, Area::Capabilities, "", "Logging is declared, and logging/setLevel is refused.", "Answer logging/setLevel, or do not declare logging.")),
    of(("asks-undeclared", Error, Area::Capabilities, "", "The server asks for what the client has not declared.", "Look at the client's capabilities before asking.")),
    of(("no-description", Warning, Area::Schemas, "", "Something that models choose by its description has none.", "Describe it: models have nothing else to go by.")),
    of(("odd-name", Warning, Area::Schemas, "", "The name of a tool is not of letters, digits, `_`, `-` and `.`, 1 to 128 of them.", "Rename it.")),
    of(("host-name", Warning, Area::Schemas, "", "Hosts refuse the name of a tool.", "Rename it, with `_` in place of dots and slashes, and 50 characters at most.")),
    of(("twin-names", Error, Area::Schemas, "", "Two tools have one name.", "Give each tool a name of its own.")),
    of(("no-properties", Warning, Area::Schemas, "openai", "An input schema has no properties.", "Write `\"properties\": {}` for tools without arguments.")),
    of(("not-strict", Warning, Area::Schemas, "openai-strict", "An input schema does not fit the strict mode.", "Require all arguments, with `null` for what is left out, and set `additionalProperties` to false.")),
    of(("array-no-items", Error, Area::Schemas, "vscode", "An argument is an array without `items`.", "Give it `items`, `{}` if need be.")),
    of(("top-anyOf", Error, Area::Schemas, "claude", "An input schema has oneOf, allOf or anyOf at its top.", "Move it into an argument, or check it in the tool.")),
    of(("odd-key", Error, Area::Schemas, "claude", "The name of an argument is refused.", "Rename the argument. The pattern holds at the top of the schema only.")),
    of(("gemini-keyword", Warning, Area::Schemas, "gemini", "An input schema has keywords that are refused.", "Leave out $ref, $defs, exclusiveMinimum and anyOf within items.")),
    of(("bad-schema", Error, Area::Schemas, "", "A schema is none.", "Mend the schema.")),
    of(("deep-ref", Warning, Area::Schemas, "", "A schema goes deep by its references.", "Flatten it: hosts give up, and models too.")),
    of(("circular-ref", Warning, Area::Schemas, "", "A schema refers to itself.", "Bound the depth by writing the levels out.")),
    of(("remote-ref", Error, Area::Schemas, "", "A schema refers to another place, which clients do not fetch.", "Write the definition into `$defs`.")),
    of(("output-no-object", Error, Area::Schemas, "", "An output schema before 2026-07-28 is no object.", "Give it `\"type\": \"object\"`.")),
    of(("too-big", Warning, Area::Schemas, "", "The definitions of tools are too big for models.", "Offer fewer tools with shorter descriptions: at most 128, each of 8 KiB, all of 64 KiB.")),
    of(("hints-contradict", Warning, Area::Schemas, "", "A tool both only reads and destroys.", "Set readOnlyHint to false, or leave destructiveHint out.")),
    of(("cursor-loop", Error, Area::Paging, "", "A list does not end: a cursor comes twice.", "Give each page its own cursor, and the last none.")),
    of(("bad-cursor-ok", Warning, Area::Paging, "", "A cursor that was never given is taken.", "Refuse it with -32602.")),
    of(("order-shifts", Warning, Area::Paging, "", "Lists come in another order each time.", "List in a fixed order: it keeps caches of prompts alive.")),
    of(("unknown-tool-ok", Error, Area::Calls, "", "A call of a tool that does not exist succeeds.", "Refuse it with -32602.")),
    of(("bad-args-crash", Error, Area::Calls, "", "Arguments that are missing make the server crash.", "Check arguments, and give a result with isError that says what is wrong.")),
    of(("cancel-ignored", Warning, Area::Calls, "", "A cancelled call goes on.", "Stop, and do not answer.")),
    of(("progress-back", Error, Area::Calls, "", "Progress falls, comes after the answer or has another token.", "Let progress rise with each report, and end it with the answer.")),
    of(("trace-leaks", Warning, Area::Calls, "", "An error tells of the program's insides.", "Tell the model what it can mend, and log the rest.")),
    of(("output-unfit", Error, Area::Calls, "", "Structured content is missing, or is not of the output schema.", "Give what the schema says.")),
    of(("bad-base64", Error, Area::Calls, "", "An image or a blob is not base64, or has no mimeType.", "Encode it with padding, and give its mimeType.")),
    of(("any-host", Error, Area::Http, "", "A server on the loopback interface answers any Host.", "Refuse with 403 what is not its own name: web pages reach it by DNS rebinding otherwise.")),
    of(("any-origin", Error, Area::Http, "", "The server answers any Origin.", "Refuse with 403 an Origin that is not allowed.")),
    of(("cors-bad", Warning, Area::Http, "", "Web pages get too much, or not enough.", "Name the Origin rather than `*` where there are credentials, and expose Mcp-Session-Id.")),
    of(("session-unchecked", Error, Area::Http, "", "Requests with no session, or with a made-up one, are served.", "Refuse them: 400 without the header, 404 with an unknown session.")),
    of(("session-guessable", Error, Area::Http, "", "Session ids can be guessed.", "Take 128 bits of a secure source of chance.")),
    of(("restart-not-404", Warning, Area::Http, "", "A session that has ended is not answered with 404.", "Answer 404: clients then open a new one by themselves.")),
    of(("sessions-leak", Warning, Area::Http, "", "Sessions that have ended stay in memory.", "Drop all that belongs to a session when it ends.")),
    of(("header-mismatch-ok", Warning, Area::Http, "", "Headers that differ from the body are taken.", "Refuse them with 400 and -32020.")),
    of(("no-challenge", Error, Area::Auth, "", "401 comes without WWW-Authenticate, so that it does not say how to log in.", "Send `WWW-Authenticate: Bearer resource_metadata=\"...\"`.")),
    of(("no-metadata", Error, Area::Auth, "", "A document on the way to a login is missing.", "Serve the metadata of the resource, with its authorization servers, and have each of them serve its own.")),
    of(("resource-differs", Error, Area::Auth, "", "The metadata is of another resource.", "Let `resource` be the URL of this server, character by character.")),
    of(("issuer-differs", Error, Area::Auth, "", "The authorization server's document is of another issuer.", "Let `issuer` be the URL that the document was found by.")),
    of(("no-S256", Error, Area::Auth, "", "The authorization server does not say that it knows PKCE with S256.", "Have it list S256: clients refuse to log in otherwise.")),
    of(("foreign-audience-ok", Error, Area::Auth, "", "A token for another resource is taken.", "Check that the token's audience is this server.")),
];
