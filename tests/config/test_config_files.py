"""Files of choices that are no TOML, or hardly."""

import os

import pytest

from tacit.config import FitConfig, load_config


@pytest.mark.parametrize(
    "data",
    [
        b"x = " + b"[" * 3000,
        b"x = " + b"{a=" * 3000,
        b"[training]\nepochs = " + b"9" * 5000,
        b"[training]\nepochs = 1970-02-31",
        b"[training]\nepochs = 3\x00",
        b"\xff\xfe[training]",
    ],
)
def test_what_is_no_toml(tmp_path, data, refused):
    path = tmp_path / "c.toml"
    path.write_bytes(data)
    refused(load_config, path, FitConfig())


def test_a_mark_at_the_beginning_is_passed_over(tmp_path):
    path = tmp_path / "c.toml"
    path.write_bytes(b"\xef\xbb\xbf[training]\nepochs = 3\n")
    assert load_config(path, FitConfig()).training.epochs == 3


def test_what_is_no_file(tmp_path, refused):
    os.mkfifo(tmp_path / "pipe.toml")
    for name in (".", "pipe.toml", "a.toml"):
        refused(load_config, tmp_path / name, FitConfig())
