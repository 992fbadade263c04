// What Python stored in the page: constants that the figures for papers share, and the runs.
const stored = JSON.parse(document.getElementById("data").textContent);

export const shared = stored.shared;
export const storedRuns = stored.runs;

const ARRAYS = { "<f4": Float32Array, "<u2": Uint16Array, "<u4": Uint32Array, "<u1": Uint8Array };

// Return the numbers of a packed column: base64 of little-endian bytes.
export function unpack({ kind, data }) {
  const letters = atob(data);
  const bytes = new Uint8Array(letters.length);
  for (let place = 0; place < bytes.length; place += 1) bytes[place] = letters.charCodeAt(place);
  return new ARRAYS[kind](bytes.buffer);
}

// Round to the six digits of edges.csv: 0.7 in 32 bits is a little less than 0.7.
export function roundToSixDigits(value) {
  if (value > 1 || value < 0.001) return Number(value.toPrecision(6));
  const scale = value >= 0.1 ? 1e6 : value >= 0.01 ? 1e7 : 1e8;
  return Math.round(value * scale) / scale;
}
