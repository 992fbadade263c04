// Forecasts of the test part: the chosen node, variable and series as a fan chart, and how many values the bands hold.

import { BANDS, fanFigure } from "./fan_chart.js";
import { addDrawing } from "./figures.js";
import { unpack } from "./stored.js";
import { isolated, plotlyText, plural, shortened } from "./text.js";

const LONGEST_NAME = 40; // letters
const COUNTS = [50, 100]; // rows
const NARROW = 600; // pixels

// Return a function from node, variable, series and number of rows to the points of a chart.
function readForecasts({ rows, series, nodes, variables, columns, numbers, rowName }) {
  const values = unpack(numbers);
  const label = (row) => (rowName === "time" ? rows[row].replace("T", " ") : `pair ${rows[row]}`);
  return (node, variable, name, count) => {
    const first = (node * variables.length + variable) * rows.length;
    const all = rows.map((_, row) => row).filter((row) => name === null || series[row] === name);
    const chosen = all.slice(-count);
    return {
      nodeNumber: nodes[node],
      points: chosen.map((row) => {
        const at = (first + row) * columns.length;
        const cells = columns.map((column, place) => [column, values[at + place]]);
        return { row: rows[row], label: label(row), ...Object.fromEntries(cells) };
      }),
    };
  };
}

// Fill the list of how many rows are shown: on a narrow screen few at first.
function fillCounts(select, numRows) {
  const counts = [...COUNTS.filter((count) => count < numRows), numRows];
  select.append(...counts.map((count) => new Option(plural(count, "row"), count)));
  select.value = innerWidth < NARROW ? counts[0] : numRows;
}

const isNumber = (text) => text !== "" && !Number.isNaN(Number(text));

// Pairs have no order: they are sorted by the median of the forecast.
function chart({ rowName, variables }, points, variable) {
  const yTitle = plotlyText(shortened(variables[variable], LONGEST_NAME));
  if (rowName !== "time") {
    const sorted = points.toSorted((a, b) => a.median - b.median);
    return { points: sorted, x: sorted.map((_, place) => place + 1), xTitle: "pairs, sorted by the median", yTitle };
  }
  const x = points.map(({ row }) => (isNumber(row) ? Number(row) : row));
  return { points, x, xTitle: "time", yTitle };
}

// Say how many observed values each band holds.
function coverageText(name, points) {
  const known = points.filter(({ actual }) => !Number.isNaN(actual));
  if (!known.length) return `${name}: no observed values in these rows.`;
  const inside = ({ low, high }) => known.filter((point) => point.actual >= point[low] && point.actual <= point[high]);
  const said = BANDS.toReversed().map((band) => {
    const share = Math.round((100 * inside(band).length) / known.length);
    return `${share}% in the ${band.level}% band`;
  });
  return `${name}: ${plural(known.length, "observed value")}, ${said.join(", ")}.`;
}

export function showForecasts(section, run, network) {
  const element = section.querySelector(".fan");
  if (!element) return;
  const stored = run.forecasts;
  const read = readForecasts(stored);
  const seriesNames = [...new Set(stored.series)];
  const [node, variable, series, count] = ["node", "variable", "series", "count"].map((name) =>
    section.querySelector(`.forecast-${name}`),
  );
  fillCounts(count, stored.rows.length);
  const status = section.querySelector(".forecast-text");
  const steps = [...section.querySelectorAll(".forecast-step")];
  let figure = null;
  const update = () => {
    const [place, column] = [Number(node.value), Number(variable?.value ?? 0)];
    const chosen = series ? seriesNames[Number(series.value)] : null;
    const { nodeNumber, points } = read(place, column, chosen, Number(count.value));
    figure = chart(stored, points, column);
    status.textContent = coverageText(isolated(run.names[nodeNumber]), points);
    for (const button of steps) {
      const next = place + Number(button.dataset.step);
      button.disabled = next < 0 || next >= stored.nodes.length;
    }
  };
  update();
  const draw = addDrawing(element, () => fanFigure(figure, element.clientWidth));
  const show = () => {
    update();
    draw();
  };
  for (const select of [node, variable, series, count]) select?.addEventListener("change", show);
  for (const button of steps) {
    button.addEventListener("click", () => {
      node.value = Number(node.value) + Number(button.dataset.step);
      show();
    });
  }
  network.element.on("plotly_click", ({ points }) => {
    const place = stored.nodes.indexOf(points[0].customdata);
    if (place < 0) return;
    node.value = place;
    show();
  });
}
