"""What becomes of a conversation when its connection, its tab, its server or its place is gone."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .browser import Page
from .conftest import Browse, Microphone, Server
from .talk import RATE, answers, begin, checksum, follow, is_state, played, report, texts

pytestmark = pytest.mark.browser

Start = Callable[..., Server]

RESUMING = "counterpoint.conversation.report.resumes"


async def test_an_answer_goes_on_over_a_cut_connection(server: Server, browse: Browse) -> None:
    """Every sample once and in order, every event number once (case A-09)."""
    page = await browse()
    await begin(page, server.page, audio_ms=8000, words=16)
    await page.write("Tell me")
    await played(page, RATE)
    await page.click("cut")
    await page.until("document.getElementById('status').dataset.tone === 'busy'")
    await page.until(f"{RESUMING} === 1")
    await played(page, 8 * RATE)
    assert await answers(page) == [{"samples": 8 * RATE, "checksum": checksum(1, 0, 8 * RATE)}]
    (resume,) = [event for event in page.sent if event["type"] == "session.resume"]
    cursor = resume["last_received_server_event_seq"]
    cut = page.received.index(page.of_type("session.resumed")[0])
    before, after = numbers(page.received[:cut]), numbers(page.received[cut:])
    assert before[:cursor] == list(range(1, cursor + 1))
    assert after == list(range(cursor + 1, cursor + 1 + len(after)))
    state = await report(page)
    assert (state["holes"], state["duplicates"], state["resumes"]) == (0, 0, 1)
    assert await texts(page, "#resumes") == ["once"]
    assert await texts(page, ".turn.voice p") == [" ".join(f"word{n}" for n in range(1, 17))]
    assert page.errors == []


async def test_speech_goes_on_over_a_cut_connection(
    server: Server, browse: Browse, microphone: Microphone
) -> None:
    """What is spoken meanwhile arrives once, in order (case N-03, within the bound)."""
    page = await browse(*microphone(0.5, "ill_disposed", "made_amiable", 20))
    await begin(page, server.page, echo_input=True)
    await page.until_true(lambda: bool(page.of_type("input_audio_buffer.speech_started")))
    await page.click("cut")
    await page.until(f"{RESUMING} === 1")
    await page.until_true(lambda: bool(page.of_type("input_audio_buffer.committed")))
    acknowledged = page.of_type("session.input_ack")[-1]
    assert acknowledged["input_audio_ms"] == spoken_ms(page, acknowledged["client_event_seq"])
    state = await report(page)
    assert state["droppedMs"] == 0
    assert await texts(page, "#lost") == ["none"]
    assert [event["error"] for event in page.of_type("error")] == []


async def test_of_a_long_outage_the_newest_speech_is_kept_and_the_rest_is_shown_as_lost(
    server: Server, browse: Browse
) -> None:
    """Case N-03, beyond the bound of two seconds."""
    page = await browse()
    await begin(page, server.page)
    await page.evaluate("counterpoint.conversation.cut(4000)")
    await page.until(f"{RESUMING} === 1")
    first = page.of_type("session.resumed")[0]["last_client_event_seq"] + 1
    await page.until_true(
        lambda: any(e["client_event_seq"] > first + 100 for e in page.of_type("session.input_ack"))
    )
    acknowledged = page.of_type("session.input_ack")[-1]
    assert acknowledged["input_audio_ms"] == spoken_ms(page, acknowledged["client_event_seq"])
    lost_ms = (await report(page))["droppedMs"]
    assert 1000 < lost_ms < 4000
    assert await texts(page, "#lost") == [f"{lost_ms / 1000:.1f} s"]


async def test_a_reloaded_page_goes_on_where_it_was(server: Server, browse: Browse) -> None:
    page = await browse()
    await begin(page, server.page, audio_ms=1000)
    await page.write("First")
    await played(page, RATE)
    await follow(page, audio_ms=8000, words=16)
    await page.write("Second")
    await page.until("Object.keys(counterpoint.conversation.report.rendered).length === 2")
    await played(page, 2 * RATE)
    session = (await report(page))["session"]
    await page.on_load("window.stored = JSON.parse(sessionStorage.getItem('counterpoint'))")
    await page.reload()
    await is_state(page, "open")
    await played(page, 8 * RATE)
    state = await report(page)
    assert (state["session"], state["holes"], state["duplicates"]) == (session, 0, 0)
    (resume,) = [event for event in page.sent if event["type"] == "session.resume"]
    assert resume["replay"] == "from_playhead"
    (answer,) = await answers(page)
    (item_id,) = (await report(page))["rendered"]
    start = await page.evaluate(f"stored.playback.played['{item_id}']")
    assert start >= 2 * RATE
    assert answer == {"samples": 8 * RATE, "checksum": checksum(2, start, 8 * RATE)}
    assert await texts(page, ".turn.you p") == ["First", "Second"]
    first, second = await texts(page, ".turn.voice p")
    assert first == " ".join(f"word{n}" for n in range(1, 11))
    assert second == " ".join(f"word{n}" for n in range(1, 17))
    await page.until("!document.querySelector('.ahead')")


async def test_a_conversation_that_was_taken_over_is_left_alone(server: Server, browse: Browse) -> None:
    """Two tabs never fight (case B-05)."""
    first = await browse()
    await begin(first, server.page)
    second = await first.sibling()
    await second.load(server.page)
    memory = await first.evaluate("JSON.stringify(sessionStorage.counterpoint)")
    await second.evaluate(f"sessionStorage.setItem('counterpoint', {memory})")
    await second.reload()
    await is_state(second, "open")
    await is_state(first, "ended")
    assert await texts(first, "#notice-text") == ["This conversation goes on in another window or tab."]
    await asyncio.sleep(2)  # longer than the first delays of a back-off
    await is_state(first, "ended")
    assert [event for event in first.sent if event["type"] == "session.resume"] == []
    assert (await report(second))["resumes"] == 1
    await first.click("talk")
    await is_state(first, "open")
    assert (await report(first))["session"] != (await report(second))["session"]


async def test_a_full_server_is_said_to_be_full_and_tried_again(start: Start, browse: Browse) -> None:
    server = start("scripted", "limits.max_sessions=1")
    first = await browse()
    await begin(first, server.page)
    second = await browse()
    await second.load(server.page)
    await second.click("talk")
    await second.until("document.getElementById('status-text').textContent.startsWith('Server full')")
    await first.click("end")
    await is_state(second, "open")


async def test_a_server_that_is_gone_is_tried_again_and_a_new_one_knows_nothing(
    start: Start, browse: Browse
) -> None:
    """A restart without a store is told from an outage (case A-05)."""
    server = start("scripted")
    page = await browse()
    await begin(page, server.page)
    server.process.kill()
    await page.until("document.getElementById('status-text').textContent.startsWith('Reconnecting')")
    server.process.wait()
    start("scripted", port=server.port)
    await is_state(page, "ended")
    assert await texts(page, "#notice-text") == ["The server no longer knows this conversation."]
    await page.click("talk")
    await is_state(page, "open")


async def test_a_key_is_asked_for_where_one_is_needed(start: Start, browse: Browse, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae someone\n")  # of "foo"
    server = start("scripted", f"access.keys_file={keys}")
    page = await browse()
    await page.load(server.page)
    await page.click("talk")
    await page.until("document.activeElement.id === 'key'")
    await page.command("Input.insertText", text="foo")
    await page.press("Enter", 13, "\r")
    await is_state(page, "open")
    await page.reload()
    await is_state(page, "open")


async def test_the_largest_event_is_taken(server: Server, browse: Browse) -> None:
    """A minute of audio in one event of 3.8 MB (case H-06)."""
    page = await browse()
    await begin(page, server.page, audio_ms=60_000, pace="burst")
    await page.write("All at once")
    await page.until_true(lambda: bool(page.of_type("response.done")))
    item_id = page.of_type("response.done")[0]["response"]["output"][0]["id"]
    ask = f"{{type: 'conversation.item.retrieve', item_id: '{item_id}'}}"
    await page.evaluate(f"counterpoint.conversation.send({ask})")
    await page.until_true(lambda: bool(page.of_type("conversation.item.retrieved")))
    (retrieved,) = page.of_type("conversation.item.retrieved")
    assert len(retrieved["item"]["content"][0]["audio"]) == 3_840_000
    await page.until(f"counterpoint.conversation.report.cursor >= {retrieved['server_event_seq']}")
    assert (await report(page))["state"] == "open"


def numbers(events: list[dict[str, Any]]) -> list[int]:
    return [event["server_event_seq"] for event in events if "server_event_seq" in event]


def spoken_ms(page: Page, last_number: int) -> float:
    """Milliseconds of speech sent under numbers up to ``last_number``, each counted as sent last."""
    blocks = {
        event["client_event_seq"]: len(base64.b64decode(event["audio"])) * 500 / RATE
        for event in page.sent
        if event["type"] == "input_audio_buffer.append"
    }
    return sum(ms for number, ms in blocks.items() if number <= last_number)
