"""Input for a model that lives in steps: one unit of audio for each unit of its time.

Owns: the model's input rate, cutting into units, step numbers, silence while the client sends nothing.
Does not own: what the model says (``native``), finding speech (``hearing``), batching (the model side).
Here because: such a model stands still when it is not fed, so a client that is silent must not stop it.

Late is not silent: after an append the next one has the append's own length and ``JITTER_S`` to arrive. Then
units of silence follow on a chain of deadlines that does not drift, whatever the wake-ups (invariant 62).
"""

from __future__ import annotations

from typing import Final

from counterpoint.audio.packetizer import Packetizer, TailPolicy
from counterpoint.audio.resample import StreamingResampler
from counterpoint.plugins.contract import StepDone, StepInput, StepKind
from counterpoint.protocol.audio import SESSION_RATE

from .effects import Push
from .out import Out
from .state import ModelSide, RunState

_SAMPLE_BYTES = 2

#: What the way from a microphone to here may add to the time between two appends.
JITTER_S: Final = 0.25


class Steps:
    """At work in sessions of native models."""

    def __init__(self, state: RunState, out: Out) -> None:
        model = state.capabilities
        self._state = state
        self._out = out
        self._unit = model.step_samples
        self._period = model.step_samples / model.input_rate
        self._resampler = StreamingResampler(SESSION_RATE, model.input_rate)
        self._packetizer = Packetizer(model.step_samples, TailPolicy.PAD)
        self._images: tuple[str, ...] = ()
        self._last_step = 0
        #: The unit of silence that the model has not stepped yet; there is at most one (invariant 66).
        self._silent_step: int | None = None
        #: When the client counts as silent, or the next unit of its silence is due.
        self._due: float | None = None

    # ------------------------------------------------------------------ what the client sends

    def feed(self, pcm: bytes, images: tuple[str, ...] = ()) -> None:
        """Audio at the session's rate; ``images`` go with the unit that it completes."""
        self._images += images
        self._packetizer.feed(self._resampler.process(pcm))
        self._push_units()
        self._expect(len(pcm) / _SAMPLE_BYTES / SESSION_RATE)

    def clear(self) -> None:
        """What is no whole unit yet is not heard."""
        self._resampler.flush()
        self._packetizer.clear()
        self._images = ()

    # ------------------------------------------------------------------ what the client does not send

    def resume_clock(self) -> None:
        """The model opened, or the client is back: it has had no time to speak yet."""
        self._expect(0.0)

    def retell(self, text: str) -> None:
        """Another model side takes over: its first step is to read what was said until now."""
        self._silent_step = None
        self._push(StepKind.PREFILL, b"", 0, text)

    def stepped(self, receipt: StepDone) -> None:
        if receipt.step == self._silent_step:
            self._silent_step = None

    def deadline(self) -> float | None:
        is_heard = self._state.attached and self._state.model is not ModelSide.OPENING
        return self._due if is_heard else None

    def expire(self) -> None:
        due, now = self.deadline(), self._state.now
        if due is None or due > now:
            return
        # More than a period late, one unit makes up for all (invariant 63).
        self._due = due + self._period if due + self._period > now else now + self._period
        if self._silent_step is None:
            self._be_silent()

    def _expect(self, seconds: float) -> None:
        self._due = self._state.now + seconds + JITTER_S

    def _be_silent(self) -> None:
        """A unit that was begun is completed with silence, else all of it is silence."""
        self._packetizer.feed(self._resampler.flush())
        self._packetizer.finish()
        if self._packetizer.ready_units:
            self._push_units()
        else:
            self._push(StepKind.SILENCE, bytes(self._unit * _SAMPLE_BYTES), 0)
        self._silent_step = self._last_step

    # ------------------------------------------------------------------ steps

    def _push_units(self) -> None:
        while (reservation := self._packetizer.reserve()) is not None:
            unit = reservation.unit
            self._push(StepKind.USER, unit.pcm, self._unit - unit.padded_samples)
            self._packetizer.commit(reservation)

    def _push(self, kind: StepKind, audio: bytes, real_samples: int, text: str = "") -> None:
        self._last_step += 1
        images, self._images = self._images, ()
        step = StepInput(
            self._state.fence(),
            0,
            audio,
            kind=kind,
            step=self._last_step,
            real_samples=real_samples,
            text=text,
            images=images,
        )
        self._out.do(Push(step))
