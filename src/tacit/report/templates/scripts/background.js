// The background of the chosen node over time, beside its observed values.

import { addDrawing } from "./figures.js";
import { unpack } from "./stored.js";
import { isolated, plotlyText, sixDigits } from "./text.js";
import { colours, translucent } from "./theme.js";

const OBSERVED_OPACITY = 0.55;

const isNumber = (text) => text !== "" && !Number.isNaN(Number(text));

// Return a function from the place of a node, a series and the rows of a point to the points of a chart.
function readBackground({ times, rows, series, numbers }) {
  const [values, sizes] = [unpack(numbers), unpack(rows)];
  return (place, name, size) =>
    times
      .map((time, point) => ({ time, point }))
      .filter(({ point }) => (name === null || series[point] === name) && sizes[point] === size)
      .map(({ time, point }) => {
        const at = 2 * (place * times.length + point);
        return { time, actual: values[at], background: values[at + 1] };
      });
}

function pointText({ time, actual, background }) {
  const observed = Number.isNaN(actual) ? "not observed" : `observed ${sixDigits(actual)}`;
  return [plotlyText(time.replace("T", " ")), observed, `background ${sixDigits(background)}`].join("<br>");
}

function figure(points) {
  const { best, ink } = colours();
  const x = points.map(({ time }) => (isNumber(time) ? Number(time) : time));
  const shared = { type: "scatter", mode: "lines", x };
  const values = points.map(({ actual }) => (Number.isNaN(actual) ? null : actual));
  return {
    data: [
      {
        ...shared,
        name: "observed",
        y: values,
        line: { color: translucent(ink, OBSERVED_OPACITY), width: 1 },
        hoverinfo: "text",
        hovertext: points.map(pointText),
      },
      {
        ...shared,
        name: "background",
        y: points.map(({ background }) => background),
        line: { color: best, width: 2 },
        hoverinfo: "skip",
      },
    ],
    layout: {
      showlegend: true,
      legend: { orientation: "h", traceorder: "normal", x: 0, y: 1.02, yanchor: "bottom" },
      margin: { l: 56, r: 10, t: 30, b: 44 },
      xaxis: { title: { text: "time", standoff: 6 }, tickangle: 0, automargin: true },
    },
  };
}

export function showBackground(section, run, network) {
  const element = section.querySelector(".beside");
  if (!element) return;
  const stored = run.background;
  const read = readBackground(stored);
  const [node, series, part] = ["node", "series", "part"].map((name) => section.querySelector(`.background-${name}`));
  const status = section.querySelector(".background-text");
  const points = () => read(Number(node.value), series?.value ?? null, Number(part?.value ?? 1));
  const say = () => {
    const place = Number(node.value);
    const share = `${Math.round(100 * stored.shares[place])}% of the variance`;
    status.textContent = `${isolated(run.names[stored.nodes[place]])}: ${stored.terms[place].join(", ")}; ${share}.`;
  };
  say();
  const draw = addDrawing(element, () => figure(points()));
  const show = () => {
    say();
    draw();
  };
  for (const select of [node, series, part]) select?.addEventListener("change", show);
  network.element.on("plotly_click", ({ points: [clicked] }) => {
    const place = stored.nodes.indexOf(clicked.customdata);
    if (place < 0) return;
    node.value = place;
    show();
  });
}
