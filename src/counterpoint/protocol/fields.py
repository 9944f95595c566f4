"""Reading fields of a client's JSON object, with errors that name the field.

Owns: the checks of form (string, integer, choice, ...) and how ``param`` is spelled.
Does not own: which fields an event has (``decoding``, ``items``, ``config``).
Here because: ``error.param`` and the allowed values must read alike wherever a field is refused
(wire contract, section 8), and no library's exception text may reach the wire.

A missing field and an explicit null are the same here, except through ``has``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from counterpoint.errors import ProtocolError

from .codes import ErrorCode

#: Longest id or token that a client may choose; it is echoed and stored.
MAX_ID_CHARS = 512

#: Largest integer read from a field; positions and counts stay far below it.
MAX_INTEGER = 2**63 - 1


class Fields:
    """A JSON object at ``path``. Every reader raises ``ProtocolError`` with ``code`` and ``param``."""

    __slots__ = ("_code", "_path", "values")

    def __init__(
        self, values: dict[str, Any], path: str = "", code: ErrorCode = ErrorCode.INVALID_EVENT
    ) -> None:
        self.values = values
        self._path = path
        self._code = code

    def path(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key

    def refuse(self, key: str, message: str, code: ErrorCode | None = None) -> ProtocolError:
        """The error (to be raised by the caller) that says what is wrong with field ``key``."""
        param = self.path(key)
        return ProtocolError(code or self._code, f"{param}: {message}", param=param)

    def has(self, key: str) -> bool:
        return key in self.values

    def get(self, key: str) -> Any:
        return self.values.get(key)

    def string(self, key: str, *, max_chars: int | None = None) -> str | None:
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self.refuse(key, "must be a string")
        if max_chars is not None and len(value) > max_chars:
            raise self.refuse(key, f"must have at most {max_chars} characters")
        return value

    def required_string(self, key: str) -> str:
        value = self.string(key)
        if value is None:
            raise self.refuse(key, "is required and must be a string")
        return value

    def identifier(self, key: str) -> str | None:
        value = self.string(key, max_chars=MAX_ID_CHARS)
        if value == "":
            raise self.refuse(key, "must not be empty")
        return value

    def required_identifier(self, key: str) -> str:
        value = self.identifier(key)
        if value is None:
            raise self.refuse(key, "is required and must be a string")
        return value

    def boolean(self, key: str) -> bool | None:
        value = self.values.get(key)
        if value is None or isinstance(value, bool):
            return value
        raise self.refuse(key, "must be true or false")

    def number(self, key: str, *, minimum: float | None = None, maximum: float | None = None) -> float | None:
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.refuse(key, "must be a number")
        if (minimum is not None and value < minimum) or (maximum is not None and value > maximum):
            raise self.refuse(key, _range_message(minimum, maximum))
        return value

    def integer(self, key: str, *, minimum: int | None = None, maximum: int = MAX_INTEGER) -> int | None:
        """A whole number, however it is written (``5.0`` is one)."""
        value = self.number(key)
        if value is None:
            return None
        if value % 1:
            raise self.refuse(key, "must be an integer")
        if value > maximum or (minimum is not None and value < minimum):
            raise self.refuse(key, _range_message(minimum, maximum))
        return int(value)

    def required_integer(self, key: str, *, minimum: int | None = None, maximum: int = MAX_INTEGER) -> int:
        value = self.integer(key, minimum=minimum, maximum=maximum)
        if value is None:
            raise self.refuse(key, "is required and must be an integer")
        return value

    def choice(self, key: str, allowed: Iterable[str]) -> str | None:
        """One of ``allowed``, or None. The message lists what is allowed (case H-08)."""
        value = self.values.get(key)
        options = list(allowed)
        if value is None or (isinstance(value, str) and value in options):
            return value
        raise self.refuse(key, f"must be one of {', '.join(options)}")

    def required_choice(self, key: str, allowed: Iterable[str]) -> str:
        options = list(allowed)
        value = self.choice(key, options)
        if value is None:
            raise self.refuse(key, f"is required: one of {', '.join(options)}")
        return value

    def object(self, key: str) -> Fields | None:
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.refuse(key, "must be an object")
        return Fields(value, self.path(key), self._code)

    def required_object(self, key: str) -> Fields:
        value = self.object(key)
        if value is None:
            raise self.refuse(key, "is required and must be an object")
        return value

    def array(self, key: str) -> list[Any] | None:
        value = self.values.get(key)
        if value is None or isinstance(value, list):
            return value
        raise self.refuse(key, "must be an array")

    def objects(self, key: str) -> list[Fields] | None:
        """An array of objects, each at ``path[index]``."""
        values = self.array(key)
        if values is None:
            return None
        entries = Fields(
            {f"{key}[{index}]": value for index, value in enumerate(values)}, self._path, self._code
        )
        return [entries.required_object(entry) for entry in entries.values]


def _range_message(minimum: float | None, maximum: float | None) -> str:
    if minimum is None:
        return f"must be at most {maximum}"
    if maximum is None or maximum == MAX_INTEGER:
        return f"must be at least {minimum}"
    return f"must be between {minimum} and {maximum}"
