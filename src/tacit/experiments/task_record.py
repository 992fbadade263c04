"""One task of a study, done: its record, which whoever asked for it keeps."""

import time
import traceback

from tacit.errors import InputError, TrainingError
from tacit.experiments.registry import STUDIES
from tacit.experiments.study import Listener, Options, Values
from tacit.records import describe_device, versions


def do_task(study: str, task: str, options: Options, listener: Listener | None = None) -> Values:
    """Run one task and return its record; device and versions are those of the process that does it.

    >>> record = do_task("counterexample", "curves", Options(quick=True))
    >>> sorted(record)
    ['curves', 'device', 'options', 'seconds', 'versions']
    """
    start = time.perf_counter()
    work = next(one for one in STUDIES[study].tasks() if one.name == task)
    values = work.run(options, listener or Listener())
    return {
        **values,
        "options": options.for_record(),
        "seconds": time.perf_counter() - start,
        "device": describe_device(options.torch_device),
        "versions": versions(),
    }


def try_task(study: str, task: str, options: Options) -> tuple[str, Values | Exception]:
    """Return the task with its record, or with the error it raised: an error is news too, and waits for its turn."""
    try:
        return task, do_task(study, task, options)
    except (InputError, TrainingError, OSError) as error:  # what their one line says is enough
        error.add_note(f"in task {task} of {study}")
        return task, error
    except Exception as error:
        error.add_note(f"in task {task} of {study}, elsewhere:\n{traceback.format_exc()}")
        return task, error
