"""Units and reservations, by example and against a model that keeps one flat list of samples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from counterpoint.audio.packetizer import Packetizer, Reservation, TailPolicy, Unit

from .signals import cuts, noise, pieces


def numbered(first: int, count: int) -> bytes:
    """Samples that say which they are; none is zero, so padding can be told from them."""
    return ((np.arange(first, first + count) % 32767) + 1).astype("<i2").tobytes()


def emitted(packetizer: Packetizer) -> list[Unit]:
    units = []
    while reservation := packetizer.reserve():
        packetizer.commit(reservation)
        units.append(reservation.unit)
    return units


def reserved(packetizer: Packetizer, count: int) -> list[Reservation]:
    found = [packetizer.reserve() for _ in range(count)]
    assert None not in found
    return [reservation for reservation in found if reservation]


def loaded(units: int, *, tail: TailPolicy = TailPolicy.PAD) -> Packetizer:
    packetizer = Packetizer(4, tail)
    packetizer.feed(numbered(0, 4 * units))
    return packetizer


UNITS = [Unit(numbered(4 * i, 4)) for i in range(8)]


@settings(max_examples=40)
@given(places=cuts(1000, unit=2))
def test_units_are_the_input_cut_evenly(places: list[int]) -> None:
    """(invariant 34)"""
    audio = noise(1000, dbfs=-6)
    packetizer = Packetizer(160, TailPolicy.PAD)
    units = []
    for piece in pieces(audio, places):
        packetizer.feed(piece)
        units += emitted(packetizer)
    assert [len(unit.pcm) for unit in units] == [320] * 6
    assert packetizer.rest_samples == 40
    packetizer.finish()
    [last] = emitted(packetizer)
    assert b"".join(unit.pcm for unit in units) + last.pcm[:80] == audio


def test_the_first_unit_may_have_its_own_length() -> None:
    """(invariant 38)"""
    packetizer = Packetizer(4, TailPolicy.PAD, first_samples=6)
    packetizer.feed(numbered(0, 15))
    assert [unit.pcm for unit in emitted(packetizer)] == [numbered(0, 6), numbered(6, 4), numbered(10, 4)]


@pytest.mark.parametrize(
    ("tail", "units", "padded", "rest"),
    [
        (TailPolicy.PAD, [Unit(numbered(0, 4)), Unit(numbered(4, 1) + bytes(6), 3)], 3, 0),
        (TailPolicy.FLUSH, [Unit(numbered(0, 4)), Unit(numbered(4, 1))], 0, 0),
        (TailPolicy.CARRY, [Unit(numbered(0, 4))], 0, 1),
    ],
)
def test_a_remainder_follows_the_tail_policy(
    tail: TailPolicy, units: list[Unit], padded: int, rest: int
) -> None:
    """(invariant 35)"""
    packetizer = Packetizer(4, tail)
    packetizer.feed(numbered(0, 5))
    packetizer.finish()
    assert emitted(packetizer) == units
    assert packetizer.padded_samples == padded
    assert packetizer.rest_samples == rest


@pytest.mark.parametrize("tail", TailPolicy)
def test_without_a_remainder_no_policy_adds_a_unit(tail: TailPolicy) -> None:
    packetizer = loaded(2, tail=tail)
    packetizer.finish()
    assert emitted(packetizer) == UNITS[:2]
    assert packetizer.padded_samples == 0


def test_a_carried_remainder_begins_the_next_input() -> None:
    packetizer = Packetizer(4, TailPolicy.CARRY)
    packetizer.feed(numbered(0, 3))
    packetizer.finish()
    packetizer.feed(numbered(3, 1))
    assert emitted(packetizer) == UNITS[:1]


def test_nothing_is_emitted_while_emission_is_off_and_nothing_is_lost() -> None:
    """(invariant 39)"""
    packetizer = loaded(1)
    packetizer.allow_emit = False
    packetizer.feed(numbered(4, 4))
    assert packetizer.reserve() is None
    assert packetizer.ready_units == 2
    packetizer.allow_emit = True
    assert emitted(packetizer) == UNITS[:2]


def test_rollback_restores_this_and_all_later_ones_in_order() -> None:
    """(invariants 24, 25)"""
    packetizer = loaded(5)
    taken = reserved(packetizer, 4)
    packetizer.rollback(taken[1])
    assert emitted(packetizer) == UNITS[1:5]


def test_rollback_does_not_restore_committed_ones() -> None:
    """(invariant 25)"""
    packetizer = loaded(5)
    taken = reserved(packetizer, 4)
    packetizer.commit(taken[0])
    packetizer.commit(taken[2])
    packetizer.rollback(taken[1])
    assert emitted(packetizer) == [UNITS[1], UNITS[3], UNITS[4]]


def test_a_reservation_is_given_back_exactly_once() -> None:
    """(invariant 24)"""
    packetizer = loaded(3)
    first, second = reserved(packetizer, 2)
    packetizer.rollback(first)
    packetizer.rollback(second)
    packetizer.commit(second)
    packetizer.rollback(first)
    assert emitted(packetizer) == UNITS[:3]


def test_clear_makes_reservations_harmless() -> None:
    """(invariant 26)"""
    packetizer = loaded(3)
    packetizer.feed(numbered(90, 1))
    first, second = reserved(packetizer, 2)
    packetizer.clear()
    packetizer.rollback(first)
    packetizer.commit(second)
    packetizer.feed(numbered(0, 4))
    assert emitted(packetizer) == UNITS[:1]


def test_half_a_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="inside a sample"):
        Packetizer(4, TailPolicy.PAD).feed(b"\x00")


class PacketizerModel(RuleBasedStateMachine):
    """``unused`` holds all samples in order, ``lengths`` says how the complete units divide them."""

    reservations = Bundle("reservations")

    @initialize(tail=st.sampled_from(TailPolicy), first=st.sampled_from([None, 1, 7]))
    def start(self, tail: TailPolicy, first: int | None) -> None:
        self.packetizer = Packetizer(4, tail, first_samples=first)
        self.tail = tail
        self.next_length = first or 4
        self.made = 0
        self.padded = 0
        self.unused: list[int] = []
        self.lengths: list[int] = []
        self.out: dict[Reservation, list[int]] = {}

    def _cut(self, length: int) -> None:
        self.lengths.append(length)
        self.next_length = 4

    def _rest(self) -> int:
        return len(self.unused) - sum(self.lengths)

    @rule(count=st.integers(0, 11))
    def feed(self, count: int) -> None:
        self.packetizer.feed(numbered(self.made, count))
        self.unused += range(self.made, self.made + count)
        self.made += count
        while self._rest() >= self.next_length:
            self._cut(self.next_length)

    @rule()
    def finish(self) -> None:
        self.packetizer.finish()
        rest = self._rest()
        if rest and self.tail is not TailPolicy.CARRY:
            if self.tail is TailPolicy.PAD:
                self.padded += self.next_length - rest
            self._cut(rest)

    @rule(allowed=st.booleans())
    def gate(self, allowed: bool) -> None:
        self.packetizer.allow_emit = allowed

    @rule(target=reservations)
    def reserve(self) -> Reservation | None:
        reservation = self.packetizer.reserve()
        assert (reservation is not None) == (self.packetizer.allow_emit and bool(self.lengths))
        if reservation:
            length = self.lengths.pop(0)
            samples, self.unused = self.unused[:length], self.unused[length:]
            unit = reservation.unit
            padding = bytes(2 * unit.padded_samples)
            assert unit.pcm == b"".join(numbered(sample, 1) for sample in samples) + padding
            self.out[reservation] = samples
        return reservation

    @rule(reservation=reservations)
    def commit(self, reservation: Reservation | None) -> None:
        if reservation:
            self.packetizer.commit(reservation)
            self.out.pop(reservation, None)

    @rule(reservation=reservations)
    def rollback(self, reservation: Reservation | None) -> None:
        if reservation is None:
            return
        self.packetizer.rollback(reservation)
        if reservation in self.out:
            order = list(self.out)
            back = [self.out.pop(later) for later in order[order.index(reservation) :]]
            self.unused = [sample for samples in back for sample in samples] + self.unused
            self.lengths = [len(samples) for samples in back] + self.lengths

    @rule()
    def clear(self) -> None:
        self.packetizer.clear()
        self.unused, self.lengths, self.out = [], [], {}

    @invariant()
    def agree(self) -> None:
        assert self.packetizer.ready_units == len(self.lengths)
        assert self.packetizer.rest_samples == self._rest()
        assert self.packetizer.padded_samples == self.padded


TestPacketizerModel = PacketizerModel.TestCase
