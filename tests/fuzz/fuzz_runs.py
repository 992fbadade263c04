"""Run directories and checkpoints: bytes changed, files swapped, fields edited, tensors replaced, seals made anew."""

import contextlib
import copy
import functools
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from fuzz_configs import TABLE
from fuzz_inputs import finished, make_runs
from fuzz_judge import Case, contents, run
from fuzz_tables import quick
from fuzz_words import damaged, json_values, odd_words
from hypothesis import strategies as st

from tacit.console import Display
from tacit.pipeline import job
from tacit.records import record as model_file
from tacit.records.record import checksum, sealed
from tacit.training import Checkpoints, checkpoint

RECORD, MODEL, CALL, CHECKPOINT = (
    "run/record.json",
    "run/model.safetensors",
    "run/call.json",
    "run/checkpoint.safetensors",
)
Files = dict[str, bytes | None]


class Killed(BaseException):
    """The process ends in the middle of a training."""


@functools.cache
def stopped() -> Files:
    """Return the files of a run that was killed while it trained."""
    folder, before = Path(tempfile.mkdtemp(prefix="fuzz-run-")), Path.cwd()

    def kill(_self: Display, progress: Any) -> None:
        if progress.step == 3:
            raise Killed

    often = functools.partial(Checkpoints, every=0)
    try:
        (folder / "t.csv").write_bytes(TABLE)
        os.chdir(folder)
        with mock.patch.object(job, "Checkpoints", often), mock.patch.object(Display, "step", kill):
            words = [
                *quick("model", "assessment", "data"),
                "--set",
                "training.epochs=4",
                "--set",
                "training.replicas=1",
            ]
            run(("fit", "t.csv", "--out", "run", "--quiet", *words, "--set", "training.compile=false"))
        raise AssertionError("it was not killed")
    except Killed:
        return contents(folder)
    finally:
        os.chdir(before)
        shutil.rmtree(folder)


@st.composite
def edited(draw: Any, value: Any) -> Any:
    """Return JSON with one place in it changed: another value, another name, nothing, or more."""
    value, place = copy.deepcopy(value), []
    holder: Any = {"all": value}
    inner: Any = "all"
    while isinstance(holder[inner], dict | list) and holder[inner] and draw(st.integers(1, 6)) > 1:
        holder = holder[inner]
        inner = (
            draw(st.sampled_from(sorted(holder))) if isinstance(holder, dict) else draw(st.integers(0, len(holder) - 1))
        )
        place.append(inner)
    match draw(st.sampled_from(("replace", "replace", "number", "remove", "add", "nest"))):
        case "replace":
            holder[inner] = draw(json_values)
        case "number":
            holder[inner] = draw(
                st.sampled_from((0, -1, 1, 2, 10**9, 10**18, 1e300, float("nan"), float("inf"), 0.5, True))
            )
        case "remove":
            if place:
                del holder[inner]
        case "add":
            if isinstance(holder, dict):
                holder[draw(odd_words)] = draw(json_values)
            else:
                holder.append(draw(json_values))
        case _:
            for _ in range(draw(st.sampled_from((1, 3, 200)))):
                holder[inner] = [holder[inner]]
    return holder["all"] if not place else value


def reseal(files: Files, fields: dict[str, Any] | None = None) -> None:
    """Let the record say that the files are as they are: whoever can edit one can also make a checksum."""
    fields = json.loads(files[RECORD] or b"{}") if fields is None else fields
    if isinstance(fields, dict) and isinstance(fields.get("files"), dict):
        there = {name: files.get(f"run/{name}") for name in fields["files"]}
        fields = fields | {"sha256": "", "files": {name: checksum(data or b"") for name, data in there.items()}}
    text = json.dumps(fields, indent=2) + "\n"
    try:
        files[RECORD] = sealed(text)
    except ValueError:
        files[RECORD] = text.encode("utf-8", "replace")


@st.composite
def tensors_changed(draw: Any, data: bytes, kind: Any) -> bytes:
    """Return a file of tensors with other tensors in it, and a checksum that fits."""
    text, tensors = kind.unpack(data, "it")
    name = draw(st.sampled_from(sorted(tensors)))
    value = tensors[name]
    match draw(st.sampled_from(("nan", "type", "shape", "gone", "more", "text", "text", "swap"))):
        case "nan":
            bad = draw(st.sampled_from((float("nan"), float("inf"), -float("inf"))))
            tensors[name] = torch.full_like(value, bad if value.is_floating_point() else 7)
        case "type":
            tensors[name] = value.to(
                draw(st.sampled_from((torch.float64, torch.float16, torch.int64, torch.bool, torch.bfloat16)))
            )
        case "shape":
            tensors[name] = draw(
                st.sampled_from((value[None], value.flatten(), value[:0] if value.dim() else value, torch.zeros(0)))
            )
        case "gone":
            del tensors[name]
        case "more":
            tensors["graph.candidates.used" if draw(st.booleans()) else "other"] = torch.zeros(2)
        case "text":
            text = draw(edited(text))
            text = text if isinstance(text, dict) else {"all": text}
        case _:
            other = draw(st.sampled_from(sorted(tensors)))
            tensors[name], tensors[other] = tensors[other], tensors[name]
    return kind.pack(text, tensors)


@st.composite
def header_changed(draw: Any, data: bytes) -> bytes:
    """Return a safetensors file whose header says something else."""
    length = int.from_bytes(data[:8], "little")
    header = draw(edited(json.loads(data[8 : 8 + length])))
    text = json.dumps(header).encode("utf-8", "replace")
    said = draw(st.sampled_from((len(text),) * 6 + (0, 2**63 - 1, 2**64 - 1, len(text) + 9999)))
    return said.to_bytes(8, "little") + text + data[8 + length :]


@st.composite
def broken(draw: Any, files: Files, names: list[str]) -> None:
    """Change one file of a run."""
    name = draw(st.sampled_from(names))
    data = files[name] or b""
    kinds = ["bytes", "gone", "folder", "empty", "other"]
    kinds += (
        ["fields"] * 8
        if name.endswith(".json")
        else ["tensors", "tensors", "tensors", "header", "header"]
        if name.endswith("tensors")
        else ["lines"] * 3
    )
    match draw(st.sampled_from(kinds)):
        case "bytes":
            files[name] = draw(damaged(data))
        case "gone":
            del files[name]
        case "folder":
            files[name] = None
        case "empty":
            files[name] = b""
        case "other":
            files[name] = files[draw(st.sampled_from(names))]
        case "fields":
            changed = draw(edited(json.loads(data)))
            files[name] = json.dumps(changed).encode("utf-8", "replace")
            if name == RECORD and draw(st.integers(1, 5)) > 1:
                reseal(files, changed)
        case "tensors":
            kind = checkpoint.KIND if name == CHECKPOINT else model_file.KIND
            files[name] = draw(tensors_changed(data, kind))
        case "header":
            files[name] = draw(header_changed(data))
        case _:
            lines = data.split(b"\n")
            place = draw(st.integers(0, len(lines) - 1))
            lines[place] = draw(
                st.sampled_from(
                    (
                        b"",
                        b"a,b,nan,,,,,",
                        b"a,b,2,,,,,",
                        b"a,z,0.5,,,,,",
                        lines[0],
                        b"{}",
                        b'{"epoch": NaN}',
                        b"[" * 3000,
                    )
                )
            )
            files[name] = b"\n".join(lines)


@st.composite
def finished_runs(draw: Any) -> Case:
    """A finished run with something wrong, and a command that reads it."""
    kind = draw(st.sampled_from(("series", "gaps", "pairs")))
    files = dict(finished(kind))
    names = sorted(name for name, data in files.items() if data is not None)
    if draw(st.integers(1, 8)) == 1:  # files of two runs
        name = draw(st.sampled_from(names))
        files[name] = finished("gaps" if kind == "series" else "series")[name]
    else:
        draw(broken(files, names))
    if files.get(RECORD) and draw(st.integers(1, 4)) > 1:
        with contextlib.suppress(ValueError):
            reseal(files)
    files["t.csv"] = TABLE
    command = draw(
        st.sampled_from(
            (("predict", "run", "t.csv"), ("evaluate", "run"), ("evaluate", "run", "t.csv"), ("report", "run"))
        )
    )
    return Case((*command, "--quiet"), files)


@st.composite
def stopped_runs(draw: Any) -> Case:
    """A stopped run with something wrong, to go on with."""
    files = dict(stopped())
    if draw(st.integers(1, 20)) > 1:
        draw(broken(files, [CALL, CHECKPOINT]))
    if draw(st.integers(1, 12)) == 1:
        files["t.csv"] = draw(damaged(TABLE))
    return Case(("fit", "--resume", "run", "--quiet"), files, trains=True)


def changed_runs() -> st.SearchStrategy[Case]:
    """Finished runs."""
    make_runs()
    return finished_runs()


def changed_checkpoints() -> st.SearchStrategy[Case]:
    """Stopped runs."""
    stopped()
    return stopped_runs()
