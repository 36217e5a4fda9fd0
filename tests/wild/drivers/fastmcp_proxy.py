"""FastMCP's proxy over HTTP, before a server on standard streams: fastmcp_proxy.py PORT COMMAND..."""

import os
import sys

from fastmcp.server import create_proxy

port, program, *words = sys.argv[1:]
server = {"command": program, "args": words, "env": dict(os.environ)}
proxy = create_proxy({"mcpServers": {"ours": server}})
proxy.run(transport="http", host="127.0.0.1", port=int(port), show_banner=False)
