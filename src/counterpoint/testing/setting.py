"""The limits of one simulated server, small enough to be reached.

Owns: drawing them from the seed.
Does not own: what they mean (``counterpoint.limits``).
Here because: overflow, stalls and expiries must be as frequent in a short run as in a year of service.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from counterpoint.limits import KIB, JournalLimits, LeaseLimits, Limits, TransportLimits
from counterpoint.runtime.bounds import Bounds

from .lease_port import SwapPlan
from .operations import Dice


@dataclass(frozen=True, slots=True)
class Setting:
    """``slow_lease``: the swap of a lease suspends, as in a store. ``drains``: the run ends with a drain.
    ``path_bytes``: what is on its way to a client that does not read."""

    bounds: Bounds
    path_bytes: int
    slow_lease: bool
    drains: bool


def draw_setting(seed: int, clients: int) -> Setting:
    rng = random.Random(f"{seed}/setting")
    bounds = Bounds(
        limits=Limits(
            max_sessions=clients + 2 + rng.randrange(4),
            input_stall_ms=rng.choice((200, 1000)),
            max_pending_input_bytes=rng.choice((64, 512)) * KIB,
            max_pending_turns=rng.choice((1, 4)),
            max_pending_output_bytes=rng.choice((8, 32, 128)) * KIB,
            max_audio_lead_ms=rng.choice((0, 0, 100)),
            response_timeout_s=3.0,
            max_response_s=20.0,
            cleanup_timeout_s=1.0,
        ),
        lease=LeaseLimits(
            idle_ttl_s=rng.choice((0.0, 30.0)),
            disconnect_grace_s=rng.choice((2.0, 8.0)),
            reaper_interval_s=0.2,
        ),
        journal=JournalLimits(
            max_bytes=rng.choice((96, 512)) * KIB,
            max_events=rng.choice((0, 40, 200)),
            ttl_s=rng.choice((0.0, 6.0, 30.0)),
        ),
        transport=TransportLimits(
            handshake_timeout_s=2.0,
            ping_interval_s=2.0,
            ping_timeout_s=2.0,
            send_timeout_s=rng.choice((1.0, 4.0)),
            close_timeout_s=0.5,
        ),
    )
    return Setting(
        bounds,
        path_bytes=rng.choice((2, 32)) * KIB,
        slow_lease=rng.random() < 0.5,
        drains=rng.random() < 0.3,
    )


def draw_swap(dice: Dice) -> SwapPlan:
    """How long one swap of a lease takes, and whether the store is away."""
    delays = (0.0, 0.001, 0.05, 0.4)
    return SwapPlan(delays[dice.roll(4)], delays[dice.roll(4)], fails=dice.roll(8) == 0)
