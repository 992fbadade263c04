"""Where compiled programs are kept: where the user says, in the cache directory, or nowhere with a line about it."""

import os

import pytest

from tacit.training.gradient import VARIABLE, keep_compiled


@pytest.fixture
def environment(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, "x")  # so that it is put back
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return monkeypatch


def test_compiled_programs_are_kept_in_the_cache_directory_of_the_user(environment, tmp_path):
    assert keep_compiled() is None
    assert os.environ[VARIABLE] == str(tmp_path / "tacit" / "compiled")
    assert (tmp_path / "tacit" / "compiled").is_dir()


def test_a_directory_that_the_user_named_stays(environment, tmp_path):
    environment.setenv(VARIABLE, str(tmp_path / "mine"))
    assert keep_compiled() is None
    assert os.environ[VARIABLE] == str(tmp_path / "mine")


def test_a_directory_that_cannot_be_written_is_left_out(environment, tmp_path):
    (tmp_path / "file").touch()
    environment.setenv(VARIABLE, str(tmp_path / "file" / "cache"))
    said = keep_compiled()
    assert said.startswith(
        f"compiled programs cannot be cached in {tmp_path}/file/cache, so every run compiles them again"
    )
    assert VARIABLE not in os.environ


def test_a_path_with_spaces_is_left_out_because_compilers_fail_there(environment, tmp_path):
    environment.setenv("XDG_CACHE_HOME", str(tmp_path / "my files"))
    said = keep_compiled()
    assert said.startswith(f"compiled programs cannot be cached in {tmp_path}/my files/tacit/compiled")
    assert said.endswith("whose path has no spaces")
    assert VARIABLE not in os.environ
    assert not (tmp_path / "my files").exists()
