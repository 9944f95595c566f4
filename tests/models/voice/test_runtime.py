"""How ONNX models run: the options that keep one engine from starving the others."""

import pytest

from counterpoint.models.voice.files import find_files
from counterpoint.models.voice.runtime import load_onnx


@pytest.mark.voice
def test_one_thread_that_does_not_spin() -> None:
    options = load_onnx(find_files().vad).get_session_options()  # type: ignore[attr-defined]
    assert options.intra_op_num_threads == 1
    assert options.inter_op_num_threads == 1
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
