"""The tools of the documentation: what compares outputs, runs blocks, draws formulas and rewrites docstrings."""

import importlib.util

import pytest

from doc_blocks import ROOT, Block, PageRun, blocks_of, differences


def load(name, folder="tools/site"):
    spec = importlib.util.spec_from_file_location(f"site_{name}", ROOT / folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SHOWN = "source  target  probability\ncreek   river  0.608\n...\nreport: ...page.html"


@pytest.mark.parametrize(
    ("said", "same"),
    [
        ("source target probability\ncreek river 0.608\nmore\nreport: runs/page.html", True),
        ("source target probability\ncreek river 0.62\nreport: page.html", True),
        ("source target probability\ncreek river 0.9\nreport: page.html", False),
        ("source target probability\ncreek lake 0.608\nreport: page.html", False),
        ("source target probability\ncreek river 0.608\nreport: other.html", False),
        ("source target probability\ncreek river 0.608\nreport: page.html and more", False),
        ("before source target probability\ncreek river 0.608\nreport: page.html", False),
        ("", False),
    ],
)
def test_outputs_are_compared(said, same):
    assert (differences(SHOWN, said) == "") == same


def test_small_numbers_are_compared_by_their_size():
    assert not differences("error 0.0040", "error 0.0042")
    assert differences("error 0.0040", "error 0.0090") == "0.0040 is shown, 0.0090 was printed"
    assert differences("12 edges", "13 edges")


def block(kind, text, title=None):
    return Block(ROOT / "README.md", 1, kind, title, text)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("python", ">>> 1 + 1\n3"),
        ("python", "raise AssertionError"),
        ("console", "$ tacit --version\ntacit 9.9.9"),
        ("console", "$ tacit fit nothing.csv"),
        ("console", "$ tacit --version\n$ echo $?\n2"),
        ("console", "$ make no-such-target"),
        ("console", "$ rm -r x"),
        ("console", "tacit --version"),
    ],
)
def test_a_wrong_block_fails(kind, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError):
        PageRun(tmp_path).run(block(kind, text))


def test_a_wrong_choice_fails(tmp_path):
    with pytest.raises(Exception, match="epoch"):
        PageRun(tmp_path).run(block("toml", "[training]\nepoch = 3"))


def test_titled_blocks_become_files(tmp_path):
    PageRun(tmp_path).run(block("csv", "a,b\n1,2", title="data/rows.csv"))
    assert (tmp_path / "data" / "rows.csv").read_text() == "a,b\n1,2\n"


def test_marks_and_titles_are_read(tmp_path):
    page = tmp_path / "page.md"
    page.write_text('<!-- slow -->\n```console\n$ x\n```\n\n```toml title="a.toml"\n[data]\n```\n')
    first, second = blocks_of(page)
    assert (first.slow, first.kind, second.slow, second.title, second.text) == (
        True,
        "console",
        False,
        "a.toml",
        "[data]",
    )


LISTED = 'rooms? => write "folder"\nhang together => write "correlated"\n[pages]\nprototype => no history\n'
MODULE_WITH_WORDS = '''
"""The room of a module."""
room = "room"  # a name and a key are not prose; these hang
# together
print(f"{room} in a ``room`` of {len(room)} Rooms")
'''


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("page.md", "A room.\n\n```python\nroom = 1\n```\n\nTwo `room`, [three](room.md)\nbedroom rooms", ["1", "8"]),
        ("page.md", "points that hang\ntogether, a Prototype", ["1", "2"]),
        ("page.md", "::: tacit.room\n    options:\n        members:\n        - room\n\nroom", ["6"]),
        ("module.py", MODULE_WITH_WORDS, ["2", "3", "5"]),
        ("script.js", "const room = `a ${room}`; // the room\n/* prototype */ say('room')", ["1", "2"]),
        ("page.html", "<p>{{ title }} room</p>", ["1"]),
    ],
)
def test_banned_phrases_are_found_in_prose_alone(name, text, found, tmp_path):
    words = load("check_words", "tools")
    (tmp_path / name).write_text(text)
    phrases = words.read_phrases(LISTED, pages=name == "page.md")
    assert [line.split(":")[1] for line in words.hits(tmp_path / name, phrases, name)] == found


def test_a_hit_names_file_line_phrase_and_replacement(tmp_path):
    words = load("check_words", "tools")
    (tmp_path / "a.md").write_text("Points that Hang\ntogether")
    (line,) = words.hits(tmp_path / "a.md", words.read_phrases(LISTED, pages=False), "docs/a.md")
    assert line == 'docs/a.md:1: "hang together": write "correlated"'


def test_the_list_of_phrases_is_read():
    """Each phrase has a replacement, and none is found in its own replacement."""
    words = load("check_words", "tools")
    for pages in (False, True):
        phrases = words.read_phrases(words.BANNED.read_text(), pages)
        assert len(phrases.instead) > 20
        assert not [instead for instead in phrases.instead if list(phrases.find(instead.lower()))]
    with pytest.raises(ValueError, match="pattern => replacement"):
        words.read_phrases("room\n", pages=False)


@pytest.mark.slow  # needs what make docs installs
def test_formulas():
    formulas = load("formulas")
    shown = formulas.on_page_content(r'<p><span class="arithmatex">\(\theta &lt; 1\)</span></p>')
    assert shown.startswith("<p><math")
    assert "&#x0003C;" in shown  # less than, once
    assert "‖" in formulas.to_mathml(r"\Big\| x \Big\|", block=True)
    with pytest.raises(formulas.FormulaError, match="nosuch"):
        formulas.to_mathml(r"\nosuch x", block=False)


MODULE = '''
class EnergyScore:
    """A score."""

def fit():
    """Fit with :class:`EnergyScore`, or a :class:`Stranger`.

    ``rate``   how fast,
               at first
    ``steps``  how long

    =====  ===========
    name   meaning
    =====  ===========
    ``a``  one | two
           and more
    =====  ===========

    >>> 1 + 1
    2
    """
'''


@pytest.mark.slow  # needs what make docs installs
def test_docstrings_become_markdown():
    import griffe

    docstrings = load("docstrings")
    with griffe.temporary_visited_module(MODULE, module_name="tacit") as module:
        text = docstrings.to_markdown(module["fit"].docstring.value, module["fit"])
    assert "- ``rate``: how fast,\n    at first\n- ``steps``: how long" in text
    assert "| name | meaning |\n| --- | --- |\n| ``a`` | one \\| two and more |" in text
    assert "```pycon\n>>> 1 + 1\n2\n```" in text
    assert "`Stranger`" in text
    assert ":class:" not in text
