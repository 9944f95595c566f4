"""The numbers that bound a server: times, bytes and counts, with their defaults.

Owns: one class per section of the configuration, holding the numbers of that section that layers below
the server act on; the rule of each number (may 0 turn it off?) as its type.
Does not own: where values come from (``serving.settings``), nor what happens at a bound (the layer that
keeps it).
Here because: session, delivery and runtime sit below the server and need exactly these, not its settings.

Names and defaults: wire contract, sections 11 and 12. Each ``#:`` line is also the description in
``docs/reference/settings.md``.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

#: Nothing here is ever larger than this; it keeps infinity out of arithmetic on times.
_MOST = 10**12

#: Byte bounds and intervals: 0 would mean that nothing works, so it is refused.
Bytes = Annotated[int, msgspec.Meta(gt=0, le=_MOST)]
Interval = Annotated[float, msgspec.Meta(gt=0, le=_MOST)]

#: Expiries, timeouts and caps: 0 turns them off.
Seconds = Annotated[float, msgspec.Meta(ge=0, le=_MOST)]
Millis = Annotated[int, msgspec.Meta(ge=0, le=_MOST)]
Count = Annotated[int, msgspec.Meta(ge=0, le=_MOST)]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """``limits.*``: what one session may hold and how long it may take."""

    #: Sessions admitting, open and closing together.
    max_sessions: Count = 64
    #: Speech whose audio stops arriving for this long ends the turn.
    input_stall_ms: Millis = 1000
    #: Largest WebSocket frame that is read; a larger one ends the connection with 1009.
    max_frame_bytes: Bytes = 15 * MIB
    #: Input accepted and not yet consumed, of one session; beyond it input is refused, retryable.
    max_pending_input_bytes: Bytes = 16 * MIB
    #: Committed turns that wait for the model, of one session.
    max_pending_turns: Count = 4
    #: Longest single turn of input.
    max_turn_s: Seconds = 300.0
    #: Output that no transport has taken yet; at this much the model side is held back.
    max_pending_output_bytes: Bytes = 2 * MIB
    #: Audio is sent at most this far ahead of playback.
    max_audio_lead_ms: Millis = 0
    #: A model silent for this long fails its response with model_timeout.
    response_timeout_s: Seconds = 60.0
    #: Longest response, in time of generating and in audio; then it is incomplete.
    max_response_s: Seconds = 600.0
    #: Longest life of a session, whatever it does.
    max_session_s: Seconds = 0.0
    #: The cleanup of a session's model side may take this long before its slot is left to the reaper.
    cleanup_timeout_s: Seconds = 5.0
    #: Audio kept with a session's history; older audio goes, transcripts stay.
    max_history_audio_bytes: Bytes = 16 * MIB


class LeaseLimits(msgspec.Struct, frozen=True, kw_only=True):
    """``lease.*``: how long a session lives without activity or without a connection."""

    #: A session without input and output for this long expires.
    idle_ttl_s: Seconds = 300.0
    #: A session lives this long without a connection; 0 turns resume off: a disconnect ends the session.
    disconnect_grace_s: Seconds = 30.0
    #: How often expiries are looked for and failed cleanups tried again.
    reaper_interval_s: Interval = 1.0


class JournalLimits(msgspec.Struct, frozen=True, kw_only=True):
    """``journal.*``: how much of what was said can be said again."""

    #: Event log of one session, retained and pending together; the oldest entries leave first.
    max_bytes: Bytes = 8 * MIB
    #: Entries in the event log of one session.
    max_events: Count = 65_536
    #: A retained entry leaves after this long; not shorter than lease.disconnect_grace_s.
    ttl_s: Seconds = 60.0
    #: Event logs of all sessions together; the largest give way first.
    total_max_bytes: Bytes = GIB


class TransportLimits(msgspec.Struct, frozen=True, kw_only=True):
    """``transport.*``: what is expected of a connection, and by when."""

    #: Time for the first event of a connection that opened nothing yet.
    handshake_timeout_s: Seconds = 10.0
    #: Time between two pings to a silent peer.
    ping_interval_s: Interval = 20.0
    #: A peer that sends no byte for this long after a ping is gone.
    ping_timeout_s: Seconds = 20.0
    #: A connection that takes no byte for this long while output waits is detached.
    send_timeout_s: Seconds = 10.0
    #: Time for a closing handshake and for the last events before it; then the socket is reset.
    close_timeout_s: Seconds = 2.0


class DrainLimits(msgspec.Struct, frozen=True, kw_only=True):
    """``drain.*``: how a server that was asked to stop goes about it."""

    #: Sessions may go on for this long after the server was asked to stop.
    timeout_s: Seconds = 30.0


class AdmissionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """``admission.*``: what happens to connections that find no free slot."""

    #: Connections that may wait for a slot; 0 refuses them at once.
    queue: Count = 0


class StoreLimits(msgspec.Struct, frozen=True, kw_only=True):
    """``store.*``: how far a durable store may lag behind the conversation."""

    #: A fact waits this long for the store; then it goes out unstored and the server is degraded.
    max_wait_ms: Millis = 200
    #: After a crash, a client may be ahead of the store by this many events and still resume.
    max_lag_events: Count = 1024


class ClusterLimits(msgspec.Struct, frozen=True, kw_only=True):
    """``cluster.*``: when a node counts as dead."""

    #: A node that has not renewed for this long has lost its sessions.
    lease_s: Seconds = 10.0
    #: How often a node renews.
    heartbeat_s: Interval = 3.0
