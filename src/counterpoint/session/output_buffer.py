"""Which responses a connection is playing by itself, and what clients are told of it.

Owns: ``output_audio_buffer.started``, ``stopped`` and ``cleared``.
Does not own: positions (``playback``), what ends playback (``playing``, ``responses``), players.
Here because: where the server plays the audio, clients cannot know by themselves when it sounds.

A connection that plays says so by ``Played``; for all others nothing is ever started or stopped here, and
``cleared`` is what the session says of an interruption (wire contract, section 6).
"""

from __future__ import annotations

from counterpoint.protocol.events import OutputCleared, OutputStarted, OutputStopped

from .inputs import Played
from .out import Out
from .playback import PlaybackLedger
from .responses import Responses
from .state import RunState


class OutputBuffer:
    def __init__(self, state: RunState, out: Out, ledger: PlaybackLedger, responses: Responses) -> None:
        self._state = state
        self._out = out
        self._ledger = ledger
        self._responses = responses
        #: Responses that were started and neither stopped nor cleared, in order.
        self._sounding: dict[str, None] = {}

    def played(self, news: Played) -> None:
        """The player has come so far; of what was interrupted it may tell a little late."""
        response_id = self._ledger.clock(news.item_id, news.played_ms)
        if response_id is None or response_id in self._sounding or not self._sounds(response_id):
            return
        self._sounding[response_id] = None
        self._out.emit(OutputStarted(response_id=response_id))

    def cleared(self, response_id: str) -> OutputCleared:
        """The event that the response is not played any further, for the caller to emit."""
        self._sounding.pop(response_id, None)
        return OutputCleared(response_id=response_id)

    def settle(self) -> None:
        """Tell of what is over: interrupted by whatever it was, or played to its end."""
        for response_id in list(self._sounding):
            if self._ledger.is_interrupted(response_id):
                self._out.emit(self.cleared(response_id))
            elif not self._sounds(response_id):
                del self._sounding[response_id]
                self._out.emit(OutputStopped(response_id=response_id))

    def forget(self) -> None:
        """The connection is gone, and its player with it: another one starts anew."""
        self._sounding.clear()

    def _sounds(self, response_id: str) -> bool:
        """More of it is to be played, or may come."""
        if self._ledger.is_interrupted(response_id):
            return False
        now = self._state.now
        return self._responses.find(response_id) is not None or response_id in self._ledger.playing(now)
