"""What the data can tell: which edges have an effect, which look alike, and whether another answer is as good."""

from tacit.identification.contexts import draw_contexts
from tacit.identification.injectivity import Injectivity, check_injectivity
from tacit.identification.replicas import ReplicaGraph, compare_replicas
from tacit.identification.representations import Representation, find_representations
from tacit.identification.transforms import CERTAIN, LOOPS_OFF, LOOPS_ON
from tacit.identification.verdict import Identifiability, identify

__all__ = [
    "CERTAIN",
    "LOOPS_OFF",
    "LOOPS_ON",
    "Identifiability",
    "Injectivity",
    "ReplicaGraph",
    "Representation",
    "check_injectivity",
    "compare_replicas",
    "draw_contexts",
    "find_representations",
    "identify",
]
