"""A run to damage, and what the command says to it."""

import shutil

import pytest

from own_files import learn, write_files
from tacit.cli import main


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


@pytest.fixture
def refused(capsys):
    """Call the command, see that it refuses with one line and exit code 2, and return the line."""

    def call(*arguments):
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        lines = [line for line in printed.err.splitlines() if line.startswith("tacit: ")]
        assert caught.value.code == 2, printed
        assert len(lines) == 1
        assert "Traceback" not in printed.err
        return lines[0].removeprefix("tacit: ")

    return call
