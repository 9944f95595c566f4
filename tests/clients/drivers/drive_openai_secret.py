"""The ``openai`` package: a client secret over HTTP, and a session opened with it; a JSON object a line.

Owns: asking for a secret as a server does for its browsers, connecting as a browser does.
Does not own: what must be seen (``test_openai_environment``).
Here because: it runs in the package's own environment, where nothing of this project is installed.
"""

from __future__ import annotations

import json
import sys

from openai import AuthenticationError, OpenAI


def saw(what: str, value: str) -> None:
    print(json.dumps({"saw": what, "value": value}), flush=True)


def secret(http: str, key: str) -> str:
    with OpenAI(api_key=key, base_url=http) as client:
        fixed = {"type": "realtime", "model": "gpt-realtime", "instructions": "Sell nothing."}
        return client.realtime.client_secrets.create(session=fixed).value  # type: ignore[arg-type]


def refused(http: str) -> str:
    try:
        return secret(http, "sk-unknown")
    except AuthenticationError as error:
        return str(error.code)


def main(url: str, key: str) -> None:
    base = url.removesuffix("/realtime")
    http = base.replace("ws", "http", 1)
    saw("refused", refused(http))
    with (
        OpenAI(api_key=secret(http, key), websocket_base_url=base) as client,
        client.realtime.connect(model="gpt-realtime") as connection,
    ):
        connection.session.update(session={"type": "realtime", "instructions": "Sell everything."})
        for event in connection:
            if event.type == "session.updated":
                saw("instructions", str(getattr(event.session, "instructions", None)))
                break


main(*sys.argv[1:])
