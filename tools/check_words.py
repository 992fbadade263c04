"""Find phrases that the documentation does not use, and name what to write instead.

    python tools/check_words.py [FILE ...]

``make check`` runs it over the pages, the tutorials, and the comments, docstrings and messages of the package. The
phrases are in ``banned_words.txt``. Code in pages and docstrings, names between backticks and expressions in
f-strings are not prose and are skipped. Each hit is one line: file, line number, phrase, replacement. The exit code is
1 if there is a hit.
"""

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
BANNED = Path(__file__).with_name("banned_words.txt")
CHECKED = (
    *("*.md", ".github/**/*.md", "docs/**/*.md", "docs/tutorials/*.py"),
    *(f"src/**/*.{ending}" for ending in ("py", "pyi", "html", "js")),
)
PAGES = re.compile(r"(README\.md|docs/(?!contributing/).*)")  # [pages]: what users read
BETWEEN_WORDS = r"(?:\s|#|//)+"  # a phrase may go on in the next line, in a comment too

CODE_IN_PAGES = re.compile(
    r"^ *(?P<fence>```+|~~~+)[^`].*?^ *(?P=fence) *$|^:::[^\n]*(?:\n    [^\n]*|\n(?=\n    ))*"
    r"|<!--.*?-->|\]\([^)]*\)|\]\[[^]]*\]",
    re.MULTILINE | re.DOTALL,
)  # fenced blocks, what mkdocstrings reads, comments, the targets of links
NAMES = re.compile(r"``.+?``|`[^`\n]+`")
EXAMPLES = re.compile(r"^ *(?:>>>|\.\.\.) .*$", re.MULTILINE)  # code in docstrings
EXPRESSIONS = re.compile(r"\{[^{}\n]*\}")
SCRIPT_TEXT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`", re.DOTALL)
KEY = re.compile(r"[a-zA-Z]*(['\"])\w+\1")  # a string of one word is a name or a key
STRINGS = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}


@dataclass(frozen=True)
class Phrases:
    """Banned phrases as one pattern with a group for each, and what to write instead of each."""

    pattern: re.Pattern[str]
    instead: tuple[str, ...]

    def find(self, text: str) -> Iterator[tuple[int, str, str]]:
        """Yield place, phrase and replacement of each hit in a text in lower case."""
        for match in self.pattern.finditer(text):
            yield match.start(), " ".join(match[0].split()), self.instead[int(str(match.lastgroup)[1:])]


def read_phrases(text: str, pages: bool) -> Phrases:
    """Read a list: ``pattern => replacement`` on a line; the part after ``[pages]`` is for ``pages`` alone."""
    everywhere, _, more = text.partition("[pages]\n")
    lines = (everywhere + more * pages).splitlines()
    patterns, instead = [], []
    for line in lines:
        if line and not line.startswith("#"):
            pattern, arrow, replacement = line.partition(" => ")
            if not arrow:
                raise ValueError(f"a line must be 'pattern => replacement', got {line!r}; add the replacement")
            patterns.append(f"(?P<p{len(patterns)}>{pattern.replace(' ', BETWEEN_WORDS)})")
            instead.append(replacement)
    return Phrases(re.compile(rf"(?<![\w-])(?:{'|'.join(patterns)})(?![\w-])"), tuple(instead))


def blank(text: str) -> str:
    """Return as many spaces, with line breaks where they were.

    >>> blank("a\\nbc")
    ' \\n  '
    """
    return re.sub(r"[^\n]", " ", text)


def without(pattern: re.Pattern[str], text: str) -> str:
    """Blank what a pattern matches; the rest keeps its place."""
    return pattern.sub(lambda match: blank(match[0]), text)


def only(pattern: re.Pattern[str], text: str) -> str:
    """Blank all but what a pattern matches."""
    kept, end = [], 0
    for match in pattern.finditer(text):
        kept += [blank(text[end : match.start()]), match[0]]
        end = match.end()
    return "".join([*kept, blank(text[end:])])


def python_prose(text: str) -> str:
    """Return the comments and strings of a module, each in its place."""
    lines = [list(blank(line)) for line in text.splitlines()]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in STRINGS and not KEY.fullmatch(token.string):
            (row, column), last = token.start, token.end[0]
            for at, piece in zip(range(row, last + 1), token.string.splitlines(), strict=False):
                start = column if at == row else 0
                lines[at - 1][start : start + len(piece)] = piece
    return without(EXPRESSIONS, "\n".join("".join(line) for line in lines))


def prose(path: Path, text: str) -> str:
    """Return the text of a file with everything that is not prose blanked."""
    if path.suffix in (".py", ".pyi"):
        text = without(EXAMPLES, python_prose(text))
    elif path.suffix == ".js":
        return without(EXPRESSIONS, only(SCRIPT_TEXT, text))
    elif path.suffix == ".md":
        text = without(CODE_IN_PAGES, text)
    return without(NAMES, text)


def hits(path: Path, phrases: Phrases, name: str) -> Iterator[str]:
    """Yield a line for each banned phrase in a file, in order."""
    text = path.read_text(encoding="utf-8")
    if not phrases.pattern.search(text.lower()):  # most files: they are not parsed, which would take longer
        return
    text = prose(path, text).lower()
    for start, said, instead in phrases.find(text):
        line = text.count("\n", 0, start) + 1
        yield f'{name}:{line}: "{said}": {instead}'


if __name__ == "__main__":
    named = [Path(name).resolve() for name in sys.argv[1:]]
    files = named or sorted({path for pattern in CHECKED for path in ROOT.glob(pattern)})
    listed = BANNED.read_text(encoding="utf-8")
    phrases = {pages: read_phrases(listed, pages) for pages in (True, False)}
    names = {path: path.relative_to(ROOT).as_posix() for path in files}
    found = [line for path, name in names.items() for line in hits(path, phrases[bool(PAGES.fullmatch(name))], name)]
    print("\n".join(found) or f"words: no banned phrase in {len(files)} files")
    sys.exit(bool(found))
