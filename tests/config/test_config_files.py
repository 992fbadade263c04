"""Files of choices that are no TOML, or hardly."""

import os

import pytest

from tacit.config import FitConfig, load_config
from tacit.errors import InputError


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"x = " + b"[" * 3000, "is nested too deeply; correct the file"),
        (b"x = " + b"{a=" * 3000, "is nested too deeply; correct the file"),
        (b"[training]\nepochs = " + b"9" * 5000, "is not: Exceeds the limit"),
        (b"[training]\nepochs = 1970-02-31", "is not: "),
        (b"[training]\nepochs = 3\x00", "is not: "),
        (b"\xff\xfe[training]", "is not: "),
    ],
)
def test_what_is_no_toml(tmp_path, data, message):
    path = tmp_path / "c.toml"
    path.write_bytes(data)
    with pytest.raises(InputError, match=f"config must be TOML, but .*{message}"):
        load_config(path, FitConfig())


def test_a_mark_at_the_beginning_is_passed_over(tmp_path):
    path = tmp_path / "c.toml"
    path.write_bytes(b"\xef\xbb\xbf[training]\nepochs = 3\n")
    assert load_config(path, FitConfig()).training.epochs == 3


def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    for name, reason in ((".", ""), ("pipe.toml", ""), ("a.toml", r" \(No such file")):
        with pytest.raises(InputError, match=f"config must be a readable file, got .*{reason}.*; check the path"):
            load_config(tmp_path / name, FitConfig())
