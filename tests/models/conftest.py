"""The engines of the embedded voice, loaded once for all tests that use them.

Owns: that one copy.
Does not own: skipping. Where the packages are missing, loading fails and says how to install them.
Here because: loading takes seconds and the product has one copy per process, too.
"""

from __future__ import annotations

import gc

import pytest

from counterpoint.models.voice.engines import VoiceEngines


@pytest.fixture(scope="session")
def engines() -> VoiceEngines:
    loaded = VoiceEngines.load()
    loaded.warm_up()
    # The dictionaries are large and stay: the collection after each test need not look at them.
    gc.collect()
    gc.freeze()
    return loaded
