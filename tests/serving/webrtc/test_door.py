"""What is asked at the door: both forms of an offer, secrets, CORS, and everything that is refused."""

from __future__ import annotations

import json
import sys
from typing import Any

import aiohttp
import pytest

from .caller import Callers, calling

SDP = {"Content-Type": "application/sdp"}
SHARED = "Access-Control-Allow-Origin"


async def refusal(response: aiohttp.ClientResponse) -> dict[str, Any]:
    error: dict[str, Any] = json.loads(await response.text())["error"]
    return error


async def test_a_form_brings_the_session_with_the_offer(door: Callers) -> None:
    caller = door.new()
    form = aiohttp.FormData()
    form.add_field("sdp", await caller.offer(), content_type="application/sdp")
    session = {"type": "realtime", "model": "gpt-realtime", "instructions": "Be brief."}
    form.add_field("session", json.dumps(session), content_type="application/json")
    response = await caller.post(form, "", {})
    assert response.status == 201
    created = await caller.until_event("session.created")
    assert created["session"]["instructions"] == "Be brief."
    assert created["session"]["model"] == "gpt-realtime"


async def test_a_secret_calls_with_what_its_server_decided(door: Callers) -> None:
    asked = {"session": {"type": "realtime", "instructions": "Fixed."}}
    async with door.http.post(door.server.page_url + "v1/realtime/client_secrets", json=asked) as answer:
        secret = (await answer.json())["value"]
    caller = door.new()
    await caller.call(Authorization=f"Bearer {secret}")
    created = await caller.until_event("session.created")
    assert created["session"]["instructions"] == "Fixed."
    caller.send(type="session.update", session={"type": "realtime", "instructions": "Other."})
    updated = await caller.until_event("session.updated")
    assert updated["session"]["instructions"] == "Fixed."


async def test_pages_may_call_and_read_the_location(door: Callers) -> None:
    origin = "http://localhost:3000"
    asked = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type,x-resume-token",
    }
    async with door.http.options(door.url, headers=asked) as preflight:
        assert preflight.status == 204
        assert preflight.headers[SHARED] == origin
        assert "x-resume-token" in preflight.headers["Access-Control-Allow-Headers"]
        assert "POST" in preflight.headers["Access-Control-Allow-Methods"]
    caller = door.new()
    response = await caller.call(Origin=origin)
    assert response.status == 201
    await caller.until_event("session.created")
    assert response.headers[SHARED] == origin
    assert "Location" in response.headers["Access-Control-Expose-Headers"]


async def test_a_page_can_read_why_it_was_refused_and_others_get_nothing(door: Callers) -> None:
    ours = {"Origin": "http://localhost:3000", **SDP}
    async with door.http.post(door.url, data="no offer", headers=ours) as response:
        assert response.status == 400
        assert response.headers[SHARED] == ours["Origin"]
    for method in ("POST", "OPTIONS"):
        foreign = {"Origin": "https://elsewhere.example", **SDP}
        async with door.http.request(method, door.url, headers=foreign) as response:
            assert response.status == 403
            assert SHARED not in response.headers


@pytest.mark.parametrize(
    ("body", "headers", "param"),
    [
        ("", SDP, "sdp"),
        ("hello", SDP, "sdp"),
        ("v=0\r\nm=nonsense", SDP, "sdp"),
        ("v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n", SDP, "sdp"),
        ("v=0" + "x" * 70_000, SDP, "sdp"),
        ("{}", {"Content-Type": "application/json"}, "content-type"),
    ],
)
async def test_what_is_no_offer_is_refused(
    door: Callers, body: str, headers: dict[str, str], param: str
) -> None:
    async with door.http.post(door.url, data=body, headers=headers) as response:
        assert response.status == 400
        assert (await refusal(response))["param"] == param
    assert door.server.manager.slots.used == 0


async def test_a_session_that_cannot_be_is_refused_with_its_field(door: Callers) -> None:
    for session, param in (
        ("[]", "session"),
        (json.dumps({"audio": {"output": {"format": {"type": "opus"}}}}), "session.audio.output.format.type"),
        (json.dumps({"model": "unheard-of"}), "model"),
    ):
        form = aiohttp.FormData({"sdp": "v=0\r\n"})
        form.add_field("session", session, content_type="application/json")
        async with door.http.post(door.url, data=form) as response:
            assert response.status == 400
            assert (await refusal(response))["param"] == param


async def test_refused_resumes_say_why(door: Callers) -> None:
    for query, token, status, code in (
        ("?resume=sess_0", "", 400, "invalid_session_resume"),
        ("?resume=sess_0", "wrong", 403, "invalid_resume_token"),
    ):
        headers = {"X_Resume_Token": token} if token else {}
        response = await door.new().call(query, **headers)
        assert response.status == status
        assert (await refusal(response))["code"] == code


async def test_a_full_server_says_so_and_a_call_that_never_came_about_frees_its_slot() -> None:
    """Nobody knows the token of a session whose first peer connection failed: nothing can resume it."""
    async with calling(limits__max_sessions=1, transport__handshake_timeout_s=0.3) as door:
        silent = door.new()
        async with door.http.post(door.url, data=await silent.offer(), headers=SDP) as response:
            assert response.status == 201
        response = await door.new().call()
        assert response.status == 429
        assert (await refusal(response))["code"] == "resource_exhausted"
        assert int(response.headers["Retry-After"]) >= 1
        await door.server.manager.until_empty()
        assert door.server.manager.slots.used == 0


async def test_without_the_extra_a_call_is_answered_with_unsupported(
    door: Callers, monkeypatch: pytest.MonkeyPatch
) -> None:
    sdp = await door.new().offer()
    monkeypatch.setitem(sys.modules, "aiortc", None)
    async with door.http.post(door.url, data=sdp, headers=SDP) as response:
        assert response.status == 501
        error = await refusal(response)
        assert error["code"] == "unsupported"
        assert "counterpoint[webrtc]" in error["message"]


@pytest.mark.parametrize("action", ["accept", "reject", "refer", "hangup"])
async def test_control_from_outside_is_unsupported(door: Callers, action: str) -> None:
    async with door.http.post(f"{door.url}/rtc_0/{action}") as response:
        assert response.status == 501
        assert (await refusal(response))["code"] == "unsupported"


async def test_observers_of_a_call_are_unsupported(door: Callers) -> None:
    async with door.http.ws_connect(door.server.url + "?call_id=rtc_0") as socket:
        error = json.loads((await socket.receive()).data)
        assert error["error"]["code"] == "unsupported"
        assert (await socket.receive()).data == 1008
    assert door.server.manager.slots.used == 0
