"""Processes started by torchrun: they synchronise before and after the job, and print one error line for all.

torchrun kills every process as soon as one exits with an error, so no process may exit before the line is printed.
"""

import os
import signal
import sys
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tacit.errors import ProcessesError, one_line, require
from tacit.interrupts import Terminated, heeded_termination

if TYPE_CHECKING:
    import torch

# How long a process waits for another. One that dies is detected at once; this limit is for one that hangs or lost its
# network. In a normal run, processes wait for the slowest to read the data, to compile, or to draw the report.
PATIENCE = timedelta(minutes=10)
PATIENCE_AT_THE_END = timedelta(seconds=5)
AS_TORCHRUN_DOES = "sent by torchrun because another process of this training ended; start all processes again"


@dataclass(frozen=True)
class Launch:
    """Rank of this process and number of processes, in total and on this machine."""

    rank: int = 0
    count: int = 1
    local_rank: int = 0
    local_count: int = 1

    @classmethod
    def from_environment(cls) -> "Launch":
        """Return the launch that torchrun set in the environment, or that of a single process."""
        if os.environ.get("WORLD_SIZE", "1") == "1":
            return cls()
        for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT"):
            value = os.environ.get(name)
            require(
                value is not None and value.isdecimal(),
                f"{name} must be an integer if WORLD_SIZE is above 1, got {value!r}; start with torchrun, or unset "
                "WORLD_SIZE",
            )
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
        return cls(*(int(os.environ[name]) for name in names))

    @property
    def several(self) -> bool:
        """Whether there is more than one process."""
        return self.count > 1

    @property
    def first(self) -> bool:
        """Whether this is the process that writes and prints."""
        return self.rank == 0

    def require_alone(self, what: str) -> None:
        """Raise :class:`InputError` if a command that runs in one process was started by torchrun."""
        require(not self.several, f"torchrun is for tacit fit, got {what}; start it without torchrun")

    def join(self) -> None:
        """Connect to the other processes: with gloo on CPUs and with nccl on GPUs."""
        if not self.several:
            return
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # outside the handler: the process exits with its own code
        with heeded_termination(ctrl_c=True):
            self._join()

    def _join(self) -> None:
        import torch
        import torch.distributed as dist

        on_gpus = torch.cuda.is_available() and dist.is_nccl_available()
        try:
            dist.init_process_group("cpu:gloo,cuda:nccl" if on_gpus else "gloo", timeout=PATIENCE)
        except (RuntimeError, ValueError) as error:
            first_line = str(error).splitlines()[0]
            raise ProcessesError(
                f"process {self.rank} of {self.count} could not connect to the others ({first_line}); check that all "
                "were started and can reach MASTER_ADDR"
            ) from None

    def reason(self, error: Terminated) -> str:
        """Return a message that explains why this process was stopped."""
        by_torchrun = self.several and error.number == signal.SIGTERM
        return f"{error}, {AS_TORCHRUN_DOES}" if by_torchrun else str(error)

    def own_device(self, device: "torch.device") -> "torch.device":
        """Return the device of this process: one GPU for each."""
        if not self.several or device.type != "cuda":
            return device
        import torch

        require(
            device.index is None,
            f"device must be cuda for several processes with one GPU each, got {device}; use --device cuda",
        )
        there = torch.cuda.device_count()
        require(
            self.local_count <= there,
            f"nproc-per-node must be at most the number of GPUs, {there}, got {self.local_count}; start "
            f"{there}, or use --device cpu",
        )
        torch.cuda.set_device(self.local_rank)
        return torch.device("cuda", self.local_rank)

    def end(self, code: int, message: str | None, in_step: bool) -> int:
        """Print the error once for all processes, and return their common exit code.

        Processes that are ``in_step`` can still synchronise. Otherwise the first process that reaches the store of the
        launcher prints its message, and the others notice that it has exited.
        """
        if self.several:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process exits now in any case
            try:
                if in_step:
                    return self._end_together(code, message)
            except ProcessesError as error:
                code, message = (1, str(error)) if message is None else (code, message)
            if not self._first_to_say():
                return code
        _say(message)
        return code

    def _end_together(self, code: int, message: str | None) -> int:
        from torch.distributed import destroy_process_group

        from tacit.training import Ended, Processes

        processes = Processes(self.rank, self.count)
        met: list[Any] = [None]
        while not all(
            isinstance(other, Ended) for other in met
        ):  # those about to train receive it, and synchronise again
            met = processes.meet(Ended(code, message))
        spoken = [(rank, ended) for rank, ended in enumerate(met) if ended.message is not None]
        rank, ended = spoken[0] if spoken else (0, max(met, key=lambda other: other.code))
        if self.first and ended.message is not None:
            _say(ended.message if rank == 0 else f"process {rank}: {ended.message}")
        processes.meet(None)
        destroy_process_group()
        return int(ended.code)

    def _first_to_say(self) -> bool:
        import torch.distributed as dist

        try:
            host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
            store = dist.TCPStore(host, port, is_master=False, timeout=PATIENCE_AT_THE_END)  # type: ignore[attr-defined]
            return bool(store.add("tacit/said", 1) == 1)
        except RuntimeError:  # the process that kept the store has exited
            return True


def _say(message: str | None) -> None:
    if message is not None:
        print(f"tacit: {one_line(message)}", file=sys.stderr, flush=True)
