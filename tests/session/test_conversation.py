"""The conversation (wire contract, section 4; invariants 94, 97, 118; cases A-12, F-10, G-01, I-07, J-03)."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from counterpoint.errors import ProtocolError
from counterpoint.plugins.contract import HistoryItem
from counterpoint.protocol.audio import PCM16_24K, ULAW_8K, AudioFormat
from counterpoint.protocol.items import (
    FunctionCall,
    FunctionCallOutput,
    InputAudio,
    InputImage,
    InputText,
    ItemStatus,
    Message,
    OutputAudio,
    OutputText,
    Role,
)
from counterpoint.session.conversation import ROOT, Conversation
from counterpoint.session.playback import Spoken

ROOM = 1_000_000


def user(item_id: str, text: str = "hello") -> Message:
    return Message(id=item_id, role=Role.USER, content=(InputText(text),))


def utterance(item_id: str, pcm: bytes = b"\1\2") -> Message:
    return Message(id=item_id, role=Role.USER, content=(InputAudio(audio=pcm),))


def answer(
    conversation: Conversation, item_id: str, text: str, audio: bytes = b"", response_id: str = "resp"
) -> None:
    conversation.reserve(response_id)
    conversation.open_message(response_id, item_id, PCM16_24K)
    conversation.append(item_id, text, audio)
    conversation.close(item_id, ItemStatus.COMPLETED)
    conversation.release(response_id)


def everything(item_id: str) -> int | None:
    return None


def texts(conversation: Conversation, **heard: int) -> list[str | None]:
    return [item.text for item in conversation.history(heard.get)]


def refusal(call: object, *arguments: object) -> tuple[str, str | None]:
    assert callable(call)
    with pytest.raises(ProtocolError) as refused:
        call(*arguments)
    return refused.value.code, refused.value.param


# --------------------------------------------------------------------------- order


def test_an_item_goes_where_its_previous_item_says() -> None:
    """Case I-07: absent is last, "root" is first, an id is directly behind that item."""
    conversation = Conversation(ROOM)
    conversation.add(user("a"))
    conversation.add(user("b"), "a")
    conversation.add(user("c"), ROOT)
    conversation.add(user("d"), "a")
    conversation.add(user("e"))
    assert list(conversation) == ["c", "a", "d", "b", "e"]
    assert [conversation.previous_id(item_id) for item_id in conversation] == [None, "c", "a", "d", "b"]


def test_an_unknown_previous_item_is_refused_and_nothing_is_inserted() -> None:
    conversation = Conversation(ROOM)
    conversation.add(user("a"))
    conversation.add(user("b"))
    conversation.delete("a")
    for previous in ("nobody", "a"):
        expected = "item_create_invalid_previous_item_id", "previous_item_id"
        assert refusal(conversation.check_new, "c", previous) == expected
        assert refusal(conversation.add, user("c"), previous) == expected
    assert list(conversation) == ["b"]


def test_an_id_that_is_taken_is_refused_and_the_history_stays() -> None:
    """Case A-12."""
    conversation = Conversation(ROOM)
    conversation.add(user("a", "first"))
    expected = "item_create_duplicate_item_id", "item.id"
    assert refusal(conversation.check_new, "a") == expected
    assert refusal(conversation.add, user("a", "second"), ROOT) == expected
    assert texts(conversation) == ["first"]


def test_unknown_items_have_their_own_refusals() -> None:
    conversation = Conversation(ROOM)
    assert refusal(conversation.render, "x") == ("item_retrieve_invalid_item_id", "item_id")
    assert refusal(conversation.delete, "x") == ("item_delete_invalid_item_id", "item_id")
    assert refusal(conversation.spoken, "x") == ("item_truncate_invalid_item_id", "item_id")


def test_a_response_keeps_its_place() -> None:
    """Invariant 118: the answer stands before what the user said while it was awaited."""
    conversation = Conversation(ROOM)
    conversation.add(user("u1"))
    conversation.reserve("resp")
    conversation.add(user("u2"))
    conversation.add(user("u3"), "u1")
    conversation.open_message("resp", "a1", PCM16_24K)
    conversation.open_call("resp", "a2", "call", "f")
    conversation.release("resp")
    conversation.add(user("u4"))
    assert list(conversation) == ["u1", "u3", "a1", "a2", "u2", "u4"]


def test_a_place_that_was_not_used_is_gone() -> None:
    conversation = Conversation(ROOM)
    conversation.add(user("u1"))
    for response_id in ("r1", "r2"):
        conversation.reserve(response_id)
    conversation.add(user("u2"))
    assert conversation.previous_id("u2") == "u1"
    for response_id in ("r1", "r2", "r2"):
        conversation.release(response_id)
    assert list(conversation) == ["u1", "u2"]


def test_a_place_is_kept_once() -> None:
    """A response that waits keeps its place from the moment it was asked for."""
    conversation = Conversation(ROOM)
    conversation.reserve("resp")
    conversation.add(user("u1"))
    conversation.reserve("resp")
    conversation.open_message("resp", "a1", None)
    conversation.release("resp")
    assert list(conversation) == ["a1", "u1"]


def test_an_item_can_be_deleted_while_it_is_spoken() -> None:
    """Case I-07: what still comes of it goes nowhere, and the response may add others."""
    conversation = Conversation(ROOM)
    conversation.reserve("resp")
    conversation.open_message("resp", "a1", PCM16_24K)
    conversation.append("a1", "Hello", bytes(480))
    conversation.delete("a1")
    conversation.append("a1", " you", bytes(480))
    conversation.cut("a1", 1, 1)
    conversation.close("a1", ItemStatus.INCOMPLETE)
    conversation.discard("a1")
    assert (conversation.limit("a1", 3), conversation.truncate("a1", 1, 3)) == (0, 0)
    conversation.open_message("resp", "a2", PCM16_24K)
    assert (list(conversation), conversation.audio_bytes) == (["a2"], 0)
    assert "a1" not in conversation


# --------------------------------------------------------------------------- what clients see


def test_items_are_shown_with_audio_only_when_asked() -> None:
    conversation = Conversation(ROOM)
    conversation.add(utterance("u1", b"\1\2\3\4"))
    conversation.set_transcript("u1", "hi")
    answer(conversation, "a1", "Hello", b"\5\6")
    shown = [conversation.render(item_id, audio=True) for item_id in conversation]
    assert shown == [
        Message(id="u1", role=Role.USER, content=(InputAudio(audio=b"\1\2\3\4", transcript="hi"),)),
        Message(id="a1", role=Role.ASSISTANT, content=(OutputAudio(audio=b"\5\6", transcript="Hello"),)),
    ]
    assert conversation.snapshot() == (
        Message(id="u1", role=Role.USER, content=(InputAudio(transcript="hi"),)),
        Message(id="a1", role=Role.ASSISTANT, content=(OutputAudio(transcript="Hello"),)),
    )


def test_an_item_is_shown_as_far_as_it_was_written() -> None:
    conversation = Conversation(ROOM)
    conversation.reserve("resp")
    conversation.open_message("resp", "a1", None)
    conversation.append("a1", "Hel")
    conversation.append("a1", "lo")
    growing = Message(
        id="a1", status=ItemStatus.IN_PROGRESS, role=Role.ASSISTANT, content=(OutputText("Hello"),)
    )
    assert conversation.render("a1") == growing
    conversation.close("a1", ItemStatus.INCOMPLETE)
    assert conversation.render("a1") == msgspec.structs.replace(growing, status=ItemStatus.INCOMPLETE)


def test_a_call_is_shown_with_the_arguments_so_far() -> None:
    conversation = Conversation(ROOM)
    conversation.reserve("resp")
    conversation.open_call("resp", "c1", "call", "f")
    for piece in ('{"a"', ": 1}"):
        conversation.append("c1", piece)
    conversation.close("c1", ItemStatus.COMPLETED)
    assert conversation.render("c1", audio=True) == FunctionCall(
        id="c1", call_id="call", name="f", arguments='{"a": 1}'
    )


def test_given_items_are_shown_as_they_were_given() -> None:
    items = (
        Message(id="s", role=Role.SYSTEM, content=(InputText("Be kind."),)),
        Message(id="u", role=Role.USER, content=(InputImage("data:,"), InputAudio(b"\1\2", "see"))),
        Message(id="a", role=Role.ASSISTANT, content=(OutputAudio(b"\3\4", "I see"),)),
        FunctionCall(id="c", call_id="call", name="f", arguments="{}"),
        FunctionCallOutput(id="o", call_id="call", output="42"),
    )
    conversation = Conversation(ROOM)
    for item in items:
        conversation.add(item)
    assert tuple(conversation.render(item.id, audio=True) for item in items) == items
    assert (len(conversation), conversation.audio_bytes) == (5, 4)


def test_older_audio_goes_and_transcripts_stay() -> None:
    """``limits.max_history_audio_bytes``."""
    conversation = Conversation(100)
    conversation.add(utterance("u1", bytes(60)))
    conversation.set_transcript("u1", "hi")
    answer(conversation, "a1", "Hello", bytes(60))
    assert conversation.audio_bytes == 60
    assert conversation.render("u1", audio=True) == conversation.render("u1")
    conversation.add(utterance("u2", bytes(60)))
    assert conversation.spoken("a1") == Spoken("a1", samples=30, rate=24_000, chars=5)
    assert texts(conversation) == ["hi", "Hello", None]


def test_a_transcript_may_come_late_or_for_a_deleted_item() -> None:
    """Case J-03."""
    conversation = Conversation(ROOM)
    conversation.add(utterance("u1"), input=1)
    conversation.add(utterance("u2"), input=2)
    conversation.set_transcript("u2", "second")
    conversation.delete("u2")
    conversation.set_transcript("u2", "again")
    conversation.set_transcript("u1", "first")
    assert texts(conversation) == ["first"]


def test_a_transcript_changes_nothing_where_nothing_was_spoken() -> None:
    conversation = Conversation(ROOM)
    conversation.add(user("u1"))
    conversation.add(FunctionCallOutput(id="o1", call_id="call", output="42"))
    answer(conversation, "a1", "Hello")
    before = conversation.snapshot()
    for item_id in ("u1", "o1", "a1"):
        conversation.set_transcript(item_id, "?")
    assert conversation.snapshot() == before


# --------------------------------------------------------------------------- what was heard


@pytest.mark.parametrize(("audio", "size"), [(PCM16_24K, 480), (ULAW_8K, 240)])
def test_the_length_of_an_answer_is_counted_at_its_own_rate(audio: AudioFormat, size: int) -> None:
    """Case F-09."""
    conversation = Conversation(ROOM)
    conversation.reserve("resp")
    conversation.open_message("resp", "a1", audio)
    for _ in range(3):
        conversation.append("a1", "ab", bytes(size))
    assert conversation.spoken("a1") == Spoken("a1", samples=720, rate=audio.rate, chars=6)


def test_what_was_not_spoken_here_cannot_be_truncated() -> None:
    """Case F-10: text answers, items of users, restored answers, calls."""
    conversation = Conversation(ROOM)
    conversation.add(utterance("u1"))
    conversation.add(Message(id="restored", role=Role.ASSISTANT, content=(OutputText("Hi"),)))
    conversation.reserve("resp")
    conversation.open_message("resp", "text", None)
    conversation.open_call("resp", "call_item", "call", "f")
    for item_id in ("u1", "restored", "text", "call_item"):
        assert refusal(conversation.spoken, item_id) == ("item_truncate_invalid_item_id", "item_id")


def test_a_spoken_answer_has_one_part() -> None:
    """Case F-01."""
    conversation = Conversation(ROOM)
    answer(conversation, "a1", "Hello")
    for index in (9, -1):
        assert refusal(conversation.spoken, "a1", index) == ("invalid_event", "content_index")


def test_truncation_is_seen_by_everyone() -> None:
    """Case F-03."""
    conversation = Conversation(ROOM)
    answer(conversation, "a1", "one two three", bytes(range(200)))
    assert conversation.truncate("a1", 50, 9) == len("one two ")
    assert conversation.render("a1", audio=True) == Message(
        id="a1", role=Role.ASSISTANT, content=(OutputAudio(bytes(range(100)), "one two "),)
    )
    assert (texts(conversation), conversation.spoken("a1").samples) == (["one two "], 50)
    assert conversation.truncate("a1", 50, 9) == len("one two ")


def test_cutting_to_what_was_handed_over_is_exact() -> None:
    conversation = Conversation(ROOM)
    answer(conversation, "a1", "one two three", bytes(200))
    conversation.cut("a1", 70, 9)
    assert conversation.spoken("a1") == Spoken("a1", 70, 24_000, 9)
    assert (texts(conversation), conversation.audio_bytes) == (["one two t"], 140)


def test_nothing_grows_when_it_is_cut_beyond_its_end() -> None:
    conversation = Conversation(ROOM)
    answer(conversation, "a1", "one", bytes(20))
    conversation.cut("a1", 999, 999)
    assert conversation.truncate("a1", 999, 999) == 3
    assert conversation.spoken("a1") == Spoken("a1", 10, 24_000, 3)


def test_audio_that_left_is_cut_in_length_only() -> None:
    conversation = Conversation(100)
    answer(conversation, "a1", "one two", bytes(102))
    conversation.truncate("a1", 20, 3)
    assert conversation.spoken("a1") == Spoken("a1", 20, 24_000, 3)


def test_a_model_sees_of_an_answer_what_was_heard() -> None:
    """Invariant 94, CASE-INV-11; the item keeps what was handed over."""
    conversation = Conversation(ROOM)
    answer(conversation, "a1", "one two three")
    for chars, seen in ((13, "one two three"), (12, "one two "), (5, "one "), (3, "one")):
        assert texts(conversation, a1=chars) == [seen]
    assert conversation.snapshot()[0] == conversation.render("a1")
    assert conversation.spoken("a1").chars == 13


def test_an_answer_of_which_nothing_was_heard_is_left_out() -> None:
    conversation = Conversation(ROOM)
    conversation.add(user("u1", "hi"))
    answer(conversation, "a1", "one two three")
    conversation.add(user("u2", "stop"))
    assert texts(conversation, a1=2) == ["hi", "stop"]


def test_what_is_settled_to_be_unheard_stays_unheard() -> None:
    conversation = Conversation(ROOM)
    answer(conversation, "a1", "one two three")
    assert conversation.limit("a1", 9) == len("one two ")
    assert conversation.limit("a1", 99) == len("one two ")
    assert texts(conversation) == ["one two "]
    assert texts(conversation, a1=5) == ["one "]
    assert conversation.limit("a1", 0) == 0
    assert texts(conversation) == []


# --------------------------------------------------------------------------- what models see


def test_every_kind_of_item_reaches_the_model() -> None:
    conversation = Conversation(ROOM)
    conversation.add(
        Message(id="s", role=Role.SYSTEM, content=(InputText("Be kind."), InputText("Be brief.")))
    )
    conversation.add(
        Message(
            id="u1", role=Role.USER, content=(InputText("Look:"), InputImage("data:,x"), InputAudio(b"\1\2"))
        )
    )
    conversation.add(utterance("u2"), input=7)
    answer(conversation, "a1", "I see.")
    assert conversation.history(everything) == (
        HistoryItem("s", "message", role="system", text="Be kind.\nBe brief."),
        HistoryItem("u1", "message", role="user", text="Look:", audio=b"\1\2", images=("data:,x",)),
        HistoryItem("u2", "message", role="user", text=None, input=7),
        HistoryItem("a1", "message", role="assistant", text="I see."),
    )


def test_an_image_alone_is_no_unknown_speech() -> None:
    conversation = Conversation(ROOM)
    conversation.add(Message(id="u", role=Role.USER, content=(InputImage("data:,x"),)))
    assert conversation.history(everything)[0].text == ""


def test_results_stand_directly_behind_their_calls() -> None:
    """Case G-01: whatever the order in which tools finish and what is said meanwhile."""
    conversation = Conversation(ROOM)
    conversation.reserve("resp")
    for number in (1, 2):
        conversation.open_call("resp", f"c{number}", f"call_{number}", "f")
        conversation.append(f"c{number}", "{}")
        conversation.close(f"c{number}", ItemStatus.COMPLETED)
    conversation.add(user("u1"))
    for number in (2, 1):
        conversation.add(FunctionCallOutput(id=f"o{number}", call_id=f"call_{number}", output=str(number)))
    assert conversation.history(everything) == (
        HistoryItem("c1", "function_call", call_id="call_1", name="f", arguments="{}"),
        HistoryItem("o1", "function_call_output", call_id="call_1", output="1"),
        HistoryItem("c2", "function_call", call_id="call_2", name="f", arguments="{}"),
        HistoryItem("o2", "function_call_output", call_id="call_2", output="2"),
        HistoryItem("u1", "message", role="user", text="hello"),
    )
    assert list(conversation) == ["c1", "c2", "u1", "o2", "o1"]


def test_a_result_without_its_call_is_not_seen() -> None:
    conversation = Conversation(ROOM)
    conversation.add(FunctionCall(id="c", call_id="call", name="f", arguments="{}"))
    conversation.add(FunctionCallOutput(id="o", call_id="call", output="42"))
    conversation.delete("c")
    assert conversation.history(everything) == ()


@pytest.mark.parametrize("status", [ItemStatus.IN_PROGRESS, ItemStatus.INCOMPLETE])
def test_a_call_that_was_never_completed_is_not_seen(status: ItemStatus) -> None:
    """Invariant 97."""
    conversation = Conversation(ROOM)
    conversation.reserve("resp")
    conversation.open_call("resp", "c", "call", "f")
    conversation.append("c", '{"half')
    conversation.close("c", status)
    assert conversation.history(everything) == ()


# --------------------------------------------------------------------------- whatever happens


class OneConsistentList(RuleBasedStateMachine):
    """A client that believes ``previous_item_id`` has the server's list (CASE-INV-10)."""

    def __init__(self) -> None:
        super().__init__()
        self.conversation = Conversation(ROOM)
        self.client: list[str] = []
        self.fresh = iter(range(10_000))
        self.responses: list[str] = []

    def _believe(self, item_id: str) -> None:
        previous = self.conversation.previous_id(item_id)
        self.client.insert(0 if previous is None else self.client.index(previous) + 1, item_id)

    @rule(where=st.integers(-2, 100))
    def add(self, where: int) -> None:
        item_id = f"item_{next(self.fresh)}"
        previous = None if where == -2 or not self.client else self.client[where % len(self.client)]
        self.conversation.add(user(item_id), ROOT if where == -1 else previous)
        self._believe(item_id)

    @rule()
    def reserve(self) -> None:
        self.responses.append(f"resp_{next(self.fresh)}")
        self.conversation.reserve(self.responses[-1])

    @rule(which=st.integers(0, 100))
    def generate(self, which: int) -> None:
        if self.responses:
            item_id = f"item_{next(self.fresh)}"
            self.conversation.open_message(self.responses[which % len(self.responses)], item_id, None)
            self._believe(item_id)

    @rule(which=st.integers(0, 100))
    def release(self, which: int) -> None:
        if self.responses:
            self.conversation.release(self.responses.pop(which % len(self.responses)))

    @rule(which=st.integers(0, 100))
    def delete(self, which: int) -> None:
        if self.client:
            self.conversation.delete(self.client.pop(which % len(self.client)))

    @invariant()
    def client_and_server_agree(self) -> None:
        assert list(self.conversation) == self.client


TestConsistency = OneConsistentList.TestCase
