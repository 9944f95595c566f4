"""A plugin around a stepped model.

Owns: ``StepPlugin``: loading and warming up on the thread that steps, sessions over slots, the load.
Does not own: the model (its author), slots (``slots``), what a session sends (``session``).
Here because: the author of a stepped model should write the model, and one line that says what it can do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from counterpoint.errors import PluginError
from counterpoint.protocol.config import SessionConfig

from .authoring import with_known_voice
from .contract import Capabilities, PluginLoad
from .slot_session import SlotSession
from .slots import SlotScheduler
from .step_model import StepModel
from .step_worker import StepWorker, ThreadWorker

#: Input of a session that waits for the model at most; what is older is dropped.
BACKLOG_S: Final = 2.0


class StepPlugin:
    """A ``ModelPlugin``. ``load`` returns the model; it is called on the thread that will step it.

    ``capabilities`` must be those of a stepped model, and say how many sessions it has slots for
    (``max_sessions``); else ValueError. ``worker`` makes the thread; tests in virtual time give another.
    """

    def __init__(
        self,
        capabilities: Capabilities,
        load: Callable[[], StepModel],
        *,
        worker: Callable[[], StepWorker] = ThreadWorker,
    ) -> None:
        if not capabilities.interaction.native or not capabilities.max_sessions:
            raise ValueError("a stepped model says its step_samples and its slots (max_sessions)")
        self._capabilities = capabilities
        self._slots = capabilities.max_sessions
        self._load = load
        self._make_worker = worker
        self._scheduler: SlotScheduler | None = None

    def capabilities(self) -> Capabilities:
        return self._capabilities

    def validate(self, config: SessionConfig, current: SessionConfig | None) -> SessionConfig:
        return with_known_voice(config, self._capabilities)

    async def start(self) -> None:
        """Returns when the model is loaded and warm; raises what ``load`` or ``warm_up`` raised."""
        worker = self._make_worker()
        try:
            model = await worker.run(self._load)
            if model.batch_size < self._slots:
                raise PluginError(f"{self._slots} sessions need more than {model.batch_size} slots")
        except BaseException:
            worker.close()
            raise
        period = self._capabilities.step_samples / self._capabilities.input_rate
        self._scheduler = SlotScheduler(model, worker, backlog=max(2, math.ceil(BACKLOG_S / period)))
        await self._scheduler.start()

    def create_session(self, session_id: str) -> SlotSession:
        if self._scheduler is None:
            raise PluginError("the model was not started")
        return SlotSession(session_id, self._scheduler)

    def load(self) -> PluginLoad:
        return (
            PluginLoad(slots=self._slots, healthy=False)
            if self._scheduler is None
            else self._scheduler.load()
        )

    async def stop(self) -> None:
        if self._scheduler is not None:
            await self._scheduler.stop()

    def detectors(self) -> Sequence[object]:
        return ()
