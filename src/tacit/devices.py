"""Devices by their names: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``."""

from typing import Any

import torch

from tacit.errors import InputError


def find_device(name: Any) -> torch.device:
    """Return the device with this name, if it is available; ``"auto"`` is a GPU if there is one."""
    if isinstance(name, str) and name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device, count = named_device(name), torch.cuda.device_count()
    if device.type == "cuda" and (device.index or 0) >= count:
        raise InputError(f"device must be an available CUDA device, got '{name}' where there are {count}; use 'cpu'")
    return device


def named_device(name: Any) -> torch.device:
    """Return the device with this name, without checking that it is available.

    >>> named_device("cuda:3").index
    3
    """
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"device must be one of auto, cpu, cuda, cuda:N, got {name!r}; use 'auto'")
    return device
