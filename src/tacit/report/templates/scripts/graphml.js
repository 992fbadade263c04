// The graph as GraphML, which networkx, igraph, Gephi and Cytoscape read. Nodes are named by their names.
import { edgeRows, exportedNumbers, exportedTexts } from "./exported_edges.js";
import { xmlText } from "./text.js";

const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;" };

const escaped = (text) => xmlText(text).replace(/[&<>"\t\n\r]/g, (letter) => ENTITIES[letter]);

const key = (name, of, type) => `  <key id="${name}" for="${of}" attr.name="${name}" attr.type="${type}"/>`;
const data = ([name, value]) => `<data key="${name}">${typeof value === "string" ? escaped(value) : value}</data>`;

const rounded = (value) => Number(value.toPrecision(7)); // single precision has no more digits

// Coordinates are those of the data; a layout has none.
function nodeLine(run, node) {
  const place = run.places.kind === "layout" ? -1 : run.placeOf[node];
  const at =
    place < 0
      ? ""
      : Object.entries({ x: rounded(run.x[place]), y: rounded(run.y[place]) })
          .map(data)
          .join("");
  return `    <node id="${escaped(run.names[node])}">${at}</node>`;
}

function edgeLine(run, [source, target, attributes]) {
  const ends = `source="${escaped(run.names[source])}" target="${escaped(run.names[target])}"`;
  return `    <edge ${ends}>${Object.entries(attributes).map(data).join("")}</edge>`;
}

export function graphmlText(run, edges) {
  const places = run.places.kind === "layout" ? [] : ["x", "y"].map((name) => key(name, "node", "double"));
  const numbers = exportedNumbers(run).map((name) => key(name, "edge", "double"));
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
    ...places,
    ...numbers,
    key("direction", "edge", "string"),
    ...exportedTexts(run).map((name) => key(name, "edge", "string")),
    `  <graph edgedefault="${run.symmetric ? "undirected" : "directed"}">`,
    ...run.names.map((_, node) => nodeLine(run, node)),
    ...edgeRows(run, edges).map((row) => edgeLine(run, row)),
    "  </graph>",
    "</graphml>",
    "",
  ].join("\n");
}
