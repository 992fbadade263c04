"""``tacit fit`` in processes of its own that are stopped at will, and the files that they leave."""

import json
import os
import sys
from pathlib import Path

import jaxtyping

from tacit.cli import main
from tacit.console import Display
from tacit.records import RECORD

QUICK = [
    "--window", "2", "--set", "training.epochs=8", "--set", "training.compile=false", "--set", "training.replicas=2",
    "--set", "model.num_graphs=4", "--set", "assessment.controls=false", "--std-errors", "0",
]  # fmt: skip


def begin(*arguments, prepare=None, said=os.devnull):
    """Start the command as a process of its own, from this one, so that it need not import anything.

    ``prepare`` is called in it before; what it prints goes to the file ``said``.
    """
    process = os.fork()
    if process:
        return process
    code = 70
    try:
        jaxtyping.config.update("jaxtyping_disable", True)  # as for a user, and twice as fast
        sys.stdout = sys.stderr = Path(said).open("w", buffering=1)  # noqa: SIM115 - open until the process ends
        os.dup2(sys.stdout.fileno(), 1)
        os.dup2(sys.stdout.fileno(), 2)
        if prepare is not None:
            prepare()
        main([str(argument) for argument in arguments])
    except SystemExit as end:
        code = end.code
    finally:
        os._exit(code)


def end(process):
    """Wait for a process and return its exit code, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def signal_at_step(step, number):
    """Let this process send itself a signal before a step."""

    def watch(self, progress):
        if progress.step == step:
            os.kill(os.getpid(), number)

    Display.step = watch


def content(run):
    """The files of a finished run, to the byte, apart from times and checksums of what has times in it."""
    record = json.loads((run / RECORD).read_text())
    record["timings"] = record["timings"]["steps"]
    del record["stages"], record["sha256"], record["files"]["history.jsonl"]
    lines = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    return {
        "names": sorted(path.name for path in run.iterdir()),
        "record": record,
        "history": [{**line, "seconds": 0} for line in lines],
        **{name: (run / name).read_bytes() for name in ("edges.csv", "model.safetensors")},
    }
