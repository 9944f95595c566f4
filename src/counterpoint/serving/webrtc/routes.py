"""The door for calls: ``POST /v1/realtime/calls`` (wire contract, section 13).

Owns: answering an offer with a session or with a refusal, CORS, the calls that are under way.
Does not own: what is asked for (``opening``, ``offer``), who may (``access``, ``permits``), a call's life
(``call``).
Here because: an offer is refused over HTTP, as long as there is no other way to say so.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import structlog
from aiohttp import web

from counterpoint.errors import AdmissionRefused, ProtocolError, ResumeRefused
from counterpoint.protocol.codes import ErrorCode
from counterpoint.protocol.commands import ReplayPolicy, ResumeSession
from counterpoint.protocol.config import merge
from counterpoint.runtime.live import Attachment
from counterpoint.runtime.manager import OpenRequest, SessionManager
from counterpoint.runtime.tasks import Tasks
from counterpoint.serving.access import Access
from counterpoint.serving.opening import Openings, asks_for_beta, resume_of
from counterpoint.serving.permits import Permits, too_many
from counterpoint.serving.refusals import bad_request, refusal
from counterpoint.serving.settings import Settings

from .call import Call
from .offer import Offer, read_offer

if TYPE_CHECKING:
    from .peer import Peer

log = structlog.get_logger(__name__)

PATH = "/v1/realtime/calls"

_EXPOSED = "Location, Retry-After"
_PREFLIGHT_S = "600"

#: How a refused resume is answered.
_RESUME_STATUS: dict[str, type[web.HTTPException]] = {
    ErrorCode.INVALID_SESSION_RESUME: web.HTTPBadRequest,
    ErrorCode.INVALID_RESUME_TOKEN: web.HTTPForbidden,
    ErrorCode.SESSION_RESUME_CONFLICT: web.HTTPConflict,
    ErrorCode.SESSION_RESUME_EXPIRED: web.HTTPGone,
    ErrorCode.UNSUPPORTED_SESSION_RESUME: web.HTTPNotImplemented,
}


class CallRoutes:
    def __init__(
        self,
        manager: SessionManager,
        settings: Settings,
        access: Access,
        permits: Permits,
        openings: Openings,
        entropy: Callable[[int], bytes],
    ) -> None:
        self._manager = manager
        self._settings = settings
        self._access = access
        self._permits = permits
        self._openings = openings
        self._entropy = entropy
        self._tasks = Tasks("calls")
        #: Under way, by id.
        self._calls: dict[str, Call] = {}

    def add_to(self, app: web.Application) -> None:
        app.router.add_post(PATH, self._shared(self.create))
        app.router.add_options(PATH, self._shared(self.preflight))
        app.router.add_post(f"{PATH}/{{call_id}}/{{action}}", self._shared(self.control))
        app.on_shutdown.append(self._close)

    async def _close(self, app: web.Application) -> None:
        """A peer connection that is cancelled while it closes keeps its sockets: hang up, and wait."""
        timeout_s = self._settings.transport.close_timeout_s
        for call in list(self._calls.values()):
            call.link.abort()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._tasks.join()
        await self._tasks.cancel(timeout=timeout_s)

    # ------------------------------------------------------------------ CORS

    def _shared(
        self, handle: Callable[[web.Request], Awaitable[web.Response]]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """Answers, refusals too, can be read by the pages that may call."""

        async def shared(request: web.Request) -> web.StreamResponse:
            self._access.check_origin(request)
            answer: web.Response | web.HTTPException
            try:
                answer = await handle(request)
            except web.HTTPException as refused:
                answer = refused
            if origin := request.headers.get("Origin"):
                answer.headers["Access-Control-Allow-Origin"] = origin
                answer.headers["Access-Control-Expose-Headers"] = _EXPOSED
                answer.headers["Vary"] = "Origin"
            if isinstance(answer, web.HTTPException):
                raise answer
            return answer

        return shared

    async def preflight(self, request: web.Request) -> web.Response:
        """Whatever headers a page means to send; none of them is trusted for being there."""
        asked = request.headers.get("Access-Control-Request-Headers", "")
        headers = {"Access-Control-Allow-Methods": "POST", "Access-Control-Max-Age": _PREFLIGHT_S}
        if asked:
            headers["Access-Control-Allow-Headers"] = asked
        return web.Response(status=204, headers=headers)

    async def control(self, request: web.Request) -> web.Response:
        """What the official API has for SIP, and for ending a call from outside: not served."""
        self._access.authenticate(request)
        message = "calls are not controlled from outside; DELETE /v1/sessions/{id} ends a session"
        raise refusal(web.HTTPNotImplemented, ErrorCode.UNSUPPORTED, message)

    # ------------------------------------------------------------------ a call

    async def create(self, request: web.Request) -> web.Response:
        """Answer an offer: the session is open, or taken over, when the answer is sent."""
        caller = self._access.authenticate(request)
        self._permits.check_connection(caller, opens="resume" not in request.query)
        try:
            offer = await read_offer(request)
            opening = self._openings.request(request, caller, beta=asks_for_beta(request))
            opening = self._configured(opening, offer)
            resume = _resume_of(request)
        except ProtocolError as mistake:
            raise bad_request(mistake) from None
        call = Call(f"rtc_{self._entropy(16).hex()}", self._settings)
        peer = await _new_peer(call)
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(peer.close)
            try:
                answer = await peer.answer(offer.sdp)
                attachment = await self._attach(opening, resume, call)
            except (AdmissionRefused, ProtocolError, ResumeRefused) as refused:
                raise _as_http(refused) from None
            work = self._run(call, attachment, stack.pop_all(), resumed=resume is not None)
            self._tasks.spawn(call.id, work)
        log.info("call", id=call.id, session=attachment.live.id, resumed=resume is not None)
        return web.Response(
            status=201,
            text=answer,
            content_type="application/sdp",
            headers={"Location": f"{PATH}/{call.id}"},
        )

    def _configured(self, opening: OpenRequest, offer: Offer) -> OpenRequest:
        """With the session that came beside the offer. Raises ``ProtocolError``."""
        if not offer.session:
            return opening
        config = merge(opening.config, offer.session, extended=opening.dialect.extended)
        asked = offer.session.get("model")
        if not opening.locked.get("model") and isinstance(asked, str):
            config = msgspec.structs.replace(config, model=self._openings.served_name(asked))
        return replace(opening, config=config)

    async def _attach(self, opening: OpenRequest, resume: ResumeSession | None, call: Call) -> Attachment:
        dialect = replace(opening.dialect, player=call.player)
        if resume is not None:
            return await self._manager.resume(resume, call.link, dialect, opening.principal)
        return self._manager.open(replace(opening, dialect=dialect), call.link)

    async def _run(
        self, call: Call, attachment: Attachment, peer: contextlib.AsyncExitStack, *, resumed: bool
    ) -> None:
        self._calls[call.id] = call
        try:
            async with peer:
                await call.run(attachment, resumed=resumed)
        finally:
            del self._calls[call.id]


async def _new_peer(call: Call) -> Peer:
    """Raises ``HTTPNotImplemented`` where the extra is not installed."""
    try:  # loading it takes a while, which must not be other sessions'
        await asyncio.to_thread(importlib.import_module, "aiortc")
    except ImportError:
        message = "this server has no WebRTC: the extra is not installed (pip install 'counterpoint[webrtc]')"
        raise refusal(web.HTTPNotImplemented, ErrorCode.UNSUPPORTED, message) from None
    from .peer import Peer

    return Peer(call, call.player.take)


def _resume_of(request: web.Request) -> ResumeSession | None:
    """Of what was sent before, the new track plays what was not heard yet. Raises ``ProtocolError``."""
    resume = resume_of(request)
    if resume is None:
        if "resume" in request.query:
            message = "a resume needs its token"
            raise ProtocolError(ErrorCode.INVALID_SESSION_RESUME, message, param="X-Resume-Token")
        return None
    return msgspec.structs.replace(resume, replay=ReplayPolicy.FROM_PLAYHEAD)


def _as_http(refused: AdmissionRefused | ProtocolError | ResumeRefused) -> web.HTTPException:
    match refused:
        case AdmissionRefused():
            return too_many(str(refused), refused.retry_after_ms / 1000)
        case ResumeRefused():
            return refusal(_RESUME_STATUS[refused.code], refused.code, refused.message)
        case ProtocolError():
            return bad_request(refused)
