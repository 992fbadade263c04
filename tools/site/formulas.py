"""A hook of mkdocs: formulas become MathML while the site is built, so that no script has to draw them.

``pymdownx.arithmatex`` marks what stands between dollars; ``latex2mathml`` turns it into elements that every current
browser shows by itself, without the network. What it cannot read ends the build.
"""

import html
import re
from typing import Any

from latex2mathml.converter import convert

MARKED = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
# Commands of LaTeX that the converter does not know, in terms of those it does.
SPELLED = {
    r"\arg": r"\operatorname{arg}",
    r"\tfrac": r"\frac",
    r"\lVert": r"\Vert ",
    r"\rVert": r"\Vert ",
}
# What the converter leaves as it stands after \big and its like.
DELIMITERS = {r"\|": "‖", r"\Vert": "‖", r"\{": "{", r"\}": "}"}
UNKNOWN = re.compile(r"<m[io][^>]*>\\[^<]*</m[io]>")
NAMED = r"(<m[io]>(?:log|exp|tanh|sin|cos|max|min)</m[io]>)"
BEFORE_NAME = re.compile(r"(</mi>|</mn>|</msub>|</msup>|</msubsup>|</mrow>)" + NAMED)
INSIDE = "".join(f"(?<!<{tag}>)" for tag in ("msup", "msub", "msubsup", "munder", "munderover", "mover", "mfrac"))
AFTER_NAME = re.compile(INSIDE + NAMED + r"(?=<mi>|<mn>|<msub>|<msup>|<mrow>)")
THIN = '<mspace width="0.17em"/>'


class FormulaError(Exception):
    """A formula that cannot be shown."""


def to_mathml(latex: str, *, block: bool) -> str:
    """Return the MathML of a formula; refuse one with a command that would be shown as its own name."""
    spelled = latex.strip()
    for command, meaning in SPELLED.items():
        spelled = re.sub(re.escape(command) + r"(?![A-Za-z])", lambda _, text=meaning: text, spelled)
    try:
        shown = convert(spelled, display="block" if block else "inline")
    except Exception as error:
        raise FormulaError(
            f"cannot show ${latex}$: {type(error).__name__} {error}; write it in simpler LaTeX"
        ) from error
    for command, sign in DELIMITERS.items():
        shown = shown.replace(f">{command}</mo>", f">{sign}</mo>")
    unknown = UNKNOWN.search(shown)
    if unknown:
        raise FormulaError(f"cannot show ${latex}$: it has {unknown[0]}; write it in simpler LaTeX")
    return AFTER_NAME.sub(rf"\1{THIN}", BEFORE_NAME.sub(rf"\1{THIN}\2", shown))


def _replaced(match: re.Match[str]) -> str:
    block = match[2] == "["
    formula = to_mathml(html.unescape(match[3]), block=block)
    return f'<div class="formula">{formula}</div>' if block else formula


def on_page_content(content: str, **_: Any) -> str:
    """Replace every marked formula of a page."""
    return MARKED.sub(_replaced, content)
