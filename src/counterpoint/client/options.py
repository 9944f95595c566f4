"""What a program may set about a client, and what it may keep of a session.

Owns: ``Options`` and ``Backoff`` with their defaults, ``ResumePoint``, ``CloseReason``.
Does not own: the session's configuration, which is the server's (``Session.update``).
Here because: every bound and every wait of the client can be seen, and changed, in one place.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from counterpoint.protocol.commands import ReplayPolicy


@dataclass(frozen=True, slots=True)
class Backoff:
    """How a lost connection is tried again: waits are drawn from [0, ceiling), the ceiling grows."""

    first_s: float = 0.25  #: ceiling of the first wait
    factor: float = 2.0
    most_s: float = 8.0  #: the ceiling grows no further
    #: A connection that held so long is good: the next loss starts anew. A shorter one changes nothing, so
    #: a server that accepts and drops is not stormed.
    stable_s: float = 5.0
    #: Trouble that lasts longer ends the session for this client. By default twice the server's grace.
    give_up_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Options:
    """Bounds and intervals of one session's client. The defaults suit a microphone and a loudspeaker."""

    #: Audio appended during an outage is kept up to this, the oldest goes first. ``math.inf`` for a source
    #: that must not lose anything, such as a file.
    outage_audio_s: float = 2.0
    #: Events that wait in ``Session.events``, as bytes of JSON; beyond it the oldest go.
    event_buffer_bytes: int = 16 << 20
    #: Audio that waits in one ``Response.audio``; beyond it the oldest goes. About three minutes at 24 kHz.
    audio_buffer_bytes: int = 8 << 20
    #: Answers that wait in ``Session.responses``.
    response_buffer: int = 16
    #: What the server sends again after an outage (wire contract, section 3).
    replay: ReplayPolicy = ReplayPolicy.FULL
    backoff: Backoff = field(default_factory=Backoff)
    handshake_timeout_s: float = 10.0  #: from dialling to the session being there
    close_timeout_s: float = 8.0  #: for the server to end the session: it cleans up its model first
    heartbeat_s: float = 30.0  #: wire contract, section 11
    ping_s: float = 20.0  #: silence after which the link is probed; dead half of it later
    ack_interval_s: float = 1.0  #: events read are acknowledged after this, or
    ack_events: int = 64  #: after so many, whichever comes first


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """Enough to take a session over from anywhere: ``connect(url, resume=point)``.

    Whoever has it owns the conversation: keep it like a password. It is good until the session is resumed
    by somebody else, or ends.
    """

    session_id: str
    resume_token: str = field(repr=False)
    server_event_seq: int  #: the newest event that was read


@dataclass(frozen=True, slots=True)
class CloseReason:
    """How a connection ended."""

    code: int  #: the WebSocket close code; 1005 without one, 1006 if the connection just broke
    reason: str
    resumable: bool  #: whether the session can still be taken up, within the server's grace
