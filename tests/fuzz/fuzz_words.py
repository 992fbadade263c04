"""Odd words, numbers and bytes that all surfaces share."""

import json
from typing import Any

from hypothesis import strategies as st

LONG = "n" * 5000
ODD_WORDS = (
    "", " ", "  a ", "a", "b", "c", "A", "north:pm25", "a:b:c", ":", "time", "node", "value", "source", "target",
    "<script>alert(1)</script>", "=1+1", "@SUM(A1)", "-2", "0", "1", "nan", "NaN", "inf", "-inf", "null", "None",
    "true", "a,b", 'a"b', "a'b", "a\\b", "a/b", "../../etc/passwd", "/dev/null", "a\nb", "a\r\nb", "a\tb", "a\x00b",
    "a\x1b[31mred", "\ufeffa", "\u202eabc", "\u200b", "é", "e\u0301", "日本語", "😀", "ﬁ", "\xa0", "{node}", "%s",
    "{0}",
    "[/red]", "[bold]", "$(id)", "`id`", "--help", "-", "*", "?", "con", "a" * 300, LONG, "\ud800", "\udcff\udcfe",
)  # fmt: skip
WHOLE = (0, 1, 2, 3, 4, 5, 7, -1, -5, 100, 1000, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**30, 10**400)
BROKEN = (0.0, -0.0, 0.5, 1.0, 1.5, -1.0, 1e-300, 5e-324, 1e-30, 1e30, 1e38, 3.5e38, 1e300, 1.7e308)
NUMBER_TEXTS = (
    "0", "1", "-1", "0.5", "1e5", "1e308", "-1e308", "1e309", "1e39", "1e-320", "nan", "NaN", "inf", "-inf", "Infinity",
    "", " ", "NA", "null", "1,5", "1.5.2", "0x10", "1_000", "١٢", "1 000", "+3", "--3", "True", "x", "1e", "1;2",
    "1\t2",
    "12345678901234567890", "1" * 400, "0." + "3" * 400, "2024-01-01", "\x00", "½", "∞", "1+2j",
)  # fmt: skip

odd_words = st.one_of(st.sampled_from(ODD_WORDS), st.text(max_size=12))
plain_words = odd_words.filter(lambda word: not any("\ud800" <= letter <= "\udfff" for letter in word))
whole = st.one_of(st.sampled_from(WHOLE), st.integers(-10, 50), st.integers())
numbers = st.one_of(st.sampled_from(BROKEN), st.floats())
number_texts = st.one_of(st.sampled_from(NUMBER_TEXTS), st.floats(-1e6, 1e6).map(repr))
sane = st.floats(-100, 100).map(lambda number: round(number, 3))


def typed(words: list[str]) -> list[str]:
    """Return words as a shell could pass them: without NUL."""
    return [word.replace("\x00", "") for word in words]


@st.composite
def damaged(draw: Any, data: bytes) -> bytes:
    """Return bytes after what happens to files: cut, flipped, doubled, mixed with others, in another encoding."""
    kind = draw(
        st.sampled_from(("cut", "flip", "insert", "zero", "double", "latin", "utf16", "bom", "cr", "crlf", "big"))
    )
    place = draw(st.integers(0, max(len(data) - 1, 0)))
    match kind:
        case "cut":
            return data[:place]
        case "flip":
            changed = bytearray(data)
            for _ in range(draw(st.integers(1, 8))):
                if changed:
                    changed[draw(st.integers(0, len(changed) - 1))] = draw(st.integers(0, 255))
            return bytes(changed)
        case "insert":
            return data[:place] + draw(st.binary(min_size=1, max_size=20)) + data[place:]
        case "zero":
            return data[:place] + bytes(draw(st.integers(1, 300))) + data[place:]
        case "double":
            return data + data[place:]
        case "latin":
            return data.decode("utf-8", "replace").encode("latin-1", "replace") + b"\xe9\xff"
        case "utf16":
            return data.decode("utf-8", "replace").encode("utf-16")
        case "bom":
            return b"\xef\xbb\xbf" + data
        case "cr":
            return data.replace(b"\n", b"\r")
        case "crlf":
            return data.replace(b"\n", b"\r\n")
        case _:
            return data[:place] + b"9" * 200_000 + data[place:]


@st.composite
def perhaps_damaged(draw: Any, data: bytes, share: int = 4) -> bytes:
    """Return the bytes, and damaged ones in one of ``share`` cases."""
    return draw(damaged(data)) if draw(st.integers(1, share)) == 1 else data


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), whole, numbers, plain_words),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(plain_words, inner, max_size=3)),
    max_leaves=6,
)


def toml_value(value: Any) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return {"inf": "inf", "-inf": "-inf", "nan": "nan"}.get(repr(value), repr(value))
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_value(entry) for entry in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml_value(key)} = {toml_value(entry)}" for key, entry in value.items()) + "}"
    return repr(value)
