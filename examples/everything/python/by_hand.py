"""The official suite's tools that keep their rounds of questions themselves, under the keys that it knows."""

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


def said(ctx: Context, key: str) -> str | None:
    """What the client's model said."""
    match ctx.input_responses.get(key):
        case {"content": {"text": str(text)}}:
            return text
        case _:
            return None


def roots(ctx: Context, key: str) -> str | None:
    """The URIs of the client's roots."""
    try:
        return " ".join(root["uri"] for root in ctx.input_responses[key]["roots"])
    except (KeyError, TypeError):
        return None


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
        text = said(ctx, "capital_question")
        if text is None:
            raise InputRequired({"capital_question": CAPITAL})
        return f"The model says: {text}"

    async def list_roots(ctx: Context) -> str:
        """Ask for the roots."""
        uris = roots(ctx, "client_roots")
        if uris is None:
            raise InputRequired({"client_roots": Question.list_roots()})
        return f"Roots: {uris}"

    async def request_state(ctx: Context) -> str:
        """Keep a state."""
        if filled(ctx, "confirm", "ok") is None or ctx.request_state != "kept":
            raise InputRequired({"confirm": CONFIRM}, state="kept")
        return "state-ok"

    async def multiple_inputs(ctx: Context) -> str:
        """Ask three things."""
        name, greeting, uris = filled(ctx, "user_name", "name"), said(ctx, "greeting"), roots(ctx, "client_roots")
        if name is None or greeting is None or uris is None:
            greet = Question.sample("Greet the user.", 100)
            questions = {"user_name": NAME, "greeting": greet, "client_roots": Question.list_roots()}
            raise InputRequired(questions, state="asked")
        return f"{name} {greeting} {uris}"

    async def multi_round(ctx: Context) -> str:
        """Ask twice."""
        kept: dict[str, Any] = ctx.request_state or {}
        name = kept.get("name") or filled(ctx, "step1", "name")
        if name is None:
            raise InputRequired({"step1": STEP_1}, state={})
        color = filled(ctx, "step2", "color")
        if color is None:
            raise InputRequired({"step2": STEP_2}, state={"name": name})
        return f"{name} likes {color}"

    async def tampered_state(ctx: Context) -> str:
        """Seal a state."""
        if ctx.request_state is None:
            raise InputRequired({"confirm": CONFIRM}, state="untouched")
        return f"kept {ctx.request_state}"

    async def capabilities(ctx: Context) -> str | InputRequired:
        """Ask what can be asked."""
        given = [text for text in (said(ctx, "capital_question"), filled(ctx, "user_name", "name")) if text is not None]
        if given:
            return " ".join(given)
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
