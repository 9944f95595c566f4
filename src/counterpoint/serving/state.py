"""What the server holds right now, for tests and for a look at a running one.

Owns: the shape of ``GET /debug/state`` (wire contract, section 12).
Does not own: any of the numbers.
Here because: leaks are found by counting from outside.
"""

from __future__ import annotations

import asyncio
from typing import Any

from counterpoint.runtime.live import LiveSession
from counterpoint.runtime.manager import SessionManager


def debug_state(manager: SessionManager) -> dict[str, Any]:
    slots = manager.slots
    return {
        "slots": {"max": slots.max_sessions, "used": slots.used, "closing": slots.closing},
        "loop_lag_ms": round(manager.loop_lag.recent_s * 1000, 3),
        "tasks": len(asyncio.all_tasks()),
        "sessions": [_session_state(live) for live in manager.sessions],
        "plugin_log": list(getattr(manager.plugin, "call_log", ())),
    }


def _session_state(live: LiveSession) -> dict[str, Any]:
    return {
        "id": live.id,
        "attached": live.attached,
        "generation": live.attachments.generation,
        "lease_generation": live.lease.generation,
        "epoch": live.machine.epoch,
        "pending_bytes": live.log.pending_bytes,
        "journal_bytes": live.log.journal_bytes,
        "input_bytes": live.runner.input_bytes,
        "tasks": len(live.tasks) + len(live.runner.tasks),
    }
