"""A protected server, for production: an authorization server says who comes in.

    ISSUER=https://login.example.com RESOURCE=https://example.com/files/mcp ALLOWED_HOSTS=example.com PORT=8000 \
        python protected_server.py

ISSUER          whose access tokens are taken
RESOURCE        the server's public URL, as its clients write it
ALLOWED_HOSTS   the hosts in it, with commas between them
PORT            of this machine, which the proxy in front passes requests to; 8000 if not said

Without RESOURCE and ALLOWED_HOSTS it is for clients on this machine, which need no proxy.
"""

import os

from tricorn import Context, Server, ServerAuth

auth = ServerAuth(
    issuer=os.environ["ISSUER"],
    resource=os.environ.get("RESOURCE"),
    required_scopes=["files:read"],
    resource_name="Files",
)
app = Server("files", auth=auth)


def who(ctx: Context) -> str:
    return ctx.principal.subject if ctx.principal else "nobody"


@app.tool
def whoami(ctx: Context) -> str:
    """Say who asks"""
    return who(ctx)


@app.tool(scopes=["files:write"])
def delete_file(name: str, ctx: Context) -> str:
    """Delete a file"""
    return f"{who(ctx)} deleted {name}"


hosts = [host for host in os.environ.get("ALLOWED_HOSTS", "").split(",") if host]
app.run(http=int(os.environ.get("PORT", "8000")), allowed_hosts=hosts)
