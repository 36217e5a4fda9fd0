"""Help for handlers that run again after a question: several questions at once, and steps."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

import msgspec

from ..errors import MisuseError
from ..json import checks, judge
from ..json.encoding import encode
from ..model.questions import Question
from .context import RequestContext, on_a_loop
from .options import RequestOptions
from .request_options import Asked, as_asked

Ask = Callable[[Question[Any], RequestOptions, Sequence[Asked]], Coroutine[Any, Any, Any]]
"""Asks one question, of several that are asked together."""


async def ask_all(ask: Ask, questions: Iterable[Question[Any]], options: RequestOptions) -> Any:
    """Starts all questions before it waits for one; the engine sends none of them when one cannot be asked."""
    several = list(questions)
    for one in several:
        if not isinstance(one, Question):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may not check types
            raise MisuseError(f"ask_all: expected a Question, got {checks.shown(one)}")
    together = as_asked(several, options)
    asked = [asyncio.ensure_future(ask(one, options, together)) for one in several]
    try:
        answers = await asyncio.gather(*asked)
    finally:
        for task in asked:
            task.cancel()
    return tuple(answers) if isinstance(questions, tuple) else answers


async def step(context: RequestContext, name: str, function: Callable[[], object], type: Any) -> Any:  # noqa: A002
    """Does a step, unless an earlier run has; it waits for nothing in a worker thread, see `finished`."""
    if not callable(function):
        raise MisuseError(f"step: expected a function, got {checks.shown(function)}")
    host, key = context._host, context._key
    done = host.bridge.step(key, name)
    if done is None:
        with host.at_work(key):
            value = function()
            if inspect.isawaitable(value):
                value = await value if on_a_loop() else context.wait(value)
            try:
                done = encode(value)
            except (TypeError, ValueError, OverflowError, RecursionError) as error:
                raise MisuseError(f"step {name!r}: its result is no JSON: {error}") from None
            host.bridge.stepped(key, name, done)
    result = msgspec.json.decode(done)
    if type is None:
        return result
    try:
        return judge.of(type).convert(result)
    except ValueError as error:  # msgspec's and pydantic's
        raise MisuseError(f"step {name!r}: its result is no {type!r}: {error}") from None
