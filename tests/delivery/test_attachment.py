"""Attachments by example, and a resume that is cancelled, fails or is overtaken wherever it can be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from counterpoint.delivery.attachment import Attachments, Held, Takeover
from counterpoint.errors import ResumeRefused


def accept() -> None:
    """A validation that finds nothing wrong."""


def refuse() -> None:
    raise ResumeRefused("invalid_resume_token", "no such session, or not its token")


class Lease:
    """A lease that can be swapped at once, or when the test says so."""

    def __init__(self) -> None:
        self.generation = 1
        self.asked: list[asyncio.Future[None]] = []

    def swap(self, expected: int) -> int:
        if expected != self.generation:
            raise ResumeRefused("session_resume_conflict", "another was first")
        self.generation += 1
        return self.generation

    async def resume(self, expected: int) -> int:
        """As a store does it: the swap happens somewhere between the question and the answer."""
        answer = asyncio.get_running_loop().create_future()
        self.asked.append(answer)
        await answer
        generation = self.swap(expected)
        await asyncio.sleep(0)
        return generation

    def answer(self, number: int) -> None:
        self.asked[number].set_result(None)

    def fail(self, number: int) -> None:
        self.asked[number].set_exception(OSError("the store is away"))


class Session:
    """Attachments with what a session has around them."""

    def __init__(self) -> None:
        self.given_back: list[int] = []
        self.lease = Lease()
        self.attachments = Attachments(self.given_back.append)

    def open(self) -> Held:
        return self.attachments.attach(self.lease.generation)

    def resume(self, validate: Callable[[], None] = accept) -> Takeover:
        return self.attachments.resume(validate, self.lease.swap)

    def start(self, validate: Callable[[], None] = accept) -> asyncio.Task[Takeover]:
        return asyncio.create_task(self.attachments.resume_through(self.lease, validate))


async def turns(count: int = 10) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


class TestDetach:
    def test_the_first_report_counts_and_gives_the_lease_back(self) -> None:
        session = Session()
        session.open()
        assert session.attachments.detach(1) == Held(1, 1)
        assert session.attachments.detach(1) is None
        assert session.given_back == [1]

    def test_an_old_generation_does_nothing(self) -> None:
        """(invariant 141)"""
        session = Session()
        session.open()
        session.resume()
        assert session.attachments.detach(1) is None
        assert session.attachments.attached == Held(2, 2)
        assert session.given_back == []

    def test_without_a_generation_it_means_whoever_is_attached(self) -> None:
        session = Session()
        session.open()
        session.resume()
        assert session.attachments.detach() == Held(2, 2)
        assert session.attachments.detach() is None

    def test_of_nobody_it_does_nothing(self) -> None:
        assert Session().attachments.detach() is None


class TestResume:
    def test_it_replaces_whoever_is_attached(self) -> None:
        session = Session()
        session.open()
        assert session.resume() == Takeover(Held(2, 2), Held(1, 1))
        assert [session.attachments.is_current(generation) for generation in (1, 2)] == [False, True]

    def test_of_two_the_later_replaces_the_earlier(self) -> None:
        session = Session()
        session.open()
        session.resume()
        assert session.resume() == Takeover(Held(3, 3), Held(2, 2))

    def test_of_a_detached_session_it_replaces_nobody(self) -> None:
        session = Session()
        session.open()
        session.attachments.detach()
        assert session.resume() == Takeover(Held(2, 2), None)

    def test_refused_before_the_swap_it_changes_nothing(self) -> None:
        """Wrong token, foreign token, no token: the owner is undisturbed (case B-07)."""
        session = Session()
        session.open()
        for _ in range(5):
            with pytest.raises(ResumeRefused):
                session.resume(refuse)
        assert (session.attachments.attached, session.lease.generation) == (Held(1, 1), 1)

    def test_refused_by_the_lease_it_changes_nothing(self) -> None:
        session = Session()
        session.open()
        session.lease.generation = 7
        with pytest.raises(ResumeRefused) as refused:
            session.resume()
        assert refused.value.code == "session_resume_conflict"
        assert session.attachments.attached == Held(1, 1)

    def test_an_abandoned_takeover_leaves_the_session_in_its_grace(self) -> None:
        """It took over, and is an ordinary detach when it dies (case B-03)."""
        session = Session()
        session.open()
        taken = session.resume()
        assert session.attachments.detach(taken.current.generation) == Held(2, 2)
        assert session.attachments.detach(1) is None
        assert session.given_back == [2]
        assert session.resume().current == Held(3, 3)

    def test_a_restored_session_goes_on_from_its_generations(self) -> None:
        attachments = Attachments(lambda lease: None, generation=4, lease=6)
        assert attachments.resume(accept, lambda expected: expected + 1).current == Held(5, 7)


class TestEnd:
    def test_nobody_is_attached_and_nothing_is_owed(self) -> None:
        session = Session()
        session.open()
        assert session.attachments.close() == Held(1, 1)
        assert session.attachments.close() is None
        assert session.attachments.detach(1) is None
        assert session.given_back == []

    def test_a_resume_is_too_late(self) -> None:
        session = Session()
        session.open()
        session.attachments.close()
        with pytest.raises(ResumeRefused) as refused:
            session.resume()
        assert refused.value.code == "session_resume_expired"
        assert session.lease.generation == 1


class TestSuspendingLease:
    async def test_it_takes_over_when_the_lease_is_swapped(self) -> None:
        session = Session()
        session.open()
        resume = session.start()
        await turns()
        assert session.attachments.attached == Held(1, 1)
        session.lease.answer(0)
        assert await resume == Takeover(Held(2, 2), Held(1, 1))

    async def test_of_two_at_once_one_loses_the_swap(self) -> None:
        session = Session()
        session.open()
        first, second = session.start(), session.start()
        await turns()
        session.lease.answer(1)
        session.lease.answer(0)
        assert (await second).current == Held(2, 2)
        with pytest.raises(ResumeRefused) as refused:
            await first
        assert refused.value.code == "session_resume_conflict"
        assert (session.attachments.attached, session.given_back) == (Held(2, 2), [])

    async def test_a_connection_that_dies_meanwhile_leaves_its_lease_to_the_resume(self) -> None:
        session = Session()
        session.open()
        resume = session.start()
        await turns()
        assert session.attachments.detach(1) == Held(1, 1)
        assert session.given_back == []
        session.lease.answer(0)
        assert await resume == Takeover(Held(2, 2), None)
        assert session.given_back == []

    async def test_if_the_resume_fails_that_lease_goes_into_the_grace(self) -> None:
        session = Session()
        session.open()
        resume = session.start()
        await turns()
        session.attachments.detach(1)
        session.lease.fail(0)
        with pytest.raises(OSError, match="away"):
            await resume
        assert session.given_back == [1]

    async def test_while_another_claim_is_open_it_waits_for_that(self) -> None:
        session = Session()
        session.open()
        failing, other = session.start(), session.start()
        await turns()
        session.attachments.detach(1)
        session.lease.fail(0)
        await asyncio.wait([failing])
        assert isinstance(failing.exception(), OSError)
        assert session.given_back == []
        session.lease.answer(1)
        assert (await other).current == Held(2, 2)
        assert session.given_back == []

    async def test_a_swap_that_is_refused_at_its_activation_goes_to_whoever_is_attached(self) -> None:
        """Or that connection would give back a lease generation that is not current any more."""
        session = Session()
        session.open()
        asked: list[None] = []

        def validate() -> None:
            asked.append(None)
            if len(asked) == 2:
                refuse()

        resume = session.start(validate)
        await turns()
        session.lease.answer(0)
        with pytest.raises(ResumeRefused):
            await resume
        assert session.attachments.attached == Held(1, 2)
        session.attachments.detach(1)
        assert session.given_back == [2]

    async def test_an_activation_takes_the_newest_lease_that_there_is(self) -> None:
        session = Session()
        session.open()
        early = session.start()
        await turns()
        session.lease.answer(0)
        await turns(2)  # swapped, and not activated yet
        late = asyncio.ensure_future(session.attachments.resume_through(_Ahead(session.lease), accept))
        assert (await early).current == Held(2, 2)
        assert await late == Takeover(Held(3, 3), Held(2, 2))

    async def test_a_resume_that_is_overtaken_serves_the_newer_lease_all_the_same(self) -> None:
        """It attaches last, and what it holds must be what the engine calls current."""
        session = Session()
        session.open()
        arrival = asyncio.get_running_loop().create_future()
        answer = _Late(session.lease, arrival)
        overtaken = asyncio.create_task(session.attachments.resume_through(answer, accept))
        await turns()
        late = await session.attachments.resume_through(_Ahead(session.lease), accept)
        assert late.current == Held(2, 3)
        arrival.set_result(None)
        assert (await overtaken).current == Held(3, 3)

    async def test_also_when_the_connection_that_overtook_it_is_gone_again(self) -> None:
        session = Session()
        session.open()
        arrival = asyncio.get_running_loop().create_future()
        overtaken = asyncio.create_task(
            session.attachments.resume_through(_Late(session.lease, arrival), accept)
        )
        await turns()
        late = await session.attachments.resume_through(_Ahead(session.lease), accept)
        session.attachments.detach(late.current.generation)
        arrival.set_result(None)
        assert (await overtaken).current == Held(3, 3)
        assert session.given_back == []

    async def test_if_it_fails_what_it_held_does_not_replace_the_newer_lease(self) -> None:
        session = Session()
        session.open()
        arrival = asyncio.get_running_loop().create_future()
        overtaken = asyncio.create_task(
            session.attachments.resume_through(_Late(session.lease, arrival), accept)
        )
        await turns()
        await session.attachments.resume_through(_Ahead(session.lease), accept)
        overtaken.cancel()
        arrival.set_result(None)
        await asyncio.wait([overtaken])
        await turns()
        assert session.attachments.attached == Held(2, 3)

    async def test_a_session_that_ended_meanwhile_owes_nothing(self) -> None:
        session = Session()
        session.open()
        resume = session.start()
        await turns()
        session.attachments.close()
        session.lease.answer(0)
        with pytest.raises(ResumeRefused) as refused:
            await resume
        assert refused.value.code == "session_resume_expired"
        assert (session.attachments.attached, session.given_back) == (None, [])

    @pytest.mark.parametrize("attached", [True, False])
    @pytest.mark.parametrize("turn", range(8))
    async def test_cancelled_at_any_point_the_lease_finds_its_owner(self, turn: int, attached: bool) -> None:
        """(cases B-03, I-11; invariant 145)"""
        session = Session()
        session.open()
        if not attached:
            session.attachments.detach()
            session.given_back.clear()
        resume = session.start()
        for step in range(8):
            if step == turn:
                resume.cancel()
            if step == 2 and session.lease.asked:
                session.lease.answer(0)
            await asyncio.sleep(0)
        await asyncio.wait([resume])
        await turns()
        newest = session.lease.generation
        assert newest == (1 if turn == 0 else 2)
        if not resume.cancelled():
            assert session.attachments.attached == Held(2, 2)
        elif attached:
            assert session.attachments.attached == Held(1, newest)
        else:
            assert session.given_back == ([] if newest == 1 else [newest])
        assert session.resume().current.lease == newest + 1, "the next resume expects the right generation"

    async def test_cancelled_while_the_swap_fails_the_failure_is_not_lost_noise(self) -> None:
        session = Session()
        session.open()
        resume = session.start()
        await turns()
        resume.cancel()
        await turns()
        session.attachments.detach(1)
        assert session.given_back == [], "the swap is still under way, and may need an owner"
        session.lease.fail(0)
        await turns()
        assert session.given_back == [1]


class _Ahead:
    """A port whose swap is done at once; it knows the generation itself, as another node would."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease

    async def resume(self, expected: int) -> int:
        return self._lease.swap(self._lease.generation)


class _Late:
    """A port that swaps at once and whose answer arrives when the test says so."""

    def __init__(self, lease: Lease, arrival: asyncio.Future[None]) -> None:
        self._lease = lease
        self._arrival = arrival

    async def resume(self, expected: int) -> int:
        generation = self._lease.swap(expected)
        await self._arrival
        return generation
