// Every drawing of the page is kept, so that all can be drawn again: in dark or light mode, and for paper.
import { coarsePointer, colours, darkMode, isPrinting, setPrinting } from "./theme.js";

const PAPER_WIDTH = 660; // pixels
const CONFIG = { responsive: true, displaylogo: false, displayModeBar: false, doubleClick: false, scrollZoom: false };
const redraws = [];

// Call this function whenever all drawings are drawn again.
export function onRedraw(redraw) {
  redraws.push(redraw);
}

// Draw what `make` returns, now and whenever all drawings are drawn again. Return the function that draws.
export function addDrawing(element, make) {
  const draw = () => {
    const { data, layout } = make();
    return Plotly.react(element, data, themedLayout(layout, element), CONFIG);
  };
  onRedraw(draw);
  draw();
  return draw;
}

function sizeOf(element) {
  if (!isPrinting()) return { autosize: true };
  if (element.classList.contains("network")) return { width: PAPER_WIDTH, height: 430 };
  const wide = ["strip", "fan", "beside"].some((name) => element.classList.contains(name));
  if (wide) return { width: PAPER_WIDTH, height: 240 };
  return { width: PAPER_WIDTH / 2 - 10, height: element.classList.contains("matrix") ? 330 : 260 };
}

function themedLayout(layout, element) {
  const { ink, line, paper } = colours();
  const axis = { gridcolor: line, linecolor: line, zeroline: false };
  return {
    margin: { l: 50, r: 10, t: 36, b: 44 },
    hovermode: "closest",
    showlegend: false,
    dragmode: coarsePointer.matches ? false : "zoom",
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: ink, size: 12, family: "system-ui, sans-serif" },
    hoverlabel: { bgcolor: paper, bordercolor: ink, font: { color: ink, size: 13 }, align: "left" },
    ...sizeOf(element),
    ...layout,
    title: { text: layout.title || "", font: { size: 14 }, x: 0.02, xanchor: "left" },
    xaxis: { ...axis, ...layout.xaxis },
    yaxis: { ...axis, ...layout.yaxis },
  };
}

function redrawAll() {
  for (const redraw of redraws) redraw();
}

function preparePaper(printing) {
  if (isPrinting() === printing) return;
  setPrinting(printing);
  for (const details of document.querySelectorAll("details")) {
    if (printing) details.dataset.wasOpen = details.open;
    details.open = printing || details.dataset.wasOpen === "true";
  }
  redrawAll();
}

export function followMedia() {
  darkMode.addEventListener("change", redrawAll);
  addEventListener("beforeprint", () => preparePaper(true));
  addEventListener("afterprint", () => preparePaper(false));
  matchMedia("print").addEventListener("change", (event) => preparePaper(event.matches));
}
