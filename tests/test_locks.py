"""A lock keeps others out, is not taken from a file of somebody else, and does no harm where there are no locks."""

import errno
import fcntl
import os

import pytest

from tacit.errors import InputError
from tacit.locks import LOCK, locked


def test_a_second_one_is_refused(tmp_path):
    with locked(tmp_path), pytest.raises(InputError, match="is being written by another process"), locked(tmp_path):
        pass
    assert not (tmp_path / LOCK).exists()


def test_a_file_of_somebody_else_stays(tmp_path, wrong_call):
    (tmp_path / LOCK).write_text("mine")
    with pytest.raises(InputError, match="is not a lock file of tacit; move it"), locked(tmp_path):
        pass
    wrong_call("report", tmp_path)
    assert (tmp_path / LOCK).read_text() == "mine"


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / LOCK).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="must be writable"), locked(tmp_path):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_where_there_are_no_locks_one_does_not_end_another(tmp_path, monkeypatch):
    def refuses(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuses)
    with locked(tmp_path) as first:
        with locked(tmp_path):
            pass
        assert first.held
