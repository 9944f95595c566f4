"""Cuts a model's input into its units, and takes back what could not be used.

Owns: the order of units, what is reserved, the remainder and what becomes of it (invariants 23-26, 34-39).
Does not own: budgets, fences and sequence numbers of an append (``session``), the rate (``resample``).
Here because: a unit is handed out before it is known whether its append succeeds. A reservation makes
that safe: it is committed or rolled back exactly once, and a rollback restores the order.
"""

from __future__ import annotations

import enum
from collections import deque
from dataclasses import dataclass

_SAMPLE_BYTES = 2


class TailPolicy(enum.Enum):
    """What becomes of a remainder shorter than a unit when the input is committed."""

    PAD = "pad"  #: filled up with silence
    FLUSH = "flush"  #: handed out as it is, a short unit
    CARRY = "carry"  #: kept for the next input


@dataclass(frozen=True, slots=True)
class Unit:
    """One model step's worth of int16 PCM, of which the last ``padded_samples`` are not the user's."""

    pcm: bytes
    padded_samples: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Reservation:
    """A unit taken from the packetizer for an append. Give it back by ``commit`` or ``rollback``."""

    unit: Unit


class Packetizer:
    """Mono int16 PCM in, units of ``unit_samples`` out.

    ``first_samples`` is the length of the very first unit where a model wants another (invariant 38).
    ``allow_emit`` false keeps everything until it is true again, in order (invariant 39).
    """

    def __init__(self, unit_samples: int, tail: TailPolicy, *, first_samples: int | None = None) -> None:
        self._unit_bytes = unit_samples * _SAMPLE_BYTES
        self._next_bytes = (first_samples or unit_samples) * _SAMPLE_BYTES
        self._tail = tail
        self.allow_emit = True
        #: Silence added so far; never part of what the user said (invariant 35).
        self.padded_samples = 0
        self._units: deque[Unit] = deque()
        self._rest = bytearray()
        #: Neither committed nor rolled back, oldest first.
        self._reserved: list[Reservation] = []

    @property
    def ready_units(self) -> int:
        """Units that are complete and not reserved, whether or not they may be emitted now."""
        return len(self._units)

    @property
    def rest_samples(self) -> int:
        """Samples of the unit that is not complete yet."""
        return len(self._rest) // _SAMPLE_BYTES

    def feed(self, pcm: bytes) -> None:
        """Adds whole samples, else ValueError."""
        if len(pcm) % _SAMPLE_BYTES:
            raise ValueError("model input ends inside a sample")
        self._rest += pcm
        while len(self._rest) >= self._next_bytes:
            self._cut(padded_samples=0)

    def finish(self) -> None:
        """The input was committed: the remainder, if any, follows the tail policy."""
        missing = self._next_bytes - len(self._rest)
        if not self._rest or self._tail is TailPolicy.CARRY:
            return
        if self._tail is TailPolicy.FLUSH:
            self._cut(padded_samples=0)
            return
        self._rest += bytes(missing)
        self.padded_samples += missing // _SAMPLE_BYTES
        self._cut(padded_samples=missing // _SAMPLE_BYTES)

    def _cut(self, padded_samples: int) -> None:
        self._units.append(Unit(bytes(self._rest[: self._next_bytes]), padded_samples))
        del self._rest[: self._next_bytes]
        self._next_bytes = self._unit_bytes

    def reserve(self) -> Reservation | None:
        """The oldest unit, or None: not complete yet, or not to be emitted now."""
        if not self.allow_emit or not self._units:
            return None
        reservation = Reservation(self._units.popleft())
        self._reserved.append(reservation)
        return reservation

    def commit(self, reservation: Reservation) -> None:
        """The unit was used. Does nothing for one that was rolled back or cleared."""
        if reservation in self._reserved:
            self._reserved.remove(reservation)

    def rollback(self, reservation: Reservation) -> None:
        """Puts back this unit and all reserved after it, in order; committed ones stay used (invariant 25).

        Does nothing for one that was committed, rolled back or cleared.
        """
        if reservation not in self._reserved:
            return
        first = self._reserved.index(reservation)
        self._units.extendleft(taken.unit for taken in reversed(self._reserved[first:]))
        del self._reserved[first:]

    def clear(self) -> None:
        """Drops everything not committed; reservations still out become harmless (invariant 26)."""
        self._units.clear()
        self._rest.clear()
        self._reserved.clear()
