// Every drawing of the page, so that all can be drawn again: when the system turns dark or light, and for paper.
const drawings = [];
const PAPER_WIDTH = 660;

function drawing(element, make) {
  const draw = () => {
    const { data, layout } = make();
    return Plotly.react(element, data, themed(layout, element), { responsive: true, displaylogo: false, displayModeBar: false, doubleClick: false, scrollZoom: false });
  };
  drawings.push(draw);
  draw();
  return draw;
}

function themed(layout, element) {
  const { ink, line, paper } = colours();
  const axis = { gridcolor: line, linecolor: line, zeroline: false };
  const wide = element.classList.contains("network");
  const size = printing ? { width: wide ? PAPER_WIDTH : PAPER_WIDTH / 2 - 10, height: wide ? 430 : element.classList.contains("matrix") ? 330 : 260 } : { autosize: true };
  return {
    margin: { l: 50, r: 10, t: 36, b: 44 }, hovermode: "closest", showlegend: false, dragmode: coarse.matches ? false : "zoom",
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: ink, size: 12, family: "system-ui, sans-serif" },
    hoverlabel: { bgcolor: paper, bordercolor: ink, font: { color: ink, size: 13 }, align: "left" },
    ...size, ...layout, title: { text: layout.title || "", font: { size: 14 }, x: 0.02, xanchor: "left" },
    xaxis: { ...axis, ...layout.xaxis }, yaxis: { ...axis, ...layout.yaxis },
  };
}



const drawAgain = () => drawings.forEach((draw) => draw());
darkness.addEventListener("change", drawAgain);

function preparePaper(on) {
  if (printing === on) return;
  printing = on;
  for (const details of document.querySelectorAll("details")) {
    if (on) { details.dataset.wasOpen = details.open; details.open = true; } else details.open = details.dataset.wasOpen === "true";
  }
  drawAgain();
}
addEventListener("beforeprint", () => preparePaper(true));
addEventListener("afterprint", () => preparePaper(false));
matchMedia("print").addEventListener("change", (event) => preparePaper(event.matches));

// Buttons of a group and keys on a focused drawing do the same: "in", "out", "reset", or a move of (right, down).
function zoomControls(group, elements, act) {
  for (const button of group.querySelectorAll("button")) button.addEventListener("click", () => act(button.dataset.zoom));
  const keys = { "+": "in", "=": "in", "-": "out", "−": "out", "0": "reset", ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  for (const element of elements) {
    element.addEventListener("keydown", (event) => {
      if (event.target !== element || !(event.key in keys) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act(keys[event.key]);
    });
    element.on("plotly_doubleclick", () => act("reset"));
  }
}

function zoomedRange([low, high], act, direction) {
  const size = high - low, middle = (low + high) / 2;
  if (act === "in" || act === "out") {
    const half = (size / 2) * (act === "in" ? 0.6 : 1 / 0.6);
    return [middle - half, middle + half];
  }
  return [low + 0.25 * size * direction, high + 0.25 * size * direction];
}
