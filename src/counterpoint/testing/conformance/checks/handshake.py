"""Section 1: endpoint, handshake, the ways in which a connection ends.

Owns: the checks of what happens before a session, and of close codes.
Does not own: resuming (``resume``), the configuration of a session (``session``).
Here because: a client that does not get in learns nothing else of a server.
"""

from __future__ import annotations

import contextlib

from counterpoint.testing.conformance.check import Needs, check
from counterpoint.testing.conformance.outcome import Failed, NotOffered, require
from counterpoint.testing.conformance.talk import answered, refusal, settle
from counterpoint.testing.conformance.target import Target

from .resume import resuming

#: Larger than the largest frame of the contract.
_TOO_LARGE = 15 * 1024 * 1024 + 1024


@check("created-unasked", "1", "session.created comes before the client says anything")
async def created_unasked(target: Target) -> None:
    async with target.session() as (peer, session):
        require(session.get("id"), "the session has no id")
        await settle(peer)


@check("subprotocol-chosen", "1", "the subprotocol realtime is chosen where it is offered")
async def subprotocol_chosen(target: Target) -> None:
    async with target.connect(protocols=("realtime", "openai-beta.something-else")) as peer:
        require(peer.protocol == "realtime", f"the subprotocol is {peer.protocol!r}")


@check("key-in-every-place", "1", "a key is read from either header or a subprotocol, which is not echoed")
async def key_in_every_place(target: Target) -> None:
    key = target.api_key
    if key is None:
        raise NotOffered("no key was given")
    secret = f"openai-insecure-api-key.{key}"
    async with target.connect(with_key=False, headers={"api-key": key}) as peer:
        await peer.until("session.created")
    async with target.connect(with_key=False, protocols=("realtime", secret)) as peer:
        await peer.until("session.created")
        require(peer.protocol == "realtime", f"the subprotocol is {peer.protocol!r}")


@check("no-key-refused", "1", "without a good key there is no upgrade but HTTP 401")
async def no_key_refused(target: Target) -> None:
    if target.api_key is None:
        raise NotOffered("no key was given")
    for headers in ({}, {"Authorization": "Bearer no-such-key"}):
        status = await target.status(headers=headers)
        require(status == 401, f"the answer is {status}")


@check("unknown-model-refused", "1", "an unknown model is model_not_found and 1008", Needs.EXTENSIONS)
async def unknown_model_refused(target: Target) -> None:
    async with target.connect(query={"model": "no-such-model"}) as peer:
        error = (await peer.until("error"))["error"]
        require(error["code"] == "model_not_found", f"the code is {error['code']}")
        require(await peer.end() == 1008, f"the close code is {peer.code}")


@check("listed-models-served", "1", "every model that is listed can be asked for", Needs.EXTENSIONS)
async def listed_models_served(target: Target) -> None:
    status, listed = await target.get("/v1/models")
    require(status == 200 and listed["data"], "no model is listed")
    for model in listed["data"]:
        async with target.session(query={"model": model["id"]}) as (_, session):
            require(session["model"] == model["id"], f"{model['id']} is called {session['model']}")


@check("model-echoed", "1", "a model goes by the name under which it was asked for", Needs.EXTENSIONS)
async def model_echoed(target: Target) -> None:
    async with target.session(query={"model": "gpt-realtime"}) as (_, session):
        require(session["model"] == "gpt-realtime", f"the model is called {session['model']}")


@check("doubled-slash", "1", "a doubled slash in the path is tolerated", Needs.EXTENSIONS)
async def doubled_slash(target: Target) -> None:
    async with target.connect(path="//v1/realtime") as peer:
        await peer.until("session.created")


@check("duplex-path", "1", "/v1/duplex is the endpoint with duplex=1", Needs.EXTENSIONS)
async def duplex_path(target: Target) -> None:
    async with target.connect(path="/v1/duplex") as peer:
        session = (await peer.until("session.created"))["session"]
        require("capabilities" in session, "the connection is not extended")


@check("session-ids-random", "1", "session ids are sess_ and 128 random bits", Needs.EXTENSIONS)
async def session_ids_random(target: Target) -> None:
    seen: set[str] = set()
    for _ in range(3):
        async with target.session() as (_, session):
            name, _, rest = session["id"].partition("_")
            require(name == "sess" and len(rest) >= 22, f"an id is {session['id']}")
            seen.add(rest[:12])
    require(len(seen) == 3, "ids begin alike")


@check(
    "autostart-0-opens",
    "1",
    "with autostart=0 the first update is answered by session.created alone",
    Needs.EXTENSIONS,
)
async def autostart_0_opens(target: Target) -> None:
    async with target.connect(query={"autostart": "0"}) as peer:
        await peer.send({"type": "session.update", "session": {"instructions": "Be brief."}})
        created = await peer.until("session.created")
        require(created["session"]["instructions"] == "Be brief.", "the first update has no effect")
        came = [event["type"] for event in peer.since(0)]
        require(came == ["session.created"], f"the first update is answered by {', '.join(came)}")
        require(await settle(peer) == [], "more than one event answers the first update")


@check("autostart-0-waits", "1", "with autostart=0 nothing else is taken as a first event", Needs.EXTENSIONS)
async def autostart_0_waits(target: Target) -> None:
    async with target.connect(query={"autostart": "0"}) as peer:
        await refusal(peer, {"type": "response.create"}, "session_not_open")
        await peer.send({"type": "session.update", "session": {}})
        await peer.until("session.created")


@check(
    "handshake-timeout", "1", "a first event that does not come is config_timeout and 4408", Needs.EXTENSIONS
)
async def handshake_timeout(target: Target) -> None:
    async with target.connect(query={"autostart": "0"}) as peer:
        error = (await peer.until("error"))["error"]
        require(error["code"] == "config_timeout", f"the code is {error['code']}")
        require(await peer.end() == 4408, f"the close code is {peer.code}")


@check(
    "malformed-text-1007",
    "1",
    "text that is not UTF-8 ends the connection, not the session",
    Needs.EXTENSIONS,
)
async def malformed_text_1007(target: Target) -> None:
    async with resuming(target) as (peer, point):
        await peer.send_frame(b'{"type": "\xff\xfe"}')
        require(await peer.end() == 1007, f"the close code is {peer.code}")
        async with point.resumed(target) as (again, _):
            await settle(again)


@check(
    "large-frame-1009",
    "1",
    "a frame that is too large ends the connection, not the session",
    Needs.EXTENSIONS,
)
async def large_frame_1009(target: Target) -> None:
    async with resuming(target) as (peer, point):
        with contextlib.suppress(Failed):  # it may be refused before it is sent whole
            await peer.send_frame(b'{"type": "response.cancel", "padding": "' + b"A" * _TOO_LARGE + b'"}')
        require(await peer.end() == 1009, f"the close code is {peer.code}")
        async with point.resumed(target) as (again, _):
            await settle(again)


@check("client-1000-ends", "1", "a client that closes with 1000 ends its session", Needs.EXTENSIONS)
async def client_1000_ends(target: Target) -> None:
    async with resuming(target) as (peer, point):
        await peer.close(1000)
        await point.refused(target, "session_resume_expired")


@check("client-1001-detaches", "1", "a client that closes with 1001 can come back", Needs.EXTENSIONS)
async def client_1001_detaches(target: Target) -> None:
    async with resuming(target) as (peer, point):
        await peer.close(1001)
        async with point.resumed(target) as (again, _):
            await settle(again)


@check("beta-names", "0", "a connection that asks for the beta gets its names", Needs.EXTENSIONS)
async def beta_names(target: Target) -> None:
    async with target.connect(headers={"OpenAI-Beta": "realtime=v1"}) as peer:
        session = (await peer.until("session.created"))["session"]
        require("modalities" in session and "audio" not in session, "the session has not the beta's shape")
        done = await answered(peer)
        require(done["status"] == "completed", f"the response is {done['status']}")
        kinds = {event["type"] for event in peer.since(0)}
        require("conversation.item.created" in kinds, "no conversation.item.created")
        newer = sorted(kind for kind in kinds if ".output_audio" in kind or ".output_text" in kind)
        require(not newer, f"names of the current API: {', '.join(newer)}")
