"""A connection that plays audio itself gets it apart from the frames."""

from __future__ import annotations

import pytest

from counterpoint.protocol import codec
from counterpoint.protocol.audio import AudioFormat
from counterpoint.protocol.events import OutputAudioDelta
from counterpoint.session.effects import Tag

from .connection import Connection, now, settle
from .support import AUDIO, AUDIO_DONE, audio_tag, new_log


class Recorder:
    max_lead_ms = 1000

    def __init__(self) -> None:
        self.played: list[tuple[int, bytes]] = []

    def play(self, tag: Tag, audio: bytes, audio_format: AudioFormat) -> None:
        self.played.append((tag.samples, audio))

    def clear(self, response_id: str) -> None:
        raise AssertionError("the runtime clears, not the writer")


@pytest.mark.parametrize("extended", [True, False])
async def test_audio_goes_to_the_player_and_numbers_go_on(extended: bool) -> None:
    """The emptied event keeps an extended connection's numbers dense; a stock one has a hole there."""
    log, player = new_log(), Recorder()
    connection = Connection(log, extended=extended, player=player)
    delta = OutputAudioDelta(response_id="r", item_id="item", output_index=0, content_index=0, pcm=b"\1\2")
    log.record(AUDIO, codec.encode_body(delta, "event_1"), tag=audio_tag("r", samples=1), now=now())
    log.record(AUDIO_DONE, b'{"type":"response.output_audio.done"}', now=now())
    await settle()
    assert player.played == [(1, b"\1\2")]
    assert connection.link.numbers == ([1, 2] if extended else [2])
    deltas = [event["delta"] for event in connection.link.events if "delta" in event]
    assert deltas == ([""] if extended else [])
    await connection.closed()
