"""The one answer to a cancelled engine call."""

import pytest

from counterpoint.errors import StaleFence
from counterpoint.models.voice.cancellation import never, stop_if


def test_a_wanted_call_goes_on() -> None:
    stop_if(never)


def test_an_unwanted_call_raises() -> None:
    with pytest.raises(StaleFence):
        stop_if(lambda: True)
