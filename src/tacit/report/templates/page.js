// Everything, run by run; the mark says when the page answers.
const runs = JSON.parse(document.getElementById("data").textContent).map(readRun);
for (const section of document.querySelectorAll("section.run")) {
  const run = runs[Number(section.dataset.run)];
  const graph = showNetwork(section, run);
  showSearch(section, run, graph);
  showTable(section, run);
  showMatrices(section, run);
  showTrust(section, run);
  showCopy(section);
}
document.documentElement.classList.add("drawn");
requestAnimationFrame(() => setTimeout(() => performance.mark("interactive")));
