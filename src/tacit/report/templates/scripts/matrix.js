// The matrix of probabilities, beside truth and error where they are known; all panels show the same part.
import { edgeText } from "./edges.js";
import { addDrawing } from "./figures.js";
import { axisTicks, clampedRange, fullMatrix, longestTick, visibleCells } from "./matrix_view.js";
import { shared } from "./stored.js";
import { grouped, plotlyText, shortened } from "./text.js";
import { addZoomControls, zoomedRange } from "./zoom.js";

const AXIS_HEIGHT = 290; // pixels
const LETTER = 6.5; // pixels
const LONGEST_VALUE = 24; // letters of a title

// Return the top of the colour scale of probabilities: 1, or just above the most probable edge.
function scaleTop(run) {
  const largest = (values) =>
    values ? values.reduce((top, value, edge) => (run.between[edge] && value > top ? value : top), 0) : 0;
  const varying = [...run.spreads.values()].reduce((most, { highest }) => Math.max(most, highest.probability), 0);
  const top = Math.max(largest(run.decides), largest(run.acts), largest(run.truth), varying);
  return top >= 0.5 || !top ? 1 : Math.ceil(10 * top) / 10;
}

const errorTop = (run) =>
  run.error
    ? Math.max(
        1e-3,
        run.error.reduce((a, b) => Math.max(a, b), 0),
      )
    : 1;

function panelLayout(run, view, title, width) {
  const longest = longestTick(run);
  const isTurned = longest > 3;
  const { x, y } = shared.labels.matrix;
  const below = isTurned ? 40 + LETTER * longest : 48;
  return {
    title,
    margin: { l: 36 + LETTER * longest, r: 6, t: 34, b: below },
    xaxis: {
      title: { text: x, standoff: 4 },
      range: [view.x[0] - 0.5, view.x[1] - 0.5],
      showgrid: false,
      tickangle: isTurned ? -90 : 0,
      ...axisTicks(run, view.x, width - 110),
    },
    yaxis: {
      title: { text: y, standoff: 4 },
      range: [view.y[1] - 0.5, view.y[0] - 0.5],
      showgrid: false,
      ...axisTicks(run, view.y, AXIS_HEIGHT),
    },
  };
}

// Return a function that makes the figure of one panel. Texts are filled in when the pointer comes: most are not read.
function panelFigure(run, view, element, textOf) {
  const column = element.dataset.shows;
  const isError = column === "error";
  const zmax = isError ? errorTop(run) : scaleTop(run);
  const title = () => {
    const isAtValue = column === "probability" && run.situation;
    return `${run.titles[column]}${isAtValue ? ` ${plotlyText(shortened(run.situation.words, LONGEST_VALUE))}` : ""}`;
  };
  return () => {
    const { z, edges, block } = visibleCells(run, view, run[column]);
    const text = edges.map(() => []);
    const cellText = (edge) => (edge < 0 ? "" : `${block > 1 ? "largest in this block:<br>" : ""}${textOf(edge)}`);
    element.fillText = () => {
      edges.forEach((row, y) => {
        text[y].push(...row.map(cellText));
      });
      element.fillText = null;
    };
    const heatmap = {
      type: "heatmap",
      z,
      x0: view.x[0] + (block - 1) / 2,
      dx: block,
      y0: view.y[0] + (block - 1) / 2,
      dy: block,
      zmin: 0,
      zmax,
      colorscale: isError ? shared.scales.error : shared.scales.probability,
      text,
      hoverinfo: "text",
      hoverongaps: false,
      colorbar: { thickness: 10, outlinewidth: 0, tickfont: { size: 10 } },
    };
    return { data: [heatmap], layout: panelLayout(run, view, title(), element.clientWidth) };
  };
}

function viewText(run, view) {
  const count = grouped(run.numNodes);
  const part = ([low, high]) =>
    high - low === run.numNodes ? `all ${count}` : `${grouped(low + 1)} to ${grouped(high)} of ${count}`;
  const top = scaleTop(run);
  const scale = top < 1 ? ` The colour scale ends at ${top.toFixed(1)}, above the most probable edge.` : "";
  const average = run.situations.length ? "the average" : "";
  const shown = average && ` Shown: ${run.situation ? shortened(run.situation.words, 40) : average}.`;
  return `Sources ${part(view.x)}, targets ${part(view.y)}.${shown}${scale}`;
}

// Return the range that was dragged along an axis, or the old one.
function draggedRange(change, axis, old) {
  if (!(`${axis}.range[0]` in change)) return old;
  const ends = [change[`${axis}.range[0]`], change[`${axis}.range[1]`]];
  return ends.sort((a, b) => a - b).map((end) => end + 0.5);
}

// Return a function that shows the matrices again after a change of the run.
export function showMatrices(section, run) {
  const elements = [...section.querySelectorAll(".matrix")];
  const status = section.querySelector(".matrices .seen");
  const view = fullMatrix(run);
  const texts = new Array(run.numEdges); // shared by all panels
  const textOf = (edge) => {
    texts[edge] ??= edgeText(run, edge);
    return texts[edge];
  };
  const draws = elements.map((element) => addDrawing(element, panelFigure(run, view, element, textOf)));
  const show = ({ x, y }) => {
    Object.assign(view, { x: clampedRange(run, x), y: clampedRange(run, y) });
    status.textContent = viewText(run, view);
    for (const draw of draws) draw();
  };
  for (const element of elements) {
    element.addEventListener("pointermove", () => element.fillText?.(), { capture: true });
    element.on("plotly_relayout", (change) => {
      if (!("xaxis.range[0]" in change) && !("yaxis.range[0]" in change)) return;
      show({ x: draggedRange(change, "xaxis", view.x), y: draggedRange(change, "yaxis", view.y) });
    });
  }
  addZoomControls(section.querySelector(".matrices .zoom"), elements, (act) => {
    const [right, down] = Array.isArray(act) ? act : [0, 0];
    if (act === "reset") show(fullMatrix(run));
    else show({ x: zoomedRange(view.x, act, right), y: zoomedRange(view.y, act, down) });
  });
  status.textContent = viewText(run, view);
  return () => {
    texts.fill(undefined);
    show(view);
  };
}
