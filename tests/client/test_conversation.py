"""The conversation that the client shows: spoken order, late words, gaps (case J-03)."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from counterpoint.client.conversation import Conversation
from counterpoint.client.event import Event

TRANSCRIPTION = "conversation.item.input_audio_transcription."


def follow(talk: Conversation, type: str, **fields: Any) -> None:
    talk.follow(Event({"type": type, **fields}))


def message(item_id: str, role: str = "user", *parts: dict[str, Any]) -> dict[str, Any]:
    return {"id": item_id, "type": "message", "role": role, "status": "completed", "content": list(parts)}


def add(conversation: Conversation, item_id: str, previous: str | None, role: str = "user") -> None:
    follow(conversation, "conversation.item.added", item=message(item_id, role), previous_item_id=previous)


def ids(conversation: Conversation) -> list[str]:
    return [item.id for item in conversation]


def words(conversation: Conversation, item_id: str) -> str:
    item = conversation.get(item_id)
    assert item is not None
    return item.text


def test_late_and_failed_transcripts_find_their_turns() -> None:
    """Case J-03: shown are 1, 2 (failed), 3."""
    talk = Conversation()
    add(talk, "u1", None)
    add(talk, "u2", "u1")
    add(talk, "u3", "u2")
    add(talk, "a1", "u1", "assistant")
    follow(talk, TRANSCRIPTION + "completed", item_id="u3", content_index=0, transcript="three")
    follow(talk, TRANSCRIPTION + "failed", item_id="u2", content_index=0, error={"message": "no words"})
    follow(talk, TRANSCRIPTION + "delta", item_id="u1", content_index=0, delta="o")
    follow(talk, TRANSCRIPTION + "delta", item_id="u1", content_index=0, delta="ne")
    follow(talk, TRANSCRIPTION + "completed", item_id="u1", content_index=0, transcript="one")
    shown = [(item.id, item.text, item.transcription_error) for item in talk]
    assert shown == [
        ("u1", "one", None),
        ("a1", "", None),
        ("u2", "", "no words"),
        ("u3", "three", None),
    ]


def test_an_answer_is_known_word_by_word() -> None:
    talk = Conversation()
    add(talk, "a1", None, "assistant")
    for delta in ("Good ", "morn"):
        follow(talk, "response.output_audio_transcript.delta", item_id="a1", content_index=0, delta=delta)
    assert words(talk, "a1") == "Good morn"
    follow(talk, "response.output_audio_transcript.done", item_id="a1", content_index=0, transcript="Good m.")
    follow(talk, "response.output_text.delta", item_id="a1", content_index=1, delta="x")
    follow(talk, "response.output_text.done", item_id="a1", content_index=1, text="y")
    assert words(talk, "a1") == "Good m. y"


def test_a_restated_item_has_the_servers_words_and_keeps_those_it_leaves_out() -> None:
    talk = Conversation()
    add(talk, "u1", None)
    follow(talk, TRANSCRIPTION + "completed", item_id="u1", content_index=0, transcript="heard")
    follow(talk, "conversation.item.done", item=message("u1", "user", {"type": "input_audio"}))
    assert words(talk, "u1") == "heard"
    restated = message("u1", "user", {"type": "input_audio", "transcript": "better"})
    follow(talk, "conversation.item.done", item=restated)
    assert (words(talk, "u1"), ids(talk)) == ("better", ["u1"])


def test_items_are_deleted_and_cut() -> None:
    talk = Conversation()
    add(talk, "a", None)
    add(talk, "b", "a")
    follow(talk, "conversation.item.truncated", item_id="b", content_index=0, audio_end_ms=700)
    follow(talk, "conversation.item.deleted", item_id="a")
    follow(talk, "conversation.item.deleted", item_id="a")
    assert ids(talk) == ["b"]
    item = talk.get("b")
    assert item is not None
    assert item.truncated_ms == 700
    assert (talk.get("a"), len(talk)) == (None, 1)


def test_an_item_after_an_unknown_one_is_the_last() -> None:
    talk = Conversation()
    add(talk, "a", None)
    add(talk, "b", "gone")
    add(talk, "root", None)
    assert ids(talk) == ["root", "a", "b"]


def test_a_snapshot_replaces_everything() -> None:
    talk = Conversation()
    add(talk, "a", None)
    items = [message("b", "user", {"type": "input_text", "text": "hello"}), "no item", {"type": "message"}]
    follow(talk, "session.snapshot", conversation={"items": items})
    assert [(item.id, item.role, item.text) for item in talk] == [("b", "user", "hello")]
    assert talk.get("a") is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
FIELDS = ("item", "item_id", "previous_item_id", "content_index", "delta", "transcript", "conversation")
TYPES = (
    "conversation.item.added",
    "conversation.item.deleted",
    "conversation.item.truncated",
    "session.snapshot",
    TRANSCRIPTION + "delta",
    TRANSCRIPTION + "failed",
)


@settings(max_examples=40)
@given(st.sampled_from(TYPES), st.dictionaries(st.sampled_from(FIELDS), JSON))
@example("session.snapshot", {"conversation": {"items": 5}})
def test_no_event_of_any_form_can_hurt(type: str, fields: dict[str, Any]) -> None:
    """Case I-01."""
    talk = Conversation()
    add(talk, "", None)
    add(talk, "a", None)
    follow(talk, type, **fields)
    assert all(isinstance(item.text, str) for item in talk)
