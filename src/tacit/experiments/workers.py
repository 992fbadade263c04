"""Run the tasks of a study in processes of this machine (joblib) or on the workers of a Dask cluster.

A task returns its record and the caller writes it, because a worker may have another file system. joblib assigns each
of ``jobs`` processes its share of the cores (``OMP_NUM_THREADS``, which torch reads); a Dask worker with a nanny, the
usual kind, uses one thread for each task.
"""

import warnings
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass

from joblib import Parallel, delayed

from tacit.errors import InputError, TrainingError
from tacit.experiments.study import Options, Study, Values
from tacit.experiments.task_record import Outcomes, RunTasks, try_task


@dataclass(frozen=True)
class Workers:
    """Parallel workers; ``outcomes`` yields each task with its outcome as it finishes."""

    words: str
    outcomes: RunTasks

    def records(
        self, study: Study, tasks: Sequence[str], options: Options
    ) -> Generator[tuple[str, Values], None, None]:
        """Yield each task with its record as it finishes.

        The error of a task is raised after the records that were finished before it; other tasks are cancelled.
        """
        with closing(self.outcomes(study, tasks, options)) as outcomes:
            for task, outcome in outcomes:
                if isinstance(outcome, Exception):
                    raise outcome
                yield task, outcome


@contextmanager
def workers(options: Options, jobs: int = 1, scheduler: str | None = None) -> Iterator[Workers | None]:
    """Start the workers; yield None if tasks run in this process.

    Raise :class:`InputError` if this is not possible: a GPU shared by processes, or a cluster that does not answer.
    """
    if scheduler is not None:
        if jobs > 1:
            raise InputError(
                f"jobs must be 1 with a scheduler, got {jobs}; leave out --jobs (the workers limit the number of "
                "tasks), or --scheduler"
            )
        _require_dask()
        from tacit.experiments.cluster import dask_outcomes

        with dask_outcomes(scheduler, options) as (slots, outcomes):
            yield Workers(f"on {scheduler}, {slots} at a time", outcomes)
        return
    if jobs > 1 and options.torch_device.type == "cuda":
        raise InputError(f"jobs must be 1 on a GPU, got {jobs}; leave --jobs out")
    yield Workers(f"{jobs} at a time", _in_processes(jobs)) if jobs > 1 else None


def _in_processes(jobs: int) -> RunTasks:
    """Return a function that runs tasks in ``jobs`` processes of this machine."""

    def outcomes(study: Study, tasks: Sequence[str], options: Options) -> Outcomes:
        found = Parallel(n_jobs=jobs, batch_size=1, pre_dispatch="all", return_as="generator_unordered")(
            delayed(try_task)(study, task, options) for task in tasks
        )
        try:
            yield from found
        except BrokenExecutor as error:
            raise TrainingError(
                f"a process of this machine ended in the middle of a task ({type(error).__name__}), possibly out of "
                "memory; finished tasks are kept; start the command again with fewer --jobs"
            ) from error
        finally:
            with warnings.catch_warnings():  # cancelled tasks are expected here
                warnings.simplefilter("ignore", UserWarning)
                found.close()

    return outcomes


def _require_dask() -> None:
    """Raise :class:`InputError` if Dask, an optional dependency, is not installed."""
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise InputError(
            "scheduler requires the package distributed, which is not installed; run: pip install 'tacit[dask]'"
        ) from None
