"""Identifiability: which edges have an effect, which are indistinguishable, and which other graphs predict as well."""

from tacit.assessment.identification.effects import draw_contexts
from tacit.assessment.identification.injectivity import Injectivity, check_injectivity
from tacit.assessment.identification.replicas import ReplicaGraph, compare_replicas
from tacit.assessment.identification.representations import (
    CERTAIN,
    LOOPS_OFF,
    LOOPS_ON,
    Representation,
    find_representations,
)
from tacit.assessment.identification.verdict import FLAGS, Identifiability, identify

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
    "find_representations",
    "identify",
]
