// Copy the command that made the run.
export function showCopyButton(section) {
  const code = section.querySelector(".command code");
  const status = section.querySelector(".copied");
  const select = () => {
    getSelection().selectAllChildren(code);
    status.textContent = "Selected; press Ctrl+C to copy.";
  };
  const confirm = () => {
    status.textContent = "Copied.";
  };
  section.querySelector(".copy").addEventListener("click", () => {
    if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(confirm, select);
    else select();
  });
}
