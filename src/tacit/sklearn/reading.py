"""What is passed to an estimator after the fit needs to be like what it was fitted on."""

from typing import Any

from tacit.errors import require, require_whole
from tacit.sklearn.building import plain
from tacit.sklearn.problem import Problem
from tacit.sklearn.stored_estimator import StoredEstimator
from tacit.sklearn.tables import Table, read_inputs, read_targets


class Reading(StoredEstimator):
    """Reads arrays and tables, and compares them with those of the fit."""

    def _problem(self, X: Any, y: Any) -> Problem:  # noqa: N803
        """Return what there is to learn from new pairs."""
        inputs = read_inputs(self, X, reset=True)
        return Problem(self._parameters(), inputs, read_targets(self, y, inputs))

    def _problem_again(self, X: Any, y: Any) -> Problem:  # noqa: N803
        """Return the problem that was fitted, from the same pairs."""
        inputs = self._inputs(X)
        return Problem(self._parameters(), inputs, self._targets(y, inputs), self._ready())

    def _parameters(self) -> dict[str, Any]:
        parameters: dict[str, Any] = self.get_params(deep=False)
        parameters["seed"] = plain(parameters["seed"])
        require_whole("seed", parameters["seed"], 0)
        return parameters

    def _inputs(self, X: Any) -> Table:  # noqa: N803
        """Read inputs that need to be like those of the fit."""
        fitted, inputs = self._ready(), read_inputs(self, X, reset=False)
        expected, got = fitted.sizes.in_channels, inputs.values.shape[2]
        require(expected == got, f"X needs {expected} channels per node as in fit, got {got}; pass the same channels")
        require(
            fitted.channels is None or inputs.channels is None or fitted.channels == inputs.channels,
            f"X needs the channels of the fit in their order, {fitted.channels}, got {inputs.channels}; reorder them",
        )
        return inputs

    def _targets(self, y: Any, inputs: Table) -> Table:
        """Read targets that need to be like those of the fit."""
        targets = read_targets(self, y, inputs)
        expected, got = self._ready().sizes.channels, targets.values.shape[2]
        require(expected == got, f"y needs {expected} channels per node as in fit, got {got}; pass the same channels")
        return targets
