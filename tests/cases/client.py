"""A client of one session over all of its connections, which are recorded and checked.

Owns: ``Connection`` (one socket with its events), ``Caller`` (a session and what its client knows), the
commands that tests send, and waiting for events.
Does not own: bytes (``wire``), the rules that events must fulfil (``counterpoint.testing.streams``), servers
(``world``).
Here because: a test says what it does and what must follow; what must always hold is checked without a word.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from counterpoint.models.scripted.content import ramp
from counterpoint.testing.streams.rules import check_session
from counterpoint.testing.streams.stream import Stream

from . import wire
from .wire import Ending, Event

#: Nothing that a test waits for takes so long, on however slow a machine.
PATIENCE_S = 20.0

BYTES_PER_MS = 48

#: ``session.update`` fields that many tests want.
MANUAL: Event = {"audio": {"input": {"turn_detection": None}}}
AMP: Event = {"audio": {"input": {"turn_detection": {"type": "server_vad", "detector": "amp"}}}}

_counter = itertools.count(1)


def fresh_id(prefix: str = "evt") -> str:
    return f"{prefix}_{next(_counter)}"


def tone(ms: int, level: float) -> bytes:
    """PCM16 at 24 kHz in which the ``amp`` detector finds speech with probability ``level``."""
    return round(level * 32767).to_bytes(2, "little") * (ms * BYTES_PER_MS // 2)


#: A turn as that detector finds it: speech, and the silence that ends it.
TURN = tone(400, 0.9) + tone(700, 0.0)


def append(pcm: bytes, **fields: Any) -> Event:
    return {"type": "input_audio_buffer.append", "audio": base64.b64encode(pcm).decode(), **fields}


def update(**session: Any) -> Event:
    return {"type": "session.update", "session": {"type": "realtime", **session}}


def scripted(*scripts: Event, **session: Any) -> Event:
    """Another script, and other fields of the session with it."""
    return update(extra_body={"script": list(scripts)}, **session)


def user_says(text: str, item_id: str | None = None) -> Event:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    return {"type": "conversation.item.create", "item": item | ({"id": item_id} if item_id else {})}


def respond(**response: Any) -> Event:
    return {"type": "response.create", "response": response}


class SessionRecord:
    """What all connections of one session were told. ``ramp``: its audio is the scripted model's own."""

    def __init__(self, session_id: str) -> None:
        self.id = session_id
        self.ramp = True
        self.events: dict[int, Event] = {}  #: by number, as it came first
        self.cursor = 0  #: newest number that was received, or told to be passed over
        self.connections: list[Connection] = []

    def take(self, event: Event) -> None:
        number = event.get("server_event_seq", 0)
        if number:
            known = self.events.setdefault(number, event)
            assert known["event_id"] == event["event_id"], f"number {number} stands for two events"
        elif event["type"] == "session.skipped":
            number = event["to"]
        elif event["type"] == "session.snapshot":
            number = event["as_of_server_event_seq"]
        self.cursor = max(self.cursor, number)

    def check(self) -> None:
        """Hold everything against the rules (CASE-INV-1 to -5, -7, -8, -10), and audio against its source."""
        streams = [connection.stream for connection in self.connections]
        found = check_session(streams)
        assert not found, "\n".join(map(str, found))
        if self.ramp and not any(stream.torn for stream in streams):
            self._check_provenance()

    def _check_provenance(self) -> None:
        """CASE-INV-6: audio of the n-th response is the model's n-th ramp, from its beginning."""
        heard: dict[str, bytes] = {}
        for _, event in sorted(self.events.items()):
            if event["type"] == "response.created":
                heard[event["response"]["id"]] = b""
            elif event["type"] == "response.output_audio.delta":
                heard[event["response_id"]] += base64.b64decode(event["delta"])
        for number, pcm in enumerate(heard.values(), 1):
            assert pcm == ramp(number, 0, len(pcm) // 2), f"response {number} has other audio than its own"


class Connection:
    """One connection: a recording of everything that was said on it, in order."""

    def __init__(self, records: dict[str, SessionRecord], *, extended: bool, after: int | None) -> None:
        self.stream = Stream(extended=extended, after=after)
        self.events = self.stream.received
        self.socket: wire.Socket
        self.record: SessionRecord | None = None
        #: What was wrong with an event in itself, as soon as one was.
        self.fault: Exception | None = None
        self._records = records
        self._seen = 0
        self._news = asyncio.Event()

    async def open(self, url: str, **options: Any) -> Connection:
        self.socket = await wire.connect(url, self._on_text, **options)
        self.socket.ending.add_done_callback(lambda _: self._news.set())
        return self

    # ------------------------------------------------------------------ sending

    def prepare(self, event: Event) -> bytes:
        """The frame of ``event``, which gets an ``event_id`` if it has none; it counts as sent."""
        event = {"event_id": fresh_id(), **event}
        if event["type"] == "session.resume" and self.record is None:
            self.stream.extended = True
            cursor = event.get("last_received_server_event_seq")
            self.stream.after = cursor if isinstance(cursor, int) else 0
        self.stream.sent.append(event)
        return wire.text(event)

    async def send(self, *events: Event) -> None:
        """All of ``events`` in one segment."""
        await self.socket.send(*map(self.prepare, events))

    # ------------------------------------------------------------------ receiving

    def _on_text(self, message: str) -> None:
        try:
            event = json.loads(message)
            self.events.append(event)
            if event["type"] in ("session.created", "session.resumed"):
                self._join(event["session"]["id"])
            if self.record is not None:
                self.record.take(event)
        except (AssertionError, LookupError, TypeError, ValueError) as fault:  # whoever waits is told
            self.fault = self.fault or fault
        self._news.set()

    def _join(self, session_id: str) -> None:
        """From here on the events are those of a session."""
        self.record = self._records.setdefault(session_id, SessionRecord(session_id))
        self.record.connections.append(self)

    async def expect(self, kind: str, *, within: float = PATIENCE_S, **fields: Any) -> Event:
        """The next event of ``kind`` with these ``fields``; what came before it is passed over."""
        return await self.until(
            lambda event: event["type"] == kind and all(event.get(k) == v for k, v in fields.items()),
            within=within,
            what=kind,
        )

    async def until(
        self, found: Callable[[Event], bool], *, within: float = PATIENCE_S, what: str = "an event"
    ) -> Event:
        """The next event that ``found`` accepts."""
        try:
            async with asyncio.timeout(within):
                event = await self._next(found)
        except TimeoutError:
            raise AssertionError(f"{what} did not come within {within} s: {self._told()}") from None
        assert event is not None, f"the connection ended before {what}: {self._told()}"
        return event

    async def happens(self, kind: str) -> Event | None:
        """The next event of ``kind``; None if the connection ends before it."""
        async with asyncio.timeout(PATIENCE_S):
            return await self._next(lambda event: event["type"] == kind)

    async def _next(self, found: Callable[[Event], bool]) -> Event | None:
        while True:
            while self._seen < len(self.events):
                event = self.events[self._seen]
                self._seen += 1
                if found(event):
                    return event
            self._raise_fault()
            if self.socket.ending.done():
                return None
            self._news.clear()
            await self._news.wait()

    async def error(self, code: str, **fields: Any) -> Event:
        """The next ``error`` event, which must have ``code`` and these ``fields``."""
        error: Event = (await self.expect("error"))["error"]
        assert {"code": code, **fields}.items() <= error.items(), error
        return error

    async def ended(self, *, within: float = PATIENCE_S) -> Ending:
        """How the connection ended."""
        async with asyncio.timeout(within):
            ending = await asyncio.shield(self.socket.ending)
        self._raise_fault()
        return ending

    @property
    def alive(self) -> bool:
        return not self.socket.ending.done()

    def named(self, kind: str) -> list[Event]:
        """Every event of ``kind`` that came on this connection."""
        return [event for event in self.events if event["type"] == kind]

    def _raise_fault(self) -> None:
        if self.fault is not None:
            raise self.fault

    def _told(self) -> str:
        newest = [event["type"] for event in self.events[-8:]]
        errors = [event["error"] for event in self.named("error")]
        ending = self.socket.ending.result() if self.socket.ending.done() else "open"
        return f"{newest}, errors {errors}, {ending}"


class Caller:
    """A session and its client. ``connection`` is the one that it uses now."""

    def __init__(self, connect: Callable[..., Any], connection: Connection, created: Event) -> None:
        self._connect = connect
        self.connection = connection
        self.id: str = created["session"]["id"]
        self.token: str = created["resume_token"]
        self.generation: int = created["attachment_generation"]
        assert connection.record is not None
        self.record = connection.record

    @property
    def cursor(self) -> int:
        """Newest number that was received."""
        return self.record.cursor

    # ------------------------------------------------------------------ talking

    async def send(self, *events: Event) -> None:
        await self.connection.send(*events)

    async def expect(self, kind: str, **fields: Any) -> Event:
        return await self.connection.expect(kind, **fields)

    async def error(self, code: str, **fields: Any) -> Event:
        return await self.connection.error(code, **fields)

    async def script(self, *scripts: Event, **session: Any) -> None:
        """Set the script of the answers to come, and fields of the session; wait for the confirmation."""
        if any(script.get("echo_input") for script in scripts):
            self.record.ramp = False
        await self.send(scripted(*scripts, **session))
        await self.expect("session.updated")

    async def ask(self, text: str = "hello") -> str:
        """Say something and ask for an answer; the id of the response that began."""
        await self.send(user_says(text), respond())
        created = await self.expect("response.created")
        response_id: str = created["response"]["id"]
        return response_id

    async def answer(self, text: str = "hello") -> Event:
        """Ask, and wait for the end: the finished response."""
        response_id = await self.ask(text)
        return await self.done(response_id)

    async def done(self, response_id: str | None = None) -> Event:
        """The response, once it has ended."""
        event = await self.connection.until(
            lambda event: event["type"] == "response.done" and response_id in (None, event["response"]["id"]),
            what="response.done",
        )
        response: Event = event["response"]
        return response

    async def quiet(self) -> None:
        """Wait for every event that follows at once from what was sent: a numbered answer overtakes none."""
        await self.send(update())
        await self.expect("session.updated")

    def has_ended(self, response_id: str) -> bool:
        return any(event["response"]["id"] == response_id for event in self.events("response.done"))

    # ------------------------------------------------------------------ connections

    async def resume(
        self,
        *,
        via: str | None = None,
        token: str | None = None,
        cursor: int | None = None,
        replay: str | None = None,
        **options: Any,
    ) -> Event:
        """Resume on a new connection, which is the caller's from then on; the ``session.resumed`` event."""
        connection = await self.try_resume(via=via, token=token, cursor=cursor, replay=replay, **options)
        resumed = await connection.expect("session.resumed")
        self.adopt(connection, resumed)
        return resumed

    async def resume_unless_cut(self, *, via: str | None = None) -> bool:
        """Try to resume; False if the connection breaks before ``session.resumed`` is there."""
        with contextlib.suppress(ConnectionError):
            connection = await self.try_resume(via=via)
            resumed = await connection.happens("session.resumed")
            assert not connection.named("error"), connection.named("error")
            if resumed is not None:
                self.adopt(connection, resumed)
                return True
        return False

    async def try_resume(
        self,
        *,
        via: str | None = None,
        token: str | None = None,
        cursor: int | None = None,
        replay: str | None = None,
        **options: Any,
    ) -> Connection:
        """Ask for a resume on a new connection, and do not wait for the answer."""
        connection: Connection = await self._connect(via, query={"autostart": "0"}, **options)
        policy = {} if replay is None else {"replay": replay}
        await connection.send(self.resumption(token=token, cursor=cursor) | policy)
        return connection

    def resumption(self, *, token: str | None = None, cursor: int | None = None) -> Event:
        return {
            "type": "session.resume",
            "session_id": self.id,
            "resume_token": self.token if token is None else token,
            "last_received_server_event_seq": self.cursor if cursor is None else cursor,
        }

    def adopt(self, connection: Connection, resumed: Event) -> None:
        self.connection = connection
        self.token = resumed["resume_token"]
        self.generation = resumed["attachment_generation"]

    def reset(self) -> None:
        self.connection.socket.reset()

    async def hang_up(self) -> Event:
        """End the session; its last event."""
        await self.send({"type": "session.close"})
        closed = await self.expect("session.closed")
        assert (await self.connection.ended()).code == 1000
        return closed

    # ------------------------------------------------------------------ what was said

    def events(self, kind: str, response_id: str | None = None) -> list[Event]:
        """Every session event of ``kind``, each once, in the order of their numbers."""
        numbered = sorted(self.record.events.items())
        return [
            event
            for _, event in numbered
            if event["type"] == kind and response_id in (None, event.get("response_id"))
        ]

    def audio(self, response_id: str | None = None) -> bytes:
        deltas = self.events("response.output_audio.delta", response_id)
        return b"".join(base64.b64decode(event["delta"]) for event in deltas)

    def transcript(self, response_id: str | None = None) -> str:
        deltas = self.events("response.output_audio_transcript.delta", response_id)
        return "".join(event["delta"] for event in deltas)


def with_query(url: str, query: Mapping[str, str]) -> str:
    return f"{url}?{urlencode(query)}" if query else url
