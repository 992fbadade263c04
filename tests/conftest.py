"""Shapes and types are enforced in every test; the global random generator must stay untouched."""

import os
import signal

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


@pytest.fixture(autouse=True)
def global_generator_untouched():
    before = torch.get_rng_state()
    yield
    assert torch.equal(before, torch.get_rng_state()), "the global generator was used"


@pytest.fixture
def unchecked():
    """Switch the shape checks off, as for a user: the library's own errors must do."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


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
