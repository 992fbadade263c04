"""The command, run in this process."""

import pytest

from tacit.cli import main


def call(*arguments):
    """Run ``tacit`` with arguments of any type and return the exit code."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return ended.value.code
