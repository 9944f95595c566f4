"""A session as a program sees it: what it can say, hear and know.

Owns: the helper methods, their answers, what is known of the session (configuration, conversation).
Does not own: the connection, numbers, resuming (``link``).
Here because: this is the client's public face; it should read like the conversation it holds.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from counterpoint.errors import AnswerMissed, ClientError, ConnectionLost, ProtocolError, ServerRefused
from counterpoint.protocol.audio import PCM16_24K, AudioFormat
from counterpoint.protocol.codes import CloseCode, ErrorCode
from counterpoint.protocol.fields import Fields
from counterpoint.protocol.formats import read_format, write_format

from .conversation import Conversation
from .event import OVERFLOW, Event, notice, text_of
from .link import Link
from .options import CloseReason, Options, ResumePoint
from .outbox import Frame
from .requests import Requests
from .response import Response
from .responses import REQUEST_KEY, Responses
from .stream import Stream
from .transport import Dial

#: An append is cut into pieces of at most so much, so that an outage drops no more than it must.
_PIECE_S = 0.25
#: What an event takes in memory beside its JSON, roughly.
_EVENT_OVERHEAD = 1024
_RETRIED = (ErrorCode.INPUT_BACKPRESSURE, ErrorCode.CLIENT_EVENT_GAP)
#: Events that only the link may send.
_RESERVED = ("session.resume", "session.event_ack", "session.heartbeat", "session.close")


class Session:
    """An open session; made by ``connect``. Belongs to one event loop.

    It stays the same over any number of connections. Every method that asks the server for something waits
    for its answer, through an outage too, and raises ``ServerRefused`` if that is an error, ``SessionEnded``
    or ``ConnectionLost`` if there will be none, ``AnswerMissed`` if it fell into a gap (wire contract,
    section 3).
    """

    def __init__(self, dial: Dial, options: Options, *, extended: bool) -> None:
        self._extended = extended
        self._id_prefix = secrets.token_hex(4)
        self._last_id = 0
        self._requests = Requests()
        self._events: Stream[Event] = Stream(
            options.event_buffer_bytes,
            lambda event: event.size + _EVENT_OVERHEAD,
            lambda missing: notice(OVERFLOW, stream="events", dropped=missing),
        )
        self._responses = Responses(options, self._requests.is_awaited, self._tell)
        self._link = Link(dial, options, extended=extended, deliver=self._receive, ended=self._end)
        self._append_head = b""
        self.id = ""
        #: The whole configuration in force, as the server acknowledged it last. Read it, never change it.
        self.config: dict[str, Any] = {}
        self.input_format: AudioFormat = PCM16_24K
        self.output_format: AudioFormat = PCM16_24K
        self.conversation = Conversation()

    def __repr__(self) -> str:
        return f"Session({self.id!r})"

    async def open(self, config: dict[str, Any], resume: ResumePoint | None) -> None:
        """Called by ``connect``, once."""
        await self._link.open(config, resume)
        if config and not self._extended:
            try:
                await self.update(config)
            except BaseException:
                await self.close()
                raise

    # ------------------------------------------------------------------ what is known

    @property
    def capabilities(self) -> dict[str, Any]:
        """What the model can do (wire contract, section 2): branch on this, never on a model's name."""
        capabilities = self.config.get("capabilities")
        return capabilities if isinstance(capabilities, dict) else {}

    @property
    def close_reason(self) -> CloseReason | None:
        """How the newest connection ended; None while one is there."""
        return self._link.close_reason

    @property
    def resume_point(self) -> ResumePoint:
        """What ``connect(url, resume=...)`` needs to take this session over, here or elsewhere.

        Raises ``ConnectionLost`` if the server offers no resume.
        """
        point = self._link.resume_point
        if point is None:
            raise ConnectionLost("the server offers no resume")
        return point

    # ------------------------------------------------------------------ configuration

    async def update(self, patch: dict[str, Any]) -> dict[str, Any]:
        """Change the configuration; returns the whole of it as it is now in force.

        ``patch`` is the ``session`` of ``session.update``: a missing key keeps what is there, an explicit
        ``turn_detection: None`` switches detection off. Refused, nothing has changed.
        """
        await self._ask({"type": "session.update", "session": patch}, _is("session.updated"))
        return self.config

    # ------------------------------------------------------------------ speaking

    async def append_audio(self, pcm: bytes | bytearray | memoryview) -> None:
        """Add audio in ``input_format`` to the input, any number of bytes; it is not confirmed.

        Waits while a slow line is full. During an outage it does not wait: the newest
        ``Options.outage_audio_s`` are kept and sent afterwards, what was dropped is told by a
        ``client.audio_dropped`` event.
        """
        audio = self.input_format
        step = int(audio.rate * _PIECE_S) * audio.encoding.sample_bytes
        for start in range(0, len(pcm), step):
            await self._link.room()
            piece = bytes(pcm[start : start + step])
            microseconds = len(piece) * 1_000_000 // audio.bytes_per_second
            self._link.submit(Frame(self._new_id(), self._append_head, piece, microseconds))

    async def commit_audio(self) -> str:
        """End the user's turn by hand; returns the id of its item. It does not ask for an answer."""
        event = await self._ask({"type": "input_audio_buffer.commit"}, _is("input_audio_buffer.committed"))
        return str(event.string("item_id"))

    async def clear_audio(self) -> None:
        """Forget audio that was not committed, here and on the server."""
        self._link.forget_audio()
        await self._ask({"type": "input_audio_buffer.clear"}, _is("input_audio_buffer.cleared"))

    async def send_text(self, text: str) -> str:
        """Add a message of the user; returns the id of its item. It does not ask for an answer."""
        content = [{"type": "input_text", "text": text}]
        return await self.create_item({"type": "message", "role": "user", "content": content})

    # ------------------------------------------------------------------ items

    async def create_item(self, item: dict[str, Any], *, previous_item_id: str | None = None) -> str:
        """Add an item of the official shape, a function's output for instance; returns its id."""
        item_id = text_of(item, "id") or f"item_{self._new_id()}"
        body = {"type": "conversation.item.create", "item": item | {"id": item_id}}
        if previous_item_id is not None:
            body["previous_item_id"] = previous_item_id
        await self._ask(body, _is_item(("conversation.item.added", "conversation.item.created"), item_id))
        return item_id

    async def retrieve_item(self, item_id: str) -> dict[str, Any]:
        """The item as the server has it, with its audio as Base64."""
        body = {"type": "conversation.item.retrieve", "item_id": item_id}
        event = await self._ask(body, _is_item(("conversation.item.retrieved",), item_id))
        item: dict[str, Any] = event.object("item")
        return item

    async def delete_item(self, item_id: str) -> None:
        body = {"type": "conversation.item.delete", "item_id": item_id}
        await self._ask(body, _is_item(("conversation.item.deleted",), item_id))

    async def truncate_item(self, item_id: str, audio_end_ms: int, *, content_index: int = 0) -> None:
        """Cut what was said to what was heard: audio and words after ``audio_end_ms`` are gone."""
        body = {
            "type": "conversation.item.truncate",
            "item_id": item_id,
            "content_index": content_index,
            "audio_end_ms": audio_end_ms,
        }
        await self._ask(body, _is_item(("conversation.item.truncated",), item_id))

    # ------------------------------------------------------------------ answers

    async def respond(self, **options: Any) -> Response:
        """Ask for an answer, and return it as soon as it begins.

        ``options`` are the fields of ``response.create``'s ``response``: ``instructions``,
        ``output_modalities``, ``input``, ``conversation="none"`` and so on.
        """
        request = self._new_id()
        metadata = (options.get("metadata") or {}) | {REQUEST_KEY: request}
        body = {"type": "response.create", "response": options | {"metadata": metadata}}
        response: Response = await self._ask(
            body, lambda event: self._responses.asked_by(event, request), request
        )
        return response

    def responses(self) -> AsyncIterator[Response]:
        """Answers that ``respond`` did not ask for, as they begin: each once, to one reader.

        Ends when the session is closed; raises ``SessionEnded`` or ``ConnectionLost`` if it ends otherwise.
        """
        return self._responses.unclaimed

    async def cancel(self, response_id: str | None = None) -> bool:
        """Stop an answer, by default the one that is being given; False if there was none to stop."""
        body = {"type": "response.cancel"} | ({} if response_id is None else {"response_id": response_id})
        try:
            event = await self._ask(body, _is_end_of(response_id))
        except ServerRefused as refusal:
            if refusal.code == ErrorCode.RESPONSE_CANCEL_NOT_ACTIVE:
                return False
            raise
        return text_of(event.object("response"), "status") == "cancelled"

    async def acknowledge_playback(self, response_id: str, played_ms: int) -> None:
        """Say how much of an answer was heard, in milliseconds of its audio; it is not confirmed.

        A server that gets this keeps exactly what was heard in its history (wire contract, section 7).
        """
        await self.send({"type": "playback.ack", "response_id": response_id, "played_ms": played_ms})

    # ------------------------------------------------------------------ events

    async def send(self, event: dict[str, Any]) -> str:
        """Send any client event; returns its ``event_id``. An error about it comes as an event.

        Raises ``ValueError`` for events that are the client's own affair, ``session.resume`` for instance.
        """
        if event.get("type") in _RESERVED:
            raise ValueError(f"{event['type']} is sent by the client itself")
        body = {key: value for key, value in event.items() if key != "event_id"}
        event_id = text_of(event, "event_id") or self._new_id()
        await self._link.room()
        self._link.submit(Frame.of(event_id, body))
        return event_id

    def events(self) -> AsyncIterator[Event]:
        """Every server event once, in order, over all connections; for one reader.

        Notices of the client stand between them (``Event.local``): ``client.disconnected``,
        ``client.audio_dropped``, ``client.malformed_frame``, and ``client.overflow`` in the place of events
        that gave way because nobody read them. Ends like ``responses``.
        """
        return self._events

    # ------------------------------------------------------------------ the end

    async def close(self) -> None:
        """End the session. Safe to call twice, and during an outage: there will be no connection after it."""
        await self._link.close()

    async def detach(self) -> ResumePoint:
        """Leave without ending the session: whoever has the result can go on, within the server's grace."""
        point = self.resume_point
        await self._link.leave(CloseCode.GOING_AWAY)
        return point

    # ------------------------------------------------------------------ from the link

    def _receive(self, event: Event) -> None:
        self._follow_configuration(event)
        self.conversation.follow(event)
        self._responses.follow(event)
        if event.type == "session.snapshot":
            error = AnswerMissed("the answer fell into a gap")
            self._requests.fail(error, lambda event_id: not self._link.holds(event_id))
        if not (self._extended and _will_be_sent_again(event)):
            self._requests.offer(event)
        self._tell(event)

    def _tell(self, event: Event) -> None:
        self._events.put(event)

    def _follow_configuration(self, event: Event) -> None:
        match event.type:
            case "session.created" | "session.updated":
                self._configure(event.object("session"))
            case "session.snapshot" if event.object("session"):
                self._configure(event.object("session"))  # an update may have been lost in the gap
            case "session.resumed" if not self.config or event.object("replay").get("gap"):
                # Otherwise the updates that were missed are replayed, each in its place.
                self._configure(event.object("session"))

    def _configure(self, config: dict[str, Any]) -> None:
        self.config = config
        self.id = text_of(config, "id") or self.id
        self.input_format = _format_of(config, "input")
        self.output_format = _format_of(config, "output")
        head: dict[str, Any] = {"type": "input_audio_buffer.append"}
        if self._extended:
            # Said with every append: an update that is under way cannot change what the bytes mean.
            head["format"] = write_format(self.input_format)
        self._append_head = msgspec.json.encode(head)[:-1]

    def _end(self, error: ClientError | None) -> None:
        outcome = self._link.outcome
        self._requests.fail(outcome)
        self._responses.end(error, outcome)
        self._events.end(error)

    # ------------------------------------------------------------------ asking

    def _new_id(self) -> str:
        self._last_id += 1
        return f"{self._id_prefix}-{self._last_id}"

    async def _ask(
        self, body: dict[str, Any], accept: Callable[[Event], Any], event_id: str | None = None
    ) -> Any:
        await self._link.room()
        event_id = event_id or self._new_id()
        self._link.submit(Frame.of(event_id, body))
        return await self._requests.expect(event_id, accept)


def _will_be_sent_again(event: Event) -> bool:
    """Whether it is an error about a number: then the link sends again, and nobody was refused."""
    return event.type == "error" and event.object("error").get("code") in _RETRIED


def _format_of(config: dict[str, Any], direction: str) -> AudioFormat:
    audio = config.get("audio")
    half = audio.get(direction) if isinstance(audio, dict) else None
    try:
        return read_format(Fields(half if isinstance(half, dict) else {}), "format", PCM16_24K, extended=True)
    except ProtocolError:
        return PCM16_24K


def _is(type: str) -> Callable[[Event], Event | None]:
    return lambda event: event if event.type == type else None


def _is_item(types: tuple[str, ...], item_id: str) -> Callable[[Event], Event | None]:
    def accept(event: Event) -> Event | None:
        named = event.string("item_id") or text_of(event.object("item"), "id")
        return event if event.type in types and named == item_id else None

    return accept


def _is_end_of(response_id: str | None) -> Callable[[Event], Event | None]:
    def accept(event: Event) -> Event | None:
        if event.type != "response.done":
            return None
        response = event.object("response")
        out_of_band = "conversation_id" in response and response["conversation_id"] is None
        concerned = not out_of_band if response_id is None else event.response_id == response_id
        return event if concerned else None

    return accept
