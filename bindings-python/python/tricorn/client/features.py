"""Requests of clients for what a server offers, the same in both clients."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ..call.context import Level
from ..call.options import RequestOptions
from ..errors import RpcError
from ..json.deprecation import deprecated
from ..model.definitions import Prompt, Resource, ResourceTemplate, Tool
from ..model.results import Completion, GetPromptResult, Page, ReadResourceResult
from ..model.task import Task
from . import requests
from .requests import PROMPTS, RESOURCE_TEMPLATES, RESOURCES, TOOLS, AsyncSender, Listing, Pages
from .tasks import AsyncTaskHandle, create

if TYPE_CHECKING:
    from typing_extensions import Unpack

TASKS = Listing("tasks/list", "tasks", "taskId", Task)
T = TypeVar("T")
D = TypeVar("D")
Reference = str | Prompt | ResourceTemplate | Mapping[str, Any]
"""The subject of a completion: a prompt, a template, a prompt's name, a URI template (it has a `{`), or the schema's
object."""


class AsyncFeatures(AsyncSender):
    """The requests of an asynchronous client, each with any of `RequestOptions`."""

    async def _each(self, listing: Listing[D], options: RequestOptions) -> AsyncGenerator[D]:
        pages = Pages(listing)
        while True:
            try:
                page = await self._do(pages.request(), options)
            except RpcError as error:
                if pages.begins_anew(error):
                    continue
                raise
            for entry in pages.unknown(page):
                yield entry
            if not pages.goes_on(page):
                return

    async def _all(self, listing: Listing[D], options: RequestOptions) -> list[D]:
        pages, everything = Pages(listing), list[D]()
        while True:
            try:
                page = await self._do(pages.request(), options)
            except RpcError as error:
                if pages.begins_anew(error):
                    everything.clear()
                    continue
                raise
            everything += page[0]
            if not pages.goes_on(page):
                return everything

    async def list_tools(self, **options: Unpack[RequestOptions]) -> list[Tool]:
        """All tools, from as many pages as there are; the options hold for each page."""
        return await self._all(TOOLS, options)

    async def list_tools_page(self, cursor: str | None = None, **options: Unpack[RequestOptions]) -> Page[Tool]:
        """One page of tools and the cursor of the next, None after the last; its `raw` is the whole result."""
        return await self._do(TOOLS.page(cursor), options)

    def tools(self, **options: Unpack[RequestOptions]) -> AsyncIterator[Tool]:
        """All tools, page by page as needed: `async for tool in client.tools()`."""
        return self._each(TOOLS, options)

    async def list_resources(self, **options: Unpack[RequestOptions]) -> list[Resource]:
        """All resources, from as many pages as there are; the options hold for each page."""
        return await self._all(RESOURCES, options)

    async def list_resources_page(self, cursor: str | None = None, **options: Unpack[RequestOptions]) -> Page[Resource]:
        """One page of resources and the cursor of the next, None after the last; its `raw` is the whole result."""
        return await self._do(RESOURCES.page(cursor), options)

    def resources(self, **options: Unpack[RequestOptions]) -> AsyncIterator[Resource]:
        """All resources, page by page as needed: `async for resource in client.resources()`."""
        return self._each(RESOURCES, options)

    async def list_resource_templates(self, **options: Unpack[RequestOptions]) -> list[ResourceTemplate]:
        """All resource templates, from as many pages as there are; the options hold for each page."""
        return await self._all(RESOURCE_TEMPLATES, options)

    async def list_resource_templates_page(
        self, cursor: str | None = None, **options: Unpack[RequestOptions]
    ) -> Page[ResourceTemplate]:
        """One page of resource templates and the cursor of the next, None after the last; `raw` is the whole result."""
        return await self._do(RESOURCE_TEMPLATES.page(cursor), options)

    def resource_templates(self, **options: Unpack[RequestOptions]) -> AsyncIterator[ResourceTemplate]:
        """All resource templates, page by page as needed: `async for template in client.resource_templates()`."""
        return self._each(RESOURCE_TEMPLATES, options)

    async def list_prompts(self, **options: Unpack[RequestOptions]) -> list[Prompt]:
        """All prompts, from as many pages as there are; the options hold for each page."""
        return await self._all(PROMPTS, options)

    async def list_prompts_page(self, cursor: str | None = None, **options: Unpack[RequestOptions]) -> Page[Prompt]:
        """One page of prompts and the cursor of the next, None after the last; its `raw` is the whole result."""
        return await self._do(PROMPTS.page(cursor), options)

    def prompts(self, **options: Unpack[RequestOptions]) -> AsyncIterator[Prompt]:
        """All prompts, page by page as needed: `async for prompt in client.prompts()`."""
        return self._each(PROMPTS, options)

    async def read_resource(self, uri: str | Resource, **options: Unpack[RequestOptions]) -> ReadResourceResult:
        """Reads a resource. `ResourceNotFoundError` when there is none: -32002, in newer revisions -32602."""
        with requests.reading(uri) as request:
            return await self._do(request, options)

    async def subscribe(self, uri: str | Resource, **options: Unpack[RequestOptions]) -> None:
        """Wants to hear of changes of a resource, by `on_resource_updated`."""
        await self._do(requests.subscribe(uri, True), options)

    async def unsubscribe(self, uri: str | Resource, **options: Unpack[RequestOptions]) -> None:
        """No longer wants to hear of them."""
        await self._do(requests.subscribe(uri, False), options)

    async def get_prompt(
        self, name: str, arguments: Mapping[str, Any] | None = None, **options: Unpack[RequestOptions]
    ) -> GetPromptResult:
        """Fills in a prompt. Arguments are text; other values are written as JSON, and None is left out."""
        return await self._do(requests.get_prompt(name, arguments), options)

    async def complete(
        self,
        ref: Reference,
        argument: str,
        value: str,
        context: Mapping[str, str] | None = None,
        **options: Unpack[RequestOptions],
    ) -> Completion:
        """Suggests values for an argument of a prompt, or for a variable of a URI template.

        `ref` is the `Prompt` or `ResourceTemplate`, or its name or URI template; `context` are the arguments that are
        filled in already.
        """
        return await self._do(requests.complete(ref, argument, value, context), options)

    @deprecated("MCP 2026-07-28 deprecates log messages (SEP-2577): use standard error or OpenTelemetry")
    async def set_log_level(self, level: Level, **options: Unpack[RequestOptions]) -> None:
        """Wants log messages of this level and more severe ones from now on, in every revision.

        Without sessions each request asks for them, unless its `meta` has another
        `io.modelcontextprotocol/logLevel`. `UnsupportedError`: the server has no log.
        """
        await self._do(requests.set_log_level(level), options)

    async def call_tool_task(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        ttl: float | None = None,
        **options: Unpack[RequestOptions],
    ) -> AsyncTaskHandle:
        """Calls a tool as a task, which goes on after this has returned; `handle.result()` waits for what it gives.

        `ttl` is how many seconds the server shall keep it; the server has the last word. `call_tool(..., task=True)`
        waits for the result at once. `UnsupportedError` where there are no tasks, or none of a tool that was listed.
        In 2026-07-28 the server decides what is a task, and a call that it answered at once is one that is over; client
        and server need the option `tasks`.
        """
        created = await self._do(create(name, arguments, ttl), options)
        return AsyncTaskHandle(self, created.id, created.raw)

    def task(self, id: str) -> AsyncTaskHandle:  # noqa: A002 - its name
        """Comes back to a task of this session by its id."""
        return AsyncTaskHandle(self, id)

    async def list_tasks(self, **options: Unpack[RequestOptions]) -> list[Task]:
        """All tasks of this session that the server still keeps."""
        return await self._all(TASKS, options)

    async def list_tasks_page(self, cursor: str | None = None, **options: Unpack[RequestOptions]) -> Page[Task]:
        """One page of tasks and the cursor of the next, None after the last; its `raw` is the whole result."""
        return await self._do(TASKS.page(cursor), options)

    def tasks(self, **options: Unpack[RequestOptions]) -> AsyncIterator[Task]:
        """All tasks, page by page as needed: `async for task in client.tasks()`."""
        return self._each(TASKS, options)

    async def ping(self, **options: Unpack[RequestOptions]) -> None:
        """Asks for a sign of life."""
        await self._do(requests.ping(), options)
