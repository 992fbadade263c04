// Losses during training, and how far predictions and probabilities can be trusted.
const dashes = (colour) => ({ color: colour.expected, dash: "dash", width: 1.5 });

function curveFigure({ title, epochs, lines, optimal, best }) {
  const colour = colours();
  const line = (values, replica) => ({ type: "scatter", mode: epochs.length > 60 ? "lines" : "lines+markers", x: epochs, y: values, marker: { size: 4 }, line: { color: replica === best ? colour.best : colour.others, width: replica === best ? 2.5 : 1 }, hoverinfo: "text", hovertext: values.map((value, place) => `epoch ${epochs[place]}, replica ${replica}${replica === best ? " (kept)" : ""}: ${value === null ? "–" : number(value)}`) });
  const others = lines.map(line).filter((_, replica) => replica !== best);
  const layout = { title, xaxis: { title: { text: "epoch" } }, yaxis: {} };
  if (optimal !== null && optimal !== undefined) {
    layout.shapes = [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: optimal, y1: optimal, line: dashes(colour) }];
    layout.annotations = [{ xref: "paper", x: 1, y: optimal, text: "optimal", showarrow: false, xanchor: "right", yanchor: "bottom", font: { size: 11 } }];
  }
  return { data: lines.length ? [...others, line(lines[best] || [], best)] : [], layout };
}

function reliabilityFigure({ learned, true: truth, count }) {
  const colour = colours();
  return {
    data: [{ type: "scatter", mode: "markers", x: learned, y: truth, marker: { size: count.map((edges) => 8 + 2 * Math.min(18, Math.sqrt(edges))), color: colour.best, opacity: 0.85 }, hoverinfo: "text", hovertext: count.map((edges, bin) => `learned ${learned[bin].toFixed(3)}, true ${truth[bin].toFixed(3)}, ${plural(edges, "edge")}`) }],
    layout: { title: "reliability of edge probabilities", xaxis: { title: { text: "learned" }, range: [-0.08, 1.08] }, yaxis: { title: { text: "true" }, range: [-0.08, 1.08] }, shapes: [{ type: "line", x0: 0, y0: 0, x1: 1, y1: 1, layer: "below", line: dashes(colour) }] },
  };
}

function coverageFigure(points) {
  const colour = colours(), percent = (share) => `${(100 * share).toFixed(1)}%`;
  return {
    data: [{ type: "scatter", mode: "markers", x: points.map((point) => point.nominal), y: points.map((point) => point.held), marker: { size: 10, color: colour.best }, error_y: { type: "data", symmetric: false, array: points.map((point) => point.high - point.held), arrayminus: points.map((point) => point.held - point.low), color: colour.best, width: 6 }, hoverinfo: "text", hovertext: points.map((point) => `${percent(point.nominal)} intervals hold ${percent(point.held)}<br>by node from ${percent(point.low)} to ${percent(point.high)}`) }],
    layout: { title: "coverage of predicted intervals", xaxis: { title: { text: "should hold" }, range: [0.4, 1.02], tickformat: ".0%" }, yaxis: { title: { text: "holds" }, tickformat: ".0%" }, shapes: [{ type: "line", x0: 0.4, y0: 0.4, x1: 1, y1: 1, layer: "below", line: dashes(colour) }] },
  };
}

function ranksFigure(nodes) {
  const colour = colours();
  const x = [], y = [], text = []; // one trace with gaps: many traces are slow
  for (const { name, shares } of nodes) {
    shares.forEach((share, bin) => {
      x.push((bin + 0.5) / shares.length);
      y.push(share);
      text.push(`${plain(shortened(name, 60))}<br>${share.toFixed(2)} times what is expected`);
    });
    x.push(null);
    y.push(null);
    text.push("");
  }
  return { data: [{ type: "scatter", mode: "lines", x, y, line: { shape: "hvh", color: colour.best, width: 1 }, opacity: nodes.length > 12 ? 0.5 : 0.8, hoverinfo: "text", hovertext: text }], layout: { title: "ranks of the targets, a line per node", xaxis: { title: { text: "rank among samples" }, range: [0, 1] }, yaxis: { title: { text: "share over expected" }, rangemode: "tozero" }, shapes: [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: 1, y1: 1, line: dashes(colour) }] } };
}

function histogramFigure({ counts, title }) {
  const colour = colours(), width = 1 / counts.length;
  return {
    data: [{ type: "bar", x: counts.map((_, bin) => (bin + 0.5) * width), y: counts, width, marker: { color: colour.best, line: { width: 0 } }, hoverinfo: "text", hovertext: counts.map((count, bin) => `${plural(count, "candidate")} from ${(bin * width).toFixed(2)} to ${((bin + 1) * width).toFixed(2)}`), textposition: "none" }],
    layout: { title, xaxis: { title: { text: "probability" }, range: [0, 1] }, yaxis: { title: { text: "candidates" } } },
  };
}

function showTrust(section, run) {
  const some = [["histogram", histogramFigure, run.histogram], ["reliability", reliabilityFigure, run.reliability], ["coverage", coverageFigure, run.coverage], ["ranks", ranksFigure, run.ranks]];
  for (const [name, make, values] of some) {
    const element = section.querySelector(`.${name}`);
    if (element) drawing(element, () => make(values));
  }
  for (const element of section.querySelectorAll(".curve")) drawing(element, () => curveFigure(run.curves[Number(element.dataset.curve)]));
}
