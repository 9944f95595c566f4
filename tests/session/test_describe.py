"""The session object and the snapshot: what a client is shown of a session."""

from __future__ import annotations

import pytest

from counterpoint.limits import Limits
from counterpoint.plugins.contract import Capabilities, Interaction
from counterpoint.protocol.commands import CancelResponse, CloseSession
from counterpoint.protocol.config import stock_session
from counterpoint.protocol.events import ItemAdded, ItemDone, SessionUpdated
from counterpoint.protocol.items import ItemStatus, Message, OutputAudio

from .driver import Driver, speak, user_text, vad


def test_the_session_object_has_every_key_of_the_contract() -> None:
    """Wire, section 2."""
    session = Driver().machine.describe()
    keys = """state turn_state epoch turn_id active_response_id capabilities overlap_policy
    overlap_short_ack_ms overlap_barge_in_ms overlap_silence_rms playback_commit_policy playback
    idle_timeout_s extra_body"""
    assert set(keys.split()) <= set(session)
    capabilities = """interaction unit_ms supports_barge_in supports_session_resume supports_audio_truncate
    supports_text_input supports_video_input supports_tools input_audio_formats output_audio_formats
    max_sessions"""
    assert set(capabilities.split()) == set(session["capabilities"])
    assert set(session["playback"]) == {"generated_ms", "sent_ms", "played_ms", "committed_ms"}
    assert (session["id"], session["object"], session["type"]) == (
        "sess_test",
        "realtime.session",
        "realtime",
    )


def test_a_stock_client_sees_nothing_of_ours() -> None:
    stock = stock_session(Driver(vad()).machine.describe())
    assert "capabilities" not in stock
    assert "epoch" not in stock
    assert "detector" not in stock["audio"]["input"]["turn_detection"]


def test_it_follows_the_session() -> None:
    driver = Driver(vad(interrupt_response=False))
    states = [driver.machine.describe()["turn_state"]]
    driver.say(400, 0.9)
    states.append(driver.machine.describe()["turn_state"])
    driver.say(600, 0.0)
    driver.model(speak("one ", 500))
    states.append(driver.machine.describe()["turn_state"])
    driver.say(400, 0.9)
    states.append(driver.machine.describe()["turn_state"])
    assert states == ["idle", "user_speaking", "responding", "overlapping"]
    session = driver.machine.describe()
    assert session["active_response_id"] == driver.machine.snapshot(0)[0].active_response.id  # type: ignore[union-attr]
    assert session["playback"]["sent_ms"] == 500
    driver.send(CancelResponse())
    session = driver.machine.describe()
    assert (session["epoch"], session["turn_id"], session["active_response_id"]) == (1, 1, None)
    driver.send(CloseSession())
    assert driver.machine.describe()["state"] == "closing"


@pytest.mark.parametrize(
    ("limit", "plugin", "shown"), [(64, None, 64), (64, 2, 2), (1, 2, 1), (0, 2, 2), (0, None, None)]
)
def test_max_sessions_is_the_smaller_bound(limit: int, plugin: int | None, shown: int | None) -> None:
    capabilities = Capabilities(interaction=Interaction.TURN, max_sessions=plugin)
    driver = Driver(capabilities=capabilities, limits=Limits(max_sessions=limit))
    assert driver.machine.describe()["capabilities"]["max_sessions"] == shown


def test_capabilities_say_what_the_model_is() -> None:
    """Case I-08."""
    turn = Driver().machine.describe()["capabilities"]
    assert (turn["interaction"], turn["unit_ms"]) == ("turn", None)
    native = Capabilities(
        interaction=Interaction.FRAME, input_rate=24_000, step_samples=1920, audio_output=False
    )
    frame = Driver(capabilities=native).machine.describe()["capabilities"]
    assert (frame["interaction"], frame["unit_ms"], frame["output_audio_formats"]) == ("frame", 80, [])


def test_the_snapshot_is_the_conversation_without_audio_and_the_response_under_way() -> None:
    driver = Driver()
    driver.send(user_text("hi", "user"))
    driver.ask()
    driver.model(speak("one two ", 500))
    (snapshot,) = driver.machine.snapshot(17)
    user, answer = snapshot.conversation.items
    assert snapshot.as_of_server_event_seq == 17
    assert user.id == "user"
    assert isinstance(answer, Message)
    assert answer.status is ItemStatus.IN_PROGRESS
    assert answer.content == (OutputAudio(transcript="one two "),)
    assert snapshot.active_response is not None
    assert snapshot.active_response.status == "in_progress"
    assert [item.id for item in snapshot.active_response.output] == [answer.id]
    assert snapshot.playback.sent_ms == 500


def test_a_stock_client_gets_the_items_one_by_one() -> None:
    """Wire, section 3: added and done of every item, in one chain."""
    driver = Driver()
    driver.send(user_text("a", "a"), user_text("b", "b"))
    configuration, *events = driver.machine.restated()
    assert configuration == SessionUpdated(session=driver.machine.describe())
    assert [type(event) for event in events] == [ItemAdded, ItemDone] * 2
    items = [event for event in events if isinstance(event, ItemAdded | ItemDone)]
    assert [(event.previous_item_id, event.item.id) for event in items] == [
        (None, "a"),
        (None, "a"),
        ("a", "b"),
        ("a", "b"),
    ]


def test_an_item_under_way_is_not_restated_as_done() -> None:
    """Its one ``conversation.item.done`` follows live (case D-12)."""
    driver = Driver()
    driver.ask()
    driver.model(speak("one two ", 500))
    assert [type(event) for event in driver.machine.restated()] == [SessionUpdated, ItemAdded]


def test_a_gap_without_items_is_seen_by_a_stock_client_too() -> None:
    """Wire, section 3: the configuration is restated even where the conversation is empty."""
    assert [type(event) for event in Driver().machine.restated()] == [SessionUpdated]


def test_a_snapshot_holds_the_configuration() -> None:
    """A ``session.updated`` may be among what was lost."""
    driver = Driver(vad())
    (snapshot,) = driver.machine.snapshot(4)
    assert snapshot.session == driver.machine.describe()
