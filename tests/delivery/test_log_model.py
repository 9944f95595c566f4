"""The event log, its cursors and its budget against a plain model that was written from the contract's pages.

The model keeps every entry as a small object in two lists and looks at all of them for every question.
A client on the other side checks what it gets: every number once and in order, holes announced, and under one
number the same event for ever.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from counterpoint.delivery.budget import TotalBudget
from counterpoint.delivery.cursor import Cursor
from counterpoint.delivery.entries import Skipped
from counterpoint.errors import ProtocolError, ResumeRefused
from counterpoint.protocol.commands import ReplayPolicy
from counterpoint.session.effects import Tag

from .support import AUDIO, AUDIO_DONE, CREATED, ITEM_ADDED, TRANSCRIPT, UPDATED, fill, new_log

TTL_S = 10.0
KINDS = {
    "created": CREATED,
    "listed": ITEM_ADDED,
    "text": TRANSCRIPT,
    "audio": AUDIO,
    "done": AUDIO_DONE,
    "fact": UPDATED,
}
REMOVED_BY_DISCARD = ("text", "audio", "done")
RESPONSES = st.sampled_from(["r1", "r2"])
ITEMS = st.sampled_from(["i1", "i2"])


@dataclass
class Line:
    """One entry, as the model remembers it."""

    body: bytes
    what: str
    response: str
    item: str
    samples: int
    number: int = 0
    taken_at: float = 0.0


@dataclass
class Model:
    """The pages of the contract, as lists."""

    max_bytes: int
    max_events: int
    pending: list[Line] = field(default_factory=list)
    retained: list[Line] = field(default_factory=list)
    head: int = 0
    boundary: int = 0
    acknowledged: int = 0
    interrupted: set[str] = field(default_factory=set)
    reported: list[Line] = field(default_factory=list)
    numbered: dict[int, Line] = field(default_factory=dict)

    def held(self) -> list[Line]:
        return self.retained + self.pending

    def record(self, line: Line, now: float) -> None:
        self.pending.append(line)
        self.prune(now)
        while self.is_over():
            self.evict()

    def is_over(self) -> bool:
        sizes = [len(line.body) for line in self.held()]
        waiting = [len(line.body) for line in self.pending if len(line.body) > self.max_bytes]
        exempt = waiting[-1] if waiting else 0
        return sum(sizes) - exempt > self.max_bytes or len(sizes) > self.max_events

    def evict(self) -> None:
        if self.retained:
            self.boundary = self.retained.pop(0).number
        else:
            self.number()
            self.boundary = self.head

    def number(self) -> Line:
        line = self.pending.pop(0)
        self.head += 1
        line.number = self.head
        self.numbered[self.head] = line
        if line.what != "fact":
            self.reported.append(line)
        return line

    def take(self, count: int, now: float) -> None:
        for _ in range(min(count, len(self.pending))):
            line = self.number()
            line.taken_at = now
            self.retained.append(line)
            if len(line.body) > self.max_bytes:
                self.leave(line.number)

    def leave(self, number: int) -> None:
        self.retained = [line for line in self.retained if line.number > number]
        self.boundary = max(self.boundary, number)

    def prune(self, now: float) -> None:
        for line in list(self.retained):
            if now - line.taken_at >= TTL_S:
                self.leave(line.number)

    def discard(self, response: str, items: frozenset[str]) -> None:
        self.interrupted.add(response)
        self.pending = [
            line
            for line in self.pending
            if line.what == "fact"
            or not (line.item in items or (line.response == response and line.what in REMOVED_BY_DISCARD))
        ]

    def passed_over(self, line: Line, policy: ReplayPolicy, played: int) -> str | None:
        if line.what != "audio":
            return None
        if line.response in self.interrupted:
            return "interrupted"
        dropped = policy is ReplayPolicy.NO_AUDIO or (
            policy is ReplayPolicy.FROM_PLAYHEAD and line.samples <= played
        )
        return "replay_policy" if dropped else None


class Client:
    """Reads one session over all its connections, and believes nothing."""

    def __init__(self) -> None:
        self.position = 0
        self.bodies: dict[int, bytes] = {}

    def receives(self, number: int, body: bytes) -> None:
        assert number == self.position + 1, "a hole, or a step back"
        assert self.bodies.setdefault(number, body) == body, "another event under an old number"
        self.position = number

    def is_told(self, skipped: Skipped) -> None:
        assert skipped.first == self.position + 1
        assert skipped.last >= skipped.first
        self.position = skipped.last


class LogMachine(RuleBasedStateMachine):
    @initialize(max_bytes=st.sampled_from([40, 200, 10_000]), max_events=st.sampled_from([3, 8, 10_000]))
    def open(self, max_bytes: int, max_events: int) -> None:
        self.now = 0.0
        self.recorded = 0
        self.tags: list[Tag] = []
        self.interruptions = dict.fromkeys(("r1", "r2"), 0)
        self.total = TotalBudget(1 << 40)
        self.log = new_log(
            max_bytes=max_bytes,
            max_events=max_events,
            ttl_s=TTL_S,
            total=self.total,
            accepted=self.tags.append,
        )
        self.model = Model(max_bytes, max_events)
        self.client = Client()
        self.connect(ReplayPolicy.FULL, 0)

    def connect(self, policy: ReplayPolicy, played: int) -> None:
        self.policy, self.played = policy, played
        self.cursor: Cursor = self.log.replay(
            self.client.position, self.now, policy, {("i1", 0): played, ("i2", 0): played}
        )
        self.model.prune(self.now)
        self.acknowledged_before = self.model.acknowledged

    # ------------------------------------------------------------------ the session

    @rule(
        what=st.sampled_from(sorted(KINDS)),
        response=RESPONSES,
        item=ITEMS,
        size=st.sampled_from([10, 20, 60, 300]),
    )
    def record(self, what: str, response: str, item: str, size: int) -> None:
        self.recorded += 1
        response = self.current(response)
        item = "" if what == "created" else item
        line = Line(b"%0*d" % (size, self.recorded), what, response, item, samples=self.recorded)
        tag = None if what == "fact" else Tag(response, item or None, samples=line.samples)
        self.log.record(KINDS[what], line.body, tag=tag, now=self.now)
        self.model.record(line, self.now)

    @rule(response=RESPONSES, items=st.frozensets(ITEMS))
    def interrupt(self, response: str, items: frozenset[str]) -> None:
        self.log.discard(self.current(response), items)
        self.model.discard(self.current(response), items)
        self.interruptions[response] += 1

    def current(self, response: str) -> str:
        """The fence lets nothing of an interrupted response into the log any more: the next one speaks."""
        return f"{response}.{self.interruptions[response]}"

    @rule(seconds=st.sampled_from([0.5, 4.0, 10.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    # ------------------------------------------------------------------ the connection

    @rule(count=st.integers(1, 5))
    def read(self, count: int) -> None:
        """The writer takes a batch; what it is must follow from the model, and the client must be content."""
        position = self.client.position
        processed = self.model.acknowledged if self.model.acknowledged > self.acknowledged_before else 0
        if max(position, processed) < self.model.boundary:
            assert self.cursor.gap
            assert self.cursor.take(self.now, count, 1 << 30) is None
            return
        assert not self.cursor.gap
        live = position == self.model.head
        if live:
            self.model.take(count, self.now)
        batch = self.cursor.take(self.now, count, 1 << 30)
        assert batch is not None
        for got in batch:
            if isinstance(got, Skipped):
                self.client.is_told(got)
                assert all(
                    self.may_skip(number, got.reason, processed) for number in range(got.first, got.last + 1)
                )
            else:
                self.client.receives(got.number, got.body)
                line = self.model.numbered[got.number]
                assert got.body == line.body
                assert live or self.model.passed_over(line, self.policy, self.played) is None
        assert bool(batch) == (self.client.position > position)
        assert not live or self.client.position == self.model.head

    def may_skip(self, number: int, reason: str, processed: int) -> bool:
        line = self.model.numbered[number]
        return number <= processed or self.model.passed_over(line, self.policy, self.played) == reason

    @precondition(lambda self: self.cursor.gap)
    @rule()
    def snapshot(self) -> None:
        while self.model.held():
            self.model.evict()
        assert self.cursor.jump() == self.model.head
        self.client.position = self.model.head

    @rule(policy=st.sampled_from(ReplayPolicy), played=st.integers(0, 40), back=st.integers(0, 4))
    def resume(self, policy: ReplayPolicy, played: int, back: int) -> None:
        self.client.position = max(0, self.client.position - back)
        position = self.client.position
        self.connect(policy, played)
        gap = position < self.model.boundary
        again = [] if gap else [line for line in self.model.retained if line.number > position]
        assert self.cursor.gap == gap
        assert (self.cursor.first, self.cursor.last) == (
            (again[0].number, again[-1].number) if again else (None, None)
        )
        dropped = [line for line in again if self.model.passed_over(line, policy, played) is not None]
        assert self.cursor.dropped_audio_events == len(dropped)

    @rule(ahead=st.integers(-5, 5))
    def acknowledge(self, ahead: int) -> None:
        number = self.client.position + ahead
        if not 0 <= number <= self.model.head:
            with pytest.raises(ProtocolError):
                self.log.acknowledge(number)
            return
        left = [line for line in self.model.retained if line.number <= number]
        assert self.log.acknowledge(number) == len(left)
        self.model.leave(number)
        self.model.acknowledged = max(self.model.acknowledged, number)

    @rule(beyond=st.integers(1, 1000))
    def resume_from_the_future(self, beyond: int) -> None:
        """(case A-06)"""
        with pytest.raises(ResumeRefused):
            self.log.replay(self.model.head + beyond, self.now)

    # ------------------------------------------------------------------ always

    @invariant()
    def the_log_is_where_the_model_is(self) -> None:
        if not hasattr(self, "model"):
            return
        assert (self.log.head, self.log.boundary) == (self.model.head, self.model.boundary)
        assert self.log.pending_bytes == sum(len(line.body) for line in self.model.pending)
        assert self.log.journal_bytes == sum(len(line.body) for line in self.model.retained)
        assert self.total.used == self.log.bytes_held

    @invariant()
    def every_entry_was_reported_once_and_in_order(self) -> None:
        if hasattr(self, "model"):
            assert [tag.samples for tag in self.tags] == [line.samples for line in self.model.reported]


TestLog = LogMachine.TestCase
TestLog.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)


class BudgetMachine(RuleBasedStateMachine):
    """Several logs under one budget: it holds, and only the largest ever gave way."""

    MAX = 640

    def __init__(self) -> None:
        super().__init__()
        self.total = TotalBudget(self.MAX)
        self.logs = [new_log(total=self.total) for _ in range(4)]

    @rule(which=st.integers(0, 3), size=st.integers(1, 200))
    def record(self, which: int, size: int) -> None:
        before = [log.bytes_held for log in self.logs]
        before[which] += size
        fill(self.logs[which], 1, size=size)
        after = [log.bytes_held for log in self.logs]
        gave_way = [index for index in range(4) if after[index] < before[index]]
        assert bool(gave_way) == (sum(before) > self.MAX)
        # When its last entry left, it was the largest; an entry is at most 200 bytes.
        assert all(after[index] + 200 >= max(after) for index in gave_way)

    @rule(which=st.integers(0, 3))
    def take_and_acknowledge(self, which: int) -> None:
        log = self.logs[which]
        log.take(0.0, 2, 1 << 30)
        log.acknowledge(log.head)

    @invariant()
    def the_budget_holds_and_is_counted_right(self) -> None:
        assert self.total.used == sum(log.bytes_held for log in self.logs)
        assert self.total.used <= self.MAX


TestBudget = BudgetMachine.TestCase
TestBudget.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
