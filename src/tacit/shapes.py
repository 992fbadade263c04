"""The vocabulary of tensor shapes: every signature in the package is written in these words.

The axes are always in this order, and a name always means the same thing:

=============  ==========================================================================
``batch``      pairs (x, y) of a mini-batch
``graph``      graphs sampled for one pair
``node``       nodes
``row``        receivers: the nodes; in a table of candidates a node with many has several rows
``slot``       sources: the nodes; in a table of candidates the few that a node may read
``channel``    numbers per node
``draw``       ``batch`` when every pair has graphs of its own, 1 when the batch shares them
``unit``       parts a loss is made of: the nodes at node scope, 1 at joint scope
=============  ==========================================================================

Replicas are one more axis in front of all others, added by :mod:`tacit.training.gradient` and not seen here.
Shapes are checked under test only (jaxtyping with beartype); at run time the aliases cost nothing.
"""

from jaxtyping import Bool, Float
from torch import Tensor

Inputs = Float[Tensor, "batch node in_channel"]
Targets = Float[Tensor, "batch node channel"]
Samples = Float[Tensor, "batch graph node channel"]
Draws = Float[Tensor, "batch sample node channel"]  # one or several of each graph
Outputs = Float[Tensor, "batch graph node output"]  # of a predictor: the means, for some observation models more
TargetParams = Float[Tensor, "batch graph node number"]  # of each target's distribution: read by the observation model
Observed = Float[Tensor, "batch node channel"]
PointPrediction = Float[Tensor, "batch node channel"]

EdgeProbs = Float[Tensor, "row slot"]
EdgeLogProbs = Float[Tensor, "row slot"]
EdgeMask = Bool[Tensor, "row slot"]
Graphs = Float[Tensor, "draw graph row slot"]
Uniforms = Float[Tensor, "#draw graph uniform_row uniform"]  # mostly one per row and slot
GroupUniforms = Float[Tensor, "#draw group uniform_row uniform"]  # one set for graphs that are drawn together
StepUniforms = Float[Tensor, "#draw group uniform_row number"]  # of the edges, then of the noise where it is sampled
NoiseUniforms = Float[Tensor, "#batch graph node noise"]  # of each channel; for some observation models several
RowLogProb = Float[Tensor, "draw graph row"]
LogProb = Float[Tensor, "draw graph"]

Cost = Float[Tensor, "batch graph unit"]
DrawCost = Float[Tensor, "draw graph unit"]
PairCosts = Float[Tensor, "batch graph graph unit"]
Baseline = Float[Tensor, "#batch #graph unit"]
UnitLoss = Float[Tensor, "batch unit"]
UnitAverage = Float[Tensor, " unit"]
PairLoss = Float[Tensor, " batch"]
EdgeWeights = Float[Tensor, "draw graph #row #slot"]
Scalar = Float[Tensor, ""]
