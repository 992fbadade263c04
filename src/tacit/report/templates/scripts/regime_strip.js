// The probability of each regime over time, as areas that add up to 1; of one node where each has regimes of its own.
import { addDrawing } from "./figures.js";
import { unpack } from "./stored.js";
import { isolated, plotlyText } from "./text.js";
import { colours, translucent } from "./theme.js";

const OPACITY = 0.85;
const MOST_POINTS = 240; // of a strip at first: single observations of more could not be distinguished
const MEANS = [1, 4, 16, 64]; // observations of a point

const percent = (share) => `${Math.round(100 * share)}%`;

const mean = (shares) => shares.reduce((sum, share) => sum + share, 0) / Math.max(1, shares.length);

// Return groups of neighbouring rows; the last may be smaller.
const grouped = (rows, size) =>
  Array.from({ length: Math.ceil(rows.length / size) }, (_, group) => rows.slice(group * size, (group + 1) * size));

// Return times and the probabilities of each regime, for one block and one series, as means of `size` observations.
function readStrip({ times, series, parts, blocks, count, scale, probs }) {
  const values = unpack(probs);
  return (block, name, size) => {
    const rows = times.map((_, row) => row).filter((row) => !series || name === null || series[row] === name);
    const at = (row, regime) => values[(row * blocks.length + block) * count + regime] / scale;
    const groups = grouped(rows, size);
    const shares = (regime) => groups.map((group) => mean(group.map((row) => at(row, regime))));
    return {
      size,
      times: groups.map((group) => times[group[Math.floor(group.length / 2)]]),
      starts: rows
        .filter((row, place) => parts && place > 0 && parts[row] !== parts[rows[place - 1]])
        .map((row) => times[row]),
      regimes: Array.from({ length: count }, (_, regime) => shares(regime)),
    };
  };
}

// Fill the list of how many observations a point is the mean of; the first with few enough points is chosen.
function fillMeans(select, numTimes) {
  const sizes = MEANS.filter((size) => size === 1 || numTimes / size >= MOST_POINTS / 8);
  select.append(...sizes.map((size) => new Option(size === 1 ? "1 observation" : `${size} observations`, size)));
  select.value = sizes.find((size) => numTimes / size <= MOST_POINTS) ?? sizes.at(-1);
}

// Return dotted lines where the validation part and the test part begin.
function partMarks({ starts }) {
  const line = { color: colours().ink, dash: "dot", width: 1.5 };
  return starts.map((time) => ({ type: "line", x0: time, x1: time, yref: "paper", y0: 0, y1: 1, line }));
}

function stripFigure(strip, palette) {
  const data = strip.regimes.map((shares, regime) => ({
    type: "scatter",
    mode: "lines",
    name: `regime ${regime + 1}`,
    x: strip.times,
    y: shares,
    stackgroup: "regimes",
    line: { width: 0 },
    fillcolor: translucent(palette[regime % palette.length], OPACITY),
    hoverinfo: "text",
    hovertext: shares.map(
      (share, row) => `${plotlyText(String(strip.times[row]))}<br>regime ${regime + 1} ${percent(share)}`,
    ),
  }));
  const layout = {
    showlegend: true,
    legend: { orientation: "h", traceorder: "normal", x: 0, y: -0.2, yanchor: "top" },
    margin: { l: 50, r: 10, t: 12, b: 60 },
    yaxis: { range: [0, 1], title: { text: "probability" }, fixedrange: true },
    shapes: partMarks(strip),
  };
  return { data, layout };
}

// Return the mean of each regime in words; `where` names the node and the series, where there are several.
function stripText({ regimes, size }, where) {
  const said = regimes.map((shares, regime) => `regime ${regime + 1} ${percent(mean(shares))}`);
  const points = size > 1 ? ` Each point is the mean of ${size} neighbouring observations.` : "";
  return `${["Mean probability", ...where].join(", ")}: ${said.join(", ")}.${points}`;
}

const textOf = (select) => select.selectedOptions[0].text;

export function showRegimes(section, run) {
  const element = section.querySelector(".strip");
  if (!element) return;
  const read = readStrip(run.posterior);
  const block = section.querySelector(".regime-block");
  const series = section.querySelector(".regime-series");
  const means = section.querySelector(".regime-mean");
  const status = section.querySelector(".regime-text");
  fillMeans(means, run.posterior.times.length / (series?.options.length ?? 1));
  let strip = null;
  const update = () => {
    strip = read(Number(block?.value ?? 0), series?.value ?? null, Number(means.value));
    const where = [block && `edges into ${isolated(textOf(block))}`, series && `series ${isolated(textOf(series))}`];
    status.textContent = stripText(strip, where.filter(Boolean));
  };
  update();
  const draw = addDrawing(element, () => stripFigure(strip, run.posterior.colours));
  for (const select of [block, series, means]) {
    select?.addEventListener("change", () => {
      update();
      draw();
    });
  }
}
