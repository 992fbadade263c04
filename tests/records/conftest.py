"""A run to damage, and what the command says to it."""

import shutil

import pytest

from own_files import learn, write_files


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """A run directory and the data it was learned from."""
    folder = tmp_path_factory.mktemp("records")
    write_files(folder)
    return learn(folder / "wide.csv", folder / "run")[0].directory, folder / "wide.csv"


@pytest.fixture
def copy(written, tmp_path):
    """A copy of the run."""
    return shutil.copytree(written[0], tmp_path / "copy")
