"""Run one task of a study and return its record."""

import time
import traceback
from collections.abc import Callable, Generator, Sequence

from tacit.errors import InputError, TrainingError
from tacit.experiments.study import Listener, Options, Study, Values
from tacit.records import describe_device, versions

Outcome = tuple[str, Values | Exception]  # of a task: its record, or the error it raised
Outcomes = Generator[Outcome, None, None]
RunTasks = Callable[[Study, Sequence[str], Options], Outcomes]


def do_task(study: Study, task: str, options: Options, listener: Listener | None = None) -> Values:
    """Run one task and return its record, with the device and versions of this process.

    >>> from tacit.experiments.counterexample import Counterexample
    >>> record = do_task(Counterexample(), "curves", Options(quick=True))
    >>> sorted(record)
    ['curves', 'device', 'options', 'seconds', 'versions']
    """
    start = time.perf_counter()
    work = next(one for one in study.tasks() if one.name == task)
    values = work.run(options, listener or Listener())
    return {
        **values,
        "options": options.for_record(),
        "seconds": time.perf_counter() - start,
        "device": describe_device(options.torch_device),
        "versions": versions(),
    }


def try_task(study: Study, task: str, options: Options) -> Outcome:
    """Return the task with its record, or with the error that it raised."""
    try:
        return task, do_task(study, task, options)
    except (InputError, TrainingError, OSError) as error:  # their message is enough, without a traceback
        error.add_note(f"in task {task} of {study.name}")
        return task, error
    except Exception as error:
        error.add_note(f"in task {task} of {study.name}, elsewhere:\n{traceback.format_exc()}")
        return task, error
