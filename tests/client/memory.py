"""A server in memory, small enough to be trusted: numbers, keeps and replays events, takes input once.

Owns: ``Server`` (one session), ``Connection`` (both ends of one), a look at what a client read.
Does not own: sockets; when what happens (tests say).
Here because: the client must be cut, refused and overheard at every point, on a virtual clock. It follows
the wire contract where the client depends on it, and asserts what a client must never do.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any

from counterpoint.client import Event
from counterpoint.client.connect import Connecting
from counterpoint.client.options import Options, ResumePoint
from counterpoint.client.session import Session
from counterpoint.client.transport import BROKEN, Closed

PCM_24K = {"type": "audio/pcm", "rate": 24_000}


class Connection:
    """Both ends of one connection. The client's end is a ``Transport``."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._down: asyncio.Queue[str | bytes | Closed] = asyncio.Queue()
        self._end: Closed | None = None
        self.heard: list[dict[str, Any]] = []
        self.closed_with: int | None = None  #: by the client
        self.deaf = False  #: what the client sends vanishes
        self.taking = asyncio.Event()  #: cleared: what the client sends is not taken
        self.taking.set()

    # the client's end

    async def send(self, frame: bytes) -> None:
        await self.taking.wait()
        if self._end is not None:
            raise self._end
        if not self.deaf:
            event = json.loads(frame)
            self.heard.append(event)
            self._server.hear(self, event)

    async def receive(self) -> str | bytes:
        frame = await self._down.get()
        if isinstance(frame, Closed):
            self._down.put_nowait(frame)
            raise frame
        return frame

    async def close(self, code: int) -> None:
        if self._end is None:
            self.closed_with = code
            self.end(BROKEN)

    # the server's end

    @property
    def open(self) -> bool:
        return self._end is None

    def say(self, event: dict[str, Any]) -> None:
        self.say_raw(json.dumps(event))

    def say_raw(self, frame: str | bytes) -> None:
        if self._end is None:
            self._down.put_nowait(frame)

    def end(self, code: int, reason: str = "") -> None:
        if self._end is None:
            self._end = Closed(code, reason)
            self._down.put_nowait(self._end)
            self.taking.set()
            self._server.forget(self)


class Server:
    """One session of a server in memory."""

    def __init__(self) -> None:
        self.session: dict[str, Any] = {
            "id": "sess_1",
            "audio": {"input": {"format": PCM_24K}, "output": {"format": PCM_24K}},
        }
        self.token = "token-0"
        self.dialled: list[float] = []
        self.connections: list[Connection] = []
        self.current: Connection | None = None
        self.journal: list[dict[str, Any]] = []
        self.boundary = 0  #: events up to this number are gone
        self.head = 0
        self.last_input = 0
        self.applied: list[dict[str, Any]] = []  #: input, once each, in order
        self.resumes: list[dict[str, Any]] = []
        self.acknowledged: list[int] = []
        self.acknowledges_input = True
        self.refusing: Callable[[dict[str, Any]], None] | None = None
        #: What the next dials meet instead of a connection.
        self.obstacles: list[Exception] = []
        #: Answers an applied event; by default nobody does.
        self.answer: Callable[[dict[str, Any]], object] = lambda event: None
        self.resume_refusal: tuple[str, int] | None = None
        self.greets = True
        self.speaks_first = False  #: like a server that knows the official API only

    # connecting

    async def dial(self) -> Connection:
        self.dialled.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0.01)
        if self.obstacles:
            raise self.obstacles.pop(0)
        connection = Connection(self)
        self.connections.append(connection)
        if self.speaks_first:
            self._greet(connection)
        return connection

    def connect(
        self,
        config: dict[str, Any] | None = None,
        *,
        options: Options | None = None,
        extended: bool = True,
        resume: ResumePoint | None = None,
    ) -> Connecting:
        def make() -> Session:
            return Session(self.dial, options or Options(), extended=extended)

        return Connecting(make, config or {}, resume)

    @property
    def here(self) -> Connection:
        """The connection of the moment."""
        assert self.current is not None
        return self.current

    def forget(self, connection: Connection) -> None:
        if self.current is connection:
            self.current = None

    # hearing

    def hear(self, connection: Connection, event: dict[str, Any]) -> None:
        match event["type"]:
            case "session.update" if not self.resumes and self.current is None:
                self._greet(connection)
            case "session.resume":
                self._resume(connection, event)
            case "session.event_ack":
                self.acknowledged.append(event["server_event_seq"])
            case "session.heartbeat":
                connection.say({"type": "session.heartbeat_ack", "session_id": self.session["id"]})
            case _:
                self._take(connection, event)

    def _greet(self, connection: Connection) -> None:
        self.current = connection
        if self.greets:
            connection.say({"type": "session.created", "session": self.session, "resume_token": self.token})

    def _resume(self, connection: Connection, event: dict[str, Any]) -> None:
        self.resumes.append(event)
        if self.resume_refusal is not None:
            code, close_code = self.resume_refusal
            connection.say({"type": "error", "error": {"code": code, "message": "no"}})
            connection.end(close_code, code)
            return
        after = event["last_received_server_event_seq"]
        assert event["resume_token"] == self.token
        assert after <= self.head, "a cursor beyond the head"
        if self.current is not None:
            self.current.end(4001, "replaced")
        self.current = connection
        self.token = f"token-{len(self.resumes)}"
        gap = after < self.boundary
        connection.say(
            {
                "type": "session.resumed",
                "session_id": self.session["id"],
                "session": self.session,
                "resume_token": self.token,
                "replay": {"gap": gap},
                "last_client_event_seq": self.last_input,
                "input_audio_ms": 0,
            }
        )
        if gap:
            connection.say(self.snapshot())
        for entry in self.journal:
            if entry["server_event_seq"] > (self.head if gap else after):
                connection.say(entry)

    def snapshot(self) -> dict[str, Any]:
        return {
            "type": "session.snapshot",
            "as_of_server_event_seq": self.head,
            "session": self.session,
            "conversation": {"items": []},
            "active_response": None,
            "playback": {},
        }

    def _take(self, connection: Connection, event: dict[str, Any]) -> None:
        number = event.get("client_event_seq")
        if number is not None:
            if number <= self.last_input:
                return
            assert number == self.last_input + 1, f"{number} after {self.last_input}"
            if self.refusing is not None:
                self.refusing(event)
                return
            self.last_input = number
        self.applied.append(event)
        if number is not None and self.acknowledges_input:
            connection.say({"type": "session.input_ack", "client_event_seq": number, "input_audio_ms": 0})
        if event["type"] == "session.close":
            self.emit("session.closed", session_id=self.session["id"], reason="client_closed")
            connection.end(1000, "client_closed")
        else:
            self.answer(event)

    # saying

    def emit(self, type: str, **fields: Any) -> dict[str, Any]:
        """A session event: numbered, kept for a replay, sent if somebody is attached."""
        self.head += 1
        event = {"type": type, "event_id": f"event_{self.head}", **fields, "server_event_seq": self.head}
        self.journal.append(event)
        if self.current is not None:
            self.current.say(event)
        return event

    def refuse(self, event: dict[str, Any], code: str, **fields: Any) -> None:
        """An ``error`` about a client's event."""
        error = {"type": "invalid_request_error", "code": code, "message": "no", **fields}
        self.emit("error", error=error | {"event_id": event["event_id"]})

    def begin_response(self, response_id: str, metadata: dict[str, Any] | None = None) -> None:
        response = {"id": response_id, "status": "in_progress", "conversation_id": "conv_1"}
        self.emit("response.created", response=response | {"output": [], "metadata": metadata})

    def speak(self, response_id: str, pcm: bytes, text: str = "") -> None:
        part: dict[str, Any] = {"response_id": response_id, "item_id": f"item_of_{response_id}"}
        part |= {"output_index": 0, "content_index": 0}
        if text:
            self.emit("response.output_audio_transcript.delta", **part, delta=text)
        self.emit("response.output_audio.delta", **part, delta=base64.b64encode(pcm).decode())

    def end_response(self, response_id: str, status: str = "completed") -> None:
        response = {"id": response_id, "status": status, "conversation_id": "conv_1"}
        self.emit("response.done", response=response | {"output": []})

    # for assertions

    def audio(self) -> bytes:
        """The audio that was taken, in order."""
        appends = [event for event in self.applied if event["type"] == "input_audio_buffer.append"]
        return b"".join(base64.b64decode(event["audio"]) for event in appends)

    def heard_types(self) -> list[str]:
        return [event["type"] for event in self.applied]


async def settle(seconds: float = 0.5) -> None:
    """Let everything that is under way happen."""
    await asyncio.sleep(seconds)


async def read_all(session: Session) -> list[Event]:
    return [event async for event in session.events()]


def numbers(events: list[Event]) -> list[int]:
    return [event.seq for event in events if event.seq is not None]


def now() -> float:
    return asyncio.get_running_loop().time()
