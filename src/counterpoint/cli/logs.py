"""The log of a server process: one line per event on standard error, without secrets.

Owns: how log lines look, where they go, and that no key or token is in one.
Does not own: what is logged (each layer).
Here because: logging belongs to a process; a program that embeds the server has a log of its own.
"""

from __future__ import annotations

import logging
import re
import sys

import structlog
from structlog.typing import EventDict, WrappedLogger

REDACTED = "[redacted]"

#: Fields that hold a secret, whatever it looks like.
_SECRET_FIELDS = re.compile(r"(token|secret|password|authorization|api[-_]?key)$", re.IGNORECASE)

#: What a secret follows in a text, and the secret itself up to where it ends.
_SECRETS_IN_TEXT = re.compile(
    r"""
    (
      Bearer\s+ | openai-insecure-api-key\. | \bek_ | \bsk-           # headers and subprotocols
    | \b(?:resume_token|x-resume-token|api[-_]?key)["']?\s*[=:]\s*["']?  # queries, headers, JSON
    | (?<=://)[^\s/@:]*:(?=[^\s/@]+@)                                # user:password of an address
    )
    [^\s&"',;@]+
    """,
    re.IGNORECASE | re.VERBOSE,
)


def log_to_standard_error(level: int = logging.INFO) -> None:
    """Send what every library and layer logs to standard error, as lines of ``key=value``."""
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                _redact,
                _line,
            ],
        )
    )
    logging.basicConfig(level=level, handlers=[handler], force=True)


def _redact(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    for key, value in event.items():
        if _SECRET_FIELDS.search(key):
            event[key] = REDACTED
        elif not isinstance(value, int | float | None):
            event[key] = _SECRETS_IN_TEXT.sub(rf"\1{REDACTED}", str(value))
    return event


def _line(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    """``TIME LEVEL event key=value ...``, and a traceback below it."""
    head = f"{event.pop('timestamp')} {event.pop('level'):<8}{event.pop('event')}"
    traceback = event.pop("exception", None)
    line = " ".join([head, *(f"{key}={value}" for key, value in event.items())])
    return f"{line}\n{traceback}" if traceback else line
