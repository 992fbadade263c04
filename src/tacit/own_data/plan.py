"""What goes before the work of ``tacit fit``: the call, what it read, what was chosen, and the model at its start."""

from dataclasses import dataclass
from pathlib import Path

import torch

from tacit.config import FitConfig
from tacit.own_data.building import build_model
from tacit.own_data.call import Call
from tacit.own_data.choices import settle
from tacit.own_data.problem import Problem
from tacit.own_data.room import require_room
from tacit.own_data.trust import require_trust
from tacit.records import versions
from tacit.training import LatentGraphModel, Listener


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that is settled before the first step."""

    call: Call
    config: FitConfig
    choices: list[str]
    problem: Problem
    model: LatentGraphModel
    device: torch.device
    listener: Listener

    @classmethod
    def read(cls, call: Call, device: torch.device, listener: Listener) -> "Plan":
        """Read the data and settle what was left open; whatever cannot be is refused here."""
        listener.stage(f"{Path(call.source).name}: reading")
        config = FitConfig.model_validate(call.config)
        problem = Problem.read(call.source, config)
        config, choices = settle(config, problem, on_gpu=device.type == "cuda")
        require_trust(config, problem.preparation, len(problem.split.train))
        require_room(config, problem, device)
        model = build_model(config, problem, call.seed)
        return cls(call, config, choices, problem, model, device, listener)

    @property
    def name(self) -> str:
        """Name of the data, without its folder."""
        return Path(self.call.source).name

    @property
    def notes(self) -> list[str]:
        """What the readers changed, and whether another version had begun."""
        then, now = self.call.versions, versions()
        others = [f"{name} {then.get(name)} and {now[name]}" for name in now if then.get(name) != now[name]]
        said = [f"the run was begun and ended under different versions: {', '.join(others)}"] if others else []
        return [*self.problem.notes, *said]
