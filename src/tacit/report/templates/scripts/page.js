// Draw all runs of the page; the performance mark says when the page is interactive.

import { showAssessment } from "./assessment.js";
import { showCopyButton } from "./clipboard.js";
import { followMedia } from "./figures.js";
import { showMatrices } from "./matrix.js";
import { showNetwork } from "./network.js";
import { readRun } from "./run.js";
import { showSearch } from "./search.js";
import { storedRuns } from "./stored.js";
import { showTable } from "./table.js";

const runs = storedRuns.map(readRun);
followMedia();
for (const section of document.querySelectorAll("section.run")) {
  const run = runs[Number(section.dataset.run)];
  const network = showNetwork(section, run);
  showSearch(section, run, network);
  showTable(section, run);
  showMatrices(section, run);
  showAssessment(section, run);
  showCopyButton(section);
}
document.documentElement.classList.add("drawn");
requestAnimationFrame(() => setTimeout(() => performance.mark("interactive")));
