"""The blocks of code in the documentation, and how each kind is run.

```` ```python ````   examples (``>>>``) whose output is compared, or a script; names last to the end of the page
```` ```console ````  commands after ``$``, with what they print below; they must succeed unless ``$ echo $?`` follows
```` ```toml ````     choices for ``tacit fit --config``, which must be valid
```` ```csv ````      a table
```` ```text ````     words, output seen elsewhere; nothing to run, and no command

A block with ``title="name"`` is written to a file of that name, where the commands of the page find it. What a command
prints is compared by :func:`differences`: words exactly, decimal numbers nearly, since training amplifies the rounding
of another machine. A comment above a block says more: ``<!-- slow -->`` runs it only with ``-m slow``,
``<!-- tested in tests/... -->`` names the test that runs it instead.
"""

import contextlib
import doctest
import io
import re
import shlex
import subprocess
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from tacit.cli import main
from tacit.config import FitConfig, override

ROOT = Path(__file__).parents[1]
KINDS = ("python", "console", "toml", "csv", "text")
FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>```+|~~~+) *(?P<info>.*)$")
MARK = re.compile(r"^<!-- (slow|tested in (?P<test>tests/\S+\.py)) -->$")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
COMMANDS = ("tacit", "make", "cat", "head", "ls", "echo")
COMMAND_LINE = re.compile(
    r"^\s*(?:\$ )?(?:tacit (?:demo|fit|predict|evaluate|plot|compare|reproduce|report)|make|pip|python|torchrun|dask"
    r"|git) \S"
)


@dataclass(frozen=True)
class Block:
    """A fenced block: where it stands, what its fence says, what it holds."""

    page: Path
    line: int
    kind: str
    title: str | None
    text: str
    slow: bool = False
    tested_in: str | None = None

    def __str__(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages():
    """Every page that is written by hand or holds blocks: README and its neighbours, docs, the tables of studies."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def blocks_of(page):
    """Return the fenced blocks of a page, in order."""
    found, lines, at, mark = [], page.read_text(encoding="utf-8").splitlines(), 0, None
    while at < len(lines):
        fence = FENCE.match(lines[at])
        if fence is None:
            if lines[at].strip():
                mark = MARK.match(lines[at].strip())
            at += 1
            continue
        start = at
        at += 1
        while at < len(lines) and lines[at].strip() != fence["ticks"]:
            at += 1
        if at == len(lines):
            raise AssertionError(f"{page}:{start + 1}: this block never ends")
        kind, _, rest = fence["info"].partition(" ")
        title = re.search(r'title="([^"]+)"', rest)
        text = "\n".join(line.removeprefix(fence["indent"]) for line in lines[start + 1 : at])
        slow, tested_in = bool(mark and not mark["test"]), mark["test"] if mark else None
        found.append(Block(page, start + 1, kind, title[1] if title else None, text, slow, tested_in))
        mark, at = None, at + 1
    return found


def indented_commands(page):
    """Return the lines of indented blocks that hold a command: they should stand in a fence, where they are run."""
    found, fenced, before = [], False, ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif (
            not fenced
            and line.startswith("    ")
            and COMMAND_LINE.match(line)
            and not before.lstrip().startswith(("-", "*"))
        ):
            found.append(f"{page.relative_to(ROOT)}:{number}")
        before = line or before
    return found


@dataclass
class PageRun:
    """One page being run from top to bottom; the working directory is the page's own."""

    folder: Path
    names: dict = field(default_factory=lambda: {"__name__": "__page__"})
    code: int = 0

    def run(self, block):
        """Run one block; an AssertionError says what went otherwise."""
        if block.title:
            (self.folder / block.title).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / block.title).write_text(block.text + "\n", encoding="utf-8")
        if block.tested_in is None:
            {"python": self._python, "console": self._console, "toml": self._toml}.get(block.kind, _nothing)(block)

    def _python(self, block):
        if ">>>" not in block.text:
            exec(compile(block.text, str(block), "exec"), self.names)
            return
        test = doctest.DocTestParser().get_doctest(
            block.text + "\n", self.names, str(block), str(block.page), block.line
        )
        said = io.StringIO()
        runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
        runner.run(test, out=said.write, clear_globs=False)
        self.names = test.globs
        assert runner.failures == 0, said.getvalue()

    def _console(self, block):
        commands = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
        assert commands[0] == "", f"{block}: a console block begins with $, got {commands[0]!r}"
        for at, command in enumerate(commands[1:], 1):
            line, _, wanted = command.partition("\n")
            checked = at + 1 < len(commands) and commands[at + 1].startswith("echo $?")
            said, self.code = self._call(line, block)
            assert self.code == 0 or checked, f"{block}: {line} ended with code {self.code}:\n{said}"
            if wanted.strip():
                found = differences(wanted, said)
                assert not found, f"{block}: {line}\n{found}\nwanted:\n{wanted}\ngot:\n{said}"

    def _call(self, line, block):
        """Return what a command prints and its exit code; a refusal is printed on the other stream."""
        words = shlex.split(line, comments=True)
        assert words[0] in COMMANDS, f"{block}: {words[0]} is not among {', '.join(COMMANDS)}"
        if words == ["echo", "$?"]:
            return str(self.code), 0
        if words[0] == "make":
            return _dry_make(words[1:])
        if words[0] != "tacit":
            done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=self.folder)
            return done.stdout + done.stderr, done.returncode
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main(words[1:])
            except SystemExit as end:
                code = end.code
        refused = [text for text in err.getvalue().splitlines() if text.startswith("tacit: ")]
        return out.getvalue() + "\n".join(refused if code else []), code

    def _toml(self, block):
        override(FitConfig(), tomllib.loads(block.text))


def differences(wanted, said):
    """Say how an output differs from the one shown, or return an empty text.

    ``...`` stands for anything, any white space for any other. A decimal number may be off by a quarter of itself or,
    if shown with three decimals or fewer, by 0.02; whole numbers and words may not.
    """
    parts, at, said = [part.strip() for part in wanted.split("...")], 0, said.strip()
    for number, part in enumerate(parts):
        pieces = re.split(r"(\d+\.\d+)", part)
        pattern = "".join(r"(\d+\.?\d*)" if odd % 2 else _spaced(piece) for odd, piece in enumerate(pieces))
        last = number == len(parts) - 1 and part
        match = re.compile(pattern + (r"\Z" if last else "")).search(said, at)
        if match is None or (number == 0 and part and match.start() > 0) or (last and match.end() < len(said)):
            return f"the words differ from {part.splitlines()[0] if part else 'the end'!r} on"
        at = match.end()
        for shown, got in zip(pieces[1::2], match.groups(), strict=True):
            near = 0.02 if len(shown.partition(".")[2]) <= 3 else 0
            if abs(float(shown) - float(got)) > max(float(shown) / 4, near):
                return f"{shown} is shown, {got} was printed"
    return "" if parts[-1] == "" or at == len(said) else "more was printed"


def _spaced(text):
    """A pattern for the text with any white space."""
    return r"\s+".join(map(re.escape, re.split(r"\s+", text)))


def _dry_make(targets):
    """What make would do: the target exists. What it does is run by CI (make test, make check) or by other tests."""
    done = subprocess.run(["make", "-n", *targets], capture_output=True, text=True, check=False, cwd=ROOT)
    return "" if done.returncode == 0 else done.stderr, done.returncode


def _nothing(_block):
    pass
