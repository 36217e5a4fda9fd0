from tricorn import testing

from server import app


def test_adds() -> None:
    assert testing.call(app, "add", {"a": 1, "b": 2}).to(int) == 3


def test_wrong_arguments_are_said() -> None:
    result = testing.call(app, "add", {"a": "one", "b": 2})
    assert result.is_error
    assert "expected integer" in result.text
