"""Every block of code in the documentation runs, or is of a kind that has nothing to run."""

import pytest

from doc_blocks import COMMAND_LINE, KINDS, ROOT, PageRun, blocks_of, indented_commands, pages

PAGES = {str(page.relative_to(ROOT)): blocks_of(page) for page in pages()}
SLOW_PAGES = ("docs/index.md", "docs/concepts/reading.md")  # whole fits with the defaults of the command
RUN = [name for name, blocks in PAGES.items() if any(block.kind != "text" and not block.slow for block in blocks)]
RUN = [name for name in RUN if name not in SLOW_PAGES]
SLOW = [name for name, blocks in PAGES.items() if name in SLOW_PAGES or any(block.slow for block in blocks)]


@pytest.mark.parametrize("name", RUN)
@pytest.mark.usefixtures("unchecked", "own_kinds")
def test_blocks_of_a_page_run_in_order(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = PageRun(tmp_path)
    for block in PAGES[name]:
        if not block.slow:
            page.run(block)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
@pytest.mark.usefixtures("unchecked", "own_kinds")
def test_slow_blocks_of_a_page_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = PageRun(tmp_path)
    for block in PAGES[name]:
        page.run(block)


def test_no_block_is_of_another_kind():
    others = [
        f"{block}: {block.kind or 'no language'}"
        for blocks in PAGES.values()
        for block in blocks
        if block.kind not in KINDS
    ]
    assert not others, "a block is one of " + ", ".join(KINDS) + ": " + "; ".join(others)


def test_text_holds_no_command():
    found = [
        str(block)
        for blocks in PAGES.values()
        for block in blocks
        if block.kind == "text" and block.tested_in is None
        for line in block.text.splitlines()
        if COMMAND_LINE.match(line)
    ]
    assert not found, f"commands belong into console blocks, which are run: {found}"


def test_indented_blocks_hold_no_command():
    found = [place for page in pages() for place in indented_commands(page)]
    assert not found, f"commands belong into console blocks, which are run: {found}"


def test_tests_that_are_named_instead_exist():
    named = [block for blocks in PAGES.values() for block in blocks if block.tested_in]
    missing = [f"{block}: {block.tested_in}" for block in named if not (ROOT / block.tested_in).is_file()]
    assert named
    assert not missing
