"""What can be said of the page's files without a browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import counterpoint.serving.routes as routes

MODULES = sorted(routes.PAGE.glob("*.js"))
HTML = (routes.PAGE / "index.html").read_text()


@pytest.mark.parametrize("module", MODULES, ids=lambda file: file.name)
def test_a_module_says_what_it_owns_what_not_and_why_it_is_there(module: Path) -> None:
    comment = module.read_text().partition("*/")[0]
    assert comment.startswith("/**")
    missing = [part for part in (" Owns: ", " Does not own: ", " Here because: ") if part not in comment]
    assert missing == []


@pytest.mark.parametrize("module", MODULES, ids=lambda file: file.name)
def test_a_module_is_short_and_imports_what_is_there(module: Path) -> None:
    text = module.read_text()
    assert len(text.splitlines()) <= 400
    assert max(map(len, text.splitlines())) <= 120
    for name in re.findall(r'(?:from |new URL\()"\.?/?([\w.-]+\.js)"', text):
        assert (routes.PAGE / name).is_file()


def test_every_element_that_is_asked_for_is_on_the_page() -> None:
    asked = set(re.findall(r'element\("([\w-]+)"\)', (routes.PAGE / "main.js").read_text()))
    on_the_page = re.findall(r'\bid="([\w-]+)"', HTML)
    assert asked - set(on_the_page) == set()
    assert len(on_the_page) == len(set(on_the_page))


def test_nothing_is_inline_and_nothing_comes_from_elsewhere() -> None:
    """The page keeps to its own content security policy."""
    assert "default-src 'self'" in HTML
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", HTML)
    assert all(path.startswith("/page/") for path in re.findall(r'(?:src|href)="([^"#][^"]*)"', HTML))
    assert not re.search(r"url\(|@import", (routes.PAGE / "page.css").read_text())
