"""Run the tasks of a study in processes of this machine (joblib) or on the workers of a Dask cluster.

A task returns its record and the caller writes it, because a worker may have another file system. joblib assigns each
of ``jobs`` processes its share of the cores (``OMP_NUM_THREADS``, which torch reads); a Dask worker with a nanny, the
usual kind, uses one thread for each task. Every worker of a cluster is checked before it starts.
"""

import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import torch

from tacit.errors import InputError, TrainingError, require, require_package
from tacit.experiments.study import Options, Outcomes, RunTasks, Study, try_task
from tacit.records import versions

if TYPE_CHECKING:
    from distributed import Client

CONNECT_SECONDS, WORKERS_SECONDS = 6, 4  # time limits
SCHEMES = ("tcp", "tls")
LOST = "the Dask cluster lost a task ({}); finished tasks are kept; start the command again to resume"
SAME = ("tacit", "torch")  # packages that must have the same version on a worker, for the same results


@contextmanager
def dask_outcomes(address: str, options: Options) -> Iterator[tuple[int, RunTasks]]:
    """Connect to the cluster at ``address``; yield the number of parallel tasks, and a function that runs tasks there.

    Raise :class:`InputError` if there is no such cluster, or if one of its workers cannot run these ``options``.
    """
    require_package("distributed", "scheduler", "dask")
    from distributed import as_completed

    try:
        parts = urlsplit(address)
        whole = parts.scheme in SCHEMES and bool(parts.hostname) and bool(parts.port) and not parts.path
    except ValueError:  # a port that is not a number, or too high
        whole = False
    require(whole, f"scheduler must be an address like tcp://host:8786, got '{address}'; 'dask scheduler' shows it")
    with _connected(address) as client:
        try:
            client.wait_for_workers(1, timeout=WORKERS_SECONDS)
        except TimeoutError:
            raise InputError(
                f"scheduler must have at least one worker, got {address} with none; start some with 'dask worker "
                f"{address} --nthreads 1'"
            ) from None

        # Every worker is checked before any task starts, so that a task does not fail an hour later.
        needed = {name: versions()[name] for name in SAME}
        for worker, failing in client.run(_what_fails_here, needed, options, on_error="return").items():
            if isinstance(failing, BaseException):
                failing = f"tacit {needed['tacit']}, which cannot be used there ({type(failing).__name__}: {failing})"
            if failing is not None:
                raise InputError(
                    f"scheduler requires workers with {failing} at {worker}; set that worker up, or stop it"
                )

        def outcomes(study: Study, tasks: Sequence[str], options: Options) -> Outcomes:
            futures = [client.submit(try_task, study, task, options, pure=False) for task in tasks]
            try:
                for future, found in as_completed(futures, loop=client.loop, with_results=True, raise_errors=False):
                    if future.status != "finished":
                        why = type(found[1]).__name__ if future.status == "error" else future.status
                        raise TrainingError(LOST.format(why))
                    yield found
            finally:
                client.cancel(futures)

        yield sum(client.ncores().values()), outcomes


def _connected(address: str) -> "Client":
    """Return a client, created in another thread: it would block forever if the server is not a Dask scheduler."""
    from distributed import Client

    found: list[Client | Exception] = []

    def connect() -> None:
        try:
            found.append(Client(address, timeout=CONNECT_SECONDS, set_as_default=False))
        except Exception as error:
            found.append(error)

    attempt = Thread(target=connect, daemon=True)
    attempt.start()
    attempt.join(CONNECT_SECONDS + 1)
    if found and isinstance(found[0], Client):
        return found[0]
    why = f" ({found[0]})" if found and not isinstance(found[0], OSError) else ""  # OSError: no answer in time
    raise InputError(
        f"scheduler must be a running Dask scheduler, got {address}, which did not answer within {CONNECT_SECONDS} "
        f"s{why}; start one there with 'dask scheduler', or correct the address"
    )


def _what_fails_here(needed: dict[str, str], options: Options) -> str | None:
    """Return a description of what this process lacks, or None."""
    for name, version in needed.items():
        if versions()[name] != version:
            return f"{name} {version} as here, got {versions()[name]}"
    try:
        torch.zeros(1, device=options.torch_device)
    except (RuntimeError, AssertionError) as error:  # torch without CUDA asserts
        return f"device {options.device}, got none ({str(error).splitlines()[0]})"
    if options.data is not None and not Path(options.data).exists():
        return f"the data at the same path {options.data}, got nothing there"
    return None


Workers = tuple[str, RunTasks]  # in words, and a function that yields each task with its outcome as it finishes


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
        with dask_outcomes(scheduler, options) as (slots, outcomes):
            yield f"on {scheduler}, {slots} at a time", outcomes
        return
    if jobs > 1 and options.torch_device.type == "cuda":
        raise InputError(f"jobs must be 1 on a GPU, got {jobs}; leave --jobs out")
    yield (f"{jobs} at a time", _in_processes(jobs)) if jobs > 1 else None


def _in_processes(jobs: int) -> RunTasks:
    """Return a function that runs tasks in ``jobs`` processes of this machine."""
    from joblib import Parallel, delayed

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
