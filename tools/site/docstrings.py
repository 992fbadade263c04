"""An extension of griffe: docstrings as they are read in the code become Markdown for the site.

What changes: examples (``>>>``) become blocks of code, aligned lists of names become lists, tables ruled with ``=``
become tables, and roles such as ``:class:`EnergyScore``` become links to the reference.
"""

import re
from collections.abc import Iterator
from typing import Any

import griffe

ROLE = re.compile(r":(?:class|func|meth|mod|attr):`(~?)([^`]+)`")
NAMED = re.compile(r"^(``[^`]+``(?:, ``[^`]+``)*) {2,}(\S.*)$")
BESIDE_THE_FOLDERS = ("tacit.errors", "tacit.shapes", "tacit.registry", "tacit.comparison")
RULE = re.compile(r"^=+(?: +=+)+$")


class SiteDocstrings(griffe.Extension):
    """Rewrite the docstring of every object once the whole package is loaded, so that every name can be found."""

    def on_package(self, *, pkg: griffe.Module, loader: griffe.GriffeLoader, **_: Any) -> None:
        """Go through all objects of the package."""
        self._rewrite(pkg)
        loader.resolve_aliases(implicit=True, external=False)  # by their paths, before any object moves
        for folder in _folders(pkg):
            _prefer_exports(folder)

    def _rewrite(self, obj: griffe.Object) -> None:
        obj.members.pop("__all__", None)  # the reference shows what it lists
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value, obj)
        for member in obj.members.values():
            if isinstance(member, griffe.Object):
                self._rewrite(member)


def _folders(module: griffe.Module) -> Iterator[griffe.Module]:
    """Yield a package and the packages in it, all of which export names."""
    if module.exports is not None:
        yield module
    for member in list(module.members.values()):
        if not member.is_alias and member.is_module and member.is_package | member.is_subpackage:
            yield from _folders(member)


def _prefer_exports(folder: griffe.Module) -> None:
    """Show a function that has the name of its file, such as ``tacit.training.fit``, in place of the file."""
    for name in map(str, folder.exports or ()):
        file = folder.members.get(name)
        if file is not None and not file.is_alias and file.is_module and name in file.members:
            folder.members[name] = griffe.Alias(name, file.members[name], parent=folder)


def to_markdown(text: str, obj: griffe.Object) -> str:
    """Return the docstring of ``obj`` as Markdown."""
    text = ROLE.sub(lambda match: _link(match, obj), text)
    lines = _fenced_examples(text.splitlines())
    return "\n".join(_lists(_tables(lines)))


def _link(match: re.Match[str], obj: griffe.Object) -> str:
    short, name = match[1] == "~", match[2].removesuffix("()").removeprefix(".")
    shown = name.rsplit(".", 1)[-1] if short else name
    found = _find(name, obj)
    return f"[`{shown}`][{found}]" if found else f"`{shown}`"


def _find(name: str, obj: griffe.Object) -> str | None:
    """Return the full path of a public name as seen from an object: its class, its module, the package."""
    package = obj.package
    holders: list[griffe.Object] = [package, obj.module]
    if obj.module.parent is not None:
        holders.append(obj.module.parent)
    if obj.is_class:
        holders.append(obj)
    elif obj.parent is not None and obj.parent.is_class:
        holders.append(obj.parent)
    for holder in reversed(holders):
        target = _member(holder, name.removeprefix("tacit.") if holder is package else name)
        if target is not None:
            return target.canonical_path if _shown(target) else None
    return None


def _member(holder: griffe.Object, name: str) -> griffe.Object | None:
    target: Any = holder
    for part in name.split("."):
        members = getattr(target, "all_members", target.members) if target.is_class else target.members
        if part not in members:
            return None
        target = members[part]
        if target.is_alias:
            try:
                target = target.final_target
            except griffe.AliasResolutionError:
                return None
    return target


def _shown(target: griffe.Object) -> bool:
    """Is the object part of the reference? Of modules, those are that the reference shows with all they export."""
    if target.is_module:
        return target.exports is not None or target.path in BESIDE_THE_FOLDERS
    owner = target.parent if target.parent is not None and target.parent.is_class else target
    return _is_public(owner) and target.docstring is not None


def _is_public(obj: griffe.Object) -> bool:
    """Is the object among the names that its folder exports?"""
    folder = obj.module.parent
    if folder is None or folder is obj.package:  # a module beside the folders, such as tacit.errors
        return obj.module.path in BESIDE_THE_FOLDERS and not obj.name.startswith("_")
    return obj.name in (folder.exports or ())


def _fenced_examples(lines: list[str]) -> list[str]:
    """Put each run of example lines, with the output below it, into a block of code."""
    out: list[str] = []
    inside = False
    for line in lines:
        if line.startswith(">>>") and not inside:
            out += ["", "```pycon"]
            inside = True
        elif inside and not line.strip():
            out.append("```")
            inside = False
        out.append(line)
    return [*out, "```"] if inside else out


def _lists(lines: list[str]) -> list[str]:
    """Make a list of lines that begin with a name in double backticks and a gap."""
    out: list[str] = []
    inside = code = False
    for line in lines:
        code = code != line.startswith("```")
        named = None if code else NAMED.match(line)
        if named:
            if not inside:
                out.append("")
            inside = True
            out.append(f"- {named[1]}: {named[2]}")
        elif inside and line.strip() and not line.startswith("```"):
            out.append(f"    {line.strip()}")
        else:
            inside = False
            out.append(line)
    return out


def _tables(lines: list[str]) -> list[str]:
    """Make a Markdown table of one that is ruled with equals signs; its columns are where the rule says."""
    out: list[str] = []
    at = 0
    while at < len(lines):
        if not RULE.match(lines[at]):
            out.append(lines[at])
            at += 1
            continue
        starts = [match.start() for match in re.finditer(r"=+", lines[at])]
        end = next(
            row
            for row in range(at + 1, len(lines))
            if RULE.match(lines[row]) and (row + 1 == len(lines) or not lines[row + 1].strip())
        )
        rows = _cells([line for line in lines[at + 1 : end] if not RULE.match(line)], starts)
        headed = any(RULE.match(line) for line in lines[at + 1 : end])
        head = rows.pop(0) if headed else [""] * len(starts)
        out += ["", _row(head), _row(["---"] * len(starts)), *map(_row, rows), ""]
        at = end + 1
    return out


def _cells(lines: list[str], starts: list[int]) -> list[list[str]]:
    """Cut lines at the columns; a line whose first cell is empty goes on with the row above."""
    rows: list[list[str]] = []
    for line in lines:
        cells = [line[begin:stop].strip() for begin, stop in zip(starts, [*starts[1:], None], strict=True)]
        if cells[0] or not rows:
            rows.append(cells)
        else:
            rows[-1] = [f"{old} {new}".strip() for old, new in zip(rows[-1], cells, strict=True)]
    return rows


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
