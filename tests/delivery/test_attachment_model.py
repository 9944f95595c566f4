"""Attachments under any interleaving: connections come, go and die while swaps of the lease are under way.

What is checked is what the pages promise, not how it is done: of the lease generations that the engine
handed out, the newest is with whoever is attached, or was given back last; nothing is given back while it
may still be needed.
"""

from __future__ import annotations

import asyncio

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from counterpoint.delivery.attachment import Attachments, Takeover
from counterpoint.errors import ResumeRefused
from counterpoint.testing.virtual_time import VirtualLoop


class Swap:
    """One call of the lease that was not answered yet, and the resume that waits for it."""

    def __init__(self, answer: asyncio.Future[int]) -> None:
        self.answer = answer
        self.expected = 0
        self.refused_at_activation = False
        self.resume: asyncio.Task[Takeover] | None = None


class AttachmentsMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualLoop()
        self.lease = 1
        self.swaps: list[Swap] = []
        self.given_back: list[int] = []
        self.may_give_back = False
        self.newest_handed_out = 1
        self.generations: list[int] = []
        self.ended = False
        self.attachments = Attachments(self._take_back)

    def _take_back(self, lease: int) -> None:
        assert not self.ended, "nothing is owed for an ended session"
        assert self.attachments.attached is None, "whoever is attached serves the lease"
        assert not self.given_back or lease > self.given_back[-1], "generations only move forward"
        self.given_back.append(lease)

    def teardown(self) -> None:
        for swap in self.swaps:
            swap.answer.cancel()
        self._settle()
        self.loop.close()

    def _settle(self) -> None:
        async def turns() -> None:
            for _ in range(10):
                await asyncio.sleep(0)

        self.loop.run_until_complete(turns())

    async def resume(self, expected: int) -> int:
        swap = self._asking
        swap.expected = expected
        return await swap.answer

    @initialize()
    def open(self) -> None:
        self.generations.append(self.attachments.attach(self.lease).generation)

    @rule(refused_at_activation=st.booleans())
    def start_resume(self, refused_at_activation: bool) -> None:
        swap = Swap(self.loop.create_future())
        swap.refused_at_activation = refused_at_activation
        asked: list[None] = []

        def validate() -> None:
            asked.append(None)
            if len(asked) == 2 and swap.refused_at_activation:
                raise ResumeRefused("invalid_resume_token", "rotated meanwhile")

        self._asking = swap
        swap.resume = self.loop.create_task(self.attachments.resume_through(self, validate))
        self._settle()
        if self.ended:
            assert isinstance(swap.resume.exception(), ResumeRefused)
        else:
            self.swaps.append(swap)

    @precondition(lambda self: self.swaps)
    @rule(data=st.data(), cancel_first=st.booleans(), turns=st.integers(0, 3))
    def answer(self, data: st.DataObject, cancel_first: bool, turns: int) -> None:
        """The lease answers, and the caller may leave in any of the moments around that."""
        swap = self.swaps.pop(data.draw(st.integers(0, len(self.swaps) - 1)))
        assert swap.resume is not None
        if cancel_first:
            swap.resume.cancel()
            self._settle()
        if swap.expected == self.lease:
            self.lease += 1
            self.newest_handed_out = self.lease
            swap.answer.set_result(self.lease)
        else:
            swap.answer.set_exception(ResumeRefused("session_resume_conflict", "another was first"))
        if turns and not cancel_first:
            for _ in range(turns - 1):
                self.loop.call_soon(self.loop.stop)
                self.loop.run_forever()
            swap.resume.cancel()
        self._settle()
        self._finished(swap.resume)

    def _finished(self, resume: asyncio.Task[Takeover]) -> None:
        if resume.cancelled() or resume.exception() is not None:
            return
        self.generations.append(resume.result().current.generation)
        assert self.attachments.attached == resume.result().current

    @precondition(lambda self: self.swaps)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        swap = self.swaps.pop(data.draw(st.integers(0, len(self.swaps) - 1)))
        assert swap.resume is not None
        swap.answer.set_exception(OSError("the store is away"))
        self._settle()
        assert isinstance(swap.resume.exception(), OSError)

    @rule(data=st.data())
    def detach(self, data: st.DataObject) -> None:
        generation = data.draw(st.sampled_from([None, *self.generations]))
        before = self.attachments.attached
        current = before is not None and generation in (None, before.generation)
        assert self.attachments.detach(generation) == (before if current else None)
        assert self.attachments.attached == (None if current else before)

    @precondition(lambda self: self.swaps)
    @rule()
    def close(self) -> None:
        self.attachments.close()
        self.ended = True

    @invariant()
    def generations_only_move_forward(self) -> None:
        assert self.generations == sorted(set(self.generations))

    @invariant()
    def the_newest_lease_has_an_owner(self) -> None:
        if self.ended:
            assert self.attachments.attached is None
        elif not self.swaps:
            attached = self.attachments.attached
            owner = attached.lease if attached is not None else self.given_back[-1]
            assert owner == self.newest_handed_out


TestAttachments = AttachmentsMachine.TestCase
TestAttachments.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
