"""Client secrets: what may be asked of them, how long they are good, and what is kept of them."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from counterpoint.errors import ProtocolError
from counterpoint.serving.client_secrets import (
    MOST_SECRETS,
    ClientSecrets,
    SecretRequest,
    read_secret_request,
)


def test_nothing_need_be_asked_for() -> None:
    assert read_secret_request("") == read_secret_request("{}") == SecretRequest()
    assert SecretRequest().seconds == 600


def test_everything_that_may_be_asked_for() -> None:
    asked = read_secret_request(
        json.dumps(
            {
                "expires_after": {"anchor": "created_at", "seconds": 7200},
                "session": {"type": "realtime", "instructions": "sell nothing"},
                "limits": {"max_minutes": 2.5, "max_sessions": 1},
            }
        )
    )
    assert asked.session == {"type": "realtime", "instructions": "sell nothing"}
    assert (asked.seconds, asked.limits) == (7200, {"max_minutes": 2.5, "max_sessions": 1})


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ("{", None),
        ("[]", None),
        ({"expires_after": {"seconds": 9}}, "expires_after.seconds"),
        ({"expires_after": {"seconds": 7201}}, "expires_after.seconds"),
        ({"expires_after": {"anchor": "yesterday"}}, "expires_after.anchor"),
        ({"expires_after": 60}, "expires_after"),
        ({"session": []}, "session"),
        ({"limits": {"max_sessions": 0}}, "limits.max_sessions"),
        ({"limits": {"max_minutes": "many"}}, "limits.max_minutes"),
    ],
)
def test_a_mistake_is_named(body: Any, param: str | None) -> None:
    with pytest.raises(ProtocolError) as refused:
        read_secret_request(body if isinstance(body, str) else json.dumps(body))
    assert refused.value.param == param


def test_a_secret_is_good_for_its_time_and_known_after_it() -> None:
    secrets = ClientSecrets(os.urandom)
    value, secret = secrets.issue("shop", SecretRequest(seconds=10), now=1000.0)
    assert value.startswith("ek_")
    assert len(value) == len("ek_") + 48
    assert secrets.find(value) is secret
    assert secrets.find(value + "0") is None
    assert (secret.is_expired(1009.9), secret.is_expired(1010.0)) == (False, True)
    assert value not in repr(secret)


def test_secrets_are_forgotten_when_nobody_needs_them_and_when_there_are_too_many() -> None:
    secrets = ClientSecrets(os.urandom)
    values = [secrets.issue(f"key {i % 2}", SecretRequest(), now=0.0)[0] for i in range(MOST_SECRETS + 2)]
    assert len(secrets) == MOST_SECRETS
    assert secrets.find(values[1]) is None
    assert secrets.find(values[2]) is not None
    secrets.forget(lambda secret: secret.key == "key 0")
    assert len(secrets) == MOST_SECRETS // 2
