// Save a text or an image as a file.
export function saveFile(name, content, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

// Return the bytes of a data URL: base64, or text in percent encoding.
function bytesOf(url) {
  const [head, body] = [url.slice(0, url.indexOf(",")), url.slice(url.indexOf(",") + 1)];
  if (!head.endsWith(";base64")) return new TextEncoder().encode(decodeURIComponent(body));
  return Uint8Array.from(atob(body), (letter) => letter.charCodeAt(0));
}

const TYPES = { png: "image/png", svg: "image/svg+xml" };
const SCALE = { png: 2, svg: 1 }; // pixels per pixel of the screen

// Save a drawing as it is on the screen, on an opaque background. Return a promise.
export function saveImage(element, name, format, background) {
  const layout = { ...element.layout, paper_bgcolor: background };
  const { clientWidth: width, clientHeight: height } = element;
  const figure = { data: element.data, layout };
  const drawn = Plotly.toImage(figure, { format, width, height, scale: SCALE[format] });
  return drawn.then((url) => saveFile(`${name}.${format}`, bytesOf(url), TYPES[format]));
}
