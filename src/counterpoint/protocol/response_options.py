"""What a client asks of one response.

Owns: ``ResponseOptions``, reading it from ``response.create``, laying it over a configuration.
Does not own: the response itself (``session.responses``).
Here because: options hold for one response only and never enter the session's configuration
(invariant 87).
"""

from __future__ import annotations

from typing import Any

import msgspec

from counterpoint.errors import ProtocolError

from . import beta
from .audio import PCM16_24K, AudioFormat
from .config import SessionConfig, read_max_output_tokens, read_modalities, read_voice
from .fields import Fields
from .formats import read_format
from .items import Item, ItemReference, parse_input
from .tools import Tool, ToolChoice, read_tool_choice, read_tools


class ResponseOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is None (``max_output_tokens``: UNSET) is as the session has it."""

    instructions: str | None = None
    output_modalities: tuple[str, ...] | None = None
    voice: str | None = None
    format: AudioFormat | None = None
    tools: tuple[Tool, ...] | None = None
    tool_choice: ToolChoice | None = None
    max_output_tokens: int | msgspec.UnsetType | None = msgspec.UNSET  #: None: no limit
    metadata: dict[str, Any] | None = None  #: echoed; stock connections see its strings only
    input: tuple[Item | ItemReference, ...] | None = None  #: takes the place of the conversation
    out_of_band: bool = False  #: ``conversation: "none"``

    def over(self, config: SessionConfig) -> SessionConfig:
        """The configuration that holds for this response."""
        output = msgspec.structs.replace(
            config.audio.output,
            voice=config.audio.output.voice if self.voice is None else self.voice,
            format=config.audio.output.format if self.format is None else self.format,
        )
        given = {
            "instructions": self.instructions,
            "output_modalities": self.output_modalities,
            "tools": self.tools,
            "tool_choice": self.tool_choice,
        }
        changes: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
        if self.max_output_tokens is not msgspec.UNSET:
            changes["max_output_tokens"] = self.max_output_tokens
        return msgspec.structs.replace(
            config, audio=msgspec.structs.replace(config.audio, output=output), **changes
        )


def read_response_options(values: dict[str, Any], *, extended: bool) -> ResponseOptions:
    """The ``response`` of ``response.create``, in the official or the beta shape.

    Raises ``ProtocolError`` with a ``param`` such as ``response.input[0].type``.
    """
    try:
        return _read(Fields(beta.to_official(values), "response"), extended)
    except ProtocolError as error:
        raise beta.in_clients_words(error, values, "response") from None


def _read(fields: Fields, extended: bool) -> ResponseOptions:
    audio = fields.object("audio")
    output = None if audio is None else audio.object("output")
    metadata = fields.object("metadata")
    entries = fields.objects("input")
    return ResponseOptions(
        instructions=fields.string("instructions"),
        output_modalities=read_modalities(fields, "output_modalities"),
        voice=None if output is None else read_voice(output, "voice", None),
        format=None if output is None else _read_output_format(output, extended),
        tools=read_tools(fields, "tools"),
        tool_choice=read_tool_choice(fields, "tool_choice"),
        max_output_tokens=read_max_output_tokens(fields, "max_output_tokens"),
        metadata=None if metadata is None else metadata.values,
        input=None if entries is None else tuple(parse_input(entry) for entry in entries),
        out_of_band=fields.choice("conversation", ("auto", "none")) == "none",
    )


def _read_output_format(output: Fields, extended: bool) -> AudioFormat | None:
    if output.get("format") is None:
        return None
    return read_format(output, "format", PCM16_24K, extended=extended)
