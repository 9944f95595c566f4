"""Reading fields: what counts as a value of which form, and how a refusal reads."""

from __future__ import annotations

from typing import Any

import pytest

from counterpoint.errors import ProtocolError
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.fields import MAX_INTEGER, Fields

READERS = {
    "string": ("s", 5),
    "boolean": (True, 1),
    "number": (1.5, "1.5"),
    "integer": (3, 3.5),
    "identifier": ("id", ""),
    "object": ({"a": 1}, [1]),
    "array": ([1], {"a": 1}),
    "objects": ([{}], [5]),
}


@pytest.mark.parametrize("name", READERS)
def test_missing_and_null_are_no_value(name: str) -> None:
    assert getattr(Fields({}), name)("key") is None
    assert getattr(Fields({"key": None}), name)("key") is None


@pytest.mark.parametrize("name", READERS)
def test_a_value_of_the_wrong_form_is_refused_by_name(name: str) -> None:
    good, bad = READERS[name]
    assert getattr(Fields({"key": good}), name)("key") is not None
    with pytest.raises(ProtocolError) as refused:
        getattr(Fields({"key": bad}, "at", ErrorCode.INVALID_EVENT_ACK), name)("key")
    assert refused.value.code == ErrorCode.INVALID_EVENT_ACK
    assert (refused.value.param or "").startswith("at.key")
    assert refused.value.message.startswith(f"{refused.value.param}: ")


@pytest.mark.parametrize("value", [True, False, "5", [], {}])
def test_truth_and_text_are_no_numbers(value: Any) -> None:
    for reader in (Fields({"key": value}).number, Fields({"key": value}).integer):
        with pytest.raises(ProtocolError):
            reader("key")


def test_a_whole_number_may_be_written_with_a_point() -> None:
    value = Fields({"key": 500.0}).integer("key")
    assert (value, type(value)) == (500, int)


@pytest.mark.parametrize("value", [-1, 11, 10**400, -(10**400), 1e300])
def test_a_number_out_of_range_is_refused_with_the_range(value: float) -> None:
    with pytest.raises(ProtocolError, match="between 0 and 10"):
        Fields({"key": value}).integer("key", minimum=0, maximum=10)
    with pytest.raises(ProtocolError, match=r"between 0 and 10"):
        Fields({"key": value}).number("key", minimum=0, maximum=10)


def test_ranges_open_on_one_side_say_so() -> None:
    with pytest.raises(ProtocolError, match="at least 1"):
        Fields({"key": 0}).integer("key", minimum=1)
    with pytest.raises(ProtocolError, match=f"at most {MAX_INTEGER}"):
        Fields({"key": MAX_INTEGER + 1}).integer("key")


@pytest.mark.parametrize(
    "name", ["required_string", "required_identifier", "required_integer", "required_object"]
)
def test_a_required_field_is_missed(name: str) -> None:
    with pytest.raises(ProtocolError, match=r"at\.key: is required"):
        getattr(Fields({"key": None}, "at"), name)("key")


@pytest.mark.parametrize("value", ["C", "", 5, ["a"], {"a": 1}])
def test_a_choice_lists_what_is_allowed(value: Any) -> None:
    """(case H-08)"""
    fields = Fields({"key": value})
    for reader in (fields.choice, fields.required_choice):
        with pytest.raises(ProtocolError, match="a, b"):
            reader("key", iter(("a", "b")))


def test_a_required_choice_lists_what_is_allowed() -> None:
    with pytest.raises(ProtocolError, match="is required: one of a, b"):
        Fields({}).required_choice("key", ("a", "b"))


def test_entries_of_an_array_are_named_by_their_index() -> None:
    entries = Fields({"key": [{}, {"inner": 5}]}, "at").objects("key") or []
    with pytest.raises(ProtocolError) as refused:
        entries[1].string("inner")
    assert refused.value.param == "at.key[1].inner"
