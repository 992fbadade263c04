"""``model.safetensors``: the learned tensors with a checksum; reading it runs no code."""

from pathlib import Path

from torch import Tensor

from tacit.atomic_files import read_file
from tacit.errors import InputError, require
from tacit.graph import Sigmoid
from tacit.records.checksums import checksum
from tacit.records.record import Record
from tacit.tensor_files import Kind
from tacit.training import LatentGraphModel

MODEL = "model.safetensors"
KIND = Kind("model", 3, "put back the file that the run wrote, or run the command again")
CANDIDATES = "graph.candidates"  # prefix of the names of the tensors of a table of candidates
CANDIDATE_PARTS = ("row_node", "sources", "used")
INFINITE = (f"graph.{Sigmoid.parameter}",)  # the logit of an edge with probability 0 or 1


def pack_model(model: LatentGraphModel, record: Record) -> bytes:
    """Return the bytes of a model file; its text describes the run, for people who find the file alone."""
    return KIND.pack({"title": record.title, "node_names": record.node_names}, model_tensors(model))


def model_tensors(model: LatentGraphModel) -> dict[str, Tensor]:
    """Return the learned tensors, and the table of candidates if the graph has one."""
    tensors, candidates = dict(model.state_dict()), model.graph.candidates
    if candidates is not None:
        tensors |= {f"{CANDIDATES}.{name}": getattr(candidates, name) for name in CANDIDATE_PARTS}
    return tensors


def read_model(directory: Path, record: Record) -> dict[str, Tensor]:
    """Return the tensors of the model of a record; raise :class:`InputError` if the file is another one or damaged."""
    path = directory / MODEL
    try:
        data = read_file(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); {KIND.remedy}") from None
    _, tensors = KIND.unpack(data, str(path))
    require(
        record.files.get(MODEL) == checksum(data),
        f"{path} is not the model of this run: its checksum differs from that in record.json; {KIND.remedy}",
    )
    KIND.require_finite(tensors, str(path), INFINITE)
    return tensors
