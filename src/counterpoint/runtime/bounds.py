"""The sections of the configuration that sessions live by, in one value.

Owns: ``Bounds``.
Does not own: the numbers (``counterpoint.limits``), their sources (``serving.settings``).
Here because: manager and sessions need the same four sections, and no settings.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from counterpoint.limits import JournalLimits, LeaseLimits, Limits, TransportLimits


@dataclass(frozen=True, slots=True)
class Bounds:
    limits: Limits = field(default_factory=Limits)
    lease: LeaseLimits = field(default_factory=LeaseLimits)
    journal: JournalLimits = field(default_factory=JournalLimits)
    transport: TransportLimits = field(default_factory=TransportLimits)
