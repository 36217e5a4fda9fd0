"""A client of a protected server, whose user logs in with the browser: log_in.py URL [--no-browser]

The login is kept for the next time: where logins of this user are by default, or in the directory that LOGINS names.
"""

import asyncio
import os
import sys

from tricorn import ClientAuth, Error, FileStore, connect


async def main(url: str, *flags: str) -> None:
    directory = os.environ.get("LOGINS")
    auth = ClientAuth(
        client_name="Log in",  # what the page where the user consents calls this program
        no_browser="--no-browser" in flags,
        store=FileStore(directory) if directory else None,
    )
    client = connect(url, auth=auth)
    try:
        async with client:
            print("logged in:", (await client.call_tool("whoami")).text)
            # This needs a scope that the token does not have yet, so the user is asked once more.
            print((await client.call_tool("delete_file", {"name": "draft.txt"})).text)
    except Error as error:
        print("failed:", error)
        for step in client.auth_trace():
            asked = [str(part) for part in (step.step, step.url, step.status) if part is not None]
            print(f"  {' '.join(asked)}: {step.decision}")
        sys.exit(1)


asyncio.run(main(*sys.argv[1:]))
