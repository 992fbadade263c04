"""Sentences for the terminal, the page, notebooks and records: the only place where findings are put into words."""

from tacit.words.answer import GAUSSIAN_P, acting_within, answer_sentences, caveats, required_edges
from tacit.words.choices import Choice, choose
from tacit.words.effects import condition, interval_words
from tacit.words.findings import FROM_ERRORS, Finding, FindingKind, find

__all__ = [
    "FROM_ERRORS",
    "GAUSSIAN_P",
    "Choice",
    "Finding",
    "FindingKind",
    "acting_within",
    "answer_sentences",
    "caveats",
    "choose",
    "condition",
    "find",
    "interval_words",
    "required_edges",
]
