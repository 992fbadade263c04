// Zoom and move: the buttons of a group, and keys on a focused drawing, do the same.
const IN = 0.6; // size of the visible part after zooming in
const STEP = 0.25; // of the visible part
const KEYS = {
  "+": "in",
  "=": "in",
  "-": "out",
  "−": "out",
  0: "reset",
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

// Call `act` with "in", "out", "reset", or a move [right, down].
export function addZoomControls(group, elements, act) {
  for (const button of group.querySelectorAll("button")) {
    button.addEventListener("click", () => act(button.dataset.zoom));
  }
  for (const element of elements) {
    element.addEventListener("keydown", (event) => {
      const hasModifier = event.ctrlKey || event.metaKey || event.altKey;
      if (event.target !== element || !(event.key in KEYS) || hasModifier) return;
      event.preventDefault();
      act(KEYS[event.key]);
    });
    element.on("plotly_doubleclick", () => act("reset"));
  }
}

export function zoomedRange([low, high], act, direction) {
  const size = high - low;
  if (Array.isArray(act)) return [low + STEP * size * direction, high + STEP * size * direction];
  const middle = (low + high) / 2;
  const half = (size / 2) * (act === "in" ? IN : 1 / IN);
  return [middle - half, middle + half];
}
