"""Studies that are ours and not the paper's: ``python -m benchmarks.studies NAME``."""

from benchmarks.studies.correlated_edges import CorrelatedEdges
from benchmarks.studies.dream4 import DREAM4
from benchmarks.studies.edge_lags import EdgeLags
from benchmarks.studies.forecast_paths import ForecastPaths
from benchmarks.studies.gpvar import GPVAR
from benchmarks.studies.lorenz96 import Lorenz96
from benchmarks.studies.sample_size import SampleSize

from tacit.experiments.study import Study

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (SampleSize(), CorrelatedEdges(), EdgeLags(), ForecastPaths(), GPVAR(), DREAM4(), Lorenz96())
}
