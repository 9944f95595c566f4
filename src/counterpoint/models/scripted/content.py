"""What an answer consists of: a script and a request in, model events out, one chunk at a time.

Owns: the ramp, even marks, pieces of text and of arguments, the sample tool call, token counts.
Does not own: when a chunk is due (``answer``), what a script may say (``script``).
Here because: all of it is arithmetic without a clock, and a test of the server compares it to the sample.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from counterpoint.plugins.contract import (
    AudioDelta,
    HistoryItem,
    ItemEnd,
    Mark,
    ResponseRequest,
    TextDelta,
    ToolCall,
    TurnStatus,
    Usage,
)
from counterpoint.protocol.audio import SESSION_RATE, ms_to_samples
from counterpoint.protocol.tools import NamedTool

from .script import Call, Message, Part, Script

#: Audio of response k starts at k times this, so two responses agree in no sample position.
RAMP_STRIDE: Final = 7919
RAMP_MASK: Final = 0x7FFF

#: The ramp over one turn of its values; a chunk is cut out of it, since making it anew costs more than the
#: rest of a session's work on it.
_TURN: Final = np.arange(RAMP_MASK + 1, dtype="<i2").tobytes()

#: Characters of a history that is given back. The next history holds this answer, quoted, and so on: without
#: a bound twenty turns of it would take all memory.
MAX_HISTORY_CHARS: Final = 1 << 18

#: Arguments of a call come in pieces of so many characters, so that a call can be interrupted half-way.
ARGUMENT_PIECE: Final = 16


def ramp(response: int, start: int, samples: int) -> bytes:
    """Samples ``start`` to ``start + samples`` of response number ``response``: int16 at 24 kHz."""
    first = 2 * ((response * RAMP_STRIDE + start) & RAMP_MASK)
    end = first + 2 * samples
    if end <= len(_TURN):
        return _TURN[first:end]
    turns, rest = divmod(end, len(_TURN))
    return (_TURN * turns + _TURN[:rest])[first:]


@dataclass(frozen=True, slots=True)
class Answer:
    """A planned answer: what is said and called, and how it ends. ``echo`` replaces the ramp."""

    parts: tuple[Part, ...]
    status: TurnStatus = TurnStatus.COMPLETED
    echo: bytes | None = None


def plan(script: Script, request: ResponseRequest, heard: bytes) -> Answer:
    """The answer that ``script`` gives to ``request``; ``heard`` is the input of its turn, at 24 kHz."""
    if script.echo_history:
        return Answer((Message(script.audio_ms, history_json(request)),))
    if script.echo_input:
        return Answer((Message(script.audio_ms, script.text),), echo=heard)
    return _within(script.parts, request.max_output_tokens)


def sample_call(request: ResponseRequest) -> Call | None:
    """The call that answers without a script: the first function tool, or the one that was chosen by name.

    None when the session offers no function, forbids calls, or has made one already.
    """
    called = any(item.type == "function_call" for item in request.history)
    if not request.tools or called or request.tool_choice == "none":
        return None
    chosen = request.tool_choice.name if isinstance(request.tool_choice, NamedTool) else None
    tool = next((tool for tool in request.tools if tool.name == chosen), request.tools[0])
    return Call(tool.name, json.dumps(sample_value(tool.parameters or {"type": "object"})))


def sample_value(schema: Any) -> Any:
    """A value that fits a JSON schema: of an object, its required properties."""
    if not isinstance(schema, Mapping):
        return "sample"
    if schema.get("enum"):
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            properties = schema.get("properties") or {}
            return {name: sample_value(properties.get(name)) for name in schema.get("required") or ()}
        case "array":
            return []
        case "integer" | "number":
            return 1
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return "sample"


def history_json(request: ResponseRequest) -> str:
    """The history as the model was given it; instructions, where there are any, in front without an id.

    Of more than ``MAX_HISTORY_CHARS`` only the newest entries.
    """
    entries = [_entry(item) for item in request.history]
    if request.instructions:
        entries.insert(0, {"id": None, "type": "message", "role": "system", "text": request.instructions})
    sizes = itertools.accumulate(len(entry["text"] or "") for entry in reversed(entries))
    kept = sum(size <= MAX_HISTORY_CHARS for size in sizes)
    return json.dumps(entries[len(entries) - kept :], ensure_ascii=False)


def _entry(item: HistoryItem) -> dict[str, Any]:
    said = (item.text, item.output, item.arguments)
    text = next((text for text in said if text is not None), None)
    return {"id": item.id, "type": item.type, "role": item.role, "text": text}


#: What an answer consists of.
Said = AudioDelta | TextDelta | ItemEnd | ToolCall


def events(answer: Answer, request: ResponseRequest, chunk_ms: int) -> Iterator[Said]:
    """Every event of ``answer`` but its end, made as they are asked for."""
    sample = calls = 0
    before: Part | None = None
    for part in answer.parts:
        if isinstance(part, Call):
            yield from _call_events(part, calls)
            calls += 1
        else:
            if isinstance(before, Message):
                yield ItemEnd()
            yield from _message_events(part, answer, request, sample, chunk_ms)
            sample += _samples(part, answer)
        before = part


def usage(answer: Answer, request: ResponseRequest) -> Usage:
    """Tokens of a response, where a token is a word: the same numbers for the same conversation."""
    read = request.instructions + " " + " ".join(item.text or "" for item in request.history)
    return Usage(input_tokens=_words(read), output_tokens=sum(_tokens(part) for part in answer.parts))


def _message_events(
    part: Message, answer: Answer, request: ResponseRequest, first: int, chunk_ms: int
) -> Iterator[AudioDelta | TextDelta]:
    """One message in chunks, its text spread evenly; its audio begins at sample ``first`` of the response."""
    total = _samples(part, answer)
    chunk = ms_to_samples(chunk_ms, SESSION_RATE)
    if not total and part.text:
        yield TextDelta(part.text)
    for start in range(0, total, chunk):
        end = min(start + chunk, total)
        piece = part.text[len(part.text) * start // total : len(part.text) * end // total]
        if "audio" in request.modalities:
            pcm = _audio(answer, request.number, first + start, end - start)
            yield AudioDelta(pcm, piece, (Mark(end - start, len(piece)),))
        elif piece:
            yield TextDelta(piece)


def _call_events(call: Call, index: int) -> Iterator[ToolCall]:
    for start in range(0, max(1, len(call.arguments)), ARGUMENT_PIECE):
        end = start + ARGUMENT_PIECE
        yield ToolCall(index, call.name, call.arguments[start:end], final=end >= len(call.arguments))


def _samples(part: Message, answer: Answer) -> int:
    if answer.echo is not None:
        return len(answer.echo) // 2
    return ms_to_samples(part.audio_ms, SESSION_RATE)


def _within(parts: Sequence[Part], budget: int | None) -> Answer:
    """``parts`` up to ``budget`` words; a message that goes beyond it is cut, its audio in proportion."""
    kept: list[Part] = []
    for part in parts:
        tokens = _tokens(part)
        if budget is not None and tokens > budget:
            if isinstance(part, Message) and budget:
                text = " ".join(part.text.split()[:budget])
                kept.append(replace(part, audio_ms=part.audio_ms * budget // tokens, text=text))
            return Answer(tuple(kept), TurnStatus.MAX_OUTPUT_TOKENS)
        kept.append(part)
        budget = None if budget is None else budget - tokens
    return Answer(tuple(kept))


def _tokens(part: Part) -> int:
    return _words(part.text if isinstance(part, Message) else part.arguments)


def _words(text: str) -> int:
    return len(text.split())


def _audio(answer: Answer, response: int, start: int, samples: int) -> bytes:
    if answer.echo is None:
        return ramp(response, start, samples)
    return answer.echo[2 * start : 2 * (start + samples)]
