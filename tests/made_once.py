"""A fixture that takes long is made by one worker of pytest-xdist and read by the others."""

import fcntl
import os

import torch


def made_once(tmp_path_factory, name, make):
    """Return ``make(folder)``, which has to be tensors and plain values, from the first worker that asks."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return make(tmp_path_factory.mktemp(name))
    folder = tmp_path_factory.getbasetemp().parent / name  # of the whole session
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stored = folder / "made"
        if not stored.exists():
            torch.save(make(folder), stored)
        return torch.load(stored)
