"""The studies of ``tacit reproduce`` by name."""

from tacit.experiments.air_quality import AirQuality
from tacit.experiments.counterexample import Counterexample
from tacit.experiments.generic_gnn import GenericGNN
from tacit.experiments.injectivity import Injectivity
from tacit.experiments.larger_graph import LargerGraph
from tacit.experiments.learned_graph import LearnedGraph
from tacit.experiments.losses import Losses
from tacit.experiments.misconfigured import Misconfigured
from tacit.experiments.num_graphs import NumGraphs
from tacit.experiments.perturbed import Perturbed
from tacit.experiments.study import Study
from tacit.experiments.system import System
from tacit.experiments.validation import Validation
from tacit.experiments.variance import Variance

_ALL: tuple[Study, ...] = (
    Losses(),
    Validation(),
    Variance(),
    System(),
    NumGraphs(),
    LearnedGraph(),
    LargerGraph(),
    Perturbed(),
    GenericGNN(),
    Misconfigured(),
    Counterexample(),
    Injectivity(),
    AirQuality(),
)
STUDIES: dict[str, Study] = {study.name: study for study in _ALL}
