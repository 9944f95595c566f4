"""How the ONNX engines run: one thread each, quiet, one shared session per model.

Owns: the session options and the typed face of the runtime that the engines call.
Does not own: what the models take and give (each engine).
Here because: four engines share two cores, and the defaults of the runtime take all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from numpy.typing import NDArray

#: Numbers of the runtime's own severity scale: errors and worse.
_LOG_ERRORS_ONLY = 3


class OnnxSession(Protocol):
    """A loaded model. Several threads may call ``run`` at once: nothing is kept between runs."""

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, NDArray[Any]]
    ) -> list[NDArray[Any]]: ...


def load_onnx(path: Path) -> OnnxSession:
    """Load ``path`` for single-threaded use.

    A second thread per model gains little on models this small, and threads that spin while they
    wait starve the other engines of a small machine. The memory arena is off because it keeps the
    largest clip's buffers for ever.
    """
    onnxruntime = import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _LOG_ERRORS_ONLY
    options.enable_cpu_mem_arena = False
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return cast(OnnxSession, session)
