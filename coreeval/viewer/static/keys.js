// Keys that follow the links marked with them: <a data-keys="j ArrowRight">. "?" shows them all.
"use strict";

const typed = "input, select, textarea, [contenteditable]";
const scrolled = "[tabindex='0'], svg";

function linkFor(key) {
  const links = [...document.querySelectorAll("a[data-keys]")];
  return links.find((link) => link.dataset.keys.split(" ").includes(key));
}

function isTaken(event) {
  const place = event.target instanceof Element ? event.target : document.body;
  const modified = event.ctrlKey || event.metaKey || event.altKey;
  const scrolls = event.key.startsWith("Arrow") && place.closest(scrolled);
  return event.defaultPrevented || event.isComposing || modified || scrolls || place.closest(typed);
}

function toggle(dialog) {
  if (dialog.open) dialog.close();
  else dialog.showModal();
}

document.addEventListener("keydown", (event) => {
  const dialog = document.getElementById("keys");
  if (isTaken(event)) return;
  if (event.key === "?" && dialog) {
    event.preventDefault();
    toggle(dialog);
  } else if (!dialog?.open) {
    linkFor(event.key)?.click();
  }
});

for (const button of document.querySelectorAll("button.for-keys")) {
  button.hidden = false;
  button.addEventListener("click", () => toggle(document.getElementById("keys")));
}
