"""The page's modules by themselves, with sockets, clock and audio thread of the tests' own.

Owns: running ``units/*.js`` inside the page: each is a function that loads modules and returns tests by name.
Does not own: what they test.
Here because: the modules are tested in the engine that runs them, and nothing else has to be installed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Browse, Server

pytestmark = pytest.mark.browser

UNITS = Path(__file__).parent / "units"
SUPPORT = (UNITS / "support.js").read_text()

RUN = """(async () => {
  %s
  const tests = await (%s)((name) => import(`/page/${name}`));
  const failures = [];
  for (const [name, test] of Object.entries(tests)) {
    try {
      await test();
    } catch (error) {
      failures.push(`${name}: ${error.stack}`);
    }
  }
  return { count: Object.keys(tests).length, failures };
})()"""


@pytest.mark.parametrize("name", sorted(file.stem for file in UNITS.glob("*.js") if file.stem != "support"))
async def test_unit(name: str, server: Server, browse: Browse) -> None:
    page = await browse()
    await page.load(server.page)
    result = await page.evaluate(RUN % (SUPPORT, (UNITS / f"{name}.js").read_text()))
    assert result["failures"] == []
    assert result["count"] > 0
