// The command that made the run, into the clipboard.
function showCopy(section) {
  const code = section.querySelector(".command code"), said = section.querySelector(".copied");
  const select = () => {
    getSelection().selectAllChildren(code);
    said.textContent = "Selected; press Ctrl+C to copy.";
  };
  section.querySelector(".copy").addEventListener("click", () => {
    if (!navigator.clipboard) { select(); return; }
    navigator.clipboard.writeText(code.textContent).then(() => { said.textContent = "Copied."; }, select);
  });
}
