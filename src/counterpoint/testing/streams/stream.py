"""A recording of what one client said and got, and what a rule over it is.

Owns: ``Stream``, ``Rule``, joining the connections of one session.
Does not own: any rule, making recordings.
Here because: rules are written against this and nothing else, so they need no server.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Event = dict[str, Any]

#: What says that events were passed over: notices, and items told again to a client that knows no notices.
_NOTICES = frozenset({"session.snapshot", "session.skipped"})
_RESTATED = frozenset({"conversation.item.added", "conversation.item.done"})


@dataclass(slots=True)
class Stream:
    """One connection, or (``joined``) all connections of one session."""

    received: list[Event] = field(default_factory=list)
    sent: list[Event] = field(default_factory=list)
    #: Extended from its first event on.
    extended: bool = False
    beta: bool = False
    #: The newest number that its client had when it resumed; None: it began a session.
    after: int | None = None
    #: The server's close code; None: it gave none, or nobody looked.
    closed: int | None = None
    #: Frames that were no events, shortened.
    oddities: list[str] = field(default_factory=list)
    #: Keys and tokens that must not show in an error.
    secrets: list[str] = field(default_factory=list)

    @property
    def numbered(self) -> bool:
        """Whether the server gives numbers: another one may never have heard of them."""
        return self.extended or any("server_event_seq" in event for event in self.received)

    @property
    def ever_extended(self) -> bool:
        """Whether its client asked for the extensions, be it later on."""
        return self.extended or any(event.get("extensions") is True for event in self.sent)

    @property
    def torn(self) -> bool:
        """Events were passed over, so what is left need not add up."""
        if any(event["type"] in _NOTICES for event in self.received):
            return True
        restated = any("server_event_seq" not in event for event in self.of(*_RESTATED))
        return restated and self.numbered

    def of(self, *kinds: str) -> Iterator[Event]:
        return (event for event in self.received if event["type"] in kinds)


def joined(connections: Sequence[Stream]) -> Stream:
    """The session as its client has it: each numbered event once, whichever connection brought it."""
    whole = Stream(extended=all(stream.extended for stream in connections))
    head = 0
    for stream in connections:
        whole.sent += stream.sent
        whole.beta = whole.beta or stream.beta
        for event in stream.received:
            number = event.get("server_event_seq")
            if number is None or number > head:
                whole.received.append(event)
            head = max(head, number or 0)
    return whole


class Scope(enum.Enum):
    """What a rule looks at."""

    CONNECTION = enum.auto()
    SESSION = enum.auto()  #: all connections of a session, joined
    WHOLE = enum.auto()  #: the same, in the names of the current API, with nothing passed over


@dataclass(frozen=True, slots=True)
class Rule:
    """``check`` yields what is wrong. ``about``: event types that show the rule at work; empty: all."""

    name: str
    section: str  #: of the wire contract
    says: str
    check: Callable[[Stream], Iterator[str]]
    scope: Scope = Scope.WHOLE
    about: tuple[str, ...] = ()

    def seen(self, stream: Stream) -> int:
        """How much of what the rule is about the stream holds."""
        if not self.about:
            return len(stream.received)
        return sum(event["type"] in self.about for event in stream.received)


@dataclass(frozen=True, slots=True)
class Violation:
    rule: Rule
    reason: str

    def __str__(self) -> str:
        return f"{self.rule.name}: {self.reason}"


def violations(rules: Iterable[Rule], stream: Stream) -> list[Violation]:
    """Every way in which ``stream`` breaks one of ``rules``."""
    found: list[Violation] = []
    whole = not (stream.torn or stream.beta)
    for rule in rules:
        if whole or rule.scope is not Scope.WHOLE:
            try:
                found += [Violation(rule, reason) for reason in rule.check(stream)]
            except (AttributeError, KeyError, TypeError) as error:
                found.append(Violation(rule, f"an event does not have what this is about: {error}"))
    return found
