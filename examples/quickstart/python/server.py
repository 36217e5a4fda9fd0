from tricorn import Server

app = Server("demo")


@app.tool  # bare or with options
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


app.run()
