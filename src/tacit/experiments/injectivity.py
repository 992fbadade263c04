"""How often A -> sigma(A x) is injective for random x: all rows a in {0, 1}^N, compared with the lemma."""

import itertools
from functools import partial

import torch

from tacit.experiments.study import Listener, Options, Records, Study, Table, Task, Values
from tacit.randomness import generator_for

SIZES = (2, 3, 4, 5, 6, 8)
INPUTS = 2_000
INTEGER_RANGE = 20  # integers from -20 to 20: inputs that often lie on a hyperplane


class Injectivity(Study):
    """The lemma of the paper's appendix, checked numerically."""

    name = "injectivity"
    title = (
        "a -> a x is injective for a in {0, 1}^N unless x is orthogonal to some delta in {-1, 0, 1}^N other than 0 "
        "(the paper's lemma); rows of A x, and tanh of them, then are too."
    )

    def tasks(self) -> list[Task]:
        """One per number of nodes."""
        return [Task(f"nodes-{size}", partial(_work, size)) for size in SIZES]

    def tables(self, records: Records) -> list[Table]:
        """Shares of injective inputs, and whether the lemma agrees for each of them."""
        rows = []
        for size in SIZES:
            values = records[f"nodes-{size}"]
            agree = values["normal"]["agree"] + values["integer"]["agree"]
            cells = {
                "nodes": str(size),
                "paper: normal x": "all, but for a null set",
                "injective, normal x": f"{values['normal']['injective']:.2%}",
                "injective, integer x": f"{values['integer']['injective']:.2%}",
                "inputs where the lemma agrees": f"{agree} of {2 * values['inputs']}",
            }
            rows.append(list(cells.values()))
        notes = [f"integer x: uniform from -{INTEGER_RANGE} to {INTEGER_RANGE}, where the hyperplanes are often hit"]
        return [Table("Injectivity of one layer", list(cells), rows, notes)]


def injective(inputs: torch.Tensor) -> torch.Tensor:
    """Return for each x whether all rows a in {0, 1}^N give different a x; all rows of A share x, so one decides."""
    rows = torch.tensor(list(itertools.product((0.0, 1.0), repeat=inputs.shape[1])), dtype=inputs.dtype)
    ordered = (inputs @ rows.T).sort(1).values
    return (ordered.diff(dim=1) > 1e-9).all(1)


def off_all_hyperplanes(inputs: torch.Tensor) -> torch.Tensor:
    """Return for each x whether no delta in {-1, 0, 1}^N other than 0 is orthogonal to it."""
    deltas = torch.tensor(list(itertools.product((-1.0, 0.0, 1.0), repeat=inputs.shape[1])), dtype=inputs.dtype)
    deltas = deltas[deltas.abs().sum(1) > 0]
    return ((inputs @ deltas.T).abs() > 1e-9).all(1)


def _work(size: int, options: Options, listener: Listener) -> Values:
    del options, listener
    generator = generator_for(size, "injectivity")
    normal = torch.randn(INPUTS, size, generator=generator, dtype=torch.float64)
    integer = torch.randint(-INTEGER_RANGE, INTEGER_RANGE + 1, (INPUTS, size), generator=generator).double()
    found: Values = {"inputs": INPUTS}
    for name, inputs in (("normal", normal), ("integer", integer)):
        by_rows, by_lemma = injective(inputs), off_all_hyperplanes(inputs)
        found[name] = {
            "injective": by_rows.double().mean().item(),
            "agree": int((by_rows == by_lemma).sum()),
        }
    return found
