"""Training: many replicas of one model, by stochastic gradients."""

from tacit.training.agreement import from_the_first, meet_in_step
from tacit.training.checkpoint import Checkpoints
from tacit.training.expansion import expanded as densify
from tacit.training.expansion import expanded_result as densify_result
from tacit.training.fit import fit
from tacit.training.listener import Listener
from tacit.training.local_ridge import is_affordable, local_ridge
from tacit.training.loop import Monitor, Trace
from tacit.training.model import LatentGraphModel
from tacit.training.processes import Processes
from tacit.training.result import Epoch, FitResult, Progress, Replica
from tacit.training.schedule import CosineDecay, Schedule, StepDecay
from tacit.training.settings import FitSettings
from tacit.training.table_start import table_edge_start, table_filter_start, table_ridge
from tacit.training.warm_start import filter_start, ridge_start


def replica_seeds(seed, replicas):
    return [seed * 1000 + replica for replica in range(replicas)]
