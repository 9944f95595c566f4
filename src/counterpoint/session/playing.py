"""What clients say of playback, and the end of playback that outlives its response.

Owns: ``playback.ack``, ``conversation.item.truncate``, ``output_audio_buffer.clear``.
Does not own: positions and their clamping (``playback``), the history (``conversation``), the interruption of
a response that still runs (``responses``).
Here because: ``response.done`` is not the end of playback (wire contract, section 7).
"""

from __future__ import annotations

from counterpoint.errors import ProtocolError
from counterpoint.protocol.audio import samples_to_ms
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.commands import AckPlayback, ClearOutput, TruncateItem
from counterpoint.protocol.events import ItemTruncated

from .conversation import Conversation
from .effects import Discard, TruncateModel
from .out import Out
from .output_buffer import OutputBuffer
from .playback import Cut, PlaybackLedger
from .response import RunningResponse
from .responses import Responses
from .state import RunState


class Playing:
    def __init__(
        self,
        state: RunState,
        out: Out,
        conversation: Conversation,
        ledger: PlaybackLedger,
        responses: Responses,
        buffer: OutputBuffer,
    ) -> None:
        self._state = state
        self._out = out
        self._conversation = conversation
        self._ledger = ledger
        self._responses = responses
        self._buffer = buffer

    # ------------------------------------------------------------------ commands

    def acknowledge(self, command: AckPlayback) -> None:
        """Never an error: what is unknown is ignored, what is impossible is clamped."""
        now, played_ms, response_id = self._state.now, command.played_ms, command.response_id
        if command.item_id is not None:
            ack = self._ledger.acknowledge_item(
                command.item_id, played_ms, now, response_id=response_id, content_index=command.content_index
            )
        else:
            assert response_id is not None  # the codec asks for one of the two
            ack = self._ledger.acknowledge_response(response_id, played_ms, now)
        if ack is None:
            return
        if command.truncate:
            self._end(ack.response_id)
        self._out.emit(ack)

    def truncate(self, command: TruncateItem) -> None:
        """Raises ``ProtocolError`` with nothing changed; an item being spoken ends its response first."""
        if not self._state.can_truncate:
            raise ProtocolError(ErrorCode.UNSUPPORTED, "the model cannot forget what it said")
        spoken = self._conversation.spoken(command.item_id, command.content_index)
        response = self._responses.writing(command.item_id)
        if response is not None:
            _check_handed(response, command)
            self._responses.interrupt("client_cancelled")
            spoken = self._conversation.spoken(command.item_id, command.content_index)
        self._truncate(self._ledger.truncate(spoken, command.audio_end_ms))

    def clear(self, command: ClearOutput) -> None:
        """The client stops playing: the active response with its epoch, any other for itself."""
        active = self._responses.active
        if active is not None and command.response_id in (None, active.id):
            self._responses.interrupt("client_cancelled", self._buffer.cleared(active.id))
        elif command.response_id is None:
            self.stop()
        else:
            self._end(command.response_id)

    # ------------------------------------------------------------------ interruption

    def stop(self) -> None:
        """Nothing that ended is played any further: the user speaks, or the client says so."""
        active = self._responses.active
        for response_id in self._ledger.playing(self._state.now):
            if active is None or response_id != active.id:
                self._end(response_id)

    @property
    def is_playing(self) -> bool:
        return self._ledger.is_playing(self._state.now)

    def _end(self, response_id: str) -> None:
        """End the playback of one response, and the response itself if it still runs."""
        running = self._responses.find(response_id)
        if running is None:
            self._cut(response_id)
        elif running.out_of_band:
            self._responses.cancel_out_of_band(running, self._buffer.cleared(response_id))
        else:
            self._responses.interrupt("client_cancelled", self._buffer.cleared(response_id))

    def _cut(self, response_id: str) -> None:
        """Nothing happens if all of it was heard."""
        cuts = self._ledger.interrupt(response_id, self._state.now)
        if not cuts:
            return
        self._out.do(Discard(response_id, frozenset()))
        self._out.emit(self._buffer.cleared(response_id))
        for cut in cuts:
            if cut.item_id in self._conversation:
                self._truncate(cut)

    def _truncate(self, cut: Cut) -> None:
        chars = self._conversation.truncate(cut.item_id, cut.samples, cut.chars)
        self._out.emit(ItemTruncated(item_id=cut.item_id, content_index=0, audio_end_ms=cut.audio_end_ms))
        fence = self._responses.fence_of(cut.item_id)
        if fence is not None:
            self._out.do(TruncateModel(fence, chars, cut.model_samples))


def _check_handed(response: RunningResponse, command: TruncateItem) -> None:
    """An item that is still being spoken has the length that was handed over."""
    rate = response.config.audio.output.format.rate
    item = next(item for item in response.items if item.id == command.item_id)
    if command.audio_end_ms > samples_to_ms(item.handed_samples, rate) or command.audio_end_ms < 0:
        message = "audio_end_ms: beyond the audio that was sent of this item"
        raise ProtocolError(ErrorCode.INVALID_EVENT, message, param="audio_end_ms")
