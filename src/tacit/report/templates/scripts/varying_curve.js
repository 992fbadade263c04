// How often one edge acts over the values of a variable: a curve with its band, or points with error bars.
import { extremes } from "./situations.js";
import { plotlyText, shortened, threeDigits } from "./text.js";
import { colours, translucent } from "./theme.js";

const LONGEST_TICK = 14; // letters
const MOST_TICKS = 12;
const BAND = 0.22; // opacity

const intervalText = ({ low, high }) =>
  Number.isNaN(low) ? "" : `95% interval ${threeDigits(low)} to ${threeDigits(high)}`;

function pointText(table, point) {
  const interval = intervalText(point);
  const name = plotlyText(shortened(table.named[point.place], 60));
  return `${name}: ${threeDigits(point.probability)}${interval && `<br>${interval}`}`;
}

// Values without numbers stand at even distances, with their labels.
function valueAxis(table) {
  const title = { text: plotlyText(shortened(table.by, 40)), standoff: 6 };
  if (table.positions) return { title };
  const step = Math.ceil(table.count / MOST_TICKS);
  const tickvals = table.labels.map((_, place) => place).filter((place) => place % step === 0);
  const ticktext = tickvals.map((place) => plotlyText(shortened(table.labels[place], LONGEST_TICK)));
  return { title, range: [-0.5, table.count - 0.5], tickmode: "array", tickvals, ticktext, automargin: true };
}

function bandTrace(x, curve, colour) {
  const ends = curve.map(({ low, high, probability }) =>
    [low, high].map((end) => (Number.isNaN(end) ? probability : end)),
  );
  const along = [...x, ...x.toReversed()];
  const around = [...ends.map(([, high]) => high), ...ends.map(([low]) => low).toReversed()];
  const look = { fill: "toself", fillcolor: translucent(colour, BAND), line: { width: 0 }, hoverinfo: "skip" };
  return { type: "scatter", mode: "lines", name: "band", x: along, y: around, ...look };
}

// Return the figure of an edge; `average` is a dashed line, the chosen value a dotted one.
export function curveFigure(table, edge, average, situation) {
  const colour = colours().best;
  const curve = table.curve(edge);
  const at = (place) => table.positions?.[place] ?? place;
  const x = curve.map(({ place }) => at(place));
  const points = {
    type: "scatter",
    name: "curve",
    mode: table.isOrdered ? "lines+markers" : "markers",
    x,
    y: curve.map(({ probability }) => probability),
    line: { color: colour, width: 2 },
    marker: { size: table.isOrdered ? 5 : 10, color: colour },
    hoverinfo: "text",
    hovertext: curve.map((point) => pointText(table, point)),
  };
  if (!table.isOrdered) {
    const array = curve.map(({ high, probability }) => high - probability || 0);
    const arrayminus = curve.map(({ low, probability }) => probability - low || 0);
    points.error_y = { type: "data", symmetric: false, array, arrayminus, color: colour, width: 6 };
  }
  const { expected, quiet } = colours();
  const shapes = [];
  const across = { type: "line", xref: "paper", x0: 0, x1: 1, line: { color: expected, dash: "dash", width: 1.5 } };
  if (!Number.isNaN(average)) shapes.push({ ...across, y0: average, y1: average });
  if (situation?.table === table) {
    const x0 = at(situation.place);
    shapes.push({ type: "line", x0, x1: x0, y0: 0, y1: 1, line: { color: quiet, dash: "dot", width: 2 } });
  }
  const layout = {
    title: curve.length ? "" : "no values of this edge",
    xaxis: valueAxis(table),
    yaxis: { title: { text: "probability" }, range: [-0.03, 1.03] },
    margin: { l: 50, r: 10, t: curve.length ? 12 : 36, b: 44 },
    shapes,
  };
  return { data: table.isOrdered && curve.length ? [bandTrace(x, curve, colour), points] : [points], layout };
}

// Return the curve of an edge in words.
export function curveText(table, edge, situation) {
  const curve = table.curve(edge);
  if (!curve.length) return "";
  const { lowest, highest } = extremes(curve);
  const said = ({ probability, place }) => `${threeDigits(probability)} ${table.words[place]}`;
  const text = `from ${said(lowest)} to ${said(highest)}`;
  const point = situation?.table === table && curve.find(({ place }) => place === situation.place);
  if (!point) return text;
  const interval = intervalText(point);
  return `${text}; ${said(point)}${interval && ` (${interval})`}`;
}
