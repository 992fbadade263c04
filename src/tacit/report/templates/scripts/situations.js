// How often edges act by situation or regime: a table per variable, as Python stored it.
import { roundToSixDigits, shared, unpack } from "./stored.js";

export const NUMBERS = shared.situationNumbers;

function readTable({ edge, numbers, ...stored }) {
  const edges = Array.from(unpack(edge));
  const columns = {};
  for (const name of NUMBERS) columns[name] = Float64Array.from(unpack(numbers[name]), roundToSixDigits);
  const rowOf = new Map(edges.map((one, row) => [one, row]));
  const count = stored.labels.length;
  const words = stored.named.map((name) => (stored.kind === "regime" ? `in ${name}` : `at ${name}`));
  const numberAt = (name, one, place) => columns[name][rowOf.get(one) * count + place];
  // The numbers of an edge at each value, without values that are not known; an edge without numbers has none.
  const curve = (one) =>
    stored.labels
      .map((_, place) => ({ place, ...Object.fromEntries(NUMBERS.map((name) => [name, numberAt(name, one, place)])) }))
      .filter((point) => !Number.isNaN(point.probability));
  return { ...stored, words, edges, count, isOrdered: ["periodic", "number"].includes(stored.kind), numberAt, curve };
}

export const readSituations = (stored) => (stored ?? []).map(readTable);

// Return the points of a curve with the lowest and the highest probability.
export function extremes(curve) {
  const lowest = curve.reduce((a, b) => (b.probability < a.probability ? b : a));
  const highest = curve.reduce((a, b) => (b.probability > a.probability ? b : a));
  return { lowest, highest };
}

// Return for each edge with a table the one in which it varies most, the edges that vary most first.
export function largestSpreads(tables) {
  const found = new Map();
  for (const table of tables) {
    for (const edge of table.edges) {
      const curve = table.curve(edge);
      if (!curve.length) continue;
      const { lowest, highest } = extremes(curve);
      const spread = highest.probability - lowest.probability;
      if (!(found.get(edge)?.spread >= spread)) found.set(edge, { table, curve, lowest, highest, spread });
    }
  }
  return new Map([...found].sort(([a, one], [b, other]) => other.spread - one.spread || a - b));
}
