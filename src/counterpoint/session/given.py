"""Items as clients give them, made into what a session keeps.

Owns: ids that the client left out, canonical audio, the refusal of what the model cannot take; and audio on
its way back.
Does not own: the form of an item (``protocol.items``), where it goes (``items``, ``plan``).
Here because: an item may come for the conversation or for one response, and is treated alike.
"""

from __future__ import annotations

import msgspec

from counterpoint.audio.decoder import InputDecoder
from counterpoint.audio.encoder import OutputEncoder
from counterpoint.errors import ProtocolError
from counterpoint.plugins.contract import Capabilities
from counterpoint.protocol.audio import PCM16_24K, SESSION_RATE, AudioFormat
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.ids import IdSource
from counterpoint.protocol.items import ContentPart, FunctionCall, InputAudio, InputImage, Item, Message

from .state import RunState


def complete(item: Item, state: RunState, ids: IdSource, param: str) -> Item:
    """``item`` (found at ``param``) with all its ids and canonical audio.

    Raises ``ProtocolError`` for content that the model cannot take.
    """
    item = msgspec.structs.replace(item, id=item.id or ids.item())
    if isinstance(item, FunctionCall) and not item.call_id:
        return msgspec.structs.replace(item, call_id=ids.call())
    if isinstance(item, Message):
        fmt = state.config.audio.input.format
        for index, part in enumerate(item.content):
            _check(part, state.capabilities, f"{param}.content[{index}].type")
        return msgspec.structs.replace(item, content=tuple(_canonical(part, fmt) for part in item.content))
    return item


def in_format(item: Item, fmt: AudioFormat) -> Item:
    """A kept item with a user's audio as ``fmt`` has it."""
    if not isinstance(item, Message) or fmt == PCM16_24K:
        return item
    return msgspec.structs.replace(item, content=tuple(_encoded(part, fmt) for part in item.content))


def _check(part: ContentPart, capabilities: Capabilities, param: str) -> None:
    if isinstance(part, InputImage) and not capabilities.images:
        raise ProtocolError(ErrorCode.UNSUPPORTED, f"{param}: the model takes no images", param=param)
    if isinstance(part, InputAudio) and not capabilities.audio_input:
        raise ProtocolError(ErrorCode.UNSUPPORTED, f"{param}: the model takes no audio", param=param)


def _canonical(part: ContentPart, fmt: AudioFormat) -> ContentPart:
    if not isinstance(part, InputAudio) or part.audio is None:
        return part
    decoder = InputDecoder()
    return InputAudio(decoder.push(part.audio, fmt) + decoder.end(), part.transcript)


def _encoded(part: ContentPart, fmt: AudioFormat) -> ContentPart:
    if not isinstance(part, InputAudio) or part.audio is None:
        return part
    encoder = OutputEncoder(SESSION_RATE, fmt)
    return InputAudio(encoder.process(part.audio) + encoder.flush(), part.transcript)
