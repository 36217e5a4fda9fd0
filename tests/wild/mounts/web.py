"""Our server in a web framework: web.py FRAMEWORK --http HOST:PORT. As a module it has one application for each."""

import asyncio
import socket
import sys
from typing import Any

from tools import address, by_uvicorn, carried, frameworks_that_carry, mcp, ready


def fastapi() -> Any:
    from fastapi import FastAPI, Request, Response
    from starlette.middleware.cors import CORSMiddleware
    from starlette.middleware.gzip import GZipMiddleware
    from starlette.middleware.sessions import SessionMiddleware

    web = FastAPI(lifespan=mcp.lifespan)
    web.add_middleware(GZipMiddleware, minimum_size=10)
    web.add_middleware(CORSMiddleware, allow_origins=["*"], allow_methods=["*"], allow_headers=["*"])

    @web.middleware("http")
    async def timed(request: Request, call_next: Any) -> Response:
        request.session["requests"] = request.session.get("requests", 0) + 1
        carried.set(f"request {request.session['requests']}")
        response: Response = await call_next(request)
        response.headers["X-Seen"] = "yes"
        return response

    frameworks_that_carry.append("fastapi")
    web.add_middleware(SessionMiddleware, secret_key="test")
    web.mount("/mcp", mcp)
    return web


def starlette() -> Any:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    return Starlette(routes=[Mount("/api/mcp", mcp)], lifespan=mcp.lifespan)


def django() -> Any:
    import django
    from django.conf import settings
    from django.core.asgi import get_asgi_application

    settings.configure(ALLOWED_HOSTS=["*"], SECRET_KEY="test", ROOT_URLCONF=__name__)
    django.setup()
    pages = get_asgi_application()

    async def web(scope: Any, receive: Any, send: Any) -> None:
        ours = scope["type"] == "lifespan" or scope["path"].startswith("/mcp")
        await (mcp if ours else pages)(scope, receive, send)

    return web


urlpatterns: list[Any] = []


def litestar() -> Any:
    from litestar import Litestar, asgi

    @asgi("/mcp", is_mount=True)
    async def mounted(scope: Any, receive: Any, send: Any) -> None:
        await mcp(scope, receive, send)

    return Litestar([mounted])


def hypercorn() -> None:
    from hypercorn.asyncio import serve
    from hypercorn.config import Config

    async def main() -> None:
        config = Config()
        with socket.create_server(address()) as listening:
            config.bind = [f"fd://{listening.fileno()}"]
            config.loglevel = "WARNING"
            config.graceful_timeout = 2
            ready(listening)
            await serve(starlette_at_mcp(), config)

    asyncio.run(main())


def starlette_at_mcp() -> Any:
    from starlette.applications import Starlette
    from starlette.routing import Mount, Route

    return Starlette(routes=[Route("/mcp", mcp), Mount("/mcp", mcp)], lifespan=mcp.lifespan)


def __getattr__(name: str) -> Any:
    """Applications by name, for servers that import them."""
    if name == "web":
        return starlette_at_mcp()
    raise AttributeError(name)


if __name__ == "__main__":
    kind = sys.argv[1]
    if kind == "hypercorn":
        hypercorn()
    else:
        by_uvicorn(globals()[kind](), "/api/mcp" if kind == "starlette" else "/mcp")
