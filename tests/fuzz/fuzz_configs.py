"""Configs: files of choices, ``--set`` and the other options of ``tacit fit``, with values of every kind."""

import datetime
import re
from typing import Any

from fuzz_judge import Case
from fuzz_words import json_values, numbers, odd_words, perhaps_damaged, plain_words, toml_value, typed, whole
from hypothesis import strategies as st

from tacit.config import FitConfig, registered_names

SECTIONS = {name: list(type(getattr(FitConfig(), name)).model_fields) for name in FitConfig.model_fields}
NODES = ("a", "b", "c")
TABLE = ("time,a,b,c\n" + "".join(f"{t},{t * 7 % 5},{t * t % 7},{(t * 3 + t // 4) % 6}\n" for t in range(40))).encode()
RULES = b"source,target,kind,probability\na,b,forbidden,\nb,a,prior,0.9\n"
PLACES = b"node,latitude,longitude\na,1,2\nb,2,2\nc,3,5\n"
QUICK = {
    "model": {"num_graphs": 4},
    "training": {"epochs": 1, "replicas": 1, "compile": False},
    "assessment": {"bootstrap_replicas": 0, "controls": False},
    "data": {"window": 2},
}
CHOICES = (
    "auto", "wide", "long", "time",
    "filter", "recurrent", "convolution", "gcn", "gat", "none", "hops", "gaussian_input", "gaussian_head", "own",
    "linear",
    "tanh", "energy", "mmd", "elbo", "point_mse", "joint", "score_function", "concrete", "straight_through", "median",
    "rational_quadratic", "gaussian", "sigmoid", "sine_squared", "matrix", "table", "leave_one_out",
    "paper", "euclidean",
)  # fmt: skip
DEEP = (
    "[" * 3000,
    "x = " + "[" * 3000,
    "x = " + "{a=" * 3000,
    ".".join("a" * 3000) + " = 1",
    "[" + ".".join("a" * 3000) + "]",
)

edges = st.lists(st.tuples(*[st.one_of(st.sampled_from(NODES), plain_words)] * 2).map(list), max_size=3)
values = st.one_of(
    whole,
    numbers,
    st.booleans(),
    plain_words,
    st.sampled_from(CHOICES),
    edges,
    st.lists(whole, max_size=3),
    json_values.filter(lambda value: value is not None),
    st.sampled_from([datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 3), datetime.time(1)]),
)


def fitting(section: str, key: str) -> st.SearchStrategy[Any]:
    """Return values of a kind that the key takes, right or out of range."""
    kind = str(type(getattr(FitConfig(), section)).model_fields[key].annotation)
    found = [st.sampled_from(re.findall(r"'([^']+)'", kind) or [False])] if "Literal" in kind else []
    found += [st.one_of(st.integers(1, 6), whole)] if "int" in kind else []
    found += [st.one_of(st.floats(0.001, 0.999), numbers)] if "float" in kind else []
    found += [st.booleans()] if "bool" in kind else []
    found += [edges] if "tuple[tuple" in kind else []
    found += [st.sampled_from(("time", "a", "b", ":"))] if not found else []
    return st.one_of(found)


@st.composite
def misspelt(draw: Any, word: str) -> str:
    """Return a word with one letter wrong."""
    place = draw(st.integers(0, len(word) - 1))
    return word[:place] + draw(st.sampled_from(("", "x", word[place] * 2, ".", " "))) + word[place + 1 :]


def sensible(section: str, key: str) -> st.SearchStrategy[Any]:
    """Return values that a key takes, and that may or may not go with the others."""
    kind = str(type(getattr(FitConfig(), section)).model_fields[key].annotation)
    named = ("time", "node", "value", "separator", "covariates", "targets", "series", "columns", "drop")
    if section == "data" and key in named:
        return st.sampled_from(("time", "a", "value", ":"))
    if key in ("edges", "coordinates", "y_file"):
        return st.sampled_from(("rules.csv", "places.csv"))
    if "tuple[tuple" in kind and section == "graph":
        ends = st.sampled_from((*NODES, 0, 1))
        belief = [st.floats(0.01, 0.99)] if "float" in kind else []
        return st.lists(st.tuples(ends, ends, *belief).map(list), max_size=3)
    names = registered_names(type(getattr(FitConfig(), section)).model_fields[key])
    if names:
        return st.sampled_from(names)
    if key == "options":
        return st.just({})
    found = [st.sampled_from(re.findall(r"'([^']+)'", kind) or [False])] if "Literal" in kind else []
    found += [st.integers(1, 4)] if "int" in kind else []
    found += [st.floats(0.001, 0.9)] if "float" in kind else []
    found += [st.booleans()] if "bool" in kind else []
    return st.one_of(found)


@st.composite
def combinations(draw: Any) -> Case:
    """Choices that are right one by one; some are trained to the end."""
    sections: dict[str, dict[str, Any]] = {"training": {"replicas": draw(st.integers(1, 2))}}
    for _ in range(draw(st.integers(1, 5))):
        section = draw(st.sampled_from(list(SECTIONS)))
        key = draw(
            st.sampled_from(
                [key for key in SECTIONS[section] if key not in ("compile", "controls", "bootstrap_replicas")]
            )
        )
        sections.setdefault(section, {})[key] = draw(sensible(section, key))
    files = {
        "t.csv": TABLE,
        "c.toml": toml_text(with_quick(sections)).encode(),
        "rules.csv": RULES,
        "places.csv": PLACES,
    }
    arguments = ("fit", "t.csv", "--config", "c.toml", "--out", "run", "--quiet")
    return Case(arguments, files, trains=draw(st.integers(1, 6)) == 1)


@st.composite
def choices(draw: Any) -> dict[str, dict[str, Any]]:
    """Return sections with values, most of them for keys that exist."""
    found: dict[str, dict[str, Any]] = {}
    for _ in range(draw(st.integers(0, 4))):
        section = draw(st.sampled_from(list(SECTIONS)))
        key = draw(st.sampled_from(SECTIONS[section]))
        odd = draw(st.integers(1, 12))
        section = draw(st.one_of(misspelt(section), plain_words)) if odd == 1 else section
        key = draw(st.one_of(misspelt(key), plain_words)) if odd == 2 else key
        fits = odd > 5
        found.setdefault(section, {})[key] = draw(fitting(section, key) if fits else values)
    return found


def toml_text(sections: dict[str, dict[str, Any]]) -> str:
    """Return sections as a file."""
    lines = []
    for section, entries in sections.items():
        lines.append(f"[{toml_value(section)}]")
        lines += [f"{toml_value(key)} = {_written(value)}" for key, value in entries.items()]
    return "\n".join(lines) + "\n"


def _written(value: Any) -> str:
    plain = isinstance(value, datetime.date | datetime.time)
    return value.isoformat() if plain else toml_value(value)


def with_quick(sections: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return sections, and what makes a training short where they leave it open."""
    merged = {name: dict(entries) for name, entries in sections.items()}
    for section, entries in QUICK.items():
        for key, value in entries.items():
            merged.setdefault(section, {}).setdefault(key, value)
    return merged


@st.composite
def config_files(draw: Any) -> Case:
    """A file of choices: the right form with odd values, or no TOML at all."""
    text = draw(st.sampled_from(DEEP)) if draw(st.integers(1, 25)) == 1 else toml_text(with_quick(draw(choices())))
    data = draw(perhaps_damaged(text.encode("utf-8", "surrogatepass"), share=5))
    return Case(("fit", "t.csv", "--config", "c.toml", "--out", "run", "--quiet"), {"t.csv": TABLE, "c.toml": data})


@st.composite
def settings_typed(draw: Any) -> Case:
    """``--set`` and the other options."""
    words = []
    for section, entries in draw(choices()).items():
        for key, value in entries.items():
            word = draw(st.one_of(st.just(_written(value)), odd_words, st.just(str(value))))
            form = draw(st.sampled_from(("{}.{}={}",) * 6 + ("{}{}={}", "{}.{}{}", "{}..{}={}", " {} . {} = {} ")))
            words += ["--set", form.format(section, key, word)]
    for option in draw(
        st.lists(st.sampled_from(("--seed", "--window", "--horizon", "--std-errors", "--device")), max_size=2)
    ):
        words += [
            option,
            draw(st.one_of(whole.map(str), odd_words, numbers.map(str), st.sampled_from(("cuda", "cpu:3", "auto")))),
        ]
    if draw(st.integers(1, 6)) == 1:
        words += draw(st.lists(odd_words, min_size=1, max_size=2))
    words += ["--quiet"]
    quick = [word for section, entries in QUICK.items() for key, value in entries.items() if section != "data"
             for word in ("--set", f"{section}.{key}={toml_value(value)}")]  # fmt: skip
    out = draw(st.sampled_from(("run",) * 8 + ("t.csv", ".", "", "a/b/run", "run\udcff", "x" * 300)))
    arguments = typed(["fit", "t.csv", "--out", out, *quick, *words])
    return Case(tuple(arguments), {"t.csv": TABLE})


@st.composite
def command_lines(draw: Any) -> Case:
    """Words in any order, for any command."""
    options = (
        "--quiet", "--json", "--seed", "--out", "--device", "--config", "--set", "--resume", "--list", "--samples",
        "--window", "--edges", "--init", "--help", "--version", "--seeds", "--jobs", "--data", "--method",
    )  # fmt: skip
    commands = ("fit", "predict", "evaluate", "plot", "compare", "report", "reproduce", "demo", "ft", "")
    command = draw(st.sampled_from(commands))
    known = st.sampled_from((*options, "t.csv", "c.toml", "folder", "missing.csv", "1", "-1", "0"))
    rest = draw(st.lists(st.one_of(known, known, odd_words), max_size=6))
    if command in ("demo", "reproduce"):  # whatever is right would train for minutes
        rest += ["--device", "nowhere"]
    files = {"t.csv": TABLE, "c.toml": toml_text(QUICK).encode(), "folder": None}
    return Case(tuple(typed([command, *rest, "--quiet"])), files)


def cases() -> st.SearchStrategy[Case]:
    """All of them."""
    return st.one_of(config_files(), settings_typed(), combinations(), combinations(), command_lines())
