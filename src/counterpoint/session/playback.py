"""What was generated, handed over, played and heard of every spoken item.

Owns: the four positions of each audio part, acknowledgements, the ceiling that an interruption leaves, the
place at which a truncation cuts.
Does not own: text and audio themselves (``conversation``), which characters a position stands for
(``alignment``), the server's guess of a silent client's playback (``playhead``), when to interrupt.
Here because: the history may hold only what was heard, and one place must say what that is
(wire contract, section 7).

Positions are samples of the session's output rate; an item has at most one audio part, at content index 0.
Times are seconds of any monotonic clock. No position ever falls, with two exceptions: a truncation lowers
what counts as played, and a client's first acknowledgement replaces the guess about the response it names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from counterpoint.errors import ProtocolError
from counterpoint.plugins.contract import Mark
from counterpoint.protocol.audio import ms_to_samples, samples_to_ms
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.config import PlaybackCommitPolicy
from counterpoint.protocol.events import PlaybackAcknowledged, PlaybackPositions

from .alignment import Alignment
from .playhead import Playhead
from .track import Part, Track, TrackState

#: Responses that are remembered after their end; of older ones, what was not heard by then never will be.
MAX_RESPONSES = 32

#: Acknowledgements that are kept for items which do not exist yet.
MAX_EARLY = 64

#: Clients acknowledge several times a second; one silent for longer says no more where it is, and its audio
#: must not wait for it for ever (``ahead_ms``).
ACKNOWLEDGED_FOR_S = 10.0


@dataclass(frozen=True, slots=True)
class Spoken:
    """The audio part of an item as it stands in the conversation (``Conversation.spoken``)."""

    item_id: str
    samples: int
    rate: int
    chars: int


@dataclass(frozen=True, slots=True)
class Cut:
    """Of an item, ``samples`` of audio (``audio_end_ms``) and at most ``chars`` characters were heard.

    ``chars`` may lie within a word; ``Conversation.limit`` and ``Conversation.truncate`` round it down.
    """

    item_id: str
    samples: int
    audio_end_ms: int
    chars: int
    model_samples: int  #: ``samples`` at the rate of the model's output


class PlaybackLedger:
    """The playback of one session.

    ``model_rate`` is the rate of the model's output, at which marks count; ``alignment`` is its
    ``text_alignment``.
    """

    def __init__(self, model_rate: int, alignment: str, policy: PlaybackCommitPolicy) -> None:
        self._model_rate = model_rate
        self._aligned = alignment != "none"
        self._policy = policy
        self._acknowledged_at: float | None = None  # when a client last said how far it has played
        self._tracks: dict[str, Track] = {}
        self._parts: dict[str, Part] = {}
        self._early: dict[str, int] = {}  # item id -> milliseconds
        self._newest_playhead: Playhead | None = None

    def __len__(self) -> int:
        """Responses that are remembered: those that run, and others up to ``MAX_RESPONSES`` in all."""
        return len(self._tracks)

    def set_policy(self, policy: PlaybackCommitPolicy, now: float) -> None:
        """What counts as heard from now on; what did so until now stays."""
        self._settle_guesses(now)
        self._policy = policy

    # ------------------------------------------------------------------ what the server does

    def begin(self, response_id: str, rate: int, now: float) -> tuple[Cut, ...]:
        """A response starts; its audio will be handed over at ``rate``.

        Returns what was heard of items that had to be forgotten before they were heard whole; pass it to
        ``Conversation.limit``. It is empty unless a client leaves many responses unacknowledged.
        """
        forgotten: tuple[Cut, ...] = ()
        over = (track for track in list(self._tracks.values()) if track.state is not TrackState.SPEAKING)
        while len(self._tracks) >= MAX_RESPONSES and (oldest := next(over, None)) is not None:
            forgotten += self.interrupt(oldest.response_id, now)
            self._remove(oldest)
        self._tracks[response_id] = Track(response_id, rate)
        return forgotten

    def add_part(self, response_id: str, item_id: str) -> None:
        """The response begins a message that will be spoken."""
        track = self._tracks[response_id]
        part = Part(item_id, track, Alignment(self._aligned))
        part.early = ms_to_samples(self._early.pop(item_id, 0), track.rate)
        track.parts.append(part)
        self._parts[item_id] = part

    def append(self, item_id: str, samples: int, chars: int, marks: Sequence[Mark] = ()) -> None:
        """More was generated. ``marks`` count from the end of what was there before, at the model's rate."""
        part = self._parts.get(item_id)
        if part is None:
            return
        alignment, rate = part.alignment, part.track.rate
        for mark in marks:
            offset = -(-mark.samples * rate // self._model_rate)  # rounded up: rather a little less was heard
            alignment.mark(alignment.samples + offset, alignment.chars + mark.chars)
        alignment.append(samples, chars)

    def complete(self, item_id: str) -> None:
        """All audio and text of the message has been generated."""
        part = self._parts.get(item_id)
        if part is not None:
            part.alignment.complete = True

    def sent(self, item_id: str, samples: int, chars: int, now: float) -> None:
        """A transport took the part up to ``samples`` and ``chars`` (``effects.Tag``)."""
        part = self._parts.get(item_id)
        if part is None:
            return
        part.sent_chars = max(part.sent_chars, chars)
        if samples <= part.sent:
            return
        track = part.track
        if part.sent == 0:
            part.start = track.sent
        track.sent += samples - part.sent
        part.sent = samples
        part.acknowledge(part.early)
        if track.state is not TrackState.STOPPED:
            self._playhead(track, now).hand_over(track.sent, now)

    def done(self, response_id: str) -> None:
        """``response.done`` was written and nobody interrupted the response."""
        track = self._tracks.get(response_id)
        if track is None or track.state is not TrackState.SPEAKING:
            return
        track.state = TrackState.DONE
        if self._policy is PlaybackCommitPolicy.COMMIT_ALL_ON_DONE:
            for part in track.parts:
                part.acknowledge(part.end)

    def interrupt(self, response_id: str, now: float) -> tuple[Cut, ...]:
        """Playback of a response stops: no later acknowledgement raises what was heard.

        Returns, in order, the items that were not heard whole. Nothing happens the second time, or for a
        response that is not known.
        """
        track = self._tracks.get(response_id)
        if track is None or track.state is TrackState.STOPPED:
            return ()
        cuts = tuple(self._cut(part, now) for part in track.parts if not self._fully_heard(part, now))
        for part in track.parts:
            part.acked = self._played(part, now)
        track.state = TrackState.STOPPED
        if track.playhead is not None:
            track.playhead.stop(now)
        return cuts

    def forget(self, item_id: str) -> None:
        """The item was deleted: no trace of it stays (invariant 120)."""
        self._early.pop(item_id, None)
        part = self._parts.pop(item_id, None)
        if part is not None:
            part.track.parts.remove(part)

    # ------------------------------------------------------------------ what the client says

    def acknowledge_response(
        self, response_id: str, played_ms: int, now: float
    ) -> PlaybackAcknowledged | None:
        """``played_ms`` runs over the items of the response in order. None: there is no such response.

        The answer is about the item in which the position lies.
        """
        track = self._tracks.get(response_id)
        if track is None or not track.parts:
            return None
        self._believe_client(track, now)
        played = _as_samples(played_ms, track.sent, track.rate)
        reached = track.parts[0]
        for part in track.parts:
            if played > part.start and part.sent > 0:
                part.acknowledge(played - part.start)
                reached = part
        return self._acknowledged(reached, now)

    def acknowledge_item(
        self,
        item_id: str,
        played_ms: int,
        now: float,
        *,
        response_id: str | None = None,
        content_index: int = 0,
    ) -> PlaybackAcknowledged | None:
        """``played_ms`` of one item. None: no such part, or not of ``response_id`` (invariant 117)."""
        part = self._parts.get(item_id)
        if part is None:
            self._remember_early(item_id, played_ms)
            return None
        track = part.track
        if content_index != 0 or response_id not in (None, track.response_id):
            return None
        self._believe_client(track, now)
        part.acknowledge(_as_samples(played_ms, part.sent, track.rate))
        return self._acknowledged(part, now)

    def clock(self, item_id: str, played_ms: int) -> str | None:
        """The connection that plays the item has come so far: an acknowledgement without an answer.

        Returns the response that the item belongs to; None: there is no such part.
        """
        part = self._parts.get(item_id)
        if part is None:
            return None
        part.track.clocked = True
        part.acknowledge(_as_samples(played_ms, part.sent, part.track.rate))
        return part.track.response_id

    def truncate(self, spoken: Spoken, audio_end_ms: int) -> Cut:
        """Where a truncation to ``audio_end_ms`` cuts; of several the smallest holds (invariant 116).

        An item that is no longer remembered is cut in proportion. Raises ``ProtocolError`` with ``param``
        ``audio_end_ms`` for a place outside of the audio that there is. Of an item that an interruption has
        cut already, that is all that was sent: clients cut by their own clock, and do not know of it yet.
        """
        part = self._parts.get(spoken.item_id)
        sent = spoken.samples
        if part is not None and part.track.state is TrackState.STOPPED:
            sent = max(sent, part.sent)
        length_ms = samples_to_ms(sent, spoken.rate)
        if not 0 <= audio_end_ms <= length_ms:
            message = f"audio_end_ms: the item has {length_ms} ms of audio"
            raise ProtocolError(ErrorCode.INVALID_EVENT, message, param="audio_end_ms")
        audio_end_ms = min(audio_end_ms, samples_to_ms(spoken.samples, spoken.rate))
        samples = _as_samples(audio_end_ms, spoken.samples, spoken.rate)
        if part is not None:
            part.limit = samples if part.limit is None else min(samples, part.limit)
            part.acknowledge(samples)  # a client cuts where it stopped playing
            chars = min(part.alignment.chars_at(samples), spoken.chars)
        else:
            chars = spoken.chars * samples // spoken.samples if spoken.samples else 0
        return Cut(spoken.item_id, samples, audio_end_ms, chars, self._as_model(samples, spoken.rate))

    # ------------------------------------------------------------------ reading

    def positions(self, response_id: str, now: float) -> PlaybackPositions:
        """Of all audio of a response; zeros when there is none or it is no longer remembered."""
        track = self._tracks.get(response_id)
        return PlaybackPositions() if track is None else self._positions(track.parts, track.rate, now)

    def heard(self, item_id: str, now: float) -> int | None:
        """Characters that were heard of an item, perhaps within a word. None: nothing limits them here."""
        part = self._parts.get(item_id)
        return None if part is None else self._heard(part, now)

    def fully_heard(self, item_id: str, now: float) -> bool:
        """There is nothing of the item that was not heard, and there will be nothing."""
        part = self._parts.get(item_id)
        return part is None or self._fully_heard(part, now)

    def playing(self, now: float) -> tuple[str, ...]:
        """Responses of which a client has not yet played all that it was handed, oldest first."""
        return tuple(track.response_id for track in self._tracks.values() if self._is_playing(track, now))

    def is_playing(self, now: float) -> bool:
        """A client has not yet played all that it was handed."""
        return any(self._is_playing(track, now) for track in reversed(self._tracks.values()))

    def is_interrupted(self, response_id: str) -> bool:
        """Its playback was stopped before its end."""
        track = self._tracks.get(response_id)
        return track is not None and track.state is TrackState.STOPPED

    def played(self, now: float) -> dict[tuple[str, int], int]:
        """Samples played of every part that is remembered, by item id and content index."""
        return {(item_id, 0): self._played(part, now) for item_id, part in self._parts.items()}

    def ahead_ms(self, item_id: str, samples: int, now: float) -> float:
        """How far ``samples`` of an item's audio are ahead of its playback.

        Of a client that acknowledged nothing for ``ACKNOWLEDGED_FOR_S`` that is the server's clock, whatever
        the policy: what counts as heard may wait for ever for such a client, its audio may not.
        """
        part = self._parts.get(item_id)
        if part is None:
            return 0.0
        played = self._played(part, now)
        if self._acknowledged_at is None or now - self._acknowledged_at > ACKNOWLEDGED_FOR_S:
            played = max(played, self._guess(part, now))
        return (samples - played) * 1000 / part.track.rate

    # ------------------------------------------------------------------ the rules

    @property
    def _guessing(self) -> bool:
        return self._policy is PlaybackCommitPolicy.AUTO and self._acknowledged_at is None

    def _played(self, part: Part, now: float) -> int:
        played = max(part.acked, self._guess(part, now)) if self._guessing else part.acked
        return min(played, part.end)

    def _guess(self, part: Part, now: float) -> int:
        """By the server's clock, bounded by what was handed over; 0 where that says nothing (any more)."""
        track = part.track
        if track.playhead is None or track.clocked or track.state is TrackState.STOPPED:
            return 0
        return max(0, min(track.playhead.played(now) - part.start, part.sent))

    def _heard(self, part: Part, now: float) -> int:
        return min(part.alignment.chars_at(self._played(part, now)), part.sent_chars)

    def _fully_heard(self, part: Part, now: float) -> bool:
        return part.whole and self._played(part, now) >= part.end and self._text_heard(part, now)

    def _text_heard(self, part: Part, now: float) -> bool:
        return part.limit is not None or self._heard(part, now) >= part.sent_chars

    def _is_playing(self, track: Track, now: float) -> bool:
        return track.state is not TrackState.STOPPED and any(
            self._played(part, now) < part.end for part in track.parts
        )

    def _positions(self, parts: Sequence[Part], rate: int, now: float) -> PlaybackPositions:
        return PlaybackPositions(
            generated_ms=samples_to_ms(sum(part.alignment.samples for part in parts), rate),
            sent_ms=samples_to_ms(sum(part.sent for part in parts), rate),
            played_ms=samples_to_ms(sum(self._played(part, now) for part in parts), rate),
            committed_ms=samples_to_ms(sum(self._committed(part, now) for part in parts), rate),
        )

    def _committed(self, part: Part, now: float) -> int:
        """Samples whose text stands in the history: none, where only the whole of the text can be placed."""
        if self._aligned or self._fully_heard(part, now):
            return self._played(part, now)
        return 0

    def _acknowledged(self, part: Part, now: float) -> PlaybackAcknowledged:
        return PlaybackAcknowledged(
            response_id=part.track.response_id,
            item_id=part.item_id,
            playback=self._positions((part,), part.track.rate, now),
            history_committed=self._fully_heard(part, now),
        )

    def _cut(self, part: Part, now: float) -> Cut:
        played, rate = self._played(part, now), part.track.rate
        chars, model_samples = self._heard(part, now), self._as_model(played, rate)
        return Cut(part.item_id, played, samples_to_ms(played, rate), chars, model_samples)

    def _as_model(self, samples: int, rate: int) -> int:
        return samples * self._model_rate // rate

    def _believe_client(self, track: Track, now: float) -> None:
        """Who acknowledges once is believed from then on; about other responses, the guess stands."""
        if self._guessing:
            self._settle_guesses(now, but=track)
        self._acknowledged_at = now

    def _settle_guesses(self, now: float, but: Track | None = None) -> None:
        for part in self._parts.values():
            if part.track is not but:
                part.acked = self._played(part, now)

    def _remember_early(self, item_id: str, played_ms: int) -> None:
        self._early[item_id] = max(played_ms, self._early.pop(item_id, 0))
        if len(self._early) > MAX_EARLY:
            del self._early[next(iter(self._early))]

    def _playhead(self, track: Track, now: float) -> Playhead:
        """A client plays one response after the other."""
        if track.playhead is None:
            start = now if self._newest_playhead is None else max(now, self._newest_playhead.ends_at)
            track.playhead = self._newest_playhead = Playhead(track.rate, start)
        return track.playhead

    def _remove(self, track: Track) -> None:
        del self._tracks[track.response_id]
        for part in track.parts:
            del self._parts[part.item_id]
        track.parts.clear()  # they know their track: a cycle


def _as_samples(ms: int, end: int, rate: int) -> int:
    """``ms`` in samples, at most ``end``: its milliseconds, rounded down on the wire, mean all of it."""
    return end if ms >= samples_to_ms(end, rate) else ms_to_samples(ms, rate)
