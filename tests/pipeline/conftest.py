"""Files of a person and runs on them that several tests look at."""

import pytest

from own_files import learn, write_files


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The files of :func:`write_files`."""
    folder = tmp_path_factory.mktemp("own")
    write_files(folder)
    return folder


@pytest.fixture(scope="session")
def certain(folder, tmp_path_factory):
    """A run whose graph is certain, so that the mean prediction has no chance in it."""
    directory = tmp_path_factory.mktemp("certain") / "run"
    return learn(folder / "wide.csv", directory, graph={"edges": str(folder / "certain.csv")})


@pytest.fixture(scope="session")
def plain(folder, tmp_path_factory):
    """A run with everything learned."""
    return learn(folder / "wide.csv", tmp_path_factory.mktemp("plain") / "run")
