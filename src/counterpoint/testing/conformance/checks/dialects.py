"""What stock, beta and extended connections are told, and how far a server's room and routes go.

Owns: the checks of dialects, of refusals before the upgrade, of a server that is full.
Does not own: the handshake of a connection that is let in (``handshake``).
Here because: a client that gets a word it does not know, or none, cannot say what went wrong.
"""

from __future__ import annotations

import contextlib

from counterpoint.testing.conformance.check import Needs, check
from counterpoint.testing.conformance.outcome import Failed, NotOffered, require
from counterpoint.testing.conformance.talk import answer, ask, refusal, script, settle, type_text
from counterpoint.testing.conformance.target import Target

#: A server that takes more sessions is not filled.
_MOST_SESSIONS = 128


@check(
    "stock-commands-silent", "0", "extension commands of a stock client are not replied to", Needs.EXTENSIONS
)
async def stock_commands_silent(target: Target) -> None:
    async with target.session() as (peer, _):
        for event in (
            {"type": "session.heartbeat"},
            {"type": "session.event_ack", "server_event_seq": 0},
            {"type": "playback.ack", "item_id": "item_unknown", "played_ms": 0},
        ):
            await peer.send(event)
        came = [event["type"] for event in await settle(peer)]
        require(not came, f"they are answered by {came}")


@check("beta-by-subprotocol", "0", "the beta can be asked for by a subprotocol", Needs.EXTENSIONS)
async def beta_by_subprotocol(target: Target) -> None:
    async with target.connect(protocols=("realtime", "openai-beta.realtime-v1")) as peer:
        session = (await peer.until("session.created"))["session"]
        require("modalities" in session and "audio" not in session, "the session has not the beta's shape")


@check(
    "beta-shape-accepted", "0", "the beta's shape of a session is accepted from everyone", Needs.EXTENSIONS
)
async def beta_shape_accepted(target: Target) -> None:
    async with target.session() as (peer, _):
        update = {"modalities": ["text"], "turn_detection": None}
        await peer.send({"type": "session.update", "session": update})
        shown = (await peer.until("session.updated"))["session"]
        found = (shown["output_modalities"], shown["audio"]["input"]["turn_detection"])
        require(found == (["text"], None), f"modalities and detection are {found}")


@check("remote-tools-refused", "8", "tools that a server would call itself are unsupported", Needs.EXTENSIONS)
async def remote_tools_refused(target: Target) -> None:
    remote = {"type": "mcp", "server_label": "a", "server_url": "https://example.org"}
    async with target.session() as (peer, _):
        await refusal(peer, {"type": "session.update", "session": {"tools": [remote]}}, "unsupported")
        for kind in ("mcp_approval_response", "mcp_approval_request", "mcp_call", "mcp_list_tools"):
            await refusal(peer, {"type": "conversation.item.create", "item": {"type": kind}}, "unsupported")
        for kind in ("mcp_list_tools.completed", "input_audio_buffer.dtmf_event_received"):
            await refusal(peer, {"type": kind}, "unknown_event", "unsupported")
        await settle(peer)


@check("unknown-path-404", "1", "another path is HTTP 404", Needs.EXTENSIONS)
async def unknown_path_404(target: Target) -> None:
    status = await target.status(path="/v1/no-such-endpoint")
    require(status == 404, f"the answer is {status}")


@check("early-input-waits", "1", "input that comes before the model is open is answered then", Needs.SCRIPT)
async def early_input_waits(target: Target) -> None:
    async with target.connect(extended=True, query={"autostart": "0"}) as peer:
        await peer.send({"type": "session.update", "session": script(open_delay_ms=500, audio_ms=100)})
        await type_text(peer)
        done = await answer(peer, await ask(peer))
        require(done["status"] == "completed", f"the response is {done['status']}")


@check(
    "no-slot-told",
    "1",
    "without a free slot: resource_exhausted and 1013, and no session.created",
    Needs.SCRIPT,
    alone=True,
)
async def no_slot_told(target: Target) -> None:
    most = (target.offer.capabilities or {}).get("max_sessions")
    if not isinstance(most, int) or most > _MOST_SESSIONS:
        raise NotOffered(f"the server takes {most or 'any number of'} sessions, too many to fill")
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(most + 1):
            peer = await stack.enter_async_context(target.connect())
            first = await peer.until("session.created", "error")
            if first["type"] == "error":
                break
        else:
            raise Failed(f"{most + 1} sessions were begun, of {most}")
        error = first["error"]
        require(error["code"] == "resource_exhausted", f"the code is {error['code']}")
        require(error.get("retry_after_ms"), "it does not say when to try again")
        require(await peer.end() == 1013, f"the close code is {peer.code}")
