"""Options of ``tacit demo``: the synthetic system, the model and the training."""

from collections.abc import Mapping

import torch
from pydantic import Field

from tacit.config.closed import Closed
from tacit.config.model import ModelConfig, TrainingConfig
from tacit.errors import InputError
from tacit.systems import PAPER_HOP_WEIGHTS, CommunitySystem, community_edge_probs


class SystemConfig(Closed):
    """The synthetic system that generates the data; the defaults are those of the paper."""

    num_communities: int = Field(2, ge=1)
    edge_prob: float = Field(0.75, ge=0, le=1)
    hop_weights: tuple[tuple[float, ...], ...] = PAPER_HOP_WEIGHTS
    input_scale: float = Field(1.5, gt=0)
    num_pairs: int = Field(35_000, ge=10)

    def build(self) -> CommunitySystem:
        """Return the system."""
        try:
            hop_weights = torch.tensor(self.hop_weights)[..., None]
        except ValueError:
            lengths = sorted({len(row) for row in self.hop_weights})
            raise InputError(
                f"hop_weights must have rows of one length, got lengths {lengths}; pass one number per channel"
            ) from None
        return CommunitySystem(
            community_edge_probs(self.num_communities, self.edge_prob), hop_weights, self.input_scale
        )


class DemoConfig(Closed):
    """All options of ``tacit demo``."""

    system: SystemConfig = SystemConfig()
    model: ModelConfig = ModelConfig(num_graphs=16)
    training: TrainingConfig = TrainingConfig()


# node: the default of tacit. paper: joint MMD with the baseline, schedule and 10 epochs of the paper's appendix. The
# paper does not give the number of graphs; 64 are shared by the batch, because with 32 a true edge was never sampled
# again in one of five seeds.
METHODS: Mapping[str, DemoConfig] = {
    "node": DemoConfig(),
    "paper": DemoConfig(
        model=ModelConfig(loss="mmd", scope="joint", baseline="paper", num_graphs=64, share_graphs=True),
        training=TrainingConfig(
            schedule="step", learning_rate=0.05, final_learning_rate=0.01, average_fraction=0.0, min_draws_per_edge=0.0
        ),
    ),
}
