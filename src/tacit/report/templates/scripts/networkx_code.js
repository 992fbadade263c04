// The graph as Python code that makes it in networkx. A string of JSON is one of Python too.
import { edgeRows } from "./exported_edges.js";

export function networkxCode(run, edges) {
  const name = (node) => JSON.stringify(run.names[node]);
  const rows = edgeRows(run, edges).map(
    ([source, target, attributes]) => `    (${name(source)}, ${name(target)}, ${JSON.stringify(attributes)}),`,
  );
  return [
    "import networkx as nx",
    "",
    `graph = nx.${run.symmetric ? "Graph" : "DiGraph"}()`,
    `graph.add_nodes_from([${run.names.map((_, node) => name(node)).join(", ")}])`,
    "graph.add_edges_from([",
    ...rows,
    "])",
    "",
  ].join("\n");
}
