"""The official suite's tools that keep their rounds of questions themselves, under the keys that it knows."""

import json
from typing import Any

from tricorn import Context, InputRequired, Question, Server


def form(name: str, kind: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}


NAME = Question.elicit("What is your name?", form("name", "string"))
CAPITAL = Question.sample("What is the capital of France?", 100)
CONFIRM = Question.elicit("Confirm?", form("ok", "boolean"))
STEP_1 = Question.elicit("Step 1: what is your name?", form("name", "string"))
STEP_2 = Question.elicit("Step 2: which color?", form("color", "string"))


def filled(ctx: Context, key: str, member: str) -> Any:
    """What the user filled in under this key. What is no such answer is none, and asked for again."""
    match ctx.input_responses.get(key):
        case {"action": "accept", "content": {**content}}:
            return content.get(member)
        case _:
            return None


def answered(ctx: Context, key: str) -> dict[str, Any] | None:
    answer: object = ctx.input_responses.get(key)
    return answer if isinstance(answer, dict) else None  # pyright: ignore[reportUnknownVariableType]


def add_by_hand(app: Server) -> None:
    """Everything of this file."""

    async def elicitation(ctx: Context) -> str:
        """Ask for a name."""
        name = filled(ctx, "user_name", "name")
        if not isinstance(name, str):
            raise InputRequired({"user_name": NAME})
        return f"Hello, {name}!"

    async def sampling(ctx: Context) -> str:
        """Ask the client's model."""
        answer = answered(ctx, "capital_question")
        if answer is None:
            raise InputRequired({"capital_question": CAPITAL})
        return f"The model says: {json.dumps(answer.get('content'))}"

    async def list_roots(ctx: Context) -> str:
        """Ask for the roots."""
        answer = answered(ctx, "client_roots")
        if answer is None:
            raise InputRequired({"client_roots": Question.list_roots()})
        return f"Roots: {json.dumps(answer.get('roots'))}"

    async def request_state(ctx: Context) -> str:
        """Keep a state."""
        if filled(ctx, "confirm", "ok") is None or ctx.request_state != "kept":
            raise InputRequired({"confirm": CONFIRM}, state="kept")
        return "state-ok"

    async def multiple_inputs(ctx: Context) -> str:
        """Ask three things."""
        name, greeting, roots = (
            filled(ctx, "user_name", "name"),
            answered(ctx, "greeting"),
            answered(ctx, "client_roots"),
        )
        if name is None or greeting is None or roots is None:
            greet = Question.sample("Greet the user.", 100)
            questions = {"user_name": NAME, "greeting": greet, "client_roots": Question.list_roots()}
            raise InputRequired(questions, state="asked")
        return json.dumps([name, greeting, roots])

    async def multi_round(ctx: Context) -> str:
        """Ask twice."""
        state, answers = ctx.request_state, ctx.input_responses
        if state == 2 and filled(ctx, "step2", "color") is not None:
            return "both steps done"
        if state is not None and answers.keys() & {"step1", "step2"}:
            raise InputRequired({"step2": STEP_2}, state=2)
        raise InputRequired({"step1": STEP_1}, state=1)

    async def tampered_state(ctx: Context) -> str:
        """Seal a state."""
        if ctx.request_state is None:
            raise InputRequired({"confirm": CONFIRM}, state="untouched")
        return f"kept {ctx.request_state}"

    async def capabilities(ctx: Context) -> str | InputRequired:
        """Ask what can be asked."""
        if ctx.input_responses:
            return "answered"
        wanted = {"sampling": ("capital_question", CAPITAL), "elicitation": ("user_name", NAME)}
        declared = ctx.request.client_capabilities
        return InputRequired(dict(wanted[name] for name in wanted if name in declared))

    async def prompt(ctx: Context) -> str:
        """Ask before it is made."""
        context = filled(ctx, "user_context", "context")
        if context is None:
            raise InputRequired({"user_context": Question.elicit("In which context?", form("context", "string"))})
        return f"Context: {context}"

    for tool in (
        *(elicitation, sampling, list_roots, request_state, multiple_inputs),
        *(multi_round, tampered_state, capabilities),
    ):
        app.add_tool(tool, name=f"test_input_required_result_{tool.__name__}")
    app.add_prompt(prompt, name="test_input_required_result_prompt")
