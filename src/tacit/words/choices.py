"""The options that a fit chose from the data: option, value and reason, and the line that says so."""

from typing import Any

from pydantic import BaseModel, ConfigDict

REASONS = {
    # data
    "few rows": "each lag adds weights, and there are few rows",
    "usual": "usual",
    "lags of edges": "edges are best detected from {columns} of the source",
    "all lags of rules": "it contains all lags that edges may have",
    "same scale": "the series do not need separate levels or deviations",
    "levels differ": "the series differ in level, so each is measured from its own mean",
    "deviations differ": "the deviations of the series differ by a factor of 3 or more",
    "one zero": "counts, categories, positive numbers and yes or no share one zero",
    "tested beside": "edges into these nodes are tested beside it; none leaves it out",
    "set by option": "set by the option",
    "too short": "fewer than {rows} rows cannot tell it from the nodes' own past",
    "no node needs it": "no node needs a {kinds}",
    # events
    "few counts": ("where counts are mostly 0 and 1, how often an edge acts cannot be separated from how strongly"),
    "rows after events": "rows are the bins after events, which have no even times",
    "rates add up": "the rate of a type is a sum over the events before",
    "events in groups": "events come in groups, so counts vary more than their mean",
    # evidence
    "several edges": "influences may act over several edges, so regressions on direct sources are not enough",
    "each node": "each node is regressed on its own past and on sets of other nodes",
    "residuals": "residuals of the fitted model depend on the source",
    # layout of the graph
    "no direction": "edges without a direction",
    "every pair": "every pair of nodes can be an edge",
    "few candidates": "{count:,} candidates are {share:.2g} of all pairs of {nodes:,} nodes",
    "few nodes": "few nodes",
    "most pairs": "most pairs are candidates",
    # predictor
    "weight per edge": "it has a weight per edge, so effects can have either sign",
    "own options": "it uses the options of [predictor]",
    "weight per lag": "it has a weight per lag, so it can respect min_lag and max_lag",
    "long window": (
        "a network was not tried, because the window has more than {longest} steps; set predictor.kind=feedforward to "
        "train one"
    ),
    "short training": (
        "after a short training the CRPS of a network is {size:.1%} {side} than that of a linear filter "
        "(standard error {error:.1%})"
    ),
    "within step": "effects within a step are those of a linear filter, fitted by regressions",
    "absorbs": "a network could absorb the dependence of edges on the inputs of their nodes",
    "last value": "the last value is a good baseline",
    "no last value": "there is no last value",
    "output in other units": ("the output is not in the units of the targets, so the last value cannot be added to it"),
    "good start": "a regression is a good starting point",
    "good start on candidates": "a regression is a good starting point: of each node on its candidates",
    "linear only": "for linear filters only",
    "long regressions": "regressions on the candidates take long",
    # loss and noise
    "object": "passed as an object; it replaces the loss in the config",
    "graph only": "with this kind of predictor the graph is the only source of randomness",
    "cannot learn noise": "the loss {loss} cannot learn the size of the noise",
    "level per node": "one noise level per node",
    "follows input": "the noise depends on the input",
    "bernoulli": "the values are 0 and 1",
    "poisson": "the values are counts, and with the graph in the model their variance equals their mean",
    "negative_binomial": "the values are counts with a variance above their mean, also with the graph in the model",
    "gaussian": "the values are integers whose variance does not depend on their mean as for counts",
    "ordered": "the values are a few different integers, which distributions of counts do not fit",
    "student_t": "the tails are heavier than those of Gaussian noise, also with the graph in the model",
    "log_normal": "the values are positive, and their spread grows with their size",
    "categories seen": "those of the training part",
    "above largest": "above the largest count of the training part",
    # training
    "number of pairs": "from the number of pairs",
    "steps": "about {steps:,} steps, {per_epoch} per epoch",
    "late epochs": "the best epoch often comes late",
    "usual rate": "usual for this kind of predictor",
    "poor minima": "several starts, because some end in poor local minima; the worse half stops early",
    "similar starts": "starts of a network that predicts changes give similar results",
    "from regressions": "it starts from regressions on the edges that may exist",
    "recorded": "steps are recorded on a GPU instead",
    "long compiling": "compiling takes longer than it saves for this kind of predictor",
    "faster": "faster for this number of steps",
    "slower": "slower for this number of steps",
    "closed form": "regressions of mean and variance give weights and probabilities",
    "likelihood": "its maximum gives weights, probabilities and noise, node by node",
    # assessment
    "resamples": "replicas on resampled data",
    "long errors": "they take several times as long as the fit; set bootstrap_replicas to 16 to compute them",
    "few pairs": "{pairs:,} training pairs are too few for a bootstrap",
    "many nodes": "it requires all pairs of nodes, and there are more than {limit} nodes",
    "off": "the assessment is off",
    "gain": "they measure how much the graph improves the forecast",
    "long controls": "they require training two more models; set controls to true to run them",
}
NAMED = 4  # nodes in a reason


class Choice(BaseModel):
    """An option that was chosen: its name, the chosen value, the reason, and the ``sentence`` made from them.

    ``reason``  a key of :data:`REASONS`
    ``values``  the numbers and names that the reason mentions

    >>> choose("compile", True, "faster").sentence
    'compile = yes: faster for this number of steps'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    option: str
    value: Any
    reason: str
    sentence: str
    values: dict[str, Any] = {}

    def __str__(self) -> str:
        """Return the sentence."""
        return self.sentence


def choose(option: str, value: Any, reason: str, *, more: str = "", **values: Any) -> Choice:
    """Return a choice; ``more`` is appended to its line."""
    nodes, count, shown = values.get("nodes_with_it", ()), values.get("num_nodes", 0), str(value)
    if option == "learned":
        shown = f"{value} more edge{'s' * (value != 1)} than the regressions keep"
    elif isinstance(value, bool):
        shown = "yes" if value else "no"
    elif isinstance(value, list | tuple):
        shown = ", ".join(f"{one:g}" if isinstance(one, float) else str(one) for one in value)
    elif nodes and len(nodes) != count:  # the nodes that have the value, if these are not all
        named = ", ".join(nodes[:NAMED]) + (f" and {len(nodes) - NAMED} more" if len(nodes) > NAMED else "")
        shown = f"{value} ({len(nodes)} of {count} nodes: {named})"
    said = f"{option} = {shown}: {REASONS[reason].format(**values)}{more}"
    if needs := values.get("needs"):
        said += f"; a network must lower it by {needs:.0%} and by two standard errors"
    if decided := values.get("decided"):
        gained = f"{decided['nats']:.2f}"
        if "std_error" in decided:
            among = "all nodes" if decided["nodes"] is None else f"{decided['nodes']} nodes"
            gained += f" +- {decided['std_error']:.2f} nats per value better than {decided['over']}"
            said += f"; decided on {among} together: {gained}"
        else:
            said += f"; decided on each of these nodes alone: at least {gained} nats per value better"
    return Choice(option=option, value=value, reason=reason, sentence=said, values=values)
