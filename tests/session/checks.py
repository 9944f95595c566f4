"""What must hold of everything that a client of a session ever gets (the CASE-INV rules that need no socket).

Owns: ``check``, over the session events of one client in their order.
Does not own: numbering and replay (tests of ``delivery``).
Here because: these hold in every test, so every test can ask for them in one line.
"""

from __future__ import annotations

from collections import Counter

from counterpoint.protocol import events as ev
from counterpoint.protocol.audio import Encoding
from counterpoint.protocol.items import ItemStatus
from counterpoint.session.effects import Emit

from .driver import type_of


def check(sent: list[Emit]) -> None:
    """CASE-INV-2 to -5, -8 and -10."""
    events = [entry.event for entry in sent]
    _one_end_per_response(events)
    _one_active_response(events)
    _deltas_make_the_done(events)
    _items_in_order(events)
    _epochs_rise(sent)
    _one_chain(events)


def _response_of(event: ev.Event) -> str | None:
    if isinstance(event, ev.ResponseCreated | ev.ResponseDone):
        return event.response.id
    response_id = getattr(event, "response_id", None)
    return response_id if type_of(event).startswith("response.") and isinstance(response_id, str) else None


def _one_end_per_response(events: list[ev.Event]) -> None:
    """CASE-INV-2."""
    over: set[str] = set()
    created: set[str] = set()
    for event in events:
        response_id = _response_of(event)
        if response_id is None:
            continue
        assert response_id not in over, f"{type_of(event)} after the end of {response_id}"
        if isinstance(event, ev.ResponseCreated):
            assert response_id not in created
            created.add(response_id)
        assert response_id in created
        if isinstance(event, ev.ResponseDone):
            over.add(response_id)


def _one_active_response(events: list[ev.Event]) -> None:
    """CASE-INV-3."""
    active: str | None = None
    for event in events:
        if isinstance(event, ev.ResponseCreated) and event.response.conversation_id is not None:
            assert active is None, f"{event.response.id} beside {active}"
            active = event.response.id
        if isinstance(event, ev.ResponseDone) and event.response.id == active:
            active = None


def _deltas_make_the_done(events: list[ev.Event]) -> None:
    """CASE-INV-4, and whole samples (CASE-INV-5)."""
    texts: Counter[tuple[str, str]] = Counter()
    said: dict[tuple[str, str], str] = {}
    sample_bytes: dict[str, int] = {}
    for event in events:
        match event:
            case ev.ResponseCreated(response=ev.Response(audio=dict() as audio)):
                encoding = Encoding(audio["output"]["format"]["type"])
                sample_bytes[event.response.id] = encoding.sample_bytes
            case ev.OutputTextDelta() | ev.OutputTranscriptDelta() | ev.ArgumentsDelta():
                key = (event.item_id, type_of(event).removesuffix(".delta"))
                assert texts[key] == 0, "a delta after its done"
                said[key] = said.get(key, "") + event.delta
            case ev.OutputTextDone(text=value):
                _done(event, value, said, texts)
            case ev.OutputTranscriptDone(transcript=value):
                _done(event, value, said, texts)
            case ev.ArgumentsDone(arguments=value):
                _done(event, value, said, texts)
            case ev.OutputAudioDelta():
                assert len(event.pcm) > 0
                assert len(event.pcm) % sample_bytes[event.response_id] == 0
            case _:
                pass


def _done(
    event: ev.OutputTextDone | ev.OutputTranscriptDone | ev.ArgumentsDone,
    value: str,
    said: dict[tuple[str, str], str],
    done: Counter[tuple[str, str]],
) -> None:
    key = (event.item_id, type_of(event).removesuffix(".done"))
    done[key] += 1
    assert done[key] == 1, "two done for one part"
    assert said.get(key, "") == value


#: The steps of a generated item (wire contract, section 5); its deltas and their ``done`` lie between.
_STEPS = (
    ev.OutputItemAdded,
    ev.ItemAdded,
    ev.ContentPartAdded,
    ev.ContentPartDone,
    ev.OutputItemDone,
    ev.ItemDone,
)
_CONTENT_FROM, _CONTENT_TO = 2, 3


def _items_in_order(events: list[ev.Event]) -> None:
    """Every step once and in order, content within its part, and in ``response.done`` as it ended."""
    steps: dict[str, int] = {}
    done: dict[str, ev.OutputItemDone] = {}
    for event in events:
        item_id = _item_of(event)
        if isinstance(event, ev.OutputItemAdded):
            steps[event.item.id] = -1
        if isinstance(event, ev.OutputItemDone):
            done[event.item.id] = event
        if item_id in steps and isinstance(event, _STEPS):
            step = _STEPS.index(type(event))
            assert step > steps[item_id], f"{type_of(event)} of {item_id} out of order"
            steps[item_id] = step
        elif item_id in steps and isinstance(event, ev.PartEvent):
            assert _CONTENT_FROM <= steps[item_id] < _CONTENT_TO, f"{type_of(event)} outside of its part"
        if isinstance(event, ev.ResponseDone):
            for index, item in enumerate(event.response.output):
                assert done[item.id].item == item
                assert done[item.id].output_index == index
                assert item.status is not ItemStatus.IN_PROGRESS


def _item_of(event: ev.Event) -> str | None:
    if isinstance(event, ev.ItemAdded | ev.ItemDone | ev.OutputItemAdded | ev.OutputItemDone):
        return event.item.id
    item_id = getattr(event, "item_id", None)
    return item_id if isinstance(item_id, str) else None


def _epochs_rise(sent: list[Emit]) -> None:
    """CASE-INV-8."""
    epoch = 0
    for entry in sent:
        assert entry.epoch >= epoch
        epoch = entry.epoch


def _one_chain(events: list[ev.Event]) -> None:
    """CASE-INV-10: a client that inserts items where it is told to has one list."""
    chain: list[str] = []
    for event in events:
        if isinstance(event, ev.ItemAdded):
            previous = event.previous_item_id
            assert previous is None or previous in chain, f"{event.item.id} after unknown {previous}"
            assert event.item.id not in chain
            chain.insert(0 if previous is None else chain.index(previous) + 1, event.item.id)
        if isinstance(event, ev.ItemDeleted):
            chain.remove(event.item_id)
