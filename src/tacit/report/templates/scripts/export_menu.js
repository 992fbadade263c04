// The menus that export the graph and the matrices.
import { csvText } from "./csv.js";
import { exportedEdges } from "./exported_edges.js";
import { saveFile, saveImage } from "./files.js";
import { graphmlText } from "./graphml.js";
import { networkxCode } from "./networkx_code.js";
import { plural } from "./text.js";
import { colours } from "./theme.js";

// Copy a text; where the browser does not allow it, save it as a file.
async function copyOrSave(text, name) {
  try {
    await navigator.clipboard.writeText(text);
    return "copied";
  } catch {
    saveFile(name, text, "text/plain;charset=utf-8");
    return `saved as ${name}`;
  }
}

// Edges have their average over all situations; images show what is on the screen.
export function showExport(section, run, network) {
  const status = section.querySelector(".exported");
  const say = (edges, what) => {
    status.textContent = `${plural(edges.length, "edge")} ${what}.`;
  };
  const image = async (format) => {
    await saveImage(network.element, "graph", format, colours().paper);
    status.textContent = `The drawing was saved as graph.${format}.`;
  };
  const save = (name, text, type) => {
    const edges = exportedEdges(run, network.state);
    saveFile(name, text(run, edges), `${type};charset=utf-8`);
    say(edges, `saved as ${name}`);
  };
  const actions = {
    csv: () => save("edges.csv", csvText, "text/csv"),
    graphml: () => save("graph.graphml", graphmlText, "application/xml"),
    networkx: async () => {
      const edges = exportedEdges(run, network.state);
      say(edges, `${await copyOrSave(networkxCode(run, edges), "graph.py")} as Python code`);
    },
    png: () => image("png"),
    svg: () => image("svg"),
  };
  for (const button of section.querySelectorAll("[data-export]")) {
    button.addEventListener("click", actions[button.dataset.export]);
  }
  for (const button of section.querySelectorAll("[data-image]")) {
    const { image: shows, format } = button.dataset;
    const panel = section.querySelector(`.matrix[data-shows=${shows}]`);
    button.addEventListener("click", () => saveImage(panel, `matrix-${shows}`, format, colours().paper));
  }
}
