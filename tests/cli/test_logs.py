"""The log goes to standard error, and no secret goes with it (wire contract, section 1)."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import structlog

from counterpoint.cli.logs import REDACTED, log_to_standard_error

SECRET = "5f2Qx-9_zz"


@pytest.fixture(autouse=True)
def logging_restored() -> Iterator[None]:
    root, configuration = logging.getLogger(), structlog.get_config()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.configure(**configuration)


def logged(capsys: pytest.CaptureFixture[str], event: str, **fields: object) -> str:
    log_to_standard_error()
    structlog.get_logger("counterpoint.test").warning(event, **fields)
    out, err = capsys.readouterr()
    assert out == ""
    return err


def test_an_event_is_one_line_with_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    time, line = logged(capsys, "draining", session="sess_1", deadline_s=30.0).split(" ", 1)
    assert line == "warning draining session=sess_1 deadline_s=30.0\n"
    assert time.endswith("Z")


def test_libraries_write_to_the_same_log(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_standard_error()
    logging.getLogger("some.library").info("listening on %s", "x")
    logging.getLogger("some.library").debug("too much")
    assert capsys.readouterr().err.endswith(" info    listening on x\n")


def test_a_traceback_follows_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    text = logged(capsys, "failed", exc_info=ValueError("Bearer " + SECRET))
    assert text.splitlines()[-1] == f"ValueError: Bearer {REDACTED}"


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {SECRET}",
        f"openai-insecure-api-key.{SECRET}",
        f"GET /v1/realtime?resume=sess_1&resume_token={SECRET}&duplex=1",
        f"{{'resume_token': '{SECRET}'}}",
        f'{{"resume_token":"{SECRET}"}}',
        f"api-key: {SECRET}",
        f"X-Resume-Token: {SECRET}",
        f"client secret ek_{SECRET}",
        f"redis://user:{SECRET}@host/0",
    ],
)
def test_secrets_in_text_are_redacted(capsys: pytest.CaptureFixture[str], text: str) -> None:
    for line in (logged(capsys, text), logged(capsys, "failed", about=text)):
        assert SECRET not in line
        assert REDACTED in line


def test_what_stands_beside_a_secret_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    line = logged(capsys, f"GET /v1/realtime?resume=sess_1&resume_token={SECRET}&duplex=1")
    assert line.endswith(f"?resume=sess_1&resume_token={REDACTED}&duplex=1\n")


@pytest.mark.parametrize("field", ["token", "resume_token", "Authorization", "api_key", "client_secret"])
def test_secret_fields_are_redacted(capsys: pytest.CaptureFixture[str], field: str) -> None:
    assert SECRET not in logged(capsys, "refused", **{field: SECRET})


def test_nothing_else_is_touched(capsys: pytest.CaptureFixture[str]) -> None:
    text = "task=week_1 http://127.0.0.1:8099/ a:b@c token missing"
    assert logged(capsys, text).endswith(f"warning {text}\n")
