"""Calls over WebRTC from a real browser, with a recording as its microphone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .browser import Page
from .conftest import Browse, Microphone, Server

pytestmark = [pytest.mark.browser, pytest.mark.timeout(150)]

PATIENCE_S = 60.0

#: ``dial(query, headers)`` resolves with the status of the answer; ``events`` are those of all its channels.
DIALLER = """(() => {
  const events = [];
  const call = { events, loud: 0, location: null };
  call.dial = async (query, headers) => {
    const peer = (call.peer = new RTCPeerConnection());
    call.channel = peer.createDataChannel("oai-events");
    call.channel.onmessage = ({ data }) => events.push(JSON.parse(data));
    call.opened = new Promise((resolve) => (call.channel.onopen = resolve));
    peer.ontrack = ({ streams }) => listen(streams[0]);
    const microphone = await navigator.mediaDevices.getUserMedia({
      audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false },
    });
    peer.addTrack(microphone.getTracks()[0], microphone);
    await peer.setLocalDescription();
    const answer = await fetch("/v1/realtime/calls" + query, {
      method: "POST",
      body: peer.localDescription.sdp,
      headers: { "Content-Type": "application/sdp", ...headers },
    });
    call.location = answer.headers.get("Location");
    if (answer.ok) await peer.setRemoteDescription({ type: "answer", sdp: await answer.text() });
    return answer.status;
  };
  call.send = (event) => call.channel.send(JSON.stringify(event));
  call.of = (type) => events.filter((event) => event.type === type);
  call.newest = () => Math.max(0, ...events.map((event) => event.server_event_seq ?? 0));
  const listen = (stream) => {
    const loudspeaker = (call.loudspeaker = new Audio());
    loudspeaker.muted = true; // a remote stream flows only while something plays it
    loudspeaker.srcObject = stream;
    loudspeaker.play();
    const context = new AudioContext();
    const analyser = new AnalyserNode(context, { fftSize: 2048 });
    new MediaStreamAudioSourceNode(context, { mediaStream: stream }).connect(analyser);
    const samples = new Float32Array(analyser.fftSize);
    setInterval(() => {
      analyser.getFloatTimeDomainData(samples);
      if (Math.max(...samples) > 0.02) {
        call.loud += 1;
        call.loudAt = performance.now();
      }
    }, 20);
  };
  window.call = call;
})()"""


async def dial(page: Page, server: Server) -> None:
    await page.load(server.page)
    await page.evaluate(DIALLER)
    assert await page.evaluate("call.dial('', {})") == 201
    assert (await page.evaluate("call.location")).startswith("/v1/realtime/calls/rtc_")
    await page.until("call.of('session.created').length")


async def configure(page: Page, session: dict[str, Any]) -> None:
    update = {"type": "session.update", "session": {"type": "realtime", **session}}
    await page.evaluate(f"call.send({json.dumps(update)})")


async def events(page: Page, kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = await page.evaluate(f"call.of('{kind}')")
    return found


@pytest.mark.voice
async def test_words_are_recognised_and_an_answer_is_heard(
    voice_server: Server, browse: Browse, microphone: Microphone
) -> None:
    page = await browse(*microphone(2, "go_forward", 60))
    await dial(page, voice_server)
    await configure(page, {"audio": {"input": {"transcription": {"model": "whisper-1"}}}})
    await page.until("call.of('output_audio_buffer.stopped').length", PATIENCE_S)
    (transcribed,) = await events(page, "conversation.item.input_audio_transcription.completed")
    words = set(transcribed["transcript"].lower().strip(".").split())
    assert "forward" in words
    assert words & {"meters", "metres"}, "both are how it is written"
    (done,) = await events(page, "response.done")
    assert done["response"]["status"] == "completed"
    assert await page.evaluate("call.loud") >= 10
    assert await events(page, "response.output_audio.delta") == []
    assert page.errors == []


@pytest.mark.voice
async def test_speech_interrupts_the_answer(
    voice_server: Server, browse: Browse, microphone: Microphone
) -> None:
    """The first answer falls silent, and the second speech is answered."""
    page = await browse(*microphone(2, "go_forward", 2.6, "made_amiable", "ill_disposed", "made_amiable", 60))
    await dial(page, voice_server)
    await page.until("call.of('output_audio_buffer.cleared').length", PATIENCE_S)
    (cleared, *_), (done, *_) = (
        await events(page, "output_audio_buffer.cleared"),
        await events(page, "response.done"),
    )
    assert cleared["response_id"] == done["response"]["id"]
    await page.until("call.of('output_audio_buffer.started').length >= 2", PATIENCE_S)


async def test_a_lost_peer_connection_is_resumed(server: Server, browse: Browse) -> None:
    """The scripted answer goes on over a second peer connection, with the token and no word missing."""
    page = await browse()
    await dial(page, server)
    script = {"audio_ms": 4000, "words": 8, "pace": "realtime"}
    await configure(page, {"extra_body": {"script": script}, "audio": {"input": {"turn_detection": None}}})
    await page.evaluate("call.send({type: 'response.create'})")
    await page.until("call.of('output_audio_buffer.started').length")
    await page.evaluate("call.peer.close()")
    status = await page.evaluate("""(async () => {
      const { session, resume_token } = call.of("session.created")[0];
      const headers = { "X-Resume-Token": resume_token, "X-Last-Event-Seq": String(call.newest()) };
      return await call.dial(`?resume=${session.id}`, headers);
    })()""")
    assert status == 201
    await page.until("call.of('output_audio_buffer.stopped').length", PATIENCE_S)
    first, again = await events(page, "session.created")
    assert first["session"]["id"] == again["session"]["id"]
    (done,) = await events(page, "response.done")
    assert done["response"]["status"] == "completed"
    words = "".join(e["delta"] for e in await events(page, "response.output_audio_transcript.delta"))
    (whole,) = await events(page, "response.output_audio_transcript.done")
    assert words == whole["transcript"]
    assert page.errors == []
