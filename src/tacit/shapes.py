"""Tensor shapes used in the signatures of the package.

The axes are always in this order, and a name always has the same meaning:

=============  ==========================================================================
``batch``      pairs (x, y) of a mini-batch
``graph``      graphs sampled for one pair
``node``       nodes
``row``        targets: the nodes; in a table of candidates, a node with many sources has several rows
``slot``       sources: the nodes; in a table of candidates, the candidate sources of a target
``channel``    numbers per node
``draw``       ``batch`` if every pair has its own graphs, 1 if the batch shares them
``unit``       terms of a loss: the nodes at node scope, 1 at joint scope
=============  ==========================================================================

Replicas are a further first axis, added by :mod:`tacit.training.gradient` and not part of these shapes. Shapes are
checked only in tests (jaxtyping with beartype); at run time the aliases have no cost.
"""

from jaxtyping import Bool, Float, UInt8
from torch import Tensor

Inputs = Float[Tensor, "batch node in_channel"]
Targets = Float[Tensor, "batch node channel"]
Samples = Float[Tensor, "batch graph node channel"]
Draws = Float[Tensor, "batch sample node channel"]  # one or several samples for each graph
Outputs = Float[Tensor, "batch graph node output"]  # of a predictor: means, and more for some observation models
TargetParams = Float[Tensor, "batch graph node number"]  # parameters of the distribution of each target
Observed = Float[Tensor, "batch node channel"]
PointPrediction = Float[Tensor, "batch node channel"]

EdgeProbs = Float[Tensor, "row slot"]
EdgeLogProbs = Float[Tensor, "row slot"]
EdgeMask = Bool[Tensor, "row slot"]
EdgeCodes = UInt8[Tensor, "row slot"]  # places in a tuple of words
Graphs = Float[Tensor, "draw graph row slot"]
Uniforms = Float[Tensor, "#draw graph uniform_row uniform"]  # usually one per row and slot
GroupUniforms = Float[Tensor, "#draw group uniform_row uniform"]  # one set for the graphs of a group
StepUniforms = Float[Tensor, "#draw group uniform_row number"]  # for the edges, then for the noise if it is sampled
NoiseUniforms = Float[Tensor, "#batch graph node noise"]  # one per channel; several for some observation models
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
