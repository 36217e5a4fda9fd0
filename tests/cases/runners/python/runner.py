"""The case runner of Python: does what each line says, with the public client, and reports what came of it."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import warnings
from typing import Any, cast

import msgspec

import tricorn

warnings.filterwarnings("ignore", ".*MCP .* deprecates", DeprecationWarning)  # it works on, and is tested
Json = dict[str, Any]


def say(line: Json) -> None:
    sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def failure(error: BaseException) -> Json:
    if isinstance(error, asyncio.CancelledError):
        return {"kind": "cancelled_here", "message": str(error)}
    if isinstance(error, tricorn.Error):
        facts: Json = {"kind": error.kind, "message": error.message, "code": error.code, "data": error.data}
        return {key: value for key, value in facts.items() if value is not None}
    return {"kind": "exception", "message": f"{type(error).__name__}: {error}"}


def known(facts: Json) -> Json:
    return {name: value for name, value in facts.items() if value is not None}


def handlers(answers: Json, asked: list[Json]) -> Json:
    """Returns handlers that record each question of the server, then answer as the case says."""

    def answer(name: str) -> Any:
        given: Any = answers[name]
        if isinstance(given, dict) and "error" in given:
            error: Json = answers[name]["error"]
            raise tricorn.RpcError(error["code"], error["message"])
        return answers[name]

    def sampling(params: Json) -> Any:
        asked.append({"sampling": params})
        return answer("sampling")

    def form(message: str, schema: Json) -> Any:
        asked.append({"form": schema, "message": message})
        return answer("elicitation")

    def page(message: str, url: str, elicitation_id: str | None) -> Any:
        asked.append(known({"url": url, "message": message, "elicitationId": elicitation_id}))
        return answer("elicitation_url")

    functions = {"sampling": sampling, "elicitation": form, "elicitation_url": page}
    return {name: functions.get(name, value) for name, value in answers.items()}


async def listed(client: tricorn.AsyncClient, command: Json) -> Any:
    what = command["what"]
    if what == "resources":
        return [resource.raw for resource in await client.list_resources()]
    if what == "resource_templates":
        return [template.raw for template in await client.list_resource_templates()]
    return [prompt.raw for prompt in await client.list_prompts()]


async def list_page(client: tricorn.AsyncClient, command: Json) -> Any:
    pages = {
        "tools": client.list_tools_page,
        "resources": client.list_resources_page,
        "resource_templates": client.list_resource_templates_page,
        "prompts": client.list_prompts_page,
    }
    return (await pages[command["what"]](command.get("cursor"))).raw


async def read_resource(client: tricorn.AsyncClient, command: Json) -> Any:
    raw = (await client.read_resource(command["uri"])).raw
    return raw if command.get("whole") else raw["contents"]


async def subscribe(client: tricorn.AsyncClient, command: Json) -> Any:
    await client.subscribe(command["uri"])
    return {}


async def unsubscribe(client: tricorn.AsyncClient, command: Json) -> Any:
    await client.unsubscribe(command["uri"])
    return {}


async def get_prompt(client: tricorn.AsyncClient, command: Json) -> Any:
    return (await client.get_prompt(command["name"], command.get("arguments"))).raw


async def complete(client: tricorn.AsyncClient, command: Json) -> Any:
    ref = command.get("prompt") or command["template"]
    found = await client.complete(ref, command["argument"], command["value"], command.get("context"))
    if command.get("whole"):
        return found.raw
    return known({"values": found.values, "total": found.total, "hasMore": found.has_more})


async def set_log_level(client: tricorn.AsyncClient, command: Json) -> Any:
    await client.set_log_level(command["level"])
    return {}


async def wait_for_task(client: tricorn.AsyncClient, command: Json) -> Any:
    return (await client.task(command["task"]).wait()).raw


async def roots_changed(client: tricorn.AsyncClient, command: Json) -> Any:
    client.roots_changed()
    return {}


async def set_roots(client: tricorn.AsyncClient, command: Json) -> Any:
    client.set_roots(command["roots"])
    return {}


FEATURES = {
    "list": listed,
    "list_page": list_page,
    "read_resource": read_resource,
    "subscribe": subscribe,
    "unsubscribe": unsubscribe,
    "get_prompt": get_prompt,
    "complete": complete,
    "set_log_level": set_log_level,
    "set_roots": set_roots,
    "roots_changed": roots_changed,
    "wait_for_task": wait_for_task,
}


class Runner:
    def __init__(self) -> None:
        self.clients: dict[int, tricorn.AsyncClient] = {}
        self.notifications: dict[int, list[Json]] = {}
        self.asked: dict[int, list[Json]] = {}
        self.running: dict[int, asyncio.Task[None]] = {}

    def take(self, line: str) -> None:
        command = json.loads(line)
        self.running[command["id"]] = asyncio.ensure_future(self.answer(command))

    async def answer(self, command: Json) -> None:
        number = command["id"]
        try:
            say({"id": number, "result": await self.perform(command)})
        except BaseException as error:  # noqa: BLE001 - reporting whatever comes is the job
            say({"id": number, "error": failure(error)})
        finally:
            self.running.pop(number, None)

    async def perform(self, command: Json) -> Any:
        what, key = command["do"], command["client"]
        if what == "connect":
            return await self.connect(key, command)
        if what == "cancel":
            self.running[command["call"]].cancel()
            return {}
        if what == "close":
            client = self.clients.pop(key, None)
            if client is not None:
                await client.close()
            return {}
        client = self.clients[key]
        if what == "info":
            return self.info(key, client)
        if what == "list_tools":
            return [tool.raw for tool in await client.list_tools()]
        if what == "list_tools_page":
            tools, cursor = await client.list_tools_page(command.get("cursor"))
            page: Json = {"tools": [tool.raw for tool in tools]}
            return page if cursor is None else {**page, "nextCursor": cursor}
        if what == "call_tool":
            return await self.call_tool(client, command)
        if what == "ping":
            await client.ping()
            return {}
        if what in FEATURES:
            return await FEATURES[what](client, command)
        if what == "request":
            return await client.request(command["method"], command.get("params"))
        if what == "notify":
            client.notify(command["method"], command.get("params"))
            return {}
        if what == "metrics":
            return client.metrics()
        raise ValueError(what)

    async def connect(self, key: int, command: Json) -> Json:
        heard: list[Json] = []
        self.notifications[key] = heard
        self.asked[key] = []
        answers = handlers(command.get("answers", {}), self.asked[key])

        def hear(method: str, params: Json) -> None:
            heard.append({"method": method, "params": params})

        options = {**command["options"], **answers}
        if (auth := options.pop("auth", None)) is not None:
            options["auth"] = authorization(auth)
        client = await tricorn.connect(command["target"], on_notification=hear, **options)
        self.clients[key] = client
        return self.info(key, client)

    def info(self, key: int, client: tricorn.AsyncClient) -> Json:
        info = client.server_info
        facts: Json = {
            "protocolVersion": client.protocol_version,
            "era": client.era,
            "serverInfo": msgspec.to_builtins(info),
            "capabilities": client.capabilities,
            "instructions": client.instructions,
            "initializeResult": client.initialize_result,
            "sessionId": client.session_id,
            "notifications": self.notifications[key],
            "asked": self.asked[key],
        }
        return known(facts)

    async def call_tool(self, client: tricorn.AsyncClient, command: Json) -> Json:
        options = {name: command[name] for name in ("timeout", "max_timeout", "meta") if name in command}
        if command.get("progress"):

            def report(progress: tricorn.Progress) -> None:
                facts = {"progress": progress.progress, "total": progress.total, "message": progress.message}
                say({"id": command["id"], "progress": known(facts)})

            options["on_progress"] = report
        result = await client.call_tool(command["name"], command.get("arguments"), **options)
        if command.get("whole"):
            return result.raw
        answer: Json = {
            "text": result.text,
            "is_error": result.is_error,
            "content": result.raw["content"],
            "meta": result.meta,
        }
        return {**answer, "structured": result.structured} if result.has_structured else answer


def authorization(given: Json) -> tricorn.ClientAuth:
    """The option `auth`, in which a store may be a directory, and the identity provider is an object."""
    given = dict(given)
    if isinstance(store := given.get("store"), dict):
        given["store"] = tricorn.FileStore(cast(Json, store)["directory"])
    if (identity := given.pop("identity", None)) is not None:
        given["identity"] = tricorn.Identity(**identity)
    return tricorn.ClientAuth(**given)


async def main() -> None:
    runner = Runner()
    loop = asyncio.get_running_loop()
    done = loop.create_future()

    def read() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(runner.take, line)
        loop.call_soon_threadsafe(done.set_result, None)

    threading.Thread(target=read, daemon=True).start()
    await done
    await asyncio.gather(*(client.close() for client in runner.clients.values()))


asyncio.run(main())
