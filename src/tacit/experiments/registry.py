"""The studies by the name that ``tacit reproduce`` calls them."""

from tacit.experiments.air_quality import AirQuality
from tacit.experiments.correlated_edges import CorrelatedEdges
from tacit.experiments.counterexample import Counterexample
from tacit.experiments.dream4 import DREAM4
from tacit.experiments.generic_gnn import GenericGNN
from tacit.experiments.gpvar import GPVAR
from tacit.experiments.injectivity import Injectivity
from tacit.experiments.larger_graph import LargerGraph
from tacit.experiments.learned_graph import LearnedGraph
from tacit.experiments.lorenz96 import Lorenz96
from tacit.experiments.losses import Losses
from tacit.experiments.misconfigured import Misconfigured
from tacit.experiments.num_graphs import NumGraphs
from tacit.experiments.perturbed import Perturbed
from tacit.experiments.sample_size import SampleSize
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
    SampleSize(),
    Perturbed(),
    GenericGNN(),
    Misconfigured(),
    CorrelatedEdges(),
    Counterexample(),
    Injectivity(),
    AirQuality(),
    GPVAR(),
    DREAM4(),
    Lorenz96(),
)
STUDIES: dict[str, Study] = {study.name: study for study in _ALL}
