"""Regressions and the sampler one target, one step, one formula at a time: what the batches have to equal."""

import torch

from tacit.assessment.evidence.averaging import FLOOR, FOCUS, LIMIT, MOST_COLUMNS, PART, TINY, Tableau


def always_in(candidates, columns, row):
    """The columns (row, column) that are always in for a target."""
    required = columns.sources[:, candidates.required[row]].flatten(1)
    own = columns.own[:, candidates.targets[row]]
    return torch.cat([own, columns.shared, intercepts(columns), required], 1)


def intercepts(columns):
    """A column (row, series) per series that has an intercept."""
    none = columns.shared[:, :0]
    return none if columns.series is None else torch.nn.functional.one_hot(columns.series).to(none)


def residual(values, on):
    """What a regression leaves of the columns of ``values``."""
    basis, sizes, _ = torch.linalg.svd(on, full_matrices=False)
    basis = basis[:, sizes > 1e-9 * sizes.amax()] if len(sizes) else basis
    return values - basis @ (basis.mT @ values)


def slow_matrix(candidates, columns, weights, row, parents=None):
    """Weighted cross products of one target, residualised by a QR of its weighted columns."""
    node = candidates.targets[row]
    if parents is None:
        parents = columns.sources[:, candidates.sources[row]].flatten(1)
    root = (weights * columns.observed[:, node]).sqrt()[:, None]
    values = torch.cat([parents, columns.targets[:, node]], 1) * root
    before = residual(values, intercepts(columns) * root).square().sum(0) + FLOOR
    before[parents.shape[1] :] = 0
    values = residual(values, always_in(candidates, columns, row) * root)
    return values.mT @ values + torch.diag(TINY * before)


def slow_gains(candidates, columns, row):
    """The share of a target that each candidate explains by itself, each by a solve."""
    known = columns.observed[:, candidates.targets[row], None]
    always, target = always_in(candidates, columns, row) * known, columns.targets[:, candidates.targets[row]] * known
    left, gains = residual(target, always), []
    for source in candidates.sources[row]:
        parent = residual(columns.sources[:, source] * known, intercepts(columns) * known)
        rest = residual(parent, always)
        block = rest.mT @ rest + torch.diag(1e-8 * parent.square().sum(0) + 1e-12)
        cross = parent.mT @ left
        explained = (cross * torch.linalg.solve(block, cross)).sum(0)
        gains.append((explained / left.square().sum(0)).mean())
    return torch.stack(gains)


def within(values, columns, rows=slice(None)):
    """Columns less their mean in each series, where each has an intercept."""
    values = values.clone()
    for number in [] if columns.series is None else columns.series[rows].unique():
        there = columns.series[rows] == number
        values[there] -= values[there].mean(0)
    return values


def slow_effects(candidates, columns, weights, believed, row):
    """The signed effect of each candidate of a target beside the believed ones."""
    tableau = Tableau.start(slow_matrix(candidates, columns, weights, row)[None], candidates.width, columns.group_size)
    for group in believed.nonzero()[:, 0]:
        tableau.flip(group[None])
    found = []
    for place, source in enumerate(candidates.sources[row]):
        coefficients = tableau.coefficients()[0, place]  # (column, channel)
        sizes = within(columns.sources[:, source] @ coefficients, columns).std(0, correction=0)
        if columns.series is not None:
            seen = columns.observed[:, candidates.targets[row]] > 0
            target = columns.targets[seen][:, candidates.targets[row]]
            sizes = sizes / within(target, columns, seen).square().mean(0).sqrt()
        linear = coefficients[: columns.num_linear, sizes.argmax()]
        found.append(sizes.max() * linear[linear.abs().argmax()].sign())
    return torch.stack(found)


def slow_sampler(tableau, likelihood, prior, generator, steps):
    """The weighted tempered Gibbs sampler, by torch's multinomial draws."""
    total, weights, first = torch.zeros_like(prior), prior.new_zeros(len(prior), 1), round(PART * steps)
    size, most = tableau.group_size, (MOST_COLUMNS * (likelihood.rows - likelihood.always))[:, None]
    for step in range(-first, steps):
        included = tableau.included
        columns = (size * included.sum(1, keepdim=True)).to(prior)
        other = columns + torch.where(included, -size, size)
        now = likelihood(tableau.residuals[:, None], columns)
        after = likelihood(tableau.residuals[:, None] - tableau.changes(), other)
        odds = torch.where(included, now - after, after - now) + prior
        probs = odds.masked_fill(~included & (other > most), -LIMIT).clamp(-LIMIT, LIMIT).sigmoid()
        flip = (probs + FOCUS / probs.shape[1]) / torch.where(included, probs, 1 - probs).clamp_min(1e-22)
        if step >= 0:
            total += probs / flip.sum(1, keepdim=True)
            weights += 1 / flip.sum(1, keepdim=True)
        tableau.flip(torch.multinomial(flip / flip.sum(1, keepdim=True), 1, generator=generator)[:, 0])
    return total / weights
