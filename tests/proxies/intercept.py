"""An addon for mitmproxy: it writes down the requests, finds the names of the tests on this machine, and passes streams
on as they come, as the proxies of companies do."""

import os
from pathlib import Path

from mitmproxy import http
from mitmproxy.proxy.server_hooks import ServerConnectionHookData

LOG = Path(os.environ["PROXIES_LOG"])


def write(line: str) -> None:
    with LOG.open("a") as log:
        log.write(line + "\n")


def http_connect(flow: http.HTTPFlow) -> None:
    write(f"CONNECT {flow.request.pretty_host}:{flow.request.port}")


def requestheaders(flow: http.HTTPFlow) -> None:
    write(f"{flow.request.method} {flow.request.pretty_url}")


def responseheaders(flow: http.HTTPFlow) -> None:
    if flow.response:
        flow.response.stream = True


def server_connect(data: ServerConnectionHookData) -> None:
    address = data.server.address
    if address and address[0].endswith(".test"):
        data.server.address = ("127.0.0.1", address[1])
