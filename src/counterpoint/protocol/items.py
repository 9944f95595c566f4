"""Conversation items: the entries of a history, as they stand on the wire.

Owns: the item and content types, reading one from a client's JSON.
Does not own: the history itself, ids and positions in it (``session.conversation``).
Here because: items travel in both directions and are stored; one type serves all three.

An item encodes (``msgspec.json.encode``) to the official shape. Optional keys of a content part are
absent when None, the transcript of input apart; audio is raw bytes here and Base64 on the wire.
"""

from __future__ import annotations

import enum
from typing import Literal

import msgspec

from .b64 import decode_audio
from .codes import ErrorCode
from .fields import Fields


class ItemStatus(enum.StrEnum):
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"


class Role(enum.StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


class InputText(msgspec.Struct, frozen=True, tag_field="type", tag="input_text"):
    text: str


class InputAudio(msgspec.Struct, frozen=True, tag_field="type", tag="input_audio", omit_defaults=True):
    """``audio`` is in the session's input format; events leave it out, ``retrieved`` carries it."""

    audio: bytes | None = None
    #: Null on the wire until it is known: clients that validate their history refuse a part without it.
    #: (What a factory made is never omitted, a plain default is.)
    transcript: str | None = msgspec.field(default_factory=lambda: None)


class InputImage(msgspec.Struct, frozen=True, tag_field="type", tag="input_image", omit_defaults=True):
    image_url: str
    detail: str | None = None


class OutputText(msgspec.Struct, frozen=True, tag_field="type", tag="output_text"):
    text: str


class OutputAudio(msgspec.Struct, frozen=True, tag_field="type", tag="output_audio", omit_defaults=True):
    """``audio`` is in the session's output format; events leave it out, ``retrieved`` carries it."""

    audio: bytes | None = None
    transcript: str | None = None


ContentPart = InputText | InputAudio | InputImage | OutputText | OutputAudio


class Message(msgspec.Struct, frozen=True, tag_field="type", tag="message", kw_only=True):
    id: str = ""  #: empty until the session gives it one
    object: Literal["realtime.item"] = "realtime.item"
    status: ItemStatus = ItemStatus.COMPLETED
    role: Role
    content: tuple[ContentPart, ...] = ()


class FunctionCall(msgspec.Struct, frozen=True, tag_field="type", tag="function_call", kw_only=True):
    id: str = ""
    object: Literal["realtime.item"] = "realtime.item"
    status: ItemStatus = ItemStatus.COMPLETED
    call_id: str  #: empty until the session gives it one
    name: str
    arguments: str  #: JSON text, as the model wrote it


class FunctionCallOutput(
    msgspec.Struct, frozen=True, tag_field="type", tag="function_call_output", kw_only=True
):
    id: str = ""
    object: Literal["realtime.item"] = "realtime.item"
    status: ItemStatus = ItemStatus.COMPLETED
    call_id: str
    output: str


Item = Message | FunctionCall | FunctionCallOutput


class ItemReference(msgspec.Struct, frozen=True, tag_field="type", tag="item_reference"):
    """Stands for an item of the conversation in the ``input`` of one response."""

    id: str


#: Known item types that belong to tools which the server itself would call.
_UNSERVED_TYPES = ("mcp_approval_request", "mcp_approval_response", "mcp_call", "mcp_list_tools")

#: Content types that a message of each role may hold. The beta's names of assistant content are read as
#: the official ones.
_CONTENT_TYPES: dict[Role, tuple[str, ...]] = {
    Role.SYSTEM: ("input_text",),
    Role.USER: ("input_text", "input_audio", "input_image"),
    Role.ASSISTANT: ("output_text", "output_audio"),
}
_BETA_CONTENT_TYPES = {"text": "output_text", "audio": "output_audio"}


def parse_item(fields: Fields) -> Item:
    """The item that a client describes; its status is ``completed``.

    Raises ``ProtocolError`` with a ``param`` such as ``item.content[0].text``.
    """
    if fields.get("type") in _UNSERVED_TYPES:
        raise fields.refuse("type", "items of remote tool servers are not served", ErrorCode.UNSUPPORTED)
    item_id = fields.identifier("id") or ""
    match fields.required_choice("type", ("message", "function_call", "function_call_output")):
        case "message":
            return _parse_message(fields, item_id)
        case "function_call":
            return FunctionCall(
                id=item_id,
                call_id=fields.identifier("call_id") or "",
                name=fields.required_string("name"),
                arguments=fields.required_string("arguments"),
            )
        case _:
            return FunctionCallOutput(
                id=item_id,
                call_id=fields.required_identifier("call_id"),
                output=fields.required_string("output"),
            )


def parse_input(fields: Fields) -> Item | ItemReference:
    """One entry of ``response.input``: an item, or a reference to one."""
    if fields.get("type") == "item_reference":
        return ItemReference(fields.required_identifier("id"))
    return parse_item(fields)


def _parse_message(fields: Fields, item_id: str) -> Message:
    role = Role(fields.required_choice("role", Role))
    parts = fields.objects("content")
    if parts is None:
        raise fields.refuse("content", "is required and must be an array")
    return Message(id=item_id, role=role, content=tuple(_parse_part(part, role) for part in parts))


def _parse_part(fields: Fields, role: Role) -> ContentPart:
    name = fields.get("type")
    allowed = _CONTENT_TYPES[role]
    if role is Role.ASSISTANT and isinstance(name, str):
        name = _BETA_CONTENT_TYPES.get(name, name)
    if name not in allowed:
        raise fields.refuse("type", f"must be one of {', '.join(allowed)} in a message of role {role}")
    match name:
        case "input_text":
            return InputText(fields.required_string("text"))
        case "output_text":
            return OutputText(fields.required_string("text"))
        case "input_image":
            return InputImage(fields.required_string("image_url"), fields.string("detail"))
        case "input_audio":
            return InputAudio(_parse_audio(fields), fields.string("transcript"))
        case _:
            return OutputAudio(_parse_audio(fields), fields.string("transcript"))


def _parse_audio(fields: Fields) -> bytes | None:
    if fields.get("audio") is None:
        return None
    return decode_audio(fields, "audio")
