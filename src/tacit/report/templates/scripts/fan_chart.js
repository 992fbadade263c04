// Forecasts of one node as bands around the median, and what was observed.
import { plotlyText, sixDigits } from "./text.js";
import { colours, translucent } from "./theme.js";

export const BANDS = [
  { level: 95, low: "q2.5", high: "q97.5", opacity: 0.14 },
  { level: 80, low: "q10", high: "q90", opacity: 0.2 },
  { level: 50, low: "q25", high: "q75", opacity: 0.3 },
];

const TICK_SPACE = 95; // pixels

function bandTrace(x, points, { level, low, high, opacity }) {
  return {
    type: "scatter",
    mode: "lines",
    name: `${level}%`,
    x: [...x, ...x.toReversed()],
    y: [...points.map((point) => point[high]), ...points.map((point) => point[low]).toReversed()],
    fill: "toself",
    fillcolor: translucent(colours().best, opacity),
    line: { width: 0 },
    hoverinfo: "skip",
  };
}

function pointText(point) {
  const observed = Number.isNaN(point.actual) ? "not observed" : `observed ${sixDigits(point.actual)}`;
  const bands = BANDS.map(({ level, low, high }) => `${level}%: ${sixDigits(point[low])} to ${sixDigits(point[high])}`);
  return [plotlyText(point.label), observed, `median ${sixDigits(point.median)}`, ...bands.toReversed()].join("<br>");
}

// `points` have a label, the quantiles and the observed value; `x` are times, numbers, or places in the order.
export function fanFigure({ points, x, xTitle, yTitle }, width) {
  const { best, ink } = colours();
  const nticks = Math.max(3, Math.floor(width / TICK_SPACE));
  const shared = { type: "scatter", x, hoverinfo: "text", hovertext: points.map(pointText) };
  const median = { ...shared, mode: "lines", name: "median", y: points.map(({ median: y }) => y) };
  const values = points.map(({ actual }) => (Number.isNaN(actual) ? null : actual));
  const observed = { ...shared, mode: "markers", name: "observed", y: values, marker: { size: 5, color: ink } };
  return {
    data: [
      ...BANDS.map((band) => bandTrace(x, points, band)),
      { ...median, line: { color: best, width: 2 }, hoverinfo: "skip" },
      observed,
    ],
    layout: {
      showlegend: true,
      legend: { orientation: "h", traceorder: "normal", x: 0, y: 1.02, yanchor: "bottom" },
      margin: { l: 56, r: 10, t: 30, b: 44 },
      xaxis: { title: { text: xTitle, standoff: 6 }, nticks, tickangle: 0, automargin: true },
      yaxis: { title: { text: yTitle, standoff: 6 } },
    },
  };
}
