"""What the data can tell: which edges have an effect, which look alike, and whether another answer is as good."""

from tacit.identification.contexts import draw_contexts
from tacit.identification.effects import edge_effects
from tacit.identification.injectivity import Injectivity, check_injectivity
from tacit.identification.replicas import ReplicaGraph, compare_replicas
from tacit.identification.representations import Representation, find_representations
from tacit.identification.transforms import CERTAIN, LOOPS_OFF, LOOPS_ON
from tacit.identification.verdict import FLAGS, Identifiability, identify

__all__ = [
    "CERTAIN",
    "FLAGS",
    "LOOPS_OFF",
    "LOOPS_ON",
    "Identifiability",
    "Injectivity",
    "ReplicaGraph",
    "Representation",
    "check_injectivity",
    "compare_replicas",
    "draw_contexts",
    "edge_effects",
    "find_representations",
    "identify",
]
