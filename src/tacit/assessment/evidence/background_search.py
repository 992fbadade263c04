r"""The choice of a background for each target, by likelihood.

With the parents $M$ that are found under a background $b$ (:mod:`tacit.assessment.evidence.backgrounds`), its score is

$$S(b) = -\tfrac{n}{2} \log \mathrm{RSS}_{b, M} - \tfrac{q_b + k_M}{2} \log n - \sum_{t \in b} \log s_t
  - \sum_{c \in b} \log \tfrac{1 - \pi_c}{\pi_c} - |M| \log \tfrac{1 - \pi}{\pi}$$

with $n$ rows (a horizon of $h$ steps counts $h$ rows as one), $q_b$ columns of the background and $k_M$ of the parents,
and $s_t$ the number of places that were searched for term $t$: the rows for a shift, the frequencies for a period, 1
for a fixed column. $\pi_c$ is the prior probability that a target has terms of kind $c$, which is learned from all
targets; each kind that a background has counts once. $\pi$ is that of an edge, 1/10.

Two searches start from opposite ends, because false parents can imitate a background and a background can imitate
parents: one adds terms before any parent, the other adds parents before any term. Both then add and drop terms given
the parents of the other. Last, each target is scored with the terms of its possible sources, and periods that several
targets share are refined together. All backgrounds that come close to the best score are returned; the evidence
averages over them.

A period that is found in the data must keep its phase: the wave fitted to one half of the rows must explain the other
half too. Oscillations that are part of the dynamics drift in phase, and belong to the graph and to the own past.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from tacit.assessment.evidence.averaging import Tableau, orthonormal, quadratic_forms
from tacit.assessment.evidence.backgrounds import (
    FEWEST_ROWS,
    HOURS,
    KINDS,
    SHORTEST,
    Backgrounds,
    Clock,
    TargetBackground,
    Term,
    padded,
)
from tacit.assessment.evidence.candidates import DOUBLE, Candidates, ColumnForm, Columns, build_columns
from tacit.data import Pairs
from tacit.predictors import SeriesLayout

FEWEST_FOUND = 5.0  # cycles of a period that is found in the data, within each series
FEWEST_FILLED = 0.05  # rows per step of times in which a period is searched for
MOST_HARMONICS = 12
OVERSAMPLED = 4  # frequencies of the search per independent one
FEWEST_SHARING, SAME_CYCLES = 3, 0.5  # targets of a common period, and how far apart their own periods may be
BESIDE = 0.02  # relative distance from a period of the calendar within which no other is searched
LINE = 3.0  # height of a line in the spectrum of a target, in logarithms of the rows
MOST_PEAKS = 16  # of each spectrum that are compared exactly
OWN_LAGS, LAGS = 4, 2  # of the own past, which must leave no colour that looks like a cycle, and of the parents
NEAR = (2, 24)  # independent frequencies on each side of a peak that give the level of the spectrum around it
MOST_TERMS = 12  # of one target
MOST_OFFERED = 8  # backgrounds of sources that are offered to all targets
LEAST_SHARE = 0.002  # of what is left over that a term must explain: less does not make false edges
PRIOR = (1.0, 9.0)  # of a kind of term: a Beta distribution
EDGE_PRIOR = math.log(9.0)
MOST_PARENTS, MOST_CANDIDATES = 8, 16
SAME_PHASE = 0.5  # share of the explained sum of squares that the wave of the other half must reach
CLOSE = 7.0  # backgrounds with a score this much below the best have no weight
MOST_NUMBERS, MOST_COLUMNS = 2**23, 24  # of the columns of the targets that are searched together, and of one
TINY = 1e-9

Basis = Float[Tensor, "some row column"]  # of some of the targets
Residuals = Float[Tensor, "some row"]


def find_backgrounds(
    pairs: Pairs,
    layout: SeriesLayout,
    candidates: Candidates,
    clock: Clock,
    *,
    forced: tuple[Term, ...] = (),
    kinds: tuple[str, ...] = KINDS,
    horizon: int = 1,
) -> Backgrounds | None:
    """Return the backgrounds of all targets; None if no target has one.

    ``forced`` terms are in the background of every target; only terms of some ``kinds`` are added to them.
    """
    columns = search_columns(pairs, layout, candidates)
    variables = torch.split(columns.targets, 1, 2)
    each = [
        BackgroundSearch(replace(columns, targets=one), candidates, clock, forced, kinds, horizon) for one in variables
    ]
    found = [search.run() for search in each]
    if len(found) > 1:  # the likeliest terms of all variables
        both = [
            tuple(sorted({term for one in of_node for term in one[0].terms})) for of_node in zip(*found, strict=True)
        ]
        found = [[[TargetBackground(terms, 1.0)] for terms in both]]
    return Backgrounds(clock, found[0]) if any(one[0].terms or len(one) > 1 for one in found[0]) else None


def search_columns(pairs: Pairs, layout: SeriesLayout, candidates: Candidates, *, squares: bool = False) -> Columns:
    """Return columns with more lags of the own past than of the sources; more if the lags of edges are limited."""
    several = pairs.series is not None and len(torch.unique(pairs.series)) > 1
    own_lags = min(max(OWN_LAGS, candidates.fewest_lags), layout.window)
    columns = build_columns(pairs, layout, ColumnForm(own_lags, squares=squares, offsets=several))
    lags = min(max(LAGS, candidates.fewest_lags), columns.num_lags)
    sent = columns.num_linear // columns.num_lags
    newest = columns.sources[:, :, (columns.num_lags - lags) * sent :]  # squares come last
    return replace(columns, sources=newest, num_lags=lags)


class BackgroundSearch:
    """The search for the backgrounds of all targets; one object keeps the columns of the terms."""

    def __init__(
        self,
        columns: Columns,
        candidates: Candidates,
        clock: Clock,
        forced: tuple[Term, ...] = (),
        kinds: tuple[str, ...] = KINDS,
        horizon: int = 1,
    ) -> None:
        self.columns, self.candidates, self.clock, self.horizon = columns, candidates, clock, horizon
        self.forced, self.kinds = tuple(sorted(forced)), kinds
        targets = candidates.targets
        self.root = columns.weights.mT[targets].sqrt()  # (target, row)
        self.rows = candidates.num_rows(columns, torch.ones(len(columns.targets), dtype=DOUBLE)) / horizon
        self.missing = bool((self.root != 1).any())
        widest = int(candidates.num_always(columns).max()) + columns.own.shape[2]
        self.always = self.root.new_zeros(len(targets), widest, len(columns.targets))  # padded with 0
        for places in candidates.batches(columns, 1):  # of targets with equally many required parents
            always = candidates.always(columns, places)
            self.always[places, : always.shape[1]] = always
        self.allowed = candidates.own_columns(columns)  # columns of each edge: those of its allowed lags
        self.values = columns.targets[:, targets, 0].mT  # (target, row)
        self.priors = {kind: PRIOR[0] / sum(PRIOR) for kind in KINDS}
        self.fixed = [term for term in clock.fixed_terms() if term.kind in kinds]
        self.found: dict[int, list[Term]] = {}  # the waves of each target with a period from the data
        self.lines: dict[int, float] = {}  # the highest line in the spectrum of each target
        self._columns: dict[Term, Float[Tensor, "row column"]] = {}

    def run(self) -> list[list[TargetBackground]]:
        """Return the backgrounds of each target, the likeliest first; with periods that several targets share."""
        found = self._searched()
        common = self._common_periods([of_one[0].terms for of_one in found])
        if not common:
            return found
        self.fixed += common
        return self._searched()

    def _common_periods(self, best: list[tuple[Term, ...]]) -> list[Term]:
        """Return the periods that several targets have, refined by the sum of their log likelihoods.

        The noise of each target shifts its own estimate. A period of all targets is known better, and costs no search.
        """
        length = float(self.clock.times.max() - self.clock.times.min())
        groups: list[dict[int, Term]] = []  # the targets of a period and their waves
        waves = [(k, term) for k, terms in enumerate(best) for term in terms if term.searched > 1]
        for k, wave in sorted(waves, key=lambda one: -one[1].place):
            if wave.kind == "wave":
                near = (group for group in groups if _apart(wave, next(iter(group.values())), length) < SAME_CYCLES)
                group = next(near, None)
                if group is None:
                    groups.append({k: wave})
                else:
                    group.setdefault(k, wave)
        found: list[Term] = []
        none = torch.zeros_like(self.candidates.used)
        for group in sorted(groups, key=len, reverse=True):
            if len(group) < FEWEST_SHARING:
                break
            frequency = float(np.median([self.clock.step / wave.place for wave in group.values()]))
            rest = [tuple(one for one in terms if one != group.get(k)) for k, terms in enumerate(best)]
            parts = [(k, *self._basis([k], rest, none), self.root[k]) for k in group]
            width = SAME_CYCLES * self.clock.step / length
            for _ in range(3):
                tried = frequency + width * torch.linspace(-1, 1, 17, dtype=DOUBLE)
                total = torch.zeros_like(tried)
                for k, basis, left, root in parts:
                    share = self._gains_of_waves(tried, basis[0], left[0], root)[0] / left[0].square().sum()
                    total -= self.rows[k] / 2 * torch.log1p(-share.clamp(0.0, 1 - 1e-9))
                frequency, width = float(tried[int(total.argmax())]), width / 8
            found.append(Term("wave", place=self.clock.step / frequency))
        return found

    def _searched(self) -> list[list[TargetBackground]]:
        count = len(self.candidates.targets)
        nothing = [self.forced] * count
        none = torch.zeros_like(self.candidates.used)
        scores: list[dict[tuple[Term, ...], float]] = [{} for _ in range(count)]
        parents = self._score(nothing, scores, range(count), none)
        first = self._grown(nothing, none)
        changed = [k for k in range(count) if first[k] != self.forced]
        given = self._score(first, scores, changed, parents)
        pruned = self._grown(self._pruned(first, given), given)
        self._score(pruned, scores, [k for k in changed if pruned[k] not in scores[k]], given)
        second = self._grown(nothing, parents)
        late = [k for k in range(count) if second[k] not in scores[k]]
        given = self._score(second, scores, late, parents)
        again = self._grown(self._pruned(second, given), given)
        self._score(again, scores, [k for k in late if again[k] not in scores[k]], given)
        # one term with a mean for each hour hides cheaper waves of a day, which are added one by one
        hourly = [k for k in range(count) if any(HOURS in terms for terms in scores[k])]
        fixed, self.fixed = self.fixed, [term for term in self.fixed if term != HOURS]
        waves = self._grown(nothing, none, hourly)
        self.fixed = fixed
        self._score(waves, scores, [k for k in hourly if waves[k] not in scores[k]], given)
        self._offer_terms_of_sources(scores)
        for _ in range(3):  # the priors of the kinds, from all targets
            best = [self._weighted(one)[0].terms for one in scores]
            for kind in self.priors:
                used = sum(any(term.kind == kind for term in terms) for terms in best)
                self.priors[kind] = (PRIOR[0] + used) / (sum(PRIOR) + count)
        return [self._weighted(one) for one in scores]

    def _offer_terms_of_sources(self, scores: list[dict[tuple[Term, ...], float]]) -> None:
        """Score each target with the terms of the other targets too, and note the scores.

        A source whose background is large sends its deviations from it. Then the source pays only together with its
        own terms, and these only together with the source, so neither search finds the pair. A shift of a source
        arrives a step later.
        """
        groups: dict[tuple[Term, ...], int] = {}
        for of_target in scores:
            terms = [term for term in self._weighted(of_target)[0].terms if term not in self.forced]
            for group in {tuple(one for one in terms if (one.kind, one.place) == (t.kind, t.place)) for t in terms}:
                if group[0].kind == "shift":
                    group = (group[0]._replace(place=group[0].place + self.clock.step),)
                groups[group] = groups.get(group, 0) + 1
        for group in sorted(groups, key=lambda one: (-groups[one], one))[:MOST_OFFERED]:
            tried, which = [], []
            for k, of_target in enumerate(scores):
                best = self._weighted(of_target)[0].terms
                kept = [one for one in best if not any(self._replaces(term, one) for term in group)]
                if any(self.clock.contains(one, term) for one in kept for term in group):
                    tried.append(best)
                    continue
                tried.append(tuple(sorted({*kept, *group})))
                if tried[k] not in of_target:
                    which.append(k)
            self._score(tried, scores, which, torch.zeros_like(self.candidates.used))

    def _of(self, term: Term) -> Float[Tensor, "row column"]:
        if term not in self._columns:
            series = torch.zeros(len(self.clock.times), dtype=torch.long)
            for part, number in zip(self.clock.parts, self.clock.numbers, strict=True):
                series[part] = number
            self._columns[term] = self.clock.columns(term, self.clock.times, series)
        return self._columns[term]

    def _beside(self, chosen: Sequence[Sequence[Term]]) -> Float[Tensor, "row target column"]:
        """Return the columns of the background of each target, padded with 0."""
        return padded([[self._of(term) for term in terms] for terms in chosen], len(self.clock.times))

    def _weighted(self, scores: dict[tuple[Term, ...], float]) -> list[TargetBackground]:
        total = {terms: score + self._log_prior(terms) for terms, score in scores.items()}
        best = max(total.values())
        kept = {terms: math.exp(score - best) for terms, score in total.items() if score > best - CLOSE}
        mass = sum(kept.values())
        found = [TargetBackground(terms, weight / mass) for terms, weight in kept.items()]
        return sorted(found, key=lambda one: -one.weight)

    def _log_prior(self, terms: Sequence[Term]) -> float:
        return sum(self._odds(kind) for kind in {term.kind for term in terms})

    def _odds(self, kind: str) -> float:
        return math.log(self.priors[kind] / (1 - self.priors[kind]))

    def _score(
        self,
        chosen: Sequence[tuple[Term, ...]],
        scores: list[dict[tuple[Term, ...], float]],
        which: Sequence[int],
        parents: Bool[Tensor, "target candidate"],
    ) -> Bool[Tensor, "target candidate"]:
        """Find the parents of some targets under their backgrounds, and note the scores without the priors."""
        parents, which = parents.clone(), list(which)
        if not which:
            return parents
        some = self.candidates.chosen(torch.tensor(which))
        extra = self._beside([chosen[k] for k in which])
        own = self.columns.own[:, some.targets]
        placed = self.columns.own.new_zeros(*self.columns.own.shape[:2], own.shape[2] + extra.shape[2])
        placed[:, some.targets] = torch.cat([own, extra], 2)
        found, parents[which] = greedy_parents(replace(self.columns, own=placed), some, self.horizon)
        for k, score in zip(which, found.tolist(), strict=True):
            paid = sum(self._of(term).shape[1] / 2 * math.log(self.rows[k]) for term in chosen[k])
            scores[k][chosen[k]] = score - paid - sum(math.log(term.searched) for term in chosen[k])
        return parents

    def _read(self, target: int, parents: Bool[Tensor, " candidate"]) -> Float[Tensor, "column row"]:
        """Return the columns that a target reads from its parents."""
        columns = self.columns.sources[:, self.candidates.sources[target][parents]]
        return columns[:, self.allowed[target][parents]].mT

    def _basis(
        self, which: Sequence[int], chosen: Sequence[tuple[Term, ...]], parents: Bool[Tensor, "target candidate"]
    ) -> tuple[Basis, Residuals]:
        """Return orthonormal columns of some targets given background and parents, and what they leave over."""
        extra = self._beside([chosen[k] for k in which]).permute(1, 2, 0)
        read = pad_sequence([self._read(k, parents[k]) for k in which], batch_first=True)
        root = self.root[which]
        both = torch.cat([self.always[which], extra, read, self.values[which][:, None]], 1)
        both = self.columns.without_intercepts(both, root.square()) * root[:, None]
        basis = orthonormal(both[:, :-1])
        left = both[:, -1]
        return basis, left - (basis @ (basis.mT @ left[:, :, None]))[:, :, 0]

    def _grown(
        self,
        start: Sequence[tuple[Term, ...]],
        parents: Bool[Tensor, "target candidate"],
        which: Sequence[int] | None = None,
    ) -> list[tuple[Term, ...]]:
        """Add the best term to each target, or to some of them, until none pays for itself."""
        chosen = list(start)
        left = list(range(len(chosen))) if which is None else list(which)
        for _ in range(MOST_TERMS):
            if not left:
                break
            at_once = max(1, MOST_NUMBERS // (len(self.clock.times) * (len(self.always[0]) + MOST_COLUMNS)))
            parts = [left[first : first + at_once] for first in range(0, len(left), at_once)]
            added = [term for part in parts for term in self._best_terms(part, chosen, parents)]
            for k, term in zip(left, added, strict=True):
                if term is not None:
                    kept = tuple(one for one in chosen[k] if not self._replaces(term, one))
                    chosen[k] = tuple(sorted((*kept, term)))
            left = [k for k, term in zip(left, added, strict=True) if term is not None]
        return chosen

    def _pruned(
        self, start: Sequence[tuple[Term, ...]], parents: Bool[Tensor, "target candidate"]
    ) -> list[tuple[Term, ...]]:
        """Drop the terms of each target that do not pay for themselves given its parents."""
        chosen = list(start)
        left = [k for k in range(len(chosen)) if chosen[k]]
        kept = {*self.forced, *(term.kind for term in self.forced if term.kind == "trend")}
        while trials := [(k, term) for k in left for term in chosen[k] if not {term, term.kind} & kept]:
            without = [tuple(one for one in chosen[k] if one != term) for k, term in trials]
            now = dict(zip(left, self._sums(left, [chosen[k] for k in left], parents), strict=True))
            fewer = self._sums([k for k, _ in trials], without, parents)
            worst: dict[int, tuple[float, Term]] = {}
            for (k, term), total in zip(trials, fewer, strict=True):
                lost = float(self.rows[k]) / 2 * math.log(max(total, TINY) / max(now[k], TINY)) - self._price(
                    term, k, chosen[k]
                )
                if lost < min(0.0, worst.get(k, (0.0, term))[0]):
                    worst[k] = (lost, term)
            for k, (_, term) in worst.items():
                chosen[k] = tuple(one for one in chosen[k] if one != term)
            left = [k for k in worst if chosen[k]]
        return chosen

    def _sums(
        self, which: Sequence[int], chosen: Sequence[tuple[Term, ...]], parents: Bool[Tensor, "target candidate"]
    ) -> list[float]:
        extra = self._beside(chosen).permute(1, 2, 0)
        found = []
        for number, k in enumerate(which):
            both = torch.cat([self.always[k], extra[number], self._read(k, parents[k]), self.values[k][None]])[None]
            both = self.columns.without_intercepts(both, self.root[k][None].square()) * self.root[k]
            basis, left = orthonormal(both[:, :-1])[0], both[0, -1]
            found.append(float((left - basis @ (basis.mT @ left)).square().sum()))
        return found

    def _price(self, term: Term, target: int, present: Sequence[Term]) -> float:
        """Return the nats that a term must gain; a kind that the target already has costs its prior once."""
        columns = self._of(term).shape[1]
        new = not any(one.kind == term.kind and one != term for one in present)
        odds = -self._odds(term.kind) if new else 0.0
        return columns / 2 * math.log(float(self.rows[target])) + math.log(term.searched) + max(odds, 0.0)

    def _best_terms(
        self, which: Sequence[int], chosen: Sequence[tuple[Term, ...]], parents: Bool[Tensor, "target candidate"]
    ) -> list[Term | None]:
        """Return the term with the largest net gain for each target, None if none pays for itself."""
        basis, left = self._basis(which, chosen, parents)
        total = left.square().sum(1).clamp_min(TINY)
        best: list[tuple[float, Term | None]] = [(0.0, None)] * len(which)

        def offer(number: int, share: float, term: Term, saved: float = 0.0) -> None:
            k = which[number]
            if share < LEAST_SHARE:
                return
            gain = (
                -float(self.rows[k]) / 2 * math.log1p(-min(share, 1 - 1e-9)) - self._price(term, k, chosen[k]) + saved
            )
            if gain > best[number][0]:
                best[number] = gain, term

        root = self.root[which]
        for term, numbers in self._offered(which, chosen).items():
            shares = self._shares(term, basis[numbers], left[numbers], root[numbers]) / total[numbers]
            for number, share in zip(numbers, shares.tolist(), strict=True):
                present = chosen[which[number]]
                replaced = [one for one in present if self._replaces(term, one)]
                nested = [one for one in replaced if one.kind != "trend" or term.size % one.size == 0]
                offer(number, share, term, sum(self._price(one, which[number], present) for one in nested))
        if self.clock.has_trends and "shift" in self.kinds:
            for number, (explained, shift) in enumerate(self._shifts(which, chosen, basis, left, root)):
                if shift is not None:
                    offer(number, explained / float(total[number]), shift)
        if self.clock.has_search and "wave" in self.kinds:
            for number, (explained, wave) in enumerate(self._waves(which, chosen, basis, left, root, best, total)):
                if wave is not None:
                    offer(number, explained / float(total[number]), wave)
        return [one for _, one in best]

    def _offered(self, which: Sequence[int], chosen: Sequence[tuple[Term, ...]]) -> dict[Term, list[int]]:
        """Return the terms that need no search, each with the positions in ``which`` of the targets that may add it.

        These are the fixed terms, finer trends than the present one, and the next harmonic of each wave.
        """
        found: dict[Term, list[int]] = {}
        for number, k in enumerate(which):
            coarsest = max((term.size for term in chosen[k] if term.kind == "trend"), default=0)
            for term in self.fixed:
                inside = term in chosen[k] or any(self.clock.contains(one, term) for one in chosen[k])
                if not inside and (term.kind != "trend" or term.size > coarsest):
                    found.setdefault(term, []).append(number)
            for term in chosen[k]:
                higher = term._replace(harmonic=term.harmonic + 1, searched=1.0)
                if (
                    term.kind == "wave"
                    and higher.harmonic <= MOST_HARMONICS
                    and term.place / higher.harmonic >= SHORTEST * self.clock.step
                    and higher not in chosen[k]
                    and not any(self.clock.contains(one, higher) for one in chosen[k])
                ):
                    found.setdefault(higher, []).append(number)
        return found

    def _shares(self, term: Term, basis: Basis, left: Residuals, root: Residuals) -> Float[Tensor, " some"]:
        """Return the sum of squares that a term explains of what is left over, given the basis.

        ``basis`` and ``left`` are orthogonal to the intercepts, so only the squares of the columns need them.
        """
        columns = self._of(term)  # (row, column)
        weights = root.square()
        squares = torch.einsum("tr,rc,rd->tcd", weights, columns, columns) if self.missing else columns.mT @ columns
        squares = squares.expand(len(left), -1, -1)
        if self.columns.series is not None:
            parts = self.clock.parts
            sums = torch.stack([weights[:, part] @ columns[part] for part in parts], 1)  # (target, series, column)
            mass = torch.stack([weights[:, part].sum(1) for part in parts], 1).clamp_min(TINY)[..., None]
            squares = squares - sums.mT @ (sums / mass)
        sizes = squares.diagonal(dim1=1, dim2=2)
        within = columns.mT @ (root[:, :, None] * basis if self.missing else basis)  # (target, column, basis)
        block = squares - within @ within.mT
        block.diagonal(dim1=1, dim2=2).add_(1e-8 * sizes + 1e-12)
        cross = (root * left) @ columns
        return quadratic_forms(block[:, None], cross[:, None, :, None])[:, 0, 0]

    def _shifts(
        self, which: Sequence[int], chosen: Sequence[tuple[Term, ...]], basis: Basis, left: Residuals, root: Residuals
    ) -> list[tuple[float, Term | None]]:
        """Return the shift that explains most for each target, among all rows with enough rows on both sides."""
        gains = torch.full_like(left, -torch.inf)
        for part in self.clock.parts:
            after = _reversed_sums((root * left)[:, part])
            shared = _reversed_sums((root[:, :, None] * basis)[:, part])  # (target, row, column)
            weight = _reversed_sums(root.square()[:, part])
            size = weight - shared.square().sum(2)
            if self.columns.series is not None:
                size = size - weight.square() / weight[:, :1].clamp_min(TINY)
            found = after.square() / size.clamp_min(1e-3 * weight.clamp_min(1.0))
            found[:, :FEWEST_ROWS] = found[:, len(found[0]) - FEWEST_ROWS :] = -torch.inf
            gains[:, part] = found
        for number, k in enumerate(which):
            for term in chosen[k]:
                if term.kind == "shift":
                    part = self.clock.parts[self.clock.numbers.index(term.series)]
                    near = (self.clock.times[part] - term.place).abs() < FEWEST_ROWS * self.clock.step
                    gains[number, part][near] = -torch.inf
        best, row = gains.max(1)
        return [
            (gain, self._shift_at(place)) if math.isfinite(gain) else (0.0, None)
            for gain, place in zip(best.tolist(), row.tolist(), strict=True)
        ]

    def _shift_at(self, row: int) -> Term:
        part = next(place for place, part in enumerate(self.clock.parts) if part.start <= row < part.stop)
        time = float(self.clock.times[row])
        return Term("shift", place=time, series=self.clock.numbers[part], searched=float(len(self.clock.times)))

    def _waves(
        self,
        which: Sequence[int],
        chosen: Sequence[tuple[Term, ...]],
        basis: Basis,
        left: Residuals,
        root: Residuals,
        best: Sequence[tuple[float, Term | None]],
        total: Float[Tensor, " some"],
    ) -> list[tuple[float, Term | None]]:
        """Return the wave of any period that explains most for each target and keeps its phase.

        The gain of a wave depends on how much of it the own past already explains. That matters only where the target
        itself has a strong wave. So the largest peaks in the spectrum of what is left over, and those in the spectrum
        of the target, are compared exactly.
        """
        clock = self.clock
        spans = [float(clock.times[part.stop - 1] - clock.times[part.start]) / clock.step for part in clock.parts]
        length = round(max(spans)) + 1
        if len(clock.times) < FEWEST_FILLED * length:  # single rows between long gaps
            return [(0.0, None)] * len(which)
        size = OVERSAMPLED * 2 ** math.ceil(math.log2(length))
        first = math.ceil(FEWEST_FOUND / clock.shortest * size)
        frequency = torch.arange(first, int(size / SHORTEST), dtype=DOUBLE) / size  # cycles per step
        if len(frequency) < MOST_PEAKS:
            return [(0.0, None)] * len(which)
        values = torch.stack([left, self.values[which]], 1) * root[:, None]  # (target, 2, row)
        found = torch.zeros(*values.shape[:2], len(frequency), dtype=torch.complex128)
        for part in clock.parts:
            place = ((clock.times[part] - clock.times[part.start]) / clock.step).round().long()
            spread = values.new_zeros(*values.shape[:2], int(place[-1]) + 1)
            spread.index_add_(2, place, values[:, :, part])
            spectrum = torch.fft.rfft(spread, n=size)[:, :, first : first + len(frequency)]
            start = float(clock.times[part.start]) / clock.step
            found += spectrum * torch.polar(torch.ones_like(frequency), -2 * math.pi * (frequency * start % 1.0))
        power = (found.real.square() + found.imag.square()) * 2 / root.square().sum(1)[:, None, None]
        inner = torch.nn.functional.pad(power, (1, 1), value=torch.inf)
        peaks = power.masked_fill((power < inner[..., :-2]) | (power < inner[..., 2:]), 0.0)
        places = peaks.topk(MOST_PEAKS).indices.flatten(1)  # (target, place)
        results: list[tuple[float, Term | None]] = []
        searched = length / 2.0
        for number, k in enumerate(which):
            rows, whole = float(self.rows[k]), float(total[number])
            price = self._price(Term("wave", place=1.0, searched=searched), k, chosen[k])
            least = whole * -math.expm1(-2 * (price + max(best[number][0] - 5.0, -3.0)) / rows)
            if k not in self.lines:
                self.lines[k] = float((power[number, 1] / _level_around(power[number, 1])).max())
            if float(power[number, 0].max()) < least / 2 and self.lines[k] < LINE * math.log(length):
                results.append((0.0, None))
                continue
            tried = frequency[places[number]]
            gains = self._gains_of_waves(tried, basis[number], left[number], root[number])[0]
            if float(gains.max()) < least:
                results.append((0.0, None))
                continue
            # a cycle is a line above the spectrum around it; a broad peak belongs to the dynamics
            level = _level_around(power[number, 0])[places[number]] / math.log(2.0)
            above = gains.minimum(whole * -torch.expm1(-2 / rows * gains / level))
            peak = int(above.argmax())
            if float(above[peak]) < least:
                results.append((0.0, None))
                continue
            known = self._harmonic_beside(float(tried[peak]))
            if known is not None:
                at = torch.tensor([known.harmonic * clock.step / known.place], dtype=DOUBLE)
                gain = float(self._gains_of_waves(at, basis[number], left[number], root[number])[0])
                results.append((gain, None if known in chosen[k] else known))
                continue
            gain, term = self._refined(
                float(tried[peak]), 1 / size, basis[number], left[number], root[number], searched
            )
            gain = min(gain, whole * -math.expm1(-2 / rows * gain / float(level[peak])))
            results.append((gain, term and self._same_period(k, term)))
        return results

    def _harmonic_beside(self, frequency: float) -> Term | None:
        """Return the lowest harmonic of a known period beside a frequency, such as a cycle that changes in a year."""
        found = []
        for term in self.fixed:
            cycles = frequency * term.place / self.clock.step
            near = abs(cycles - round(cycles)) < BESIDE * cycles and 1 <= round(cycles) <= MOST_HARMONICS
            if term.kind == "wave" and near:
                found.append(term._replace(harmonic=round(cycles)))
        return min(found, key=lambda one: one.harmonic, default=None)

    def _gains_of_waves(
        self, frequency: Float[Tensor, " wave"], basis: Tensor, left: Tensor, root: Tensor
    ) -> tuple[Float[Tensor, " wave"], Float[Tensor, "wave 2 row"]]:
        """Return the sum of squares that each wave explains for one target, and the waves without the basis."""
        angle = 2 * math.pi * (frequency[:, None] * (self.clock.times / self.clock.step) % 1.0)  # (wave, row)
        waves = torch.stack([angle.sin(), angle.cos()], 1)
        waves = self.columns.without_intercepts(waves, root.square().expand(len(waves), -1)) * root
        waves = waves - (waves @ basis) @ basis.mT
        block = waves @ waves.mT
        block.diagonal(dim1=1, dim2=2).add_(1e-4 * float(root.square().sum()) / 2)
        return quadratic_forms(block[:, None], (waves @ left)[:, None, :, None])[:, 0, 0], waves

    def _same_period(self, target: int, term: Term) -> Term:
        """Return an earlier period of the target that cannot be distinguished from this one, or this one."""
        length = float(self.clock.times.max() - self.clock.times.min())
        for other in self.found.setdefault(target, []):
            if _apart(other, term, length) < SAME_CYCLES:
                return other
        self.found[target].append(term)
        return term

    def _refined(
        self, frequency: float, width: float, basis: Tensor, left: Tensor, root: Tensor, searched: float
    ) -> tuple[float, Term | None]:
        """Return the best wave near a frequency, None if its phase in one half does not fit the other."""
        wave, gain = torch.zeros(0), 0.0
        for _ in range(3):
            tried = frequency + width * torch.linspace(-1, 1, 17, dtype=DOUBLE)
            gains, waves = self._gains_of_waves(tried, basis, left, root)
            best = int(gains.argmax())
            frequency, width, wave, gain = float(tried[best]), width / 8, waves[best], float(gains[best])
        halves = self._halves()
        blocks = [wave[:, rows] @ wave[:, rows].mT for rows in halves]
        crosses = [wave[:, rows] @ left[rows] for rows in halves]
        own = [torch.linalg.lstsq(block, cross).solution for block, cross in zip(blocks, crosses, strict=True)]
        for here, there in ((0, 1), (1, 0)):
            inside = float(crosses[here] @ own[here])
            other = float(2 * own[there] @ crosses[here] - own[there] @ blocks[here] @ own[there])
            if other < SAME_PHASE * inside:
                return 0.0, None
        return gain, Term("wave", place=self.clock.step / frequency, searched=searched)

    def _replaces(self, term: Term, other: Term) -> bool:
        """Return whether a term takes the place of another one of a target: a trend that of the other trend."""
        return self.clock.contains(term, other) or (term.kind == other.kind == "trend")

    def _halves(self) -> tuple[Tensor, Tensor]:
        """Return the rows of the first and the second half: of the series if there are several, else of the rows."""
        rows, parts = torch.arange(len(self.clock.times)), self.clock.parts
        cut = parts[len(parts) // 2].start if len(parts) > 1 else len(rows) // 2
        return rows[:cut], rows[cut:]


def greedy_parents(
    columns: Columns, candidates: Candidates, horizon: int
) -> tuple[Float[Tensor, " target"], Bool[Tensor, "target candidate"]]:
    """Add the parents of each target one by one while the criterion increases; return it, and the parents."""
    gains = candidates.single_gains(columns)
    places = candidates.best(gains, min(MOST_CANDIDATES, candidates.width))
    screened = candidates.picked(places)
    weights = torch.ones(len(columns.targets), dtype=DOUBLE)
    rows = screened.num_rows(columns, weights) / horizon
    sizes = screened.sizes(columns)
    tableau = Tableau.start(screened.matrices(columns, weights[None])[0], screened.width, columns.group_size, sizes)
    for _ in range(min(MOST_PARENTS, screened.width)):
        now = tableau.residuals.clamp_min(TINY)
        left = ((tableau.residuals[:, None] - tableau.changes()) / now[:, None]).clamp(1e-9, 1.0)
        gain = (-rows / 2)[:, None] * left.log().mean(-1) - sizes / 2 * rows.log()[:, None] - EDGE_PRIOR
        gain = gain.masked_fill(tableau.included | ~screened.used, -math.inf)
        best, group = gain.max(1)
        if not (best > 0).any():
            break
        tableau.flip_in(best > 0, group[best > 0])
    paid = (sizes * tableau.included).sum(1) / 2 * rows.log() + EDGE_PRIOR * tableau.included.sum(1)
    score = (-rows / 2) * tableau.residuals.clamp_min(TINY).log().mean(1) - paid
    return score, torch.zeros_like(candidates.used).scatter(1, places, tableau.included)


def _level_around(gains: Float[Tensor, " frequency"]) -> Float[Tensor, " frequency"]:
    """Return the median of the gains at independent frequencies near each one, without the nearest."""
    apart = gains[::OVERSAMPLED]
    padded_gains = torch.nn.functional.pad(apart, (NEAR[1], NEAR[1]), value=torch.nan)
    around = padded_gains.unfold(0, 2 * NEAR[1] + 1, 1)  # (independent frequency, neighbour)
    others = (torch.arange(-NEAR[1], NEAR[1] + 1).abs() > NEAR[0]).nonzero()[:, 0]
    level = around[:, others].nanmedian(1).values.nan_to_num(0.0).clamp_min(TINY)
    return level.repeat_interleave(OVERSAMPLED)[: len(gains)]


def _apart(one: Term, other: Term, length: float) -> float:
    """Return by how many cycles two waves differ over a length of time."""
    return abs(1 / one.place - 1 / other.place) * length


def _reversed_sums(values: Float[Tensor, "target row *rest"]) -> Float[Tensor, "target row *rest"]:
    """Return the sum from each row to the end."""
    return values.flip(1).cumsum(1).flip(1)
