"""Output schemas and forms of a hostile server: what doubles, what backtracks, what is huge."""

import json
from collections.abc import Callable
from typing import Any

from registry import client

Json = dict[str, Any]


def ladder(
    applicator: Callable[[Json], Json],
    depth: int = 18,
    value: Json | None = None,
    closed: str = "unevaluatedProperties",
) -> Json:
    """Definitions each of which refers to the next one twice."""
    defs: Json = {}
    for n in range(depth):
        defs[f"d{n}"] = applicator({"$ref": f"#/$defs/d{n + 1}"}) | ({closed: False} if closed else {})
    defs[f"d{depth}"] = value or {"properties": {"a": {}}}
    return {"type": "object", "$defs": defs, "$ref": "#/$defs/d0"}


LADDERS: dict[str, tuple[Callable[[], Any], Any, str, bool]] = {
    "any-of": (lambda: ladder(lambda r: {"anyOf": [r, r]}), {"a": 1}, "HO-1", True),
    "any-of-wrong": (lambda: ladder(lambda r: {"anyOf": [r, r]}), {"b": 1}, "HO-1", False),
    "all-of": (lambda: ladder(lambda r: {"allOf": [r, r]}), {"a": 1}, "HO-1 sibling", False),
    "one-of": (lambda: ladder(lambda r: {"oneOf": [r, r, {"required": ["z"]}]}), {"a": 1}, "HO-1 sibling", False),
    "if-then": (lambda: ladder(lambda r: {"if": r, "then": r, "else": r}), {"a": 1}, "HO-1 sibling", False),
    "not-not": (lambda: ladder(lambda r: {"not": {"not": r}, "allOf": [r]}), {"a": 1}, "HO-1 sibling", False),
    "dependent": (
        lambda: ladder(lambda r: {"dependentSchemas": {"a": r, "b": r}, "allOf": [r]}),
        {"a": 1, "b": 2},
        "HO-1 sibling",
        False,
    ),
    "properties": (
        lambda: ladder(lambda r: {"properties": {"a": r, "b": r}}),
        {"a": {"a": {"a": 1}}, "b": {"b": {"b": 1}}},
        "HO-1 sibling",
        False,
    ),
    "plain-any-of": (
        lambda: ladder(lambda r: {"anyOf": [r, r]}, 24, {"required": ["z"]}, ""),
        {"a": 1},
        "HO-1 sibling",
        False,
    ),
    "contains": (
        lambda: {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/d0"}},
            "$defs": {
                **{
                    f"d{n}": {
                        "contains": {"$ref": f"#/$defs/d{n + 1}"},
                        "allOf": [{"$ref": f"#/$defs/d{n + 1}"}],
                        "unevaluatedItems": False,
                    }
                    for n in range(16)
                },
                "d16": {"type": "array"},
            },
        },
        {"a": [[[[1]]]]},
        "HO-1 sibling",
        False,
    ),
    "dynamic-ref": (
        lambda: {
            "$id": "http://x.example/a",
            "$dynamicAnchor": "n",
            "type": "object",
            "anyOf": [{"properties": {"a": {"$dynamicRef": "#n"}}}] * 4,
            "unevaluatedProperties": False,
        },
        {"a": {"a": {"a": {"a": {"a": {"a": {"a": {"a": {}}}}}}}}},
        "HO-1 sibling",
        False,
    ),
    "self-ref": (lambda: {"type": "object", "$ref": "#"}, {"a": 1}, "HO-1 sibling: a loop", True),
    "ref-loop": (
        lambda: {
            "type": "object",
            "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
            "$ref": "#/$defs/a",
        },
        {"a": 1},
        "HO-1 sibling: a loop",
        False,
    ),
    "ref-chain": (
        lambda: {
            "type": "object",
            "$defs": {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(20_000)} | {"d20000": {}},
            "$ref": "#/$defs/d0",
        },
        {"a": 1},
        "HO-1 sibling: compiling",
        False,
    ),
    "ref-remote": (
        lambda: {"type": "object", "allOf": [{"$ref": f"http://127.0.0.1:1/{n}"} for n in range(1000)]},
        {"a": 1},
        "CVE class: fetches of a schema",
        False,
    ),
    "pattern-classes": (
        lambda: {
            "type": "object",
            "properties": {
                f"p{n}": {"type": "string", "pattern": r"^[\p{L}\p{N}\p{S}]{90}x%d$" % n} for n in range(100)
            },
        },
        {"p1": "a"},
        "HO-2",
        True,
    ),
    "pattern-classes-300": (
        lambda: {
            "type": "object",
            "properties": {
                f"p{n}": {"type": "string", "pattern": r"^[\p{L}\p{N}\p{S}]{90}x%d$" % n} for n in range(300)
            },
        },
        {"p1": "a"},
        "HO-2",
        False,
    ),
    "pattern-look-ahead": (
        lambda: {"type": "object", "properties": {"a": {"items": {"pattern": "^(?:(?:(?=a)a+)+!|a+)$"}}}},
        {"a": ["a" * 16 + "b"] * 4000},
        "HO-2",
        True,
    ),
    "pattern-back-reference": (
        lambda: {"type": "object", "properties": {"a": {"items": {"pattern": "^(a*)*\\1b$"}}}},
        {"a": ["a" * 30] * 1000},
        "CVE class: ReDoS",
        False,
    ),
    "pattern-nested": (
        lambda: {"type": "object", "properties": {"a": {"pattern": "^(a+)+$"}}},
        {"a": "a" * 100_000 + "!"},
        "CVE class: ReDoS",
        False,
    ),
    "pattern-counted": (
        lambda: {"type": "object", "properties": {"a": {"pattern": "((a{0,100}){0,100}){0,100}"}}},
        {"a": "a" * 1000},
        "CVE class: ReDoS",
        False,
    ),
    "pattern-alternatives": (
        lambda: {"type": "object", "properties": {"a": {"pattern": "|".join(f"a{n}" for n in range(60_000))}}},
        {"a": "b" * 100_000},
        "HO-2",
        False,
    ),
    "pattern-long-texts": (
        lambda: {"type": "object", "properties": {"a": {"allOf": [{"pattern": f"[a-z]*{n}$"} for n in range(200)]}}},
        {"a": "a" * 500_000},
        "HO-2: bytes times patterns",
        False,
    ),
    "pattern-properties": (
        lambda: {"type": "object", "patternProperties": {f"^x*{n}$": {} for n in range(500)}},
        {f"x{n}": n for n in range(10_000)},
        "HO-2 sibling",
        False,
    ),
    "property-names": (
        lambda: {"type": "object", "propertyNames": {"pattern": "^(?:(?=x)x+)+y$"}},
        {"x" * 20 + str(n): n for n in range(5000)},
        "HO-2 sibling",
        False,
    ),
    "format-regex": (
        lambda: {"type": "object", "properties": {"a": {"items": {"format": "regex"}}}},
        {"a": [r"[\p{L}]{1000}%d" % n for n in range(1000)]},
        "HO-2 sibling",
        False,
    ),
    "format-many": (
        lambda: {
            "type": "object",
            "properties": {
                "a": {
                    "items": {
                        "anyOf": [
                            {"format": f}
                            for f in (
                                "email",
                                "uri",
                                "ipv6",
                                "hostname",
                                "date-time",
                                "idn-email",
                                "iri",
                                "uri-template",
                                "json-pointer",
                            )
                        ]
                    }
                }
            },
        },
        {"a": ["a." * 200 for _ in range(3000)]},
        "HO-2 sibling",
        False,
    ),
    "unique-items": (
        lambda: {"type": "object", "properties": {"a": {"uniqueItems": True}}},
        {"a": [{"x": n} for n in range(60_000)]},
        "CVE class: quadratic",
        True,
    ),
    "unique-arrays": (
        lambda: {"type": "object", "properties": {"a": {"uniqueItems": True}}},
        {"a": [[n, [n]] for n in range(60_000)]},
        "CVE class: quadratic",
        False,
    ),
    "enum-huge": (
        lambda: {"type": "object", "properties": {"a": {"items": {"enum": [{"k": n} for n in range(5000)]}}}},
        {"a": [{"k": 5000}] * 5000},
        "CVE class: quadratic",
        False,
    ),
    "const-huge": (
        lambda: {"type": "object", "properties": {"a": {"items": {"const": list(range(5000))}}}},
        {"a": [list(range(4999)) + [0]] * 20},
        "CVE class: quadratic",
        False,
    ),
    "contains-many": (
        lambda: {
            "type": "object",
            "properties": {"a": {"allOf": [{"contains": {"const": n}, "minContains": 5} for n in range(1000)]}},
        },
        {"a": [0] * 10_000},
        "CVE class: quadratic",
        False,
    ),
    "required-many": (
        lambda: {"type": "object", "required": [f"r{n}" for n in range(100_000)]},
        {"a": 1},
        "CVE class: large schemas",
        False,
    ),
    "properties-many": (
        lambda: {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(50_000)}},
        {"a": 1},
        "CVE class: large schemas",
        True,
    ),
    "subschemas": (
        lambda: {"type": "object", "allOf": [{"properties": {"a": {"minimum": n}}} for n in range(9000)]},
        {"a": 1},
        "CVE class: large schemas",
        False,
    ),
    "problems-many": (
        lambda: {"type": "object", "properties": {"a": {"items": {"type": "string"}}}},
        {"a": [1] * 400_000},
        "CVE class: errors without a bound",
        True,
    ),
    "problems-any-of": (
        lambda: {"type": "object", "properties": {"a": {"items": {"anyOf": [{"const": f"c{n}"} for n in range(100)]}}}},
        {"a": [1] * 5000},
        "CVE class: errors without a bound",
        False,
    ),
    "deep-schema": (
        lambda: json.loads('{"type":"object","not":' * 60 + "{}" + "}" * 60),
        {"a": 1},
        "CVE class: recursion",
        False,
    ),
    "deeper-schema": (
        lambda: b'{"type":"object","not":' * 20_000 + b"{}" + b"}" * 20_000,
        {"a": 1},
        "CVE class: recursion",
        False,
    ),
    "multiple-of": (
        lambda: {"type": "object", "properties": {"a": {"multipleOf": 1e-300}}},
        {"a": 1e300},
        "CVE class: numbers",
        False,
    ),
    "length-huge": (
        lambda: {"type": "object", "properties": {"a": {"minLength": 10**18, "maxLength": 10**30}}},
        {"a": "x"},
        "CVE class: numbers",
        False,
    ),
    "unevaluated-wide": (
        lambda: {
            "type": "object",
            "allOf": [{"properties": {f"p{n}": {}}} for n in range(2000)],
            "unevaluatedProperties": False,
        },
        {f"p{n}": 0 for n in range(2000)},
        "HO-1 sibling",
        False,
    ),
    "draft-4": (
        lambda: {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "type": "object",
            "definitions": {},
            "$ref": "#",
        },
        {"a": 1},
        "other drafts",
        False,
    ),
    "ids-many": (
        lambda: {
            "type": "object",
            "$defs": {f"d{n}": {"$id": f"http://x.example/{'p' * 200}/{n}"} for n in range(8000)},
        },
        {"a": 1},
        "CVE class: large schemas",
        False,
    ),
    "anchors-same": (
        lambda: {"type": "object", "$defs": {f"d{n}": {"$anchor": "a"} for n in range(9000)}, "$ref": "#a"},
        {"a": 1},
        "CVE class: large schemas",
        False,
    ),
    "pointer-deep": (
        lambda: {"type": "object", "allOf": [{"$ref": "#/" + "not/" * 4000}] * 200},
        {"a": 1},
        "CVE class: references",
        False,
    ),
}


def check(attack: Any, make: Callable[[], Any], value: Any) -> None:
    attack.check_output(make(), value)


for _name, (_make, _value, _source, _core) in LADDERS.items():
    _both = _name in ("any-of", "pattern-classes", "pattern-look-ahead")
    client(
        f"schema-{_name}",
        _source,
        _make,
        _value,
        on="both" if _both else "stdio",
        core="stdio" if _core and _both else _core,
    )(check)


@client("schema-input-ladder", "HO-1 sibling: listing", on="stdio")
def inputs(attack: Any) -> None:
    schema = ladder(lambda r: {"anyOf": [r, r]}, 30)
    attack.list_tools(json.dumps([{"name": "t", "inputSchema": schema}]).encode())
    attack.do("call_tool", name="t", arguments={"a": 1}, timeout=3)


@client("schema-hundred-tools", "HO-1 sibling: listing", on="http")
def hundred(attack: Any) -> None:
    schema = {
        "type": "object",
        "properties": {f"p{n}": {"type": "string", "pattern": r"^\p{L}{50}$"} for n in range(100)},
    }
    attack.list_tools(
        json.dumps(
            [{"name": f"t{n}", "inputSchema": {"type": "object"}, "outputSchema": schema} for n in range(100)]
        ).encode()
    )
    attack.do("call_tool", name="t0", timeout=3)


def form(attack: Any, make: Callable[[], Any]) -> None:
    """A question with a hostile form, in the middle of a call."""
    schema = make()

    def answer(x: Any) -> None:
        body = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
        x.say(
            b'{"jsonrpc":"2.0","id":900,"method":"elicitation/create","params":{"message":"?","requestedSchema":%s}}'
            % body
        )
        if attack.http:
            attack.wait_for(lambda: "None" in attack.met, 3.0)
        x.done(b'{"content":[]}')

    attack.answer_call(answer, answers={"elicitation": {"action": "accept", "content": {"a": "x" * 1000}}})


FORMS: dict[str, Callable[[], Any]] = {
    "properties": lambda: {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(30_000)}},
    "enum": lambda: {
        "type": "object",
        "properties": {"a": {"type": "string", "enum": [f"e{n}" for n in range(150_000)]}},
    },
    "pattern": lambda: {"type": "object", "properties": {"a": {"type": "string", "pattern": r"^(?:(?=x)x+)+!$"}}},
    "required": lambda: {"type": "object", "properties": {}, "required": [f"r{n}" for n in range(100_000)]},
    "ladder": lambda: ladder(lambda r: {"anyOf": [r, r]}, 25),
    "defaults": lambda: {
        "type": "object",
        "properties": {f"p{n}": {"type": "string", "default": "d" * 3000} for n in range(900)},
    },
}
for _name, _form in FORMS.items():
    client(
        f"form-{_name}",
        "issue 22: forms",
        _form,
        on="both" if _name == "properties" else "stdio",
        core="stdio" if _name == "properties" else _name == "pattern",
    )(form)
