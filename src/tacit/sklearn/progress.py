"""What ``verbose=True`` prints: each stage and what it took, and a line at the first step of every epoch."""

from tacit.training import Listener, Progress


def _print_epoch(progress: Progress) -> None:
    if progress.step % max(1, progress.steps // progress.epochs) == 0:
        loss = "" if progress.loss is None else f", loss {progress.loss:.4g}"
        print(f"epoch {progress.epoch + 1} of {progress.epochs}{loss}", flush=True)


def _print_finished(name: str, seconds: float) -> None:
    print(f"{name} took {seconds:.1f} s", flush=True)


PRINTED = Listener(print, _print_epoch, _print_finished, print)
