// Search for a node: its strongest edges in words, and highlighted in the drawing.
import { hasArrow, isHidden, isListed } from "./edges.js";
import { isolated, plural } from "./text.js";

const MOST_OPTIONS = 2000;
const MOST_NAMED = 3;

function matchingNodes(run, text) {
  const name = text.trim();
  const lower = name.toLowerCase();
  const sameCase = run.names.indexOf(name);
  const exact = sameCase >= 0 ? sameCase : run.lowerNames.indexOf(lower);
  const rank = (node) => (run.lowerNames[node].startsWith(lower) ? 0 : 1);
  const nodes = run.names.map((_, node) => node).filter((node) => run.lowerNames[node].includes(lower));
  return { exact: exact >= 0 ? exact : null, matches: nodes.sort((a, b) => rank(a) - rank(b) || a - b) };
}

// Return the strongest edges into a node and out of it; with evidence only those that are listed.
function strongestEdges(run, node) {
  const incoming = [];
  const outgoing = [];
  const open = [];
  for (const edge of run.order) {
    if (!run.between[edge] || isHidden(run, edge) || (run.hasEvidence && !isListed(run, edge))) continue;
    const isOpen = !run.symmetric && !hasArrow(run, edge) && (run.target[edge] === node || run.source[edge] === node);
    if (isOpen) open.push(edge);
    else if (run.target[edge] === node && incoming.length < MOST_NAMED) incoming.push(edge);
    else if (run.source[edge] === node && outgoing.length < MOST_NAMED) outgoing.push(edge);
    if (!run.undirected && incoming.length + outgoing.length === 2 * MOST_NAMED) break;
  }
  return { incoming, outgoing, open: open.slice(0, MOST_NAMED) };
}

function nodeText(run, node) {
  const { incoming, outgoing, open } = strongestEdges(run, node);
  const other = (edge) => (run.source[edge] === node ? run.target[edge] : run.source[edge]);
  const named = (edges) =>
    edges.map((edge) => `${isolated(run.names[other(edge)])} ${run.decides[edge].toFixed(2)}`).join(", ") || "none";
  const name = isolated(run.names[node]);
  const kind = run.hasEvidence ? "listed" : "most probable";
  const place = run.placeOf[node] < 0 ? " The node is not drawn." : "";
  if (run.symmetric) {
    const all = incoming.concat(outgoing).sort((a, b) => run.decides[b] - run.decides[a]);
    return `${name}: ${kind} edges to ${named(all.slice(0, MOST_NAMED))}.${place}`;
  }
  const [orange, green] = run.effect ? ["", ""] : [" (orange)", " (green)"];
  const both = open.length ? `; without an arrow ${named(open)}` : "";
  const inputs = `${kind} inputs ${named(incoming)}${orange}`;
  return `${name}: ${inputs}; ${kind} outputs ${named(outgoing)}${green}${both}.${place}`;
}

function manyText(run, matches) {
  const contain = matches.length === 1 ? "contains" : "contain";
  return `${plural(matches.length, "name")} ${contain} this; press Enter for ${isolated(run.names[matches[0]])}.`;
}

// Return a function that searches again after a change of the run.
export function showSearch(section, run, network) {
  const input = section.querySelector(".search");
  const status = section.querySelector(".graph .found");
  const options = run.names.slice(0, MOST_OPTIONS).map((name) => new Option("", name));
  section.querySelector("datalist").append(...options);
  const choose = (node, text) => {
    status.textContent = text;
    network.chooseNode(node !== null && run.placeOf[node] < 0 ? null : node);
  };
  let tookFirst = false;
  const search = (takeFirst) => {
    tookFirst = takeFirst;
    const text = input.value.trim();
    if (!text) return choose(null, "");
    const { exact, matches } = matchingNodes(run, text);
    if (!matches.length) return choose(null, `No node has a name that contains “${text}”.`);
    const node = exact ?? (takeFirst ? matches[0] : null);
    return choose(node, node === null ? manyText(run, matches) : nodeText(run, node));
  };
  const clear = () => {
    input.value = "";
    search(false);
  };
  input.addEventListener("input", () => search(false));
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") search(true);
    if (event.key === "Escape") clear();
  });
  section.querySelector(".clear-search").addEventListener("click", () => {
    clear();
    input.focus();
  });
  network.element.on("plotly_click", ({ points }) => {
    const node = points[0].customdata;
    if (node === undefined) return;
    input.value = run.names[node];
    search(true);
  });
  return () => input.value.trim() && search(tookFirst);
}
