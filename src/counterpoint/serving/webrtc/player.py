"""The audio that a call has yet to hear, and how far it has come.

Owns: the queue between delivery and the track, in real time's steps of 20 ms; positions.
Does not own: the clock and the encoder (``tracks``), what follows from a position (``session``).
Here because: what was given to the sender is the truth about playback, and what was not can be taken back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from counterpoint.audio.decoder import InputDecoder
from counterpoint.protocol.audio import SESSION_RATE, AudioFormat, samples_to_ms
from counterpoint.session.effects import Tag

RATE = SESSION_RATE
FRAME_MS = 20
FRAME_BYTES = RATE * FRAME_MS // 1000 * 2


@dataclass(slots=True)
class _Piece:
    """PCM of an item, of which ``end`` is the position (samples) behind its last sample."""

    response_id: str
    item_id: str
    end: int
    pcm: bytes

    def cut(self, size: int) -> bytes:
        head, self.pcm = self.pcm[:size], self.pcm[size:]
        return head

    @property
    def position(self) -> int:
        return self.end - len(self.pcm) // 2


class QueuedPlayer:
    """Implements ``delivery.player.Player``. ``moved(item_id, played_ms)`` is called as playback goes on.

    A piece counts as played when the frame after it is asked for: then its own time has passed.
    """

    max_lead_ms = 1000

    def __init__(self, moved: Callable[[str, int], None]) -> None:
        self._moved = moved
        self._decoder = InputDecoder()
        self._pieces: deque[_Piece] = deque()
        #: Where each item that is in the frame under way will be at its end.
        self._under_way: dict[str, int] = {}

    def play(self, tag: Tag, audio: bytes, audio_format: AudioFormat) -> None:
        pcm = self._decoder.push(audio, audio_format)
        end = tag.samples * RATE // audio_format.rate
        self._pieces.append(_Piece(tag.response_id or "", tag.item_id or "", end, pcm))

    def clear(self, response_id: str) -> None:
        self._pieces = deque(piece for piece in self._pieces if piece.response_id != response_id)

    def take(self) -> bytes:
        """The next 20 ms: PCM16 at ``RATE``, silence where nothing is queued."""
        self._report(self._under_way)
        before, self._under_way = self._under_way, {}
        starting = {p.item_id: p.position for p in list(self._pieces)[:1] if p.item_id not in before}
        frame = bytearray()
        while self._pieces and len(frame) < FRAME_BYTES:
            piece = self._pieces[0]
            frame += piece.cut(FRAME_BYTES - len(frame))
            self._under_way[piece.item_id] = piece.position
            if not piece.pcm:
                self._pieces.popleft()
        self._report(starting)
        return bytes(frame.ljust(FRAME_BYTES, b"\0"))

    def _report(self, positions: dict[str, int]) -> None:
        for item_id, samples in positions.items():
            self._moved(item_id, samples_to_ms(samples, RATE))
