"""Where the tasks of a study run: processes of this machine, or the workers of a Dask cluster. joblib hands them out.

A task gives its record back and the caller writes it, since a worker may have another file system. Threads: joblib
gives each of ``jobs`` processes its share of the cores (``OMP_NUM_THREADS``, which torch reads), and so does a Dask
worker with a nanny, the usual kind: one thread for each.
"""

import warnings
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import AbstractContextManager, contextmanager

from joblib import Parallel, delayed

from tacit.errors import InputError, TrainingError
from tacit.experiments.study import Options, Values
from tacit.experiments.task_record import try_task


class Workers:
    """Tasks side by side; where, is joblib's configuration at the time: see :func:`workers`."""

    def __init__(self, number: int, words: str) -> None:
        self.number, self.words = number, words

    def records(self, study: str, tasks: Sequence[str], options: Options) -> Generator[tuple[str, Values], None, None]:
        """Yield each task with its record as it finishes.

        The error of a task is raised in its turn, after everything that was finished before it; the rest is given up.
        """
        calls = (delayed(try_task)(study, task, options) for task in tasks)
        # One call at a time, in the order they finish; all handed over at once, so that workers that join later help.
        side_by_side = Parallel(n_jobs=self.number, batch_size=1, pre_dispatch="all", return_as="generator_unordered")
        outcomes = side_by_side(calls)
        try:
            for task, outcome in outcomes:
                if isinstance(outcome, Exception):
                    raise outcome
                yield task, outcome
        except BrokenExecutor as error:
            raise TrainingError(
                f"a process of this machine ended in the middle of a task ({type(error).__name__}), perhaps for want "
                "of memory; what was finished is kept: start it again with fewer --jobs"
            ) from error
        finally:
            with warnings.catch_warnings():  # that tasks are given up is known here
                warnings.simplefilter("ignore", UserWarning)
                outcomes.close()


@contextmanager
def workers(options: Options, jobs: int = 1, scheduler: str | None = None) -> Iterator[Workers | None]:
    """Open what tasks run on: None for this very process.

    Raise :class:`InputError` if that cannot be: a GPU shared by processes, or a cluster that does not answer.
    """
    if scheduler is not None:
        if jobs > 1:
            raise InputError(
                f"jobs is for processes on this machine, got {jobs} and a scheduler, whose workers say themselves how "
                "many tasks they take; leave --jobs or --scheduler out"
            )
        with _cluster(scheduler, options) as slots:
            yield Workers(slots, f"on {scheduler}, {slots} at a time")
        return
    if jobs > 1 and options.torch_device.type == "cuda":
        raise InputError(f"jobs needs to be 1 on a GPU, which one task fills, got {jobs}; leave --jobs out")
    yield Workers(jobs, f"{jobs} at a time") if jobs > 1 else None


def _cluster(address: str, options: Options) -> AbstractContextManager[int]:
    """Import Dask only when it is asked for: it is an optional dependency."""
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise InputError(
            "scheduler needs the package distributed, which is not installed; run: pip install 'tacit[dask]'"
        ) from None
    from tacit.experiments.cluster import dask_cluster

    return dask_cluster(address, options)
