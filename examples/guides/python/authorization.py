"""Authorization: a server that takes access tokens, and clients that have one."""

import asyncio

from tricorn import AuthError, ClientAuth, Context, Principal, Server, ServerAuth, connect

PEOPLE = {
    "token-of-ada": Principal("ada", scopes=["notes:read", "notes:write"]),
    "token-of-bob": Principal("bob", scopes=["notes:read"]),
}

# Whose tokens they are. A server in production lets its authorization server say so:
# ServerAuth(issuer="https://login.example.com", resource="https://notes.example.com/mcp", required_scopes=[...])
auth = ServerAuth(
    verifier=PEOPLE.get,
    authorization_servers=["https://login.example.com"],
    required_scopes=["notes:read"],
)
app = Server("notes", auth=auth)


@app.tool
def whoami(ctx: Context) -> str:
    """Say who asks"""
    return ctx.principal.subject if ctx.principal else "nobody"


@app.tool(scopes=["notes:write"])
def write(text: str, ctx: Context) -> str:
    """Write a note"""
    return f"{whoami(ctx)} wrote {text}"


async def main() -> None:
    listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(app.serve_http(port=0, on_listening=listening.set_result))
    url = await listening

    for name in ("ada", "bob"):
        # A user logs in with a browser, and the program finds out the rest: connect(url, auth=ClientAuth()).
        async with connect(url, auth=ClientAuth.bearer(f"token-of-{name}")) as client:
            tools = ", ".join(tool.name for tool in await client.list_tools())
            print(f"{(await client.call_tool('whoami')).text} may use: {tools}")
            try:
                print((await client.call_tool("write", {"text": "milk"})).text)
            except AuthError as error:
                print("refused:", error.kind)

    try:
        await connect(url)
    except AuthError as error:
        print("without a token:", error.kind)
    app.close()
    await serving


asyncio.run(main())
