"""URIs for resources and URI templates of a server."""

from typing import Any

from registry import server


def read(attack: Any, uri: str) -> None:
    attack.tell("resources/read", {"uri": uri}, None)


URIS: dict[str, tuple[str, bool]] = {
    "long": ("test://template/" + "x" * 3_500_000 + "/data", True),
    "slashes": ("test://template/" + "/" * 2_000_000, False),
    "percents": ("test://template/" + "%41" * 1_000_000 + "/data", False),
    "bad-percents": ("test://template/" + "%" * 2_000_000 + "/data", False),
    "data-again": ("test://template" + "/data" * 500_000, False),
    "dots": ("test://template/" + "../" * 500_000 + "data", False),
    "scheme": ("a" * 3_000_000 + ":", False),
    "unicode": ("test://template/" + "\U0001f600" * 500_000 + "/data", False),
    "escaped-nul": ("test://template/%00/data", False),
    "8k": ("test://template/" + "x" * 8_100 + "/data", False),
    "braces": ("test://template/" + "{id}" * 2_000 + "/data", False),
}
for _name, (_uri, _core) in URIS.items():
    server(f"uri-{_name}", "issue 22: URI templates", _uri, on="both", core="http" if _core else False)(read)


@server("uri-many", "issue 22: URI templates", on="stdio")
def many(attack: Any) -> None:
    one = b'{"jsonrpc":"2.0","id":%d,"method":"resources/read","params":{"uri":"test://template/%s%d/data"}}'
    attack.raw(b"\n".join(one % (n, b"x/" * 2000, n) for n in range(250)) + b"\n")
    attack.settle()
