"""A hook of mkdocs: each ``docs/tutorials/NAME.py`` becomes a page, a notebook to download and a thumbnail.

The page ``tutorials/NAME.md`` has the text, the code and the outputs of the executed notebook. Beside it are
``tutorials/NAME.ipynb``, the pictures ``tutorials/NAME/1.png``, ... and ``tutorials/NAME/thumbnail.png``.
"""

import base64
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from notebooks import SHELL, SLOW, Tutorial, TutorialError, executed
from PIL import Image

FOLDER = "tutorials"
THUMBNAIL = (480, 300)
DENSITY = 2  # pixels of a picture per pixel of the page
NOT_RUN = "*This cell takes minutes. The build of this site does not run it.*"
STYLE = re.compile(r"<style.*?</style>|<p>\d+ rows × \d+ columns</p>", re.DOTALL)
TABLE = re.compile(r'<table border="1" class="dataframe">')
LINK = re.compile(r"(?<!!)\[([^\]]+)\](?:\([^)]*\.md[^)]*\)|\[[^\]]*\])")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Run what has changed, and put the pages of all tutorials in the place of their sources."""
    sources = [file for file in files if file.src_uri.startswith(f"{FOLDER}/") and file.src_uri.endswith(".py")]
    slow = bool(os.environ.get("TACIT_SLOW_TUTORIALS"))
    root = Path(config.config_file_path).parent
    try:
        found = executed(Tutorial(Path(str(file.abs_src_path)), root, slow) for file in sources)
        for file in sources:
            files.remove(file)
            for path, content in made(Path(file.src_uri).stem, found[Path(file.src_uri).stem]):
                files.append(File.generated(config, path, content=content))
    except TutorialError as error:
        raise PluginError(f"a tutorial failed: {error}") from None
    return files


def made(name: str, notebook: Any) -> Iterator[tuple[str, str | bytes]]:
    """Return path and content of all files of a tutorial."""
    pictures: list[bytes] = []
    yield f"{FOLDER}/{name}.md", page(name, notebook, pictures)
    yield f"{FOLDER}/{name}.ipynb", nbformat.writes(to_download(notebook))
    for number, picture in enumerate(pictures, 1):
        yield f"{FOLDER}/{name}/{number}.png", picture
    chosen = notebook.metadata.get("tutorial", {}).get("thumbnail", len(pictures))
    if not 1 <= chosen <= len(pictures):
        raise TutorialError(f"{name}.py: thumbnail must be from 1 to {len(pictures)}, its pictures, got {chosen}")
    yield f"{FOLDER}/{name}/thumbnail.png", thumbnail(pictures[chosen - 1])


def page(name: str, notebook: Any, pictures: list[bytes]) -> str:
    """Return the page as Markdown, and add its pictures to a list."""
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        elif cell.cell_type == "code":
            parts.append(code_of(cell.source))
            if SLOW in cell.metadata.get("tags", ()) and cell.execution_count is None:
                parts.append(NOT_RUN)
            alt = cell.metadata.get("alt", "")
            parts += [text for output in cell.outputs if (text := shown(name, output, pictures, alt))]
    title, _, rest = "\n\n".join(parts).partition("\n\n")
    return f"{title}\n\n[Download this page as a notebook]({name}.ipynb){{ .download }}\n\n{rest}\n"


def code_of(source: str) -> str:
    """Return the block of a cell; commands of the shell are shown as such."""
    if source.startswith(SHELL):
        return fenced("bash", source.partition("\n")[2])
    return fenced("python", source)


def fenced(kind: str, text: str) -> str:
    """Return a block with a fence longer than any in the text."""
    ticks = max([2, *(len(run) for run in re.findall(r"`+", text))]) + 1
    return f"{'`' * max(3, ticks)}{kind}\n{text.rstrip()}\n{'`' * max(3, ticks)}"


def shown(name: str, output: Any, pictures: list[bytes], alt: str) -> str:
    """Return an output of a cell as Markdown: a picture, a table or text."""
    if output.output_type == "stream":
        return _output(fenced("text", output.text))
    data = output.get("data", {})
    if "image/png" in data:
        pictures.append(base64.b64decode(data["image/png"]))
        if not alt:
            raise TutorialError(f'{name}.py: picture {len(pictures)} must have a text; write # %% alt="..."')
        with Image.open(io.BytesIO(pictures[-1])) as picture:
            width = picture.width // DENSITY
        return f'![{alt}]({name}/{len(pictures)}.png){{ .picture width="{width}" }}'
    if "text/markdown" in data:
        return str(data["text/markdown"])
    if "text/html" in data:
        table = TABLE.sub("<table>", STYLE.sub("", data["text/html"])).strip()
        return f'<div class="output">\n{table}\n</div>'
    return _output(fenced("text", data["text/plain"])) if "text/plain" in data else ""


def _output(block: str) -> str:
    return f'<div class="output" markdown="1">\n\n{block}\n\n</div>'


def thumbnail(picture: bytes) -> bytes:
    """Return the picture in the size of the gallery, whole, on white."""
    with Image.open(io.BytesIO(picture)) as found:
        small = found.convert("RGB")
    small.thumbnail((THUMBNAIL[0] - 16, THUMBNAIL[1] - 16), Image.Resampling.LANCZOS)
    paper = Image.new("RGB", THUMBNAIL, "white")
    paper.paste(small, ((THUMBNAIL[0] - small.width) // 2, (THUMBNAIL[1] - small.height) // 2))
    stream = io.BytesIO()
    paper.save(stream, "PNG", optimize=True)
    return stream.getvalue()


def to_download(notebook: Any) -> Any:
    """Return a copy for the reader's own folder: links to pages of the site become plain words."""
    copied = nbformat.from_dict(notebook)
    copied = nbformat.reads(nbformat.writes(copied), as_version=4)
    copied.metadata.pop("tutorial", None)
    for cell in copied.cells:
        if cell.cell_type == "markdown":
            cell.source = LINK.sub(r"\1", cell.source)
    return copied
