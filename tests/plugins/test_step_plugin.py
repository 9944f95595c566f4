"""The plugin around a stepped model."""

from __future__ import annotations

import pytest

from counterpoint.errors import PluginError
from counterpoint.plugins.contract import Capabilities, Interaction, ModelPlugin
from counterpoint.plugins.step_plugin import StepPlugin
from counterpoint.protocol.config import SessionConfig

from .step_models import Outlet, Tally

FRAMES = Capabilities(Interaction.FRAME, step_samples=1280, max_sessions=4)


def test_it_is_a_plugin() -> None:
    assert isinstance(StepPlugin(FRAMES, Tally), ModelPlugin)


@pytest.mark.parametrize(
    "capabilities",
    [Capabilities(Interaction.TURN, max_sessions=1), Capabilities(Interaction.FRAME, step_samples=1280)],
)
def test_what_is_no_stepped_model_is_refused_at_once(capabilities: Capabilities) -> None:
    with pytest.raises(ValueError, match="step_samples"):
        StepPlugin(capabilities, Tally)


async def test_it_loads_steps_and_stops_on_a_thread() -> None:
    model = Tally()
    plugin = StepPlugin(FRAMES, lambda: model)
    with pytest.raises(PluginError):
        plugin.create_session("early")
    assert not plugin.load().healthy
    await plugin.start()
    session = plugin.create_session("s")
    await session.open(SessionConfig(), Outlet())
    assert plugin.load().sessions == 1
    assert plugin.load().slots == 4
    await session.close()
    assert plugin.load().sessions == 0
    await plugin.stop()
    await plugin.stop()
    assert model.calls == ["warm_up", "reset 0", "release 0"]


async def test_fewer_slots_than_promised_do_not_start() -> None:
    plugin = StepPlugin(FRAMES, lambda: Tally(batch_size=3))
    with pytest.raises(PluginError, match="3 slots"):
        await plugin.start()


async def test_a_model_that_cannot_be_loaded_leaves_no_thread() -> None:
    def load() -> Tally:
        raise RuntimeError("no weights")

    with pytest.raises(RuntimeError, match="no weights"):
        await StepPlugin(FRAMES, load).start()
