"""One line of the event log.

Owns: ``Entry``, and ``Skipped``, which stands for entries that are not sent again.
Does not own: the order of entries and who numbers them (``log``), how they look on the wire (``protocol``).
Here because: a session retains thousands of entries, so what one of them costs is decided in one place.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

import msgspec

from counterpoint.protocol.catalog import EventKind
from counterpoint.session.effects import Tag


class Entry(msgspec.Struct, gc=False):
    """A session event, encoded once. ``gc=False``: the collector never visits what sessions retain."""

    kind: EventKind
    body: bytes
    duplex: bytes  #: the encoded ``duplex`` object, apart from the body; empty where there is none
    size: int  #: bytes that it is charged with
    tag: Tag | None
    epoch: int  #: the session's, when the event was written; whoever watches the log checks the fence by it
    number: int = 0  #: ``server_event_seq``; 0 while it is pending
    taken_at: float = 0.0  #: when it was numbered; its age counts from then


class SkipReason(enum.StrEnum):
    """Why retained entries are not sent again (``session.skipped.reason``)."""

    INTERRUPTED = "interrupted"
    REPLAY_POLICY = "replay_policy"


class Skipped(NamedTuple):
    """Entries ``first`` to ``last`` are passed over; announced in their place."""

    first: int
    last: int
    reason: SkipReason
