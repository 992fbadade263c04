"""``model.safetensors``: what was learned, as tensors under a checksum; reading it runs no code."""

from pathlib import Path

from torch import Tensor

from tacit.errors import InputError, require
from tacit.graph import Sigmoid
from tacit.records.checksums import checksum
from tacit.records.record import Record
from tacit.tensor_files import Kind, header_of, load
from tacit.training import LatentGraphModel
from tacit.whole_files import read_whole

MODEL = "model.safetensors"
KIND = Kind("model", 2, "put back the file that the run wrote, or run the command again", first=2)
SLOTS = "graph.slots"  # in front of the names of these, where there is a table
SLOT_PARTS = ("row_node", "senders", "used")
INFINITE = (f"graph.{Sigmoid.parameter}",)  # the logit of an edge that is always or never there


def pack_model(model: LatentGraphModel, record: Record) -> bytes:
    """Return the file of a model; the text in it is for people who find it alone."""
    tensors, slots = dict(model.state_dict()), model.graph.slots
    if slots is not None:
        tensors |= {f"{SLOTS}.{name}": getattr(slots, name) for name in SLOT_PARTS}
    return KIND.pack({"title": record.title, "node_names": record.node_names}, tensors)


def read_model(directory: Path, record: Record) -> dict[str, Tensor]:
    """Return the tensors of the model that belongs to a record; anything else is an :class:`InputError`."""
    path = directory / MODEL
    try:
        data = read_whole(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); {KIND.remedy}") from None
    if record.format == 1:
        tensors = _read_format_1(data, str(path))
    else:
        _, tensors = KIND.unpack(data, str(path))
        require(
            record.files.get(MODEL) == checksum(data),
            f"{path} is a whole model, but not that of this run: its checksum is not the one in record.json; "
            f"{KIND.remedy}",
        )
    KIND.require_finite(tensors, str(path), INFINITE)
    return with_observation(tensors)


def with_observation(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors by today's names: once the noise was a wrapper around the predictor.

    >>> list(with_observation({"predictor.log_sigma": Tensor(), "predictor.predictor.own": Tensor()}))
    ['observation.log_sigma', 'predictor.own']
    """
    noise = {f"predictor.{name}": f"observation.{name}" for name in ("log_sigma", "sigma_weights", "sigma_bias")}
    if not noise.keys() & tensors.keys():
        return tensors
    return {noise.get(name, name.replace("predictor.predictor.", "predictor.", 1)): v for name, v in tensors.items()}


def _read_format_1(data: bytes, where: str) -> dict[str, Tensor]:
    """Read a model from before there were checksums: the library sees that it is whole, not that it is unchanged."""
    try:
        metadata = header_of(data)
        require(
            "kind" not in metadata,
            f"{where} is newer than record.json beside it, so that they are of two runs; {KIND.remedy}",
        )
        if metadata.get("format") != "1":
            raise ValueError("it is not one of tacit")
        return load(data)
    except InputError:
        raise
    except (ValueError, TypeError) as error:
        raise InputError(f"{where} is a damaged model ({error}); {KIND.remedy}") from None
