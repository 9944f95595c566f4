"""Speaking, typing and interrupting, in a real browser (group N of the cases, E-06)."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from .browser import Page
from .conftest import Browse, Microphone, Server
from .talk import RATE, answers, begin, checksum, is_state, played, report, texts

pytestmark = pytest.mark.browser


async def test_a_spoken_turn_is_answered_and_the_answer_acknowledged(
    server: Server, browse: Browse, microphone: Microphone
) -> None:
    page = await browse(*microphone(1.5, "ill_disposed", 10))
    await begin(page, server.page, audio_ms=1000, input_transcript="he was not an ill disposed young man")
    await played(page, RATE)
    await page.until_true(lambda: bool(page.of_type("playback.acknowledged")))
    await page.until_true(
        lambda: page.of_type("playback.acknowledged")[-1]["playback"]["committed_ms"] == 1000
    )
    assert await answers(page) == [{"samples": RATE, "checksum": checksum(1, 0, RATE)}]
    assert await texts(page, ".turn.you p") == ["he was not an ill disposed young man"]
    assert await texts(page, ".turn.voice p") == [" ".join(f"word{n}" for n in range(1, 11))]
    (latency,) = (await report(page))["answersMs"]
    assert 0 < latency < 10_000
    assert await texts(page, "#latency") == [f"{latency:.0f} ms"]
    assert page.errors == []


async def test_speech_silences_the_answer(server: Server, browse: Browse, microphone: Microphone) -> None:
    """What is queued is dropped at once, and the transcript shows where (case E-06)."""
    page = await browse(*microphone(5, "ill_disposed", 20))
    await begin(page, server.page, audio_ms=30_000, chunk_ms=1000, pace="burst", words=60)
    await page.write("Tell me all of it")
    await page.until_true(lambda: bool(page.of_type("response.done")))
    assert page.of_type("response.done")[0]["response"]["status"] == "completed"
    await page.until("document.querySelector('.turn.voice del')")
    (stopped, *_) = await answers(page)
    assert 0 < stopped["samples"] < 30 * RATE
    assert stopped["checksum"] == checksum(1, 0, stopped["samples"])
    await played(page, RATE)  # of the answer to the interruption
    assert (await answers(page))[0] == stopped, "nothing of the interrupted answer sounds any more"
    (cut,) = page.of_type("conversation.item.truncated")
    committed = [
        event["playback"]["committed_ms"]
        for event in page.of_type("playback.acknowledged")
        if event["item_id"] == cut["item_id"]
    ]
    assert committed[-1] == cut["audio_end_ms"] <= stopped["samples"] * 1000 // RATE
    assert page.errors == []


async def test_escape_silences_the_answer_exactly_here(server: Server, browse: Browse) -> None:
    page = await browse()
    await begin(page, server.page, audio_ms=20_000, words=40)
    await page.write("Go on")
    await played(page, RATE)
    await page.evaluate("document.activeElement.blur()")
    await page.press("Escape", 27)
    await page.until_true(lambda: bool(page.of_type("response.done")))
    response = page.of_type("response.done")[0]["response"]
    assert (response["status"], response["status_details"]["reason"]) == ("cancelled", "client_cancelled")
    await page.until("document.querySelector('.turn.voice del')")
    (stopped,) = await answers(page)
    (said,) = [event for event in page.sent if event.get("truncate")]
    assert said["played_ms"] == stopped["samples"] * 1000 // RATE
    heard = [event["playback"]["committed_ms"] for event in page.of_type("playback.acknowledged")]
    assert heard[-1] == said["played_ms"]
    assert page.of_type("error") == []


async def test_typing_asks_and_gives_way_to_nobody(server: Server, browse: Browse) -> None:
    """Typed while an answer runs: it is cut, and the new question is answered, without an error."""
    page = await browse()
    await begin(page, server.page, audio_ms=5000)
    await page.write("First")
    await played(page, RATE // 2)
    await page.write("Second")
    await page.until("Object.keys(counterpoint.conversation.report.rendered).length === 2")
    await played(page, 5 * RATE)
    first, second = await answers(page)
    assert first["samples"] < 5 * RATE
    assert second == {"samples": 5 * RATE, "checksum": checksum(2, 0, 5 * RATE)}
    assert await texts(page, ".turn.you p") == ["First", "Second"]
    assert page.of_type("error") == []


async def test_typing_needs_no_microphone_and_no_start(server: Server, browse: Browse) -> None:
    page = await browse()
    await page.load(server.page)
    await page.write("Hello")
    await is_state(page, "open")
    await played(page, RATE)
    assert [event for event in page.sent if event["type"] == "input_audio_buffer.append"] == []
    assert await page.evaluate("document.getElementById('talk-text').textContent") == "Continue talking"


async def test_a_muted_microphone_sends_silence(
    server: Server, browse: Browse, microphone: Microphone
) -> None:
    page = await browse(*microphone("ill_disposed", "ill_disposed", "ill_disposed", "ill_disposed"))
    await begin(page, server.page)
    await page.evaluate("document.activeElement.blur()")
    await page.press(" ", 32, " ")
    await page.until("document.getElementById('talk-text').textContent === 'Unmute'")
    await page.until_true(lambda: not any(heard(page)[-50:]) and len(heard(page)) > 50)
    await page.press(" ", 32, " ")
    await page.until("document.getElementById('talk-text').textContent === 'Mute'")
    await page.until_true(lambda: heard(page)[-1])


async def test_two_presses_of_start_begin_one_conversation(server: Server, browse: Browse) -> None:
    """Overlapping attempts end in one (case N-02)."""
    page = await browse()
    await page.load(server.page)
    await page.evaluate("document.getElementById('talk').click(), document.getElementById('talk').click()")
    await page.until("document.getElementById('talk-text').textContent === 'Mute'")
    await page.until_true(lambda: len(heard(page)) > 25)
    assert len(page.of_type("session.created")) == 1
    numbers = [event["client_event_seq"] for event in page.sent if "client_event_seq" in event]
    assert numbers == list(range(1, len(numbers) + 1))


async def test_the_next_conversation_knows_nothing_of_the_last(server: Server, browse: Browse) -> None:
    """Three in a row; each is silent of the others' items (case N-01)."""
    page = await browse()
    await page.load(server.page)
    seen: set[str] = set()
    for _ in range(3):
        page.sent.clear()
        await page.write("Hello")
        await is_state(page, "open")
        await played(page, RATE // 4)
        await page.evaluate("document.activeElement.blur()")
        await page.press("Escape", 27)
        await page.until_true(lambda: any(event.get("truncate") for event in page.sent))
        items = {event["item_id"] for event in page.sent if event["type"] == "playback.ack"}
        assert len(items) == 1
        assert not items & seen
        seen |= items
        assert len(await texts(page, ".turn")) == 2
        await page.click("end")
        await is_state(page, "ended")
    assert len(page.of_type("session.created")) == 3
    assert page.errors == []


async def test_the_microphone_loses_no_sample_when_it_stops(server: Server, browse: Browse) -> None:
    """A ramp goes in, and is stopped within a block; what was heard of it is whole (case N-04)."""
    page = await browse()
    await page.load(server.page)
    blocks = await page.evaluate("""(async () => {
      const { Microphone } = await import("/page/microphone.js");
      const { toBase64 } = await import("/page/pcm.js");
      const context = new AudioContext({ sampleRate: 24000 });
      const buffer = context.createBuffer(1, 24000, 24000);
      buffer.getChannelData(0).forEach((_, i, data) => (data[i] = (i + 1) / 32767));
      const source = new AudioBufferSourceNode(context, { buffer });
      context.createMediaStreamSource = () => source;
      const blocks = [];
      const microphone = new Microphone({ onBlock: ({ samples }) => blocks.push(toBase64(samples)) });
      await microphone.open(context, async () => new MediaStream());
      source.start();
      await new Promise((resolve) => setTimeout(resolve, 333));
      await microphone.close();
      await context.close();
      return blocks;
    })()""")
    samples = np.frombuffer(b"".join(base64.b64decode(block) for block in blocks), np.int16)
    ramp = samples[np.flatnonzero(samples)]
    assert len(samples) % 480, "the last block is a part of one"
    assert ramp.tolist() == list(range(1, len(ramp) + 1))


def heard(page: Page) -> list[bool]:
    """Of each block of audio that was sent: whether there was a sound in it."""
    appended = [event["audio"] for event in page.sent if event["type"] == "input_audio_buffer.append"]
    return [bool(np.any(np.frombuffer(base64.b64decode(audio), np.int16))) for audio in appended]
