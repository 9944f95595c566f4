"""The queue of a call's track: order, positions, and what is taken back."""

from __future__ import annotations

import numpy as np

from counterpoint.protocol.audio import PCM16_24K, ULAW_8K
from counterpoint.serving.webrtc.player import FRAME_BYTES, RATE, QueuedPlayer
from counterpoint.session.effects import Tag

FRAME = FRAME_BYTES // 2


class Deck:
    """A player, and what it said of its positions."""

    def __init__(self) -> None:
        self.moves: list[tuple[str, int]] = []
        self.player = QueuedPlayer(lambda item_id, played_ms: self.moves.append((item_id, played_ms)))

    def play(self, item_id: str, start: int, samples: int, response_id: str = "r1") -> None:
        pcm = np.arange(start + 1, start + samples + 1, dtype="<i2").tobytes()
        self.player.play(Tag(response_id, item_id, samples=start + samples), pcm, PCM16_24K)

    def take(self, frames: int = 1) -> list[int]:
        taken = b"".join(self.player.take() for _ in range(frames))
        return list(np.frombuffer(taken, "<i2"))


def test_nothing_queued_is_silence_and_no_position() -> None:
    deck = Deck()
    assert deck.take(2) == [0] * (2 * FRAME)
    assert deck.moves == []


def test_pieces_follow_each_other_without_a_gap_and_the_end_is_padded() -> None:
    deck = Deck()
    deck.play("a", 0, 300)
    deck.play("a", 300, 300)
    assert deck.take(2) == [*range(1, 601), *[0] * (2 * FRAME - 600)]


def test_a_frame_counts_once_its_time_has_passed() -> None:
    """The start of an item is told as it begins, every end when the next frame is asked for."""
    deck = Deck()
    deck.play("a", 0, 2 * FRAME)
    deck.take()
    assert deck.moves == [("a", 0)]
    deck.take()
    assert deck.moves == [("a", 0), ("a", 20)]
    deck.take()
    assert deck.moves == [("a", 0), ("a", 20), ("a", 40)]
    deck.take()
    assert len(deck.moves) == 3


def test_two_items_may_share_a_frame() -> None:
    deck = Deck()
    deck.play("a", 0, FRAME // 2)
    deck.play("b", 0, FRAME)
    deck.take()
    deck.take()
    assert deck.moves == [("a", 0), ("a", 10), ("b", 10)]


def test_audio_that_begins_within_its_item_keeps_its_place() -> None:
    """After a resume the track goes on in the middle of an item."""
    deck = Deck()
    deck.play("a", RATE, FRAME)
    deck.take(2)
    assert deck.moves == [("a", 1000), ("a", 1020)]


def test_what_is_cleared_is_not_played_and_the_rest_is() -> None:
    deck = Deck()
    deck.play("a", 0, 3 * FRAME)
    deck.play("b", 0, FRAME, response_id="r2")
    deck.take()
    deck.player.clear("r1")
    assert deck.take() == list(range(1, FRAME + 1))
    assert deck.moves[-1] == ("b", 0)
    assert ("a", 40) not in deck.moves


def test_positions_are_the_same_in_every_format() -> None:
    """G.711 at 8 kHz comes out at the track's rate, and ends where its last sample ends."""
    deck = Deck()
    deck.player.play(Tag("r1", "a", samples=320), b"\xff" * 320, ULAW_8K)
    deck.take(3)
    assert deck.moves[-1] == ("a", 40)
