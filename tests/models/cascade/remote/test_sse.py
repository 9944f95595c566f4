"""Events come whole out of bytes that were cut anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.models.cascade.remote.sse import MOST_BYTES, EventReader

STREAM = (
    ': a comment\r\n\r\ndata: {"a": "é"}\r\n\r\nevent: x\ndata: one\ndata:two\n\n: ping\n\n'
    "id: 7\rdata:  three\r\rdata\n\nretry: 5\n\ndata: [DONE]\n\ndata: not ended"
).encode()
EVENTS = ['{"a": "é"}', "one\ntwo", " three", "", "[DONE]"]


def read(pieces: list[bytes]) -> list[str]:
    reader = EventReader()
    return [data for piece in pieces for data in reader.feed(piece)]


def test_comments_line_ends_and_other_fields_are_understood() -> None:
    assert read([STREAM]) == EVENTS
    assert read([STREAM[at : at + 1] for at in range(len(STREAM))]) == EVENTS


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_where_the_bytes_are_cut_does_not_matter(cuts: list[int]) -> None:
    ends = sorted(cuts)
    pieces = [STREAM[a:b] for a, b in zip([0, *ends], [*ends, len(STREAM)], strict=True)]
    assert read(pieces) == EVENTS


@pytest.mark.parametrize("line", [b"x", b"data: x\n"])
def test_an_event_without_end_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match="an event of more than"):
        read([line * (MOST_BYTES // len(line) + 1)] * 8)


def test_data_that_are_no_text_are_refused() -> None:
    with pytest.raises(ValueError, match="utf-8"):
        read([b"data: \xff\n\n"])
