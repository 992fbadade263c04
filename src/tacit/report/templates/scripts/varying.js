// The curves of a chosen edge, a panel per variable: chosen in a list, in the table or by its arrow in the graph.
import { hasArrow } from "./edges.js";
import { addDrawing } from "./figures.js";
import { isolated, shortened, threeDigits } from "./text.js";
import { curveFigure, curveText } from "./varying_curve.js";

const LONGEST_NAME = 40; // letters
const MOST_OPTIONS = 1000;

function edgeName(run, edge) {
  const [source, target] = [run.source, run.target].map((ends) => run.names[ends[edge]]);
  const arrow = hasArrow(run, edge) ? "→" : "—";
  return `${isolated(shortened(source, LONGEST_NAME))} ${arrow} ${isolated(shortened(target, LONGEST_NAME))}`;
}

// Return a function that shows an edge; null where there are no curves.
export function showVarying(section, run, { view, onChange }, network) {
  const select = section.querySelector(".varying-edge");
  if (!select) return null;
  const status = section.querySelector(".varying-text");
  const edges = [...run.spreads.keys()];
  const listed = edges.slice(0, MOST_OPTIONS);
  select.append(...listed.map((edge) => new Option(edgeName(run, edge), edge)));
  let chosen = edges[0];
  const draws = [...section.querySelectorAll(".varying-curve")].map((element) => {
    const table = run.situations[Number(element.dataset.table)];
    return addDrawing(element, () => curveFigure(table, chosen, run.probability[chosen], view.situation));
  });
  const describe = () => {
    const parts = run.situations.map((table) => curveText(table, chosen, view.situation)).filter(Boolean);
    const average = Number.isNaN(run.probability[chosen]) ? "" : `; average ${threeDigits(run.probability[chosen])}`;
    status.textContent = `${edgeName(run, chosen)}: ${parts.join("; ")}${average}.`;
  };
  const show = () => {
    describe();
    for (const draw of draws) draw();
  };
  const choose = (edge) => {
    if (!run.spreads.has(edge)) return false;
    chosen = edge;
    if (!listed.includes(edge)) {
      listed.push(edge);
      select.append(new Option(edgeName(run, edge), edge));
    }
    select.value = edge;
    show();
    return true;
  };
  select.addEventListener("change", () => choose(Number(select.value)));
  network.element.on("plotly_click", ({ points }) => choose(points[0].data.meta?.edgeOf?.[points[0].pointNumber]));
  onChange(show);
  describe();
  return (edge) => {
    if (!choose(edge)) return;
    select.focus({ preventScroll: true });
    select.closest("figure").scrollIntoView({ block: "nearest" });
  };
}
