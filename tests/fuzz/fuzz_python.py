"""Both estimators: parameters and data of every kind end in finite answers, or in an error that is theirs."""

import time
import traceback
import warnings
from typing import Any

import numpy as np
import pandas as pd
from fuzz_judge import LIMIT, ROOM, Ended, Failure, Hang, Tally, within
from fuzz_words import json_values, numbers, plain_words, whole
from hypothesis import strategies as st

from tacit import InputError, LatentGraphForecaster, LatentGraphRegressor
from tacit.config import AssessmentOptions, ModelConfig, TrainingOptions

QUICK = {
    "training": TrainingOptions(epochs=1, replicas=1, compile=False),
    "model": ModelConfig(num_graphs=4),
    "assessment": AssessmentOptions(enabled=False),
    "point_graphs": 20,
}
ESTIMATORS = (LatentGraphRegressor, LatentGraphForecaster)
NODES = ("a", "b", "c")


@st.composite
def data(draw: Any, columns: int = 3) -> Any:
    """Return a table of numbers, with something odd about it or nothing."""
    odd = draw(st.sampled_from(("none",) * 6 + ("value", "shape", "type", "names", "constant", "object")))
    rows = draw(st.sampled_from((0, 1, 2, 5))) if odd == "shape" else 25
    columns = draw(st.sampled_from((0, 1, 2, 4))) if odd == "shape" and draw(st.booleans()) else columns
    values = (np.arange(rows * columns, dtype=float).reshape(rows, columns) * 7 % 11) + np.arange(columns)
    if odd == "value" and values.size:
        values.flat[draw(st.integers(0, values.size - 1))] = draw(
            st.sampled_from((np.nan, np.inf, 1e300, 1e39, 1e16, -np.inf))
        )
    if odd == "constant":
        values[:] = draw(st.sampled_from((0.0, 1.0, 1e14)))
    if odd == "type":
        return values.astype(draw(st.sampled_from(("i4", "f4", "f2", "c8", "?", "U4", "O", "M8[s]"))))
    if odd == "object":
        return draw(
            st.sampled_from(
                (None, "abc", [[1, 2], [3]], 5, {"a": [1]}, [], [["x"]], pd.Series([1.0, 2.0]), np.zeros((3, 3, 3, 3)))
            )
        )
    if odd == "names" or draw(st.booleans()):
        names = list(NODES[:columns]) + [f"n{place}" for place in range(max(columns - 3, 0))]
        if odd == "names" and columns:
            names[draw(st.integers(0, columns - 1))] = draw(
                st.one_of(plain_words, st.sampled_from((1, None, 2.5, ("a", "b"), "a")))
            )
        return pd.DataFrame(values, columns=names)
    return values


@st.composite
def calls(draw: Any) -> tuple[Any, dict[str, Any], Any, Any]:
    """Return an estimator, parameters, X and y."""
    estimator, parameters = draw(st.sampled_from(ESTIMATORS)), dict(QUICK)
    defaults = estimator().get_params()
    edges = st.lists(st.tuples(st.sampled_from((*NODES, 0, 1, 2, 7, -1)), st.sampled_from((*NODES, 0, 1))), max_size=3)
    for name in draw(st.lists(st.sampled_from(sorted(defaults)), max_size=2, unique=True)):
        default = defaults[name]
        fitting = [st.integers(1, 4)] if isinstance(default, int) else [st.floats(0.01, 0.99)]
        choices = [
            *fitting,
            *fitting,
            edges,
            whole,
            numbers,
            json_values,
            st.sampled_from(("auto", "energy", "mmd", "gaussian", "hops", "x")),
        ]
        value = draw(st.one_of(choices))
        lasting = name != "random_state" and isinstance(value, int) and 50 < value < 10**6
        parameters[name] = 5 if lasting else value  # what is asked for is done, however long it takes
    return estimator, parameters, draw(data()), draw(data())


def judge(case: tuple[Any, dict[str, Any], Any, Any], tally: Tally) -> None:
    """Fit and predict; anything but finite answers or an error of the input is a failure."""
    estimator, parameters, inputs, targets = case
    start, error = time.perf_counter(), None
    try:
        with within(LIMIT, ROOM), warnings.catch_warnings():
            warnings.simplefilter("error")
            model = estimator(**parameters).fit(inputs, targets)
            predicted = model.predict(inputs)
    except (InputError, ValueError, TypeError) as refused:
        error = refused
        inside = [frame for frame in traceback.extract_tb(refused.__traceback__) if _is_inside(frame.filename)]
        if not isinstance(refused, InputError) and inside:
            raise Failure(f"{type(refused).__name__} from inside: {refused}") from refused
    except Hang:
        raise Failure(f"took more than {LIMIT:g} seconds") from None
    if error is None:
        probs = np.asarray(model.edge_probs_)
        assert np.isfinite(np.asarray(predicted, dtype=float)).all(), "a prediction is not finite"
        assert ((probs >= 0) & (probs <= 1)).all(), "an edge probability is not in [0, 1]"
    elif len(str(error).split()) < 3:
        raise Failure(f"says nothing: {error!r}")
    tally.add(Ended(0 if error is None else 2, "", f"tacit: {error}\n", time.perf_counter() - start))


def _is_inside(name: str) -> bool:
    """Say whether an error went through code that should never see bad input."""
    return "/torch/" in name or any(
        f"/tacit/{part}/" in name for part in ("training", "losses", "estimators", "predictors")
    )


def cases() -> st.SearchStrategy[Any]:
    """All of them."""
    return calls()
