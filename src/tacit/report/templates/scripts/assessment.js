// Figures of the assessment of a run, and of its training.
import { addDrawing } from "./figures.js";
import { shared } from "./stored.js";
import { plotlyText, plural, shortened, sixDigits } from "./text.js";
import { colours } from "./theme.js";

const dashed = () => ({ color: colours().expected, dash: "dash", width: 1.5 });
const diagonal = (from) => ({ type: "line", x0: from, y0: from, x1: 1, y1: 1, layer: "below", line: dashed() });
const level = (y) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, line: dashed() });
const percent = (share) => `${(100 * share).toFixed(1)}%`;

// Return a layout with the labels that Python's figure has too.
function labelled(name, { xaxis, yaxis, ...layout }) {
  const { title, x, y } = shared.labels[name];
  return { title, ...layout, xaxis: { title: { text: x }, ...xaxis }, yaxis: { title: { text: y }, ...yaxis } };
}

function reliabilityFigure({ learned, true: truth, count }) {
  const size = count.map((edges) => 8 + 2 * Math.min(18, Math.sqrt(edges)));
  const text = (edges, bin) =>
    `learned ${learned[bin].toFixed(3)}, true ${truth[bin].toFixed(3)}, ${plural(edges, "edge")}`;
  const marker = { size, color: colours().best, opacity: 0.85 };
  const points = { type: "scatter", mode: "markers", x: learned, y: truth, marker };
  const range = [-0.08, 1.08];
  return {
    data: [{ ...points, hoverinfo: "text", hovertext: count.map(text) }],
    layout: labelled("reliability", { xaxis: { range }, yaxis: { range }, shapes: [diagonal(0)] }),
  };
}

function coverageFigure(levels) {
  const colour = colours().best;
  const text = ({ nominal, covered, low, high }) =>
    `${percent(nominal)} intervals contain ${percent(covered)}<br>by node from ${percent(low)} to ${percent(high)}`;
  const points = {
    type: "scatter",
    mode: "markers",
    x: levels.map(({ nominal }) => nominal),
    y: levels.map(({ covered }) => covered),
    marker: { size: 10, color: colour },
    error_y: {
      type: "data",
      symmetric: false,
      array: levels.map(({ high, covered }) => high - covered),
      arrayminus: levels.map(({ low, covered }) => covered - low),
      color: colour,
      width: 6,
    },
    hoverinfo: "text",
    hovertext: levels.map(text),
  };
  const axes = { xaxis: { range: [0.4, 1.02], tickformat: ".0%" }, yaxis: { tickformat: ".0%" } };
  return { data: [points], layout: labelled("coverage", { ...axes, shapes: [diagonal(0.4)] }) };
}

// One trace with gaps: many traces are slow.
function ranksFigure(nodes) {
  const lines = { x: [], y: [], hovertext: [] };
  const add = (x, y, text) => {
    lines.x.push(x);
    lines.y.push(y);
    lines.hovertext.push(text);
  };
  for (const { name, shares } of nodes) {
    const label = plotlyText(shortened(name, 60));
    shares.forEach((share, bin) => {
      add((bin + 0.5) / shares.length, share, `${label}<br>${share.toFixed(2)} times the expected share`);
    });
    add(null, null, "");
  }
  const line = { shape: "hvh", color: colours().best, width: 1 };
  const opacity = nodes.length > 12 ? 0.5 : 0.8;
  return {
    data: [{ type: "scatter", mode: "lines", ...lines, line, opacity, hoverinfo: "text" }],
    layout: labelled("ranks", { xaxis: { range: [0, 1] }, yaxis: { rangemode: "tozero" }, shapes: [level(1)] }),
  };
}

function histogramFigure({ counts, title }) {
  const width = 1 / counts.length;
  const text = (count, bin) =>
    `${plural(count, "candidate")} from ${(bin * width).toFixed(2)} to ${((bin + 1) * width).toFixed(2)}`;
  const marker = { color: colours().best, line: { width: 0 } };
  const bars = { type: "bar", x: counts.map((_, bin) => (bin + 0.5) * width), y: counts, width, marker };
  return {
    data: [{ ...bars, hoverinfo: "text", hovertext: counts.map(text), textposition: "none" }],
    layout: labelled("histogram", { title, xaxis: { range: [0, 1] } }),
  };
}

// The loss of each replica by epoch; the replica that was kept is on top.
function curveFigure({ title, epochs, lines, optimal, best }) {
  const trace = (values, replica) => {
    const isBest = replica === best;
    const name = `replica ${replica}${isBest ? " (kept)" : ""}`;
    const text = (value, place) => `epoch ${epochs[place]}, ${name}: ${value === null ? "–" : sixDigits(value)}`;
    const line = { color: isBest ? colours().best : colours().others, width: isBest ? 2.5 : 1 };
    const mode = epochs.length > 60 ? "lines" : "lines+markers";
    const points = { type: "scatter", mode, x: epochs, y: values, marker: { size: 4 }, line };
    return { ...points, hoverinfo: "text", hovertext: values.map(text) };
  };
  const others = lines.map(trace).filter((_, replica) => replica !== best);
  const layout = labelled("training", { title });
  if (typeof optimal === "number") {
    const corner = { xref: "paper", x: 1, y: optimal, xanchor: "right", yanchor: "bottom" };
    layout.shapes = [level(optimal)];
    layout.annotations = [{ ...corner, text: shared.labels.training.optimal, showarrow: false, font: { size: 11 } }];
  }
  return { data: lines.length ? [...others, trace(lines[best] || [], best)] : [], layout };
}

export function showAssessment(section, run) {
  const figures = {
    histogram: histogramFigure,
    reliability: reliabilityFigure,
    coverage: coverageFigure,
    ranks: ranksFigure,
  };
  for (const [name, make] of Object.entries(figures)) {
    const element = section.querySelector(`.${name}`);
    if (element) addDrawing(element, () => make(run[name]));
  }
  for (const element of section.querySelectorAll(".curve")) {
    addDrawing(element, () => curveFigure(run.curves[Number(element.dataset.curve)]));
  }
}
