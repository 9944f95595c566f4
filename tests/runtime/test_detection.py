"""Detection: in order, batched over sessions, one thread whatever the number of sessions (case C-20)."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from counterpoint.runtime.detection import SLICE_BYTES, DetectionService
from counterpoint.session.inputs import Detected, Input, TurnChecked

FRAME = 768 * 2


class CountingDetector:
    """Says how many bytes of its session it has seen; a state shared by mistake would show at once."""

    name = "counting"

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.threads: set[str] = set()
        self.longest = 0
        self.gate = threading.Event()
        self.gate.set()

    def new_state(self) -> list[int]:
        return [0]

    def probabilities(self, chunks: Sequence[tuple[Any, bytes]]) -> list[list[float]]:
        self.gate.wait(5)
        self.batches.append(len(chunks))
        self.threads.add(threading.current_thread().name)
        found = []
        for state, pcm in chunks:
            self.longest = max(self.longest, len(pcm))
            state[0] += len(pcm)
            found.append([float(state[0])])
        return found


class Yes:
    def probability(self, pcm: bytes) -> float:
        return 0.75


class Broken:
    name = "broken"

    def new_state(self) -> None:
        return None

    def probabilities(self, chunks: Sequence[tuple[Any, bytes]]) -> list[list[float]]:
        raise RuntimeError("no")


async def until(condition: Any) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - answers come from threads
            await asyncio.sleep(0.001)


async def test_sessions_share_batches_and_keep_their_own_order_and_state() -> None:
    detector = CountingDetector()
    service = DetectionService([detector])
    results: dict[int, list[Input]] = {n: [] for n in range(10)}
    sessions = [service.session(results[n].append) for n in range(10)]
    detector.gate.clear()
    for chunk in range(5):
        for number, session in enumerate(sessions):
            session.detect(chunk, bytes(FRAME * (number + 1)))
    detector.gate.set()
    await until(lambda: all(len(found) == 5 for found in results.values()))
    for number, found in results.items():
        size = FRAME * (number + 1)
        assert found == [Detected(chunk, (float(size * (chunk + 1)),)) for chunk in range(5)]
    assert max(detector.batches) > 1
    assert len(detector.threads) == 1
    service.close()


async def test_a_long_chunk_is_detected_in_slices_and_answered_once() -> None:
    detector = CountingDetector()
    service = DetectionService([detector])
    found: list[Input] = []
    service.session(found.append).detect(0, bytes(SLICE_BYTES * 3 + FRAME))
    await until(lambda: found)
    assert detector.longest == SLICE_BYTES
    (answer,) = found
    assert isinstance(answer, Detected)
    assert len(answer.probabilities) == 4
    service.close()


async def test_the_builtin_detectors_answer_in_the_same_step() -> None:
    service = DetectionService()
    found: list[Input] = []
    session = service.session(found.append)
    session.use("amp")
    session.detect(7, bytes(FRAME))
    assert found == [Detected(7, (0.0,))]
    assert service.default == "energy"
    service.close()


async def test_nothing_reaches_a_session_that_closed() -> None:
    detector = CountingDetector()
    service = DetectionService([detector, Yes()])
    found: list[Input] = []
    session = service.session(found.append)
    detector.gate.clear()
    session.detect(0, bytes(FRAME))
    session.check_turn(1, bytes(FRAME))
    session.close()
    detector.gate.set()
    await until(lambda: detector.batches)
    await asyncio.sleep(0.05)
    assert found == []
    service.close()


async def test_the_turn_model_is_asked_off_the_loop_and_without_one_a_turn_may_end() -> None:
    found: list[Input] = []
    with_model = DetectionService([Yes()])
    with_model.session(found.append).check_turn(1, bytes(FRAME))
    await until(lambda: found)
    without = DetectionService()
    without.session(found.append).check_turn(2, bytes(FRAME))
    assert found == [TurnChecked(1, 0.75), TurnChecked(2, 1.0)]
    with_model.close()
    without.close()


@pytest.mark.logs_traceback
async def test_a_detector_that_fails_is_silence_and_stops_nobody() -> None:
    service = DetectionService([Broken()])
    found: list[Input] = []
    session = service.session(found.append)
    session.detect(0, bytes(FRAME))
    session.detect(1, bytes(FRAME))
    await until(lambda: len(found) == 2)
    assert found == [Detected(0, ()), Detected(1, ())]
    service.close()
