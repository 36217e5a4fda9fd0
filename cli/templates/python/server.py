"""{{name}}, a server of the Model Context Protocol."""

from tricorn import Server

app = Server("{{name}}", version="0.1.0")


@app.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@app.resource("{{name}}://about")
def about() -> str:
    """Say what this server is for."""
    return "{{name}} adds numbers."


if __name__ == "__main__":
    app.run()
