"""Fuzzing sees what a user sees: no shape checks, warnings as errors, no page drawn but where it is the subject."""

import warnings

import jaxtyping
import pytest

from tacit.own_data import job

with warnings.catch_warnings():  # of its first import; nobody sees them
    warnings.simplefilter("ignore")
    import torch_geometric.nn.models  # noqa: F401


@pytest.fixture(autouse=True)
def _as_a_user(monkeypatch):
    monkeypatch.setattr(job, "draw_run", lambda directory, _run: directory / "report.html")
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
