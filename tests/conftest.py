"""Shapes and types are enforced in unit tests; the global random generator must stay untouched in every test."""

import gc
import json
import os
import re
import signal
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported, and for processes that tests start

import jaxtyping
from jaxtyping import install_import_hook

if os.environ.get("TACIT_TYPECHECK", "1") == "1":
    install_import_hook("tacit", "typechecking.check")

import pytest
import torch

# A background job starts with Ctrl-C ignored and hands that on; the tests of Ctrl-C want it as on a terminal.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
torch.set_num_threads(1)  # the tensors are tiny: threads would only wait for each other

# Tests in these folders, and in tests/ itself, run the command, whole fits, pages or documents, as a user does: without
# checks of shapes, which would cost more than the tests. Tests in all other folders are unit tests and have them.
END_TO_END = {"tests", "tacit", "cli", "docs", "experiments", "fuzz", "pipeline", "plots", "records", "report"}
END_TO_END |= {"sklearn"}


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Import modules and tests without garbage collection, which would take a seventh of the time of that."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Switch the checks before any fixture is made, so that fixtures of whole modules have them or not as well."""
    jaxtyping.config.update("jaxtyping_disable", item.path.parent.name in END_TO_END)


if "MUTANT_UNDER_TEST" in os.environ:

    def pytest_itemcollected(item):
        item._nodeid = item.nodeid  # mutmut 3.8 reads it, pytest 9.2 no longer has it


@pytest.fixture(autouse=True)
def global_generator_untouched():
    before = torch.get_rng_state()
    yield
    assert torch.equal(before, torch.get_rng_state()), "the global generator was used"


@pytest.fixture
def unchecked():
    """Switch the shape checks off, as for a user: the library's own errors must do."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture
def rng():
    return torch.Generator().manual_seed(0)


@pytest.fixture
def own_kinds():
    """Let a test register kinds; they are forgotten after it."""
    import tacit.config  # noqa: F401 - all kinds of the package are registered then
    from tacit.registry import REGISTRIES

    before = {what: dict(registry._kinds) for what, registry in REGISTRIES.items()}
    yield
    for what, registry in REGISTRIES.items():
        registry._kinds = before[what]


HERE = Path(__file__).parent
SENTENCES = HERE / "sentences.json"  # test -> the sentences of its refusals and answers, in order
OF_A_LIBRARY = re.compile(r"(cannot be read as [\w ]+|is not): .*?(?=; |$)")  # differs from version to version
OF_A_MACHINE = re.compile(r"but [\d.,]+ [GM]B is free|where there are \d+")


def pytest_addoption(parser):
    parser.addoption("--renew", action="store_true", help="write the sentences of refusals (make sentences)")


def pytest_collection_modifyitems(config, items):
    """Run only tests with sentences when these are renewed."""
    if config.option.renew:
        config.hook.pytest_deselected(
            items=[item for item in items if "sentence" not in getattr(item, "fixturenames", ())]
        )
        items[:] = [item for item in items if "sentence" in getattr(item, "fixturenames", ())]


@pytest.fixture(scope="session")
def sentences(request):
    """Return the stored sentences and those of this session; with --renew, store the latter."""
    stored, seen = json.loads(SENTENCES.read_text()), {}
    yield stored, seen
    if request.config.option.renew:
        ran = {name.partition("[")[0] for name in seen}
        for name in stored:
            test = name.partition("[")[0]
            path, _, function = test.partition("::")
            if test not in ran and (HERE / path).is_file() and f"def {function}(" in (HERE / path).read_text():
                seen[name] = stored[name]
        SENTENCES.write_text(json.dumps(seen, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


@pytest.fixture
def sentence(request, sentences, tmp_path_factory):
    """Return a function that compares a sentence with the next one of this test in tests/sentences.json.

    Sentences live there alone; ``make sentences`` renews them, and the difference shows what changed. Temporary folders
    are written as FOLDER, the version of tacit as VERSION, the words of libraries and what differs between machines as
    three dots.
    """
    from tacit.version import __version__

    stored, seen = sentences
    name = f"{request.path.relative_to(HERE)}::{request.node.name}"
    expected, found, renew = stored.get(name, []), seen.setdefault(name, []), request.config.option.renew
    folder = re.compile(re.escape(str(tmp_path_factory.getbasetemp())) + r"/[\w-]+")

    def compare(text):
        text = OF_A_MACHINE.sub("...", OF_A_LIBRARY.sub(r"\1: ...", folder.sub("FOLDER", text)))
        found.append(text.replace(f"tacit {__version__}", "tacit VERSION"))
        assert "\n" not in text
        assert renew or found == expected[: len(found)], "another sentence: make sentences renews tests/sentences.json"
        return found[-1]

    yield compare
    assert renew or len(found) >= len(expected) or found != expected[: len(found)], "fewer sentences than stored"


@pytest.fixture
def said(sentence):
    """Return a function that compares the sentences of an answer with those in the snapshot, and returns them."""
    return lambda sentences: [sentence(one) for one in sentences]


@pytest.fixture
def refused(sentence):
    """Return a function that makes a call, which must be refused in one known sentence; it returns the sentence."""
    from tacit.errors import InputError

    def refused(call, *args, **options):
        with pytest.raises(InputError) as refusal:
            call(*args, **options)
        return sentence(str(refusal.value))

    return refused


@pytest.fixture
def wrong_call(capsys, sentence):
    """Return a function that runs the command, which must end with exit code 2 and one known sentence."""
    from commands import call

    def wrong_call(*arguments, code=2):
        capsys.readouterr()
        assert call(*arguments) == code
        printed = capsys.readouterr()
        (line,) = (line for line in printed.err.splitlines() if line.startswith("tacit: "))
        assert "Traceback" not in printed.err
        assert printed.out == ""
        return sentence(line.removeprefix("tacit: "))

    return wrong_call
