"""Tutorials: how a notebook becomes a page, when it is run again, what ends the build; all of them run with -m slow."""

import base64
import io
import sys

import pytest

from doc_blocks import ROOT

nbformat = pytest.importorskip("nbformat", reason="the docs extra is not installed")
pytest.importorskip("mkdocs", reason="the docs extra is not installed")

sys.path.insert(0, str(ROOT / "tools" / "site"))
import notebooks  # noqa: E402
import tutorials  # noqa: E402

sys.path.remove(str(ROOT / "tools" / "site"))

SOURCES = sorted((ROOT / "docs" / "tutorials").glob("*.py"))


@pytest.fixture
def small(tmp_path):
    """A repository with a package, a record and a tutorial; ``write`` replaces the tutorial."""
    for path, text in {"src/pkg.py": "one = 1", "constraints.txt": "a==1", "records/a.json": "1"}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)

    def write(text, **options):
        (tmp_path / "lesson.py").write_text(text)
        return notebooks.Tutorial(tmp_path / "lesson.py", tmp_path, **options)

    return write


HEADER = "# ---\n# jupyter:\n#   tutorial:\n#     reads: [records]\n# ---\n\n"
LESSON = HEADER + "# %% [markdown]\n# # Lesson\n#\n# Words.\n\n# %%\n1 + 1\n"


def png(width=960, height=400):
    from PIL import Image

    stream = io.BytesIO()
    Image.new("RGB", (width, height), "white").save(stream, "PNG")
    return stream.getvalue()


def shown_picture():
    data = {"image/png": base64.b64encode(png()).decode(), "text/plain": "<Figure>"}
    return nbformat.v4.new_output("display_data", data)


def test_the_key_follows_what_changes_the_outputs(small, tmp_path):
    before = small(LESSON).key()
    assert small(LESSON.replace("Words", "Other words")).key() == before
    changed = {small(LESSON.replace("1 + 1", "1 + 2")).key(), small(LESSON, slow=True).key()}
    for path in ("src/pkg.py", "constraints.txt", "records/a.json"):
        old = (tmp_path / path).read_text()
        (tmp_path / path).write_text("changed")
        changed.add(small(LESSON).key())
        (tmp_path / path).write_text(old)
    assert small(LESSON).key() == before
    assert len(changed | {before}) == 6


def test_a_file_that_is_not_there_is_refused(small):
    with pytest.raises(
        notebooks.TutorialError, match=r"lesson\.py: reads must name files of the repository, got .*gone"
    ):
        small(LESSON.replace("[records]", "[gone]")).key()


def test_new_words_take_the_outputs_that_are_kept(small):
    ran = small(LESSON).notebook()
    notebooks.code_cells(ran)[0].outputs = [nbformat.v4.new_output("stream", text="2")]
    again = small(LESSON.replace("Words", "New words")).with_outputs_of(ran)
    assert "New words" in again.cells[0].source
    assert again.cells[1].outputs[0].text == "2"


def test_a_page_has_text_code_outputs_and_pictures(small):
    notebook = small(LESSON + '\n# %% alt="A line"\ndraw()\n\n# %% language="bash"\n# tacit demo\n').notebook()
    number, picture, shell = notebooks.code_cells(notebook)
    table = '<div><style scoped>x</style><table border="1" class="dataframe"><tr><td>7</td></tr></table></div>'
    number.outputs = [nbformat.v4.new_output("execute_result", {"text/html": table, "text/plain": "7"})]
    picture.outputs = [shown_picture()]
    shell.outputs = [nbformat.v4.new_output("stream", text="a ``` b\n")]
    files = dict(tutorials.made("lesson", notebook))
    page = files["tutorials/lesson.md"]
    assert page.startswith("# Lesson\n\n[Download this page as a notebook](lesson.ipynb)")
    assert "```python\n1 + 1\n```" in page
    assert '<div class="output">\n<div><table><tr><td>7</td></tr></table></div>\n</div>' in page
    assert '![A line](lesson/1.png){ .picture width="480" }' in page
    assert "```bash\ntacit demo\n```" in page
    assert "````text\na ``` b\n````" in page
    assert set(files) == {f"tutorials/lesson{end}" for end in (".md", ".ipynb", "/1.png", "/thumbnail.png")}


def test_a_picture_has_a_text(small):
    notebook = small(LESSON).notebook()
    notebooks.code_cells(notebook)[0].outputs = [shown_picture()]
    with pytest.raises(notebooks.TutorialError, match=r'lesson\.py: picture 1 must have a text; write # %% alt="..."'):
        tutorials.page("lesson", notebook, [])


def test_a_thumbnail_is_chosen_among_the_pictures(small):
    from PIL import Image

    with Image.open(io.BytesIO(tutorials.thumbnail(png(300, 900)))) as made:
        assert made.size == tutorials.THUMBNAIL
    with pytest.raises(notebooks.TutorialError, match=r"thumbnail must be from 1 to 0, its pictures, got 0"):
        dict(tutorials.made("lesson", small(LESSON).notebook()))


def test_a_notebook_to_download_has_no_links_into_the_site(small):
    text = "See [reading](../concepts/reading.md#two), [Loss][tacit.losses.Loss], [the data](https://doi.org/1)."
    made = tutorials.to_download(small(LESSON.replace("Words.", text)).notebook())
    assert "See reading, Loss, [the data](https://doi.org/1)." in made.cells[0].source
    assert "tutorial" not in made.metadata


def test_a_cell_that_is_not_run_says_so(small):
    page = tutorials.page("lesson", small(LESSON.replace("# %%\n1", '# %% tags=["slow"]\n1')).notebook(), [])
    assert tutorials.NOT_RUN in page


def test_a_warning_is_refused_and_the_progress_of_a_command_left_out(small):
    notebook = small(LESSON + '\n# %% language="bash"\n# tacit demo\n').notebook()
    number, shell = notebooks.code_cells(notebook)
    shell.outputs = [nbformat.v4.new_output("stream", name="stderr", text="0 s starting")]
    number.outputs = [nbformat.v4.new_output("stream", text="\x1b[1mbold\x1b[0m")]
    notebooks.clean_streams("lesson.py", notebook)
    assert shell.outputs == []
    assert number.outputs[0].text == "bold"
    number.outputs = [nbformat.v4.new_output("stream", name="stderr", text="UserWarning: old")]
    with pytest.raises(notebooks.TutorialError, match=r'code cell 1 below "Lesson" \(1 \+ 1\): it must not warn'):
        notebooks.clean_streams("lesson.py", notebook)


@pytest.mark.slow
def test_a_tutorial_runs_once_and_names_the_cell_that_fails(small, tmp_path, monkeypatch):
    reads = LESSON + "\n# %%\nimport os\nprint(open('records/a.json').read(), os.environ['OMP_NUM_THREADS'])\n"
    found = notebooks.executed([small(reads)], tmp_path / "cache")["lesson"]
    assert notebooks.code_cells(found)[1].outputs[0].text == "1 1\n"
    assert len(list((tmp_path / "cache").iterdir())) == 1
    with monkeypatch.context() as patched:
        patched.setattr(notebooks, "NotebookClient", None)  # nothing can be run
        notebooks.executed([small(reads)], tmp_path / "cache")
    with pytest.raises(notebooks.TutorialError, match=r'code cell 2 below "Lesson" \(1 / 0\): ZeroDivisionError: '):
        notebooks.executed([small(LESSON + "\n# %%\n1 / 0\n")], tmp_path / "cache")


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_every_tutorial_runs_with_its_slow_cells(source, tmp_path):
    notebook = notebooks.executed([notebooks.Tutorial(source, slow=True)], tmp_path)[source.stem]
    assert all(cell.execution_count for cell in notebooks.code_cells(notebook))
    assert tutorials.page(source.stem, notebook, [])
