// Controls for the situation: one per variable at the graph and again at the matrix; all show the same choice.
import { plural, shortened } from "./text.js";

const LONGEST_VALUE = 40; // letters

function averageText(run) {
  const regimes = run.situations.some(({ kind }) => kind === "regime");
  return `Shown: the average over all ${regimes ? "regimes" : "situations"}.`;
}

function situationText(run, situation) {
  if (!situation) return averageText(run);
  const { table, words } = situation;
  const count = table.edges.filter(situation.has).length;
  const outlined = table.kind === "regime" ? "" : ` (outlined ${count === 1 ? "arrow" : "arrows"})`;
  const own = table.kind === "regime" && run.hasOwnRegimes ? " of each node" : "";
  const shown = `Shown ${shortened(words, LONGEST_VALUE)}${own}`;
  return `${shown}: ${plural(count, "edge")}${outlined}; all others keep their average.`;
}

// Show a choice in one control: 0 is the average.
function showChoice(input, run, situation) {
  const table = run.situations[Number(input.dataset.table)];
  const isOwn = situation?.table === table;
  input.value = isOwn ? situation.place + 1 : 0;
  if (input.type !== "range") return;
  const text = isOwn ? table.named[situation.place] : "average";
  input.setAttribute("aria-valuetext", text);
  input.nextElementSibling.textContent = isOwn ? table.labels[situation.place] : text;
}

export function showSituationControls(section, run, { view, choose, onChange }) {
  const inputs = [...section.querySelectorAll(".situation-value")];
  if (!inputs.length) return;
  const status = section.querySelector(".situation");
  const buttons = [...section.querySelectorAll(".show-average")];
  const show = () => {
    for (const input of inputs) showChoice(input, run, view.situation);
    for (const button of buttons) button.disabled = !view.situation;
    status.textContent = situationText(run, view.situation);
  };
  for (const input of inputs) {
    input.addEventListener("input", () => {
      const place = Number(input.value) - 1;
      if (place < 0) choose(null);
      else choose(run.situations[Number(input.dataset.table)], place);
    });
  }
  for (const button of buttons) {
    button.addEventListener("click", () => {
      choose(null);
      button.closest(".situations").querySelector(".situation-value").focus();
    });
  }
  onChange(show);
  show();
}
