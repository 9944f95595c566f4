"""Items as clients give them."""

from __future__ import annotations

import pytest

from counterpoint.plugins.contract import Capabilities, Interaction
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.commands import CreateItem, CreateResponse
from counterpoint.protocol.items import FunctionCall, InputAudio, InputImage, InputText, Message, Role
from counterpoint.protocol.response_options import ResponseOptions

from .driver import Driver

ULAW_SECOND = Message(id="spoken", role=Role.USER, content=(InputAudio(bytes([0xFF] * 8000)),))


def spoken() -> Driver:
    driver = Driver()
    driver.update(audio={"input": {"format": {"type": "audio/pcmu"}}})
    return driver


def test_audio_is_canonical_for_the_model_wherever_the_item_goes() -> None:
    driver = spoken()
    driver.send(CreateItem(item=ULAW_SECOND))
    for request in (driver.ask(out_of_band=True), driver.ask(out_of_band=True, input=(ULAW_SECOND,))):
        assert len(request.history[0].audio or b"") == 48_000


def test_ids_that_the_client_left_out_are_given() -> None:
    driver = Driver()
    text = Message(role=Role.USER, content=(InputText("x"),))
    call = FunctionCall(call_id="", name="f", arguments="{}")
    driver.send(CreateItem(item=text), CreateItem(item=call))
    (snapshot,) = driver.machine.snapshot(0)
    first, second = snapshot.conversation.items
    assert first.id
    assert isinstance(second, FunctionCall)
    assert second.call_id


@pytest.mark.parametrize("part", [InputImage("data:,"), InputAudio(b"\0\0")], ids=["image", "audio"])
def test_what_the_model_cannot_take_is_refused_where_it_stands(part: InputImage | InputAudio) -> None:
    driver = Driver(capabilities=Capabilities(interaction=Interaction.TURN, audio_input=False))
    item = Message(role=Role.USER, content=(InputText("look"), part))
    driver.send(CreateItem(item=item), CreateResponse(options=ResponseOptions(input=(item,))))
    assert [(error.code, error.param) for error in driver.errors] == [
        (ErrorCode.UNSUPPORTED, "item.content[1].type"),
        (ErrorCode.UNSUPPORTED, "response.input[0].content[1].type"),
    ]
    assert driver.requests == []
