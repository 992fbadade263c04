"""How far can a fitted estimator be trusted? Standard errors, identifiability, goodness of fit, and edges to show."""

from typing import TYPE_CHECKING, Any, TypeVar

import torch

from tacit.errors import require_whole
from tacit.goodness import Goodness, goodness_of_fit
from tacit.identification import Identifiability, identify
from tacit.randomness import generator_for
from tacit.sklearn.building import plain
from tacit.sklearn.edge_errors import EdgeErrors
from tacit.sklearn.learned import Learned
from tacit.uncertainty import edges_at_fdr
from tacit.uncertainty.bootstrap import FEWEST_REPLICAS

if TYPE_CHECKING:
    import pandas

T = TypeVar("T", bound="Trust")


class Trust(Learned):
    """The questions to ask after a fit. Each takes pairs; what it finds stays with the estimator, saved or not."""

    def estimate_std_errors(
        self: T,
        X: Any,  # noqa: N803
        y: Any,
        num_resamples: int = 32,
        block: int | None = None,
    ) -> T:
        r"""Train again on resamples of the pairs, all at once, from the fitted model: how far would $\theta$ move?

        ``X`` and ``y`` are those of the fit. A quarter of the ``num_resamples`` replicas take the training pairs as
        they are and tell what is due to training alone; each of the others draws as many pairs as there are, with
        replacement, in blocks of ``block`` neighbours. None is 1 if ``shuffle``, else, for pairs of a series,
        $n^{1/3}$; windows that overlap need at least the steps that a pair covers, window and horizon together.

        Standard errors (``edge_std_errors_``) and 95% intervals (``edge_low_``, ``edge_high_``) are those of the mean
        over all replicas, the bagged estimate (``edge_probs_bagged_``), not of ``edge_probs_``, which stays as it is.
        They say how far it would move with other data, not with another start (:func:`tacit.uncertainty.bootstrap`).
        The replicas take a third of the epochs of the fit.
        """
        fitted, num_resamples, block = self._with_predictor(), plain(num_resamples), plain(block)
        fitted.require_matrix("estimate_std_errors")
        require_whole("num_resamples", num_resamples, FEWEST_REPLICAS)
        found = self._problem_again(X, y).bootstrapped(fitted, num_resamples, block)
        fitted.errors = EdgeErrors.of(found, fitted.graph)
        return self

    def identify(self, X: Any, y: Any, *, injectivity: bool = True) -> Identifiability:  # noqa: N803
        """Try every edge out in the fitted model: which can be learned from such pairs, and why not the others?

        ``X`` and ``y`` are those of the fit. The answer has ``sentences()``; which edges are ``identifiable`` stays in
        ``edge_identifiable_``. ``injectivity`` looks at the condition of the theorem too. It takes a moment for a dozen
        nodes and ten seconds for a hundred.
        """
        fitted, problem = self._with_predictor(), self._problem_again(X, y)
        fitted.require_matrix("identify")
        pairs = problem.pairs
        found = identify(
            fitted.model(),
            pairs.inputs,
            pairs.targets,
            generator=generator_for(problem.seed, "identification", pairs.inputs.device),
            observed=pairs.observed,
            num_pairs=len(problem.rows[0]),
            nodes=fitted.nodes,
            injectivity=injectivity,
        )
        fitted.identifiable = found.identifiable.cpu()
        return found

    def goodness_of_fit(
        self,
        X: Any,  # noqa: N803
        y: Any,
        *,
        num_samples: int = 199,
        stride: int = 1,
        level: float = 0.05,
    ) -> Goodness:
        """Compare the model with pairs that it was not fitted on: does it fit, where not, and what to try?

        The answer has ``fits`` and ``sentences()``, and works in the units of training (``scale``). ``stride`` keeps
        every so many pairs: for forecasts ``h`` steps ahead, which overlap, pass ``h``. See
        :func:`tacit.goodness.goodness_of_fit`.
        """
        fitted, problem = self._with_predictor(), self._problem_again(X, y)
        return goodness_of_fit(
            fitted.model(),
            problem.pairs,
            generator=generator_for(problem.seed, "goodness of fit", fitted.graph.raw.device),
            num_samples=plain(num_samples),
            stride=plain(stride),
            level=plain(level),
            node_names=fitted.nodes,
        )

    def edge_intervals(self, level: float = 0.95, *, simultaneous: bool = False) -> "pandas.DataFrame":
        """Return all ordered pairs with ``bagged``, ``low`` and ``high``, which hold the truth with chance ``level``.

        The chance is that of each edge, or with ``simultaneous`` that of all edges at once.
        """
        errors = self._errors("what edge_intervals needs")
        ends = errors.intervals(self.graph_, plain(level), simultaneous=simultaneous)
        return self._edge_table({"bagged": errors.bagged, "low": ends.low, "high": ends.high})

    def edges_at_fdr(self, rate: float = 0.1) -> "pandas.DataFrame":
        """Return the rows of ``edges_`` that make the largest set of which a share ``rate`` is expected to be absent.

        Absent in a given observation: ``edge_probs_`` is taken as true. Edges that are held fixed are not chosen, nor,
        after :meth:`identify`, those that the data cannot tell. Without directions each pair is one row.
        """
        fitted = self._ready()
        chosen = edges_at_fdr(
            torch.from_numpy(fitted.edge_probs),
            plain(rate),
            ~fitted.graph.fixed.cpu(),
            identifiable=fitted.identifiable,
            symmetric=fitted.graph.symmetric,
        )
        return self._edge_table(self._edge_attributes(), chosen)

    def significant_edges(
        self, above: float = 0.05, rate: float = 0.05, *, dependence: str = "positive"
    ) -> "pandas.DataFrame":
        """Return the rows of ``edges_`` whose bagged probability is above a level, with the ``p_value`` of each.

        At most a share ``rate`` of them is there by the luck of the data (:func:`tacit.uncertainty.significant_edges`,
        also for ``dependence``). Which edges can be chosen is as in :meth:`edges_at_fdr`.
        """
        fitted, errors = self._ready(), self._errors("what significant_edges needs")
        options = {"above": plain(above), "rate": plain(rate), "dependence": dependence}
        tests = errors.tests(fitted.graph, fitted.identifiable, **options)
        return self._edge_table({**self._edge_attributes(), "p_value": tests.p_values}, tests.chosen)
