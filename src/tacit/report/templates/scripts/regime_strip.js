// The probability of each regime over time, as areas that add up to 1; of one node where each has regimes of its own.
import { addDrawing } from "./figures.js";
import { unpack } from "./stored.js";
import { isolated, plotlyText } from "./text.js";
import { colours, translucent } from "./theme.js";

const OPACITY = 0.85;

const percent = (share) => `${Math.round(100 * share)}%`;

// Return times and the probabilities of each regime, for one block and one series.
function readStrip({ times, series, parts, blocks, count, scale, probs }) {
  const values = unpack(probs);
  return (block, name) => {
    const rows = times.map((_, row) => row).filter((row) => !series || name === null || series[row] === name);
    const at = (row, regime) => values[(row * blocks.length + block) * count + regime] / scale;
    return {
      times: rows.map((row) => times[row]),
      parts: parts && rows.map((row) => parts[row]),
      regimes: Array.from({ length: count }, (_, regime) => rows.map((row) => at(row, regime))),
    };
  };
}

// Return dotted lines where the validation part and the test part begin.
function partMarks({ times, parts }) {
  const line = { color: colours().ink, dash: "dot", width: 1.5 };
  const starts = times.filter((_, row) => row > 0 && parts && parts[row] !== parts[row - 1]);
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
function stripText({ regimes }, where) {
  const mean = (shares) => shares.reduce((sum, share) => sum + share, 0) / Math.max(1, shares.length);
  const said = regimes.map((shares, regime) => `regime ${regime + 1} ${percent(mean(shares))}`);
  return `${["Mean probability", ...where].join(", ")}: ${said.join(", ")}.`;
}

const textOf = (select) => select.selectedOptions[0].text;

export function showRegimes(section, run) {
  const element = section.querySelector(".strip");
  if (!element) return;
  const read = readStrip(run.posterior);
  const block = section.querySelector(".regime-block");
  const series = section.querySelector(".regime-series");
  const status = section.querySelector(".regime-text");
  let strip = null;
  const update = () => {
    strip = read(Number(block?.value ?? 0), series?.value ?? null);
    const where = [block && `edges into ${isolated(textOf(block))}`, series && `series ${isolated(textOf(series))}`];
    status.textContent = stripText(strip, where.filter(Boolean));
  };
  update();
  const draw = addDrawing(element, () => stripFigure(strip, run.posterior.colours));
  for (const select of [block, series]) {
    select?.addEventListener("change", () => {
      update();
      draw();
    });
  }
}
