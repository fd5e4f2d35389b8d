// Adds a button to each element marked with what it holds: <p data-copy="new text">.
"use strict";

function textOf(element) {
  const copy = element.cloneNode(true);
  for (const hidden of copy.querySelectorAll(".visually-hidden")) hidden.remove();
  for (const mark of copy.querySelectorAll(".unseen")) {
    mark.replaceWith(String.fromCodePoint(parseInt(mark.textContent.slice(2), 16)));
  }
  return copy.textContent;
}

function copySelected(text) {
  const field = document.createElement("textarea");
  field.className = "visually-hidden";
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { // there is no clipboard on pages that are not encrypted
    return copySelected(text);
  }
}

for (const element of document.querySelectorAll("[data-copy]")) {
  const button = document.createElement("button");
  const words = `Copy ${element.dataset.copy}`;
  button.type = "button";
  button.className = "copy";
  button.textContent = words;
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    button.textContent = (await copyText(textOf(element))) ? "Copied" : "Not copied";
    setTimeout(() => { button.textContent = words; }, 2000);
  });
  element.after(button);
}
