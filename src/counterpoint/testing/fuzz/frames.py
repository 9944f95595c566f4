"""Valid frames, with the ids that the session knows, so that most of them do something.

Owns: one maker for each client event, and what is remembered of the server's events.
Does not own: breaking frames (``mutation``).
Here because: random bytes never get past the first check; frames that are nearly right do.
"""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import pybase64

from counterpoint.protocol.decoding import READERS

Event = dict[str, Any]

_WORDS = ("fugue", "ground", "canon", "", 'a"b\\c', "é\u2028\U0001f3b5", "word " * 40)
_IMAGE = "data:image/png;base64,iVBORw0KGgo="
_TOOL = {"type": "function", "name": "look_up", "parameters": {"type": "object", "properties": {"a": {}}}}

#: Events of other dialects and of nobody.
_FOREIGN = ("session.start", "decision.create", "response.item.create", "foo.bar", "error", "session.created")

#: How often each event is sent; all that the server reads are here (a test says so).
_WEIGHTS = {
    "session.update": 12,
    "transcription_session.update": 1,
    "session.heartbeat": 2,
    "session.event_ack": 3,
    "session.close": 1,
    "session.resume": 1,
    "input_audio_buffer.append": 20,
    "input_audio_buffer.commit": 6,
    "input_audio_buffer.clear": 3,
    "input.commit": 2,
    "input.text.append": 3,
    "input.cancel": 2,
    "barge_in": 2,
    "turn.signal": 1,
    "conversation.item.create": 12,
    "conversation.item.retrieve": 3,
    "conversation.item.delete": 3,
    "conversation.item.truncate": 4,
    "response.create": 10,
    "response.cancel": 5,
    "output_audio_buffer.clear": 3,
    "playback.ack": 5,
}
assert _WEIGHTS.keys() == READERS.keys(), "an event that is never sent is never tested"


class Frames:
    """``valid`` makes one frame after the other; ``saw`` is told what the server said."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._kinds, self._weights = list(_WEIGHTS), list(_WEIGHTS.values())
        self._sent = 0
        self._number = 0
        self._head = 0
        self._items: deque[str] = deque(maxlen=8)
        self._responses: deque[str] = deque(maxlen=4)
        self._calls: deque[str] = deque(maxlen=4)

    def saw(self, event: Event) -> None:
        self._head = max(self._head, event.get("server_event_seq", 0))
        match event["type"]:
            case "conversation.item.added" | "conversation.item.created":
                self._items.append(event["item"]["id"])
            case "response.created":
                self._responses.append(event["response"]["id"])
            case "response.function_call_arguments.done":
                self._calls.append(event["call_id"])
            case _:
                pass

    def valid(self) -> Event:
        """A well-formed event that may or may not make sense now."""
        rng = self._rng
        if rng.random() < 0.03:
            return self._headed({"type": rng.choice(_FOREIGN)})
        kind = rng.choices(self._kinds, self._weights)[0]
        make = getattr(self, f"_{kind.replace('.', '_')}", None)
        return self._headed({"type": kind, **(make() if make is not None else {})})

    def _headed(self, event: Event) -> Event:
        self._sent += 1
        if self._rng.random() < 0.95:
            event["event_id"] = f"f{self._sent}"
        if self._rng.random() < 0.1:
            self._number += self._rng.choice((1, 1, 1, 1, 1, 1, 0, 2))
            event["client_event_seq"] = max(1, self._number)
            event.pop("extensions", None)  # whether it holds is not known of one that may come twice
        return event

    # ------------------------------------------------------------------ parts

    def _maybe(self, **values: Any) -> Event:
        """Some of ``values``."""
        return {key: value for key, value in values.items() if self._rng.random() < 0.4}

    def _item_id(self) -> str:
        return self._rng.choice(self._items) if self._items and self._rng.random() < 0.9 else "item_unknown"

    def _response_id(self) -> str:
        known = self._responses and self._rng.random() < 0.9
        return self._rng.choice(self._responses) if known else "resp_unknown"

    def _audio(self) -> str:
        rng = self._rng
        size = rng.choice((0, 1, 2, 480, 960, 4800, 4801, 24_000))
        return pybase64.b64encode(bytes((rng.choice((0, 200, 127)),)) * size).decode()

    def _metadata(self) -> Event:
        return self._rng.choice(({}, {"a": "b"}, {"a": 1, "b": [None], "c": {"d": "e"}}))

    def _script(self) -> Any:
        rng = self._rng
        items = [
            {"type": "message", "text": rng.choice(_WORDS)},
            {"type": "function_call", "name": "look_up", "arguments": '{"a": 1}'},
        ]
        script = self._maybe(
            audio_ms=rng.choice((0, 20, 333, 1000)),
            chunk_ms=rng.choice((20, 80)),
            pace=rng.choice(("burst", "realtime")),
            words=rng.choice((0, 3)),
            text=rng.choice(_WORDS),
            stall_first_ms=rng.choice((0, 300)),
            fail_at_chunk=rng.choice((0, 2)),
            items=items[: rng.randrange(3)],
            listen=rng.random() < 0.2,
            echo_input=rng.random() < 0.2,
            echo_history=rng.random() < 0.2,
            input_transcript=rng.choice(_WORDS),
            fail_transcript=rng.random() < 0.2,
        )
        return rng.choice((script, [script, {}], None))

    def _detection(self) -> Any:
        rng = self._rng
        if rng.random() < 0.3:
            return None
        common = self._maybe(
            create_response=rng.random() < 0.7,
            interrupt_response=rng.random() < 0.7,
            false_interruption_ms=rng.choice((0, 500)),
            detector=rng.choice(("amp", "energy", None)),
        )
        if rng.random() < 0.2:
            eagerness = self._maybe(eagerness=rng.choice(("low", "high", "auto")))
            return {"type": "semantic_vad", **common, **eagerness}
        own = self._maybe(
            threshold=rng.choice((0.01, 0.5, 1)),
            prefix_padding_ms=rng.choice((0, 300)),
            silence_duration_ms=rng.choice((0, 100, 500)),
            min_speech_ms=rng.choice((0, 96)),
            idle_timeout_ms=rng.choice((200, None)),
        )
        return {"type": "server_vad", **common, **own}

    def _format(self) -> Any:
        forms = ("audio/pcm", "audio/pcmu", "audio/pcma", "pcm_f32le")
        return self._rng.choice(
            ({"type": self._rng.choice(forms)}, {"type": "audio/pcm", "rate": 16_000}, "pcm16", "g711_ulaw")
        )

    def _message(self) -> Event:
        rng = self._rng
        role = rng.choice(("user", "user", "assistant", "system"))
        parts: tuple[Event, ...] = ({"type": "input_text", "text": rng.choice(_WORDS)},)
        if role == "user":
            parts += (
                {"type": "input_audio", "audio": self._audio()},
                {"type": "input_image", "image_url": _IMAGE},
            )
        if role == "assistant":
            parts = (
                {"type": "output_text", "text": "so"},
                {"type": "output_audio", "transcript": "so it is"},
            )
        content = [rng.choice(parts) for _ in range(rng.randrange(1, 3))]
        return {"type": "message", "role": role, "content": content}

    def _item(self) -> Event:
        rng = self._rng
        call_id = rng.choice(self._calls) if self._calls and rng.random() < 0.8 else "call_unknown"
        item = rng.choice(
            (
                self._message(),
                self._message(),
                {"type": "function_call_output", "call_id": call_id, "output": rng.choice(_WORDS)},
                {"type": "function_call", "name": "look_up", "arguments": "{}"},
            )
        )
        return item | self._maybe(id=f"own_{rng.randrange(5)}")

    # ------------------------------------------------------------------ events

    def _session_update(self) -> Event:
        rng = self._rng
        session = self._maybe(
            type=rng.choice(("realtime", "realtime", "transcription")),
            instructions=rng.choice(_WORDS),
            output_modalities=rng.choice((["text"], ["audio"])),
            tools=rng.choice(([_TOOL], [])),
            tool_choice=rng.choice(("auto", "none", "required", {"type": "function", "name": "look_up"})),
            max_output_tokens=rng.choice(("inf", 10)),
            audio=self._maybe(
                input=self._maybe(
                    turn_detection=self._detection(),
                    format=self._format(),
                    transcription=rng.choice((None, {"model": "any"})),
                ),
                output=self._maybe(format=self._format(), voice=rng.choice(("default", "alloy")), speed=1.1),
            ),
            overlap_policy=rng.choice((None, "listen_only", "barge_in_on_speech", "graded")),
            playback_commit_policy=rng.choice(("ack_only", "commit_all_on_done", "auto")),
            idle_timeout_s=rng.choice((None, 1000)),
            extra_body={"script": self._script()},
            input_audio_format=rng.choice(("pcm16", "g711_alaw")),
            turn_detection=self._detection(),
        )
        return {"session": session, **self._maybe(extensions=rng.random() < 0.3)}

    def _transcription_session_update(self) -> Event:
        return {"session": self._maybe(input_audio_transcription={"model": "any"})}

    def _session_event_ack(self) -> Event:
        return {"server_event_seq": self._rng.choice((0, self._head // 2, self._head, self._head + 5))}

    def _session_resume(self) -> Event:
        return {
            "session_id": "sess_" + "0" * 32,
            "resume_token": "f" * 64,
            "last_received_server_event_seq": self._rng.randrange(5),
        }

    def _input_audio_buffer_append(self) -> Event:
        rng = self._rng
        return {
            "audio": self._audio(),
            **(
                self._maybe(format=self._format(), is_speech=rng.random() < 0.5, sample_rate_hz=24_000)
                if rng.random() < 0.3
                else {}
            ),
            **({"video_frames": [_IMAGE]} if rng.random() < 0.1 else {}),
        }

    def _input_audio_buffer_commit(self) -> Event:
        return self._maybe(response_create=self._rng.random() < 0.5)

    _input_commit = _input_audio_buffer_commit

    def _input_text_append(self) -> Event:
        return {"text": self._rng.choice(_WORDS)}

    def _turn_signal(self) -> Event:
        return {"event": "barge_in"}

    def _conversation_item_create(self) -> Event:
        previous = self._rng.choice((None, "root", self._item_id()))
        scheduling = self._rng.choice(("silent", "when_idle", "interrupt"))
        return {"item": self._item(), **self._maybe(previous_item_id=previous, scheduling=scheduling)}

    def _conversation_item_retrieve(self) -> Event:
        return {"item_id": self._item_id()}

    _conversation_item_delete = _conversation_item_retrieve

    def _conversation_item_truncate(self) -> Event:
        return {
            "item_id": self._item_id(),
            "content_index": self._rng.choice((0, 0, 0, 1)),
            "audio_end_ms": self._rng.choice((0, 10, 100, 10_000)),
        }

    def _response_create(self) -> Event:
        rng = self._rng
        if rng.random() < 0.3:
            return {}
        return {
            "response": self._maybe(
                instructions=rng.choice(_WORDS),
                output_modalities=rng.choice((["text"], ["audio"])),
                conversation=rng.choice(("auto", "none")),
                metadata=self._metadata(),
                input=[rng.choice((self._item(), {"type": "item_reference", "id": self._item_id()}))],
                tools=[_TOOL],
                max_output_tokens=rng.choice((1, "inf")),
                audio={"output": self._maybe(format=self._format(), voice="default")},
            )
        }

    def _response_cancel(self) -> Event:
        return self._maybe(response_id=self._response_id())

    _output_audio_buffer_clear = _response_cancel

    def _playback_ack(self) -> Event:
        named = self._rng.choice(({"item_id": self._item_id()}, {"response_id": self._response_id()}))
        played = self._rng.choice((-1, 0, 10, 100.5, 10**9))
        return {**named, "played_ms": played, **self._maybe(truncate=True, content_index=0)}
