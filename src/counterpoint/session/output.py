"""From what a model says to the events that a client reads.

Owns: opening, filling and ending the items of a response, in the conversation, the playback ledger and the
tool ledger as well as on the wire.
Does not own: when a response starts and ends (``responses``), what was handed over (``response``).
Here because: the order of the events about an item is fixed (wire contract, section 5), and this is the
only place that writes them.
"""

from __future__ import annotations

from typing import Any, assert_never

from counterpoint.audio.encoder import OutputEncoder
from counterpoint.plugins.contract import AudioDelta, ItemEnd, Mark, TextDelta, ToolCall
from counterpoint.protocol.audio import ms_to_samples, samples_to_ms
from counterpoint.protocol.events import (
    ArgumentsDelta,
    ArgumentsDone,
    ContentPartAdded,
    ContentPartDone,
    Event,
    ItemAdded,
    ItemDone,
    OutputAudioDelta,
    OutputAudioDone,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    OutputTextDone,
    OutputTranscriptDelta,
    OutputTranscriptDone,
    TextMark,
)
from counterpoint.protocol.ids import IdSource
from counterpoint.protocol.items import ItemStatus

from .conversation import Conversation
from .effects import Progress
from .out import Out
from .playback import PlaybackLedger
from .response import Kind, Output, OutputItem, RunningResponse
from .state import RunState
from .tools import ToolLedger

#: Audio that is said again is handed over in pieces of this length, so that it can be cut as finely.
_PIECE_MS = 200

_ANNOUNCEMENTS = {
    Kind.SPOKEN: (Progress.ADDED, Progress.LISTED, Progress.PART_ADDED),
    Kind.TEXT: (Progress.ADDED, Progress.LISTED, Progress.PART_ADDED),
    Kind.CALL: (Progress.ADDED, Progress.LISTED),
}


class OutputWriter:
    """Writes the items of one response after the other."""

    def __init__(
        self,
        state: RunState,
        out: Out,
        ids: IdSource,
        conversation: Conversation,
        ledger: PlaybackLedger,
        tools: ToolLedger,
    ) -> None:
        self._state = state
        self._out = out
        self._ids = ids
        self._conversation = conversation
        self._ledger = ledger
        self._tools = tools

    # ------------------------------------------------------------------ what a model says

    def write(self, response: RunningResponse, output: Output) -> None:
        current = response.current
        if current and current.kind is Kind.CALL and not _continues(current, output):
            response.waiting.append(output)
            return
        match output:
            case TextDelta(text):
                self._text(response, self._message(response), text, ())
            case AudioDelta():
                self._audio(response, self._message(response), output)
            case ItemEnd():
                self.end_item(response, ItemStatus.COMPLETED)
            case ToolCall():
                self._call(response, output)
            case _:
                assert_never(output)

    def end_items(self, response: RunningResponse, status: ItemStatus) -> None:
        """Generation is over: end the open item, then write and end what waited behind it."""
        self.end_item(response, status)
        while response.waiting:
            self._write_waiting(response)
            self.end_item(response, status)

    def end_item(self, response: RunningResponse, status: ItemStatus) -> None:
        item = response.current
        if item is None:
            return
        if item.encoder is not None:
            self._audio_bytes(response, item, item.encoder.flush())
            self._ledger.complete(item.id)
        item.status = status
        if not response.out_of_band:
            self._conversation.close(item.id, status)
        if status is ItemStatus.INCOMPLETE:
            self._tools.cancel(item.call_id)
        for progress in item.terminals():
            self._step(response, item, progress)

    def _write_waiting(self, response: RunningResponse) -> None:
        waiting, response.waiting = response.waiting, []
        for output in waiting:
            self.write(response, output)

    def write_again(self, response: RunningResponse, text: str, audio: bytes) -> None:
        """A message that was generated before; ``audio`` is in the response's output format."""
        item = self._message(response)
        self._text(response, item, text, ())
        output = response.config.audio.output.format
        size = ms_to_samples(_PIECE_MS, output.rate) * output.encoding.sample_bytes
        for at in range(0, len(audio), size):
            self._audio_bytes(response, item, audio[at : at + size])
        self.end_item(response, ItemStatus.COMPLETED)

    # ------------------------------------------------------------------ what an interruption leaves

    def cut_items(self, response: RunningResponse) -> None:
        """The response was interrupted and its pending entries are gone: keep what was handed over."""
        for item in response.vanishing():
            response.items.remove(item)
            self._ledger.forget(item.id)
            self._conversation.discard(item.id)
            self._tools.cancel(item.call_id)
        for item in response.items:
            self._cut(response, item)

    def _cut(self, response: RunningResponse, item: OutputItem) -> None:
        item.cut()
        if not response.out_of_band:
            self._conversation.cut(item.id, item.samples, len(item.text))
            self._conversation.close(item.id, _lasting_status(item))
        self._tools.cancel(item.call_id)
        for progress in item.terminals(after=item.handed):
            self._step(response, item, progress)

    # ------------------------------------------------------------------ items

    def _message(self, response: RunningResponse) -> OutputItem:
        """The message that is being written, opened if there is none."""
        if response.current is not None:
            return response.current
        item = OutputItem(self._ids.item(), len(response.items), Kind.TEXT)
        output = response.config.audio.output.format
        if response.speaks:
            item.kind = Kind.SPOKEN
            item.encoder = OutputEncoder(self._state.capabilities.output_rate, output)
            self._ledger.add_part(response.id, item.id)
        if not response.out_of_band:
            self._conversation.open_message(response.id, item.id, output if response.speaks else None)
        self._open(response, item)
        return item

    def _call(self, response: RunningResponse, call: ToolCall) -> None:
        item = response.current
        if item is None or item.kind is not Kind.CALL:
            self.end_item(response, ItemStatus.COMPLETED)
            item = self._open_call(response, call)
        if call.arguments:
            item.text += call.arguments
            if not response.out_of_band:
                self._conversation.append(item.id, call.arguments)
            delta = ArgumentsDelta(
                response_id=response.id,
                item_id=item.id,
                output_index=item.index,
                call_id=item.call_id,
                delta=call.arguments,
            )
            self._entry(response, item, Progress.DELTA, delta)
        if call.final:
            self.end_item(response, ItemStatus.COMPLETED)
            self._write_waiting(response)

    def _open_call(self, response: RunningResponse, call: ToolCall) -> OutputItem:
        item = OutputItem(
            self._ids.item(),
            len(response.items),
            Kind.CALL,
            call_id=self._ids.call(),
            name=call.name,
            call_index=call.index,
        )
        if not response.out_of_band:
            self._tools.open(item.call_id, item.id)
            self._conversation.open_call(response.id, item.id, item.call_id, call.name)
        self._open(response, item)
        return item

    def _open(self, response: RunningResponse, item: OutputItem) -> None:
        response.items.append(item)
        for progress in _ANNOUNCEMENTS[item.kind]:
            self._step(response, item, progress)

    # ------------------------------------------------------------------ content

    def _text(self, response: RunningResponse, item: OutputItem, text: str, marks: tuple[Mark, ...]) -> None:
        """More text; ``marks`` counts from the end of what there was before."""
        if item.kind is Kind.SPOKEN:
            self._ledger.append(item.id, 0, len(text), marks)
            item.marks += self._shifted(response, item, marks)
        if not text:
            return
        item.text += text
        if not response.out_of_band:
            self._conversation.append(item.id, text)
        kind = OutputTranscriptDelta if item.kind is Kind.SPOKEN else OutputTextDelta
        delta = kind(
            response_id=response.id, item_id=item.id, output_index=item.index, content_index=0, delta=text
        )
        self._entry(response, item, Progress.DELTA, delta)

    def _audio(self, response: RunningResponse, item: OutputItem, delta: AudioDelta) -> None:
        self._text(response, item, delta.text, delta.marks)
        if item.encoder is not None:
            self._audio_bytes(response, item, item.encoder.process(delta.pcm))

    def _audio_bytes(self, response: RunningResponse, item: OutputItem, audio: bytes) -> None:
        if not audio:
            return
        output = response.config.audio.output.format
        before = samples_to_ms(item.samples, output.rate)
        samples = len(audio) // output.encoding.sample_bytes
        item.samples += samples
        self._state.spoke = True
        self._ledger.append(item.id, samples, 0)
        if not response.out_of_band:
            self._conversation.append(item.id, "", audio)
        delta = OutputAudioDelta(
            response_id=response.id, item_id=item.id, output_index=item.index, content_index=0, pcm=audio
        )
        marks, item.marks = tuple(item.marks), []
        self._out.emit(
            delta,
            item.tag(response.id, Progress.DELTA),
            duration_ms=samples_to_ms(item.samples, output.rate) - before,
            marks=marks,
        )
        response.pending += 1

    def _shifted(
        self, response: RunningResponse, item: OutputItem, marks: tuple[Mark, ...]
    ) -> list[TextMark]:
        """Marks as clients read them: from the start of the part, in milliseconds (invariant 114)."""
        start_ms = samples_to_ms(item.samples, response.config.audio.output.format.rate)
        rate = self._state.capabilities.output_rate
        return [
            TextMark(start_ms + samples_to_ms(mark.samples, rate), len(item.text) + mark.chars)
            for mark in marks
        ]

    # ------------------------------------------------------------------ entries

    def _step(self, response: RunningResponse, item: OutputItem, progress: Progress) -> None:
        """Write the event by which ``item`` reaches ``progress``."""
        if response.out_of_band and progress in (Progress.LISTED, Progress.LISTED_DONE):
            return
        self._entry(response, item, progress, self._event(response, item, progress))

    def _entry(self, response: RunningResponse, item: OutputItem, progress: Progress, event: Event) -> None:
        duration = None
        if progress is Progress.AUDIO_DONE:
            duration = samples_to_ms(item.samples, response.config.audio.output.format.rate)
        self._out.emit(event, item.tag(response.id, progress), duration_ms=duration)
        response.pending += 1

    def _event(self, response: RunningResponse, item: OutputItem, progress: Progress) -> Event:
        rid, index = response.id, item.index
        match progress:
            case Progress.ADDED:
                return OutputItemAdded(response_id=rid, output_index=index, item=item.render(empty=True))
            case Progress.LISTED:
                previous = self._conversation.previous_id(item.id)
                return ItemAdded(previous_item_id=previous, item=item.render(empty=True))
            case Progress.DONE:
                return OutputItemDone(response_id=rid, output_index=index, item=item.render())
            case Progress.LISTED_DONE:
                return ItemDone(previous_item_id=self._conversation.previous_id(item.id), item=item.render())
            case Progress.ARGUMENTS_DONE:
                return ArgumentsDone(
                    response_id=rid,
                    item_id=item.id,
                    output_index=index,
                    call_id=item.call_id,
                    name=item.name,
                    arguments=item.text,
                )
            case _:
                return _part_event(rid, item, progress)


def _part_event(rid: str, item: OutputItem, progress: Progress) -> Event:
    at: dict[str, Any] = {
        "response_id": rid,
        "item_id": item.id,
        "output_index": item.index,
        "content_index": 0,
    }
    match progress:
        case Progress.PART_ADDED:
            return ContentPartAdded(**at, part=item.part(empty=True))
        case Progress.PART_DONE:
            return ContentPartDone(**at, part=item.part())
        case Progress.AUDIO_DONE:
            return OutputAudioDone(**at)
        case Progress.TEXT_DONE if item.kind is Kind.SPOKEN:
            return OutputTranscriptDone(**at, transcript=item.text)
        case Progress.TEXT_DONE:
            return OutputTextDone(**at, text=item.text)
        case _:
            raise AssertionError(f"{progress.name} is not an event of a part")


def _lasting_status(item: OutputItem) -> ItemStatus:
    """In the history. A call whose arguments were announced can be answered, so its result needs the call,
    though no client is told to run it after the cancel (case G-05)."""
    return (
        ItemStatus.COMPLETED
        if item.handed >= Progress.ARGUMENTS_DONE and item.kind is Kind.CALL
        else item.status
    )


def _continues(call: OutputItem, output: Output) -> bool:
    return isinstance(output, ToolCall) and output.index == call.call_index
