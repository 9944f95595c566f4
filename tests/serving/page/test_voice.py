"""A spoken conversation with the embedded voice, from the microphone to the loudspeaker."""

from __future__ import annotations

import pytest

from .browser import Page
from .conftest import Browse, Microphone, Server
from .talk import RATE, is_state, report, texts

pytestmark = [pytest.mark.browser, pytest.mark.voice, pytest.mark.timeout(120)]

PATIENCE_S = 60.0


async def test_words_are_recognised_and_an_answer_is_spoken(
    voice_server: Server, browse: Browse, microphone: Microphone
) -> None:
    page = await browse(*microphone(1, "go_forward", 60))
    await page.load(voice_server.page)
    await page.click("talk")
    await page.until_true(lambda: bool(page.of_type("response.done")), PATIENCE_S)
    (words,) = await texts(page, ".turn.you p")
    assert {"forward", "meters"} <= set(words.lower().strip(".").split())
    await whole_answer_is_acknowledged(page)
    (answer,) = await texts(page, ".turn.voice p")
    assert len(answer.split()) >= 2
    (latency,) = (await report(page))["answersMs"]
    assert latency > 0
    assert page.errors == []


async def test_speech_interrupts_the_voice(
    voice_server: Server, browse: Browse, microphone: Microphone
) -> None:
    """What was heard stays, the rest is struck out."""
    page = await browse(*microphone(1, "go_forward", 2.6, "made_amiable", "ill_disposed", "made_amiable", 60))
    await page.load(voice_server.page)
    await page.click("talk")
    await page.until("document.querySelector('.turn.voice del')", PATIENCE_S)
    await page.until("document.querySelectorAll('.turn.voice').length >= 2", PATIENCE_S)
    item_id, cut = next(iter((await report(page))["rendered"].items()))
    sent_ms = sum(
        event["duplex"]["audio_duration_ms"]
        for event in page.of_type("response.output_audio.delta")
        if event["item_id"] == item_id
    )
    assert 0 < cut["samples"] * 1000 // RATE < sent_ms


async def test_another_voice_is_chosen(voice_server: Server, browse: Browse) -> None:
    page = await browse()
    await page.load(voice_server.page)
    await page.write("Say hello.")
    await is_state(page, "open")
    await page.until("!document.getElementById('voices').hidden")
    names, chosen = await texts(page, "#voice option"), await page.evaluate("voice.value")
    other = next(name for name in names if name != chosen)
    await page.evaluate(f"voice.value = '{other}', voice.dispatchEvent(new Event('change'))")
    await page.until_true(
        lambda: other in [e["session"]["audio"]["output"]["voice"] for e in page.of_type("session.updated")]
    )
    await page.until(f"voice.value === '{other}'")


async def whole_answer_is_acknowledged(page: Page) -> None:
    length_ms = page.of_type("response.output_audio.done")[0]["duplex"]["audio_duration_ms"]
    await page.until_true(
        lambda: any(
            event["playback"]["committed_ms"] == length_ms for event in page.of_type("playback.acknowledged")
        ),
        PATIENCE_S,
    )
