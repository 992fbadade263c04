// Draw all runs of the page; the performance mark says when the page is interactive.

import { showAssessment } from "./assessment.js";
import { showBackground } from "./background.js";
import { showCopyButton } from "./clipboard.js";
import { showExport } from "./export_menu.js";
import { followMedia } from "./figures.js";
import { showForecasts } from "./forecasts.js";
import { showMatrices } from "./matrix.js";
import { showNetwork } from "./network.js";
import { showRegimes } from "./regime_strip.js";
import { readRun } from "./run.js";
import { showSearch } from "./search.js";
import { showSituationControls } from "./situation_controls.js";
import { newSituation } from "./situation_view.js";
import { storedRuns } from "./stored.js";
import { showTable } from "./table.js";
import { showVarying } from "./varying.js";

const runs = storedRuns.map(readRun);
followMedia();
for (const section of document.querySelectorAll("section.run")) {
  const run = runs[Number(section.dataset.run)];
  const situation = newSituation(run);
  const network = showNetwork(section, situation.view);
  const searchAgain = showSearch(section, situation.view, network);
  const showCurve = showVarying(section, run, situation, network);
  showTable(section, run, showCurve);
  const drawMatrices = showMatrices(section, situation.view);
  for (const listener of [network.refresh, searchAgain, drawMatrices]) situation.onChange(listener);
  showSituationControls(section, run, situation);
  showRegimes(section, run);
  showAssessment(section, run);
  showBackground(section, run, network);
  showForecasts(section, run, network);
  showExport(section, run, network);
  showCopyButton(section);
}
document.documentElement.classList.add("drawn");
requestAnimationFrame(() => setTimeout(() => performance.mark("interactive")));
