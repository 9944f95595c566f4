"""Section 4: audio in, commits, detection, and items that clients make.

Owns: the checks of the input buffer, of formats, of turn detection and of ``conversation.item.*``.
Does not own: what an answer to it looks like (``responses``).
Here because: what a server makes of audio shows in the items that it commits.
"""

from __future__ import annotations

import pybase64

from counterpoint.testing.conformance.check import Needs, check
from counterpoint.testing.conformance.outcome import require
from counterpoint.testing.conformance.talk import (
    MANUAL,
    amp,
    answer,
    answered,
    append,
    configure,
    heard,
    pcm,
    refusal,
    script,
    settle,
    speak,
    type_text,
)
from counterpoint.testing.conformance.target import Target

_COMMIT = {"type": "input_audio_buffer.commit"}
_CLEAR = {"type": "input_audio_buffer.clear"}
_EMPTY = "input_audio_buffer_commit_empty"
#: None of these is strict Base64.
_NOT_BASE64: tuple[object, ...] = ("!!!!", "AAA", "AA-_", "AAAA\nAAAA", None, 5, [])


@check("base64-strict", "4", "audio that is not Base64 is an error and leaves the buffer as it was")
async def base64_strict(target: Target) -> None:
    codes = ("invalid_audio",) if target.offer.capabilities is not None else ()
    async with target.session() as (peer, _):
        await configure(peer, MANUAL)
        await peer.send(append(pcm(200)))
        for audio in _NOT_BASE64:
            await refusal(peer, {"type": "input_audio_buffer.append", "audio": audio}, *codes)
        await refusal(peer, {"type": "input_audio_buffer.append"}, *codes)
        await peer.send(_COMMIT)
        await peer.until("input_audio_buffer.committed")
        await settle(peer)


@check("data-prefix-stripped", "4", "a data: prefix of Base64 is no part of it", Needs.EXTENSIONS)
async def data_prefix_stripped(target: Target) -> None:
    async with target.session() as (peer, _):
        await configure(peer, MANUAL)
        encoded = pybase64.b64encode(pcm(100)).decode()
        await peer.send({"type": "input_audio_buffer.append", "audio": f"data:audio/pcm;base64,{encoded}"})
        await peer.send(_COMMIT)
        await peer.until("input_audio_buffer.committed")


@check("append-is-silent", "4", "an append is not answered, an empty one does nothing")
async def append_is_silent(target: Target) -> None:
    async with target.session() as (peer, _):
        await configure(peer, MANUAL)
        await peer.send(append(b""))
        await peer.send(append(pcm(200)))
        came = await settle(peer)
        require(not came, f"it is answered by {[event['type'] for event in came]}")


@check("short-commit-refused", "4", f"a commit of less than 100 ms is {_EMPTY}")
async def short_commit_refused(target: Target) -> None:
    async with target.session() as (peer, _):
        await configure(peer, MANUAL)
        await refusal(peer, _COMMIT, _EMPTY)
        await peer.send(append(pcm(99)))
        await refusal(peer, _COMMIT, _EMPTY)
        await peer.send(append(pcm(1)))
        await peer.send(_COMMIT)
        await peer.until("input_audio_buffer.committed")
        await refusal(peer, _COMMIT, _EMPTY)


@check("clear-empties", "4", "a clear is answered and empties the buffer")
async def clear_empties(target: Target) -> None:
    async with target.session() as (peer, _):
        await configure(peer, MANUAL)
        await peer.send(append(pcm(300)))
        await peer.send(_CLEAR)
        await peer.until("input_audio_buffer.cleared")
        await refusal(peer, _COMMIT, _EMPTY)


@check("manual-commit-no-response", "4", "a commit by hand makes an item and no response")
async def manual_commit_no_response(target: Target) -> None:
    async with target.session() as (peer, _):
        await configure(peer, MANUAL)
        await peer.send(append(pcm(300)))
        await peer.send(_COMMIT)
        committed = await peer.until("input_audio_buffer.committed")
        done = await peer.until("conversation.item.done")
        require(done["item"]["id"] == committed["item_id"], "another item is done")
        await settle(peer)
        require(not list(peer.stream.of("response.created")), "a response was created")


@check(
    "duplex-commit-answers",
    "4",
    "opened with duplex=1, a commit by hand is answered unless told not to",
    Needs.EXTENSIONS,
)
async def duplex_commit_answers(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, MANUAL)
        await peer.send(append(pcm(300)))
        await peer.send({**_COMMIT, "response_create": False})
        await settle(peer)
        require(not list(peer.stream.of("response.created")), "response_create: false is ignored")
        await peer.send(append(pcm(300)))
        await peer.send(_COMMIT)
        await answer(peer)


@check("typed-input-commits", "4", "text alone makes a good commit", Needs.EXTENSIONS)
async def typed_input_commits(target: Target) -> None:
    target.requires("supports_text_input")
    async with target.session(extended=True) as (peer, _):
        await configure(peer, MANUAL)
        await peer.send({"type": "input.text.append", "text": "Hello."})
        await peer.send({"type": "input.commit", "response_create": False})
        added = await peer.until("conversation.item.added")
        texts = [part.get("text") for part in added["item"]["content"]]
        require(texts == ["Hello."], f"the item holds {texts}")


@check(
    "nothing-to-act-on",
    "4",
    "input.cancel, barge_in and turn.signal with nothing to act on are no errors",
    Needs.EXTENSIONS,
)
async def nothing_to_act_on(target: Target) -> None:
    target.requires("supports_barge_in")
    async with target.session(extended=True) as (peer, _):
        for event in (
            {"type": "barge_in"},
            {"type": "turn.signal", "event": "barge_in"},
            {"type": "input.cancel"},
        ):
            await peer.send(event)
        errors = [event["error"]["code"] for event in await settle(peer) if event["type"] == "error"]
        require(not errors, f"they are answered by {errors}")


@check(
    "stock-rates-refused",
    "4",
    "a stock connection has 24 kHz PCM and G.711, others are refused",
    Needs.EXTENSIONS,
)
async def stock_rates_refused(target: Target) -> None:
    async with target.session() as (peer, before):
        for form in ({"type": "audio/pcm", "rate": 16000}, {"type": "pcm_f32le", "rate": 24000}):
            update = {"type": "session.update", "session": {"audio": {"input": {"format": form}}}}
            await refusal(peer, update)
        shown = await configure(peer)
        require(shown["audio"]["input"]["format"] == before["audio"]["input"]["format"], "the format changed")


@check(
    "extended-rates",
    "4",
    "an extended connection has seven rates of PCM, others are refused",
    Needs.EXTENSIONS,
)
async def extended_rates(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, MANUAL)
        for rate in (8000, 16000, 22050, 24000, 32000, 44100, 48000):
            shown = await configure(
                peer, {"audio": {"input": {"format": {"type": "audio/pcm", "rate": rate}}}}
            )
            require(shown["audio"]["input"]["format"]["rate"] == rate, f"{rate} is not in force")
        for other in (12345, "24000", True):
            form = {"format": {"type": "audio/pcm", "rate": other}}
            update = {"type": "session.update", "session": {"audio": {"input": form}}}
            await refusal(peer, update, param="session.audio.input.format.rate")


@check("g711-durations", "4", "G.711 is eight samples a millisecond", Needs.EXTENSIONS)
async def g711_durations(target: Target) -> None:
    for form in ("audio/pcmu", "audio/pcma"):
        async with target.session() as (peer, _):
            source = {"turn_detection": None, "format": {"type": form}}
            shown = await configure(peer, {"audio": {"input": source}})
            require(shown["audio"]["input"]["format"]["type"] == form, f"{form} is not in force")
            await peer.send(append(b"\xff" * 799))
            await refusal(peer, _COMMIT, _EMPTY)
            await peer.send(append(b"\xff"))
            await peer.send(_COMMIT)
            await peer.until("input_audio_buffer.committed")


@check(
    "odd-settings-refused",
    "4",
    "unknown detections and thresholds that no turn could end with are refused",
    Needs.EXTENSIONS,
)
async def odd_settings_refused(target: Target) -> None:
    async with target.session(extended=True) as (peer, before):
        for change in (
            {"type": "vad"},
            {"threshold": 1.1},
            {"threshold": 0},
            {"eagerness": "very", "type": "semantic_vad"},
        ):
            update = {"type": "session.update", "session": {"audio": {"input": {"turn_detection": change}}}}
            error = await refusal(peer, update)
            param = str(error["param"])
            require(param.startswith("session.audio.input.turn_detection."), f"the param is {param}")
        after = await configure(peer)
        require(after["audio"] == before["audio"], "a refused setting is in force")


@check("speech-found", "4", "speech is found where it is, and is the item", Needs.EXTENSIONS)
async def speech_found(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, amp(prefix_padding_ms=100, silence_duration_ms=320, create_response=False))
        await speak(peer, pcm(640), pcm(640, 0.9), pcm(640))
        started = await peer.until("input_audio_buffer.speech_started")
        stopped = await peer.until("input_audio_buffer.speech_stopped")
        committed = await peer.until("input_audio_buffer.committed")
        begin, end = started["audio_start_ms"], stopped["audio_end_ms"]
        require(abs(begin - 540) <= 32, f"640 ms minus 100 ms of padding is {begin} ms")
        require(abs(end - 1600) <= 32, f"1280 ms plus 320 ms of silence is {end} ms")
        ids = {event["item_id"] for event in (started, stopped, committed)}
        require(len(ids) == 1, "the events name different items")
        await peer.send({"type": "conversation.item.retrieve", "item_id": committed["item_id"]})
        item = (await peer.until("conversation.item.retrieved"))["item"]
        samples = len(pybase64.b64decode(item["content"][0]["audio"])) // 2
        require(samples == (end - begin) * 24, f"the item has {samples} samples for {end - begin} ms")


@check(
    "silence-opens-nothing", "4", "what is not speech makes no turn and cannot be committed", Needs.EXTENSIONS
)
async def silence_opens_nothing(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, amp(min_speech_ms=200))
        await speak(peer, pcm(500), pcm(60, 0.9), pcm(500), pcm(1000, 0.3))
        require(not await settle(peer), "something was announced")
        await refusal(peer, _COMMIT, _EMPTY)


@check("stalled-speech-ends", "4", "speech whose audio stops arriving ends", Needs.EXTENSIONS)
async def stalled_speech_ends(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, amp(create_response=False))
        await speak(peer, pcm(600, 0.9))
        await peer.until("input_audio_buffer.speech_stopped")
        await peer.until("input_audio_buffer.committed")


@check(
    "long-silence-answered", "4", "after idle_timeout_ms of silence the model is asked to go on", Needs.SCRIPT
)
async def long_silence_answered(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, amp(idle_timeout_ms=300), script(audio_ms=100))
        await answered(peer)
        await peer.until("input_audio_buffer.timeout_triggered")
        await answer(peer)


@check(
    "input-bounded",
    "4",
    "input for which there is no room is input_backpressure, and is not applied",
    Needs.SCRIPT,
)
async def input_bounded(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, MANUAL)
        piece = append(bytes(9 * 1024 * 1024))
        await peer.send(piece)
        error = await refusal(peer, piece, "input_backpressure")
        require(error["retry_after_ms"] > 0, "it does not say when to try again")


@check("echo-exact", "4", "the model gets every sample, once and in order", Needs.SCRIPT)
async def echo_exact(target: Target) -> None:
    async with target.session(extended=True) as (peer, _):
        await configure(peer, MANUAL, script(echo_input=True))
        audio = b"".join((i * 37 % 30000).to_bytes(2, "little") for i in range(24 * 700))
        for size in (4801, 2, 9599, len(audio)):  # odd sizes: a sample may be split between two appends
            piece, audio_left = audio[:size], audio[size:]
            await peer.send(append(piece))
            audio = audio_left
        await peer.send(_COMMIT)
        done = await answer(peer)
        expected = b"".join((i * 37 % 30000).to_bytes(2, "little") for i in range(24 * 700))
        require(heard(peer, done["id"]) == expected, "the answer is not what was said")


@check(
    "transcription-told", "4", "input is transcribed in pieces and as a whole, with its cost", Needs.SCRIPT
)
async def transcription_told(target: Target) -> None:
    async with target.session() as (peer, _):
        source = {"turn_detection": None, "transcription": {"model": "any"}}
        await configure(peer, {"audio": {"input": source}}, script(input_transcript="good morning to you"))
        await peer.send(append(pcm(300)))
        await peer.send(_COMMIT)
        done = await peer.until("conversation.item.input_audio_transcription.completed")
        require(done["transcript"] == "good morning to you", f"the transcript is {done['transcript']!r}")
        require(isinstance(done.get("usage"), dict), "the cost is missing")


@check(
    "transcription-failure-told",
    "4",
    "a transcription that fails says so, and the session goes on",
    Needs.SCRIPT,
)
async def transcription_failure_told(target: Target) -> None:
    async with target.session() as (peer, _):
        source = {"turn_detection": None, "transcription": {"model": "any"}}
        await configure(peer, {"audio": {"input": source}}, script(fail_transcript=True))
        await peer.send(append(pcm(300)))
        await peer.send(_COMMIT)
        await peer.until("conversation.item.input_audio_transcription.failed")
        await settle(peer)


@check("items-made-and-read", "4", "an item is added where it is asked for, read, and deleted")
async def items_made_and_read(target: Target) -> None:
    async with target.session() as (peer, _):
        first = await type_text(peer, "One.")
        second = await type_text(peer, "Two.", previous_item_id="root")
        added = [event for event in peer.since(0) if event["type"] == "conversation.item.added"]
        require(added[-1]["previous_item_id"] is None, "root is not the beginning")
        await peer.send({"type": "conversation.item.retrieve", "item_id": second["id"]})
        found = (await peer.until("conversation.item.retrieved"))["item"]
        require(found["content"] == second["content"], f"the item holds {found['content']}")
        await peer.send({"type": "conversation.item.delete", "item_id": first["id"]})
        await peer.until("conversation.item.deleted", where=lambda event: event["item_id"] == first["id"])
        gone = {"type": "conversation.item.retrieve", "item_id": first["id"]}
        await refusal(peer, gone, "item_retrieve_invalid_item_id")


@check("client-item-ids-kept", "5", "an item keeps the id that its client chose, which is taken then")
async def client_item_ids_kept(target: Target) -> None:
    async with target.session() as (peer, _):
        item = {
            "id": "own_1",
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "1"}],
        }
        event = {"type": "conversation.item.create", "item": item}
        await peer.send(event)
        added = await peer.until("conversation.item.added")
        require(added["item"]["id"] == "own_1", f"the item is called {added['item']['id']}")
        await refusal(peer, event, "item_create_duplicate_item_id")


@check("unknown-anchors-refused", "4", "an item after, or an operation on, what is not there is refused")
async def unknown_anchors_refused(target: Target) -> None:
    async with target.session() as (peer, _):
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "1"}]}
        unknown = {"item_id": "item_unknown"}
        await refusal(
            peer, {"type": "conversation.item.create", "item": item, "previous_item_id": "item_unknown"}
        )
        await refusal(
            peer, {"type": "conversation.item.retrieve", **unknown}, "item_retrieve_invalid_item_id"
        )
        await refusal(peer, {"type": "conversation.item.delete", **unknown})
        truncate = {"type": "conversation.item.truncate", **unknown, "content_index": 0, "audio_end_ms": 0}
        await refusal(peer, truncate)
        require(not list(peer.stream.of("conversation.item.added")), "an item was added")
