"use strict";

const sheet = JSON.parse(document.getElementById("data").textContent);
const place = `coreeval ${sheet.study} ${sheet.rater}`;
const kept = { at: 0, said: {} };
const find = (id) => document.getElementById(id);

function warn(message) {
  find("warning").textContent = message;
  find("warning").hidden = false;
}

function load() {
  try {
    Object.assign(kept, JSON.parse(localStorage.getItem(place) || "{}"));
    localStorage.setItem(place, JSON.stringify(kept));
  } catch {
    warn("This browser does not save your ratings: download them before you close the page.");
  }
}

function keep() {
  try {
    localStorage.setItem(place, JSON.stringify(kept));
  } catch {
    // said once, by load
  }
  showProgress();
}

const saidOf = (item) => (kept.said[item.item] ??= {});
const isDone = (item) => sheet.criteria.every((one) => saidOf(item)[one.name] !== undefined);

// -- building -----------------------------------------------------------------------------------

function make(tag, text = "", more = {}) {
  const made = Object.assign(document.createElement(tag), more);
  if (text) made.textContent = text;
  return made;
}

function textParts(item) {
  const several = Object.keys(item.fields).length > 1;
  return Object.entries(item.fields).flatMap(([name, text]) => [
    ...(several ? [make("h3", name)] : []),
    make("p", text, { className: "words" }),
  ]);
}

function goldParts(item) {
  if (!sheet.gold) return [];
  const line = make("p");
  line.append(make("span", item.label, { className: "label" }), item.meaning ? `: ${item.meaning}` : "");
  return [make("h3", `${sheet.gold}. ${item.question}`), line];
}

function newsParts(item) {
  const list = make("ul", "", { className: "news small" });
  for (const one of item.evidence) {
    const entry = make("li", [one.published_at.slice(0, 10), one.domain, one.snippet].filter(Boolean).join(" "));
    if (/^https?:\/\//.test(one.url)) {
      entry.append(" ", make("a", "open", { href: one.url, target: "_blank", rel: "noopener noreferrer" }));
      entry.lastChild.setAttribute("aria-label", `open ${one.domain}`);
    }
    list.append(entry);
  }
  return [make("h3", "News on the possible subject of the text"), list];
}

function choice(item, criterion, value, meaning) {
  const line = make("label", "", { className: "choice" });
  const box = make("input", "", { type: "radio", name: criterion.name, value: String(value) });
  box.checked = saidOf(item)[criterion.name] === value;
  box.addEventListener("change", () => {
    saidOf(item)[criterion.name] = value;
    keep();
    mark();
  });
  line.append(box, make("b", String(value)), make("span", meaning));
  return line;
}

function words(item, criterion) {
  const box = make("input", "", { type: "text", name: criterion.name, value: saidOf(item)[criterion.name] ?? "" });
  box.maxLength = 2000;
  box.setAttribute("aria-label", criterion.asks);
  box.addEventListener("input", () => {
    if (box.value.trim()) saidOf(item)[criterion.name] = box.value.trim();
    else delete saidOf(item)[criterion.name];
    keep();
    mark();
  });
  return [box];
}

const inputs = {
  scale: (item, criterion) =>
    criterion.values.map((value) => choice(item, criterion, value, criterion.anchors[value])),
  option: (item, criterion) => [
    ...item.options.map((letter) => choice(item, criterion, letter, item.fields[letter])),
    choice(item, criterion, sheet.none, ""),
  ],
  text: words,
};

function question(item, criterion) {
  const part = make("fieldset");
  part.dataset.name = criterion.name;
  const legend = make("legend", `${criterion.name} `);
  legend.append(make("span", criterion.asks));
  const clear = make("button", `clear ${criterion.name}`, { type: "button", className: "clear" });
  clear.addEventListener("click", () => {
    delete saidOf(item)[criterion.name];
    for (const box of part.querySelectorAll("input")) {
      if (box.type === "text") box.value = "";
      else box.checked = false;
    }
    keep();
    mark();
  });
  part.append(legend, ...inputs[criterion.form](item, criterion), clear);
  return part;
}

function noteParts(item) {
  const line = make("label");
  const box = make("textarea", saidOf(item).note || "", { rows: 2 });
  box.addEventListener("input", () => {
    saidOf(item).note = box.value;
    keep();
  });
  line.append("Note (optional)", box);
  return [line];
}

// -- showing ------------------------------------------------------------------------------------

function show(at) {
  kept.at = Math.min(Math.max(at, 0), sheet.items.length - 1);
  const item = sheet.items[kept.at];
  const questions = make("div", "", { className: "questions" });
  questions.append(...sheet.criteria.map((criterion) => question(item, criterion)));
  find("text").replaceChildren(
    make("h2", `Text ${kept.at + 1} of ${sheet.items.length} (${item.item})`),
    ...textParts(item),
    ...goldParts(item),
    ...newsParts(item),
    questions,
    ...noteParts(item),
  );
  find("previous").disabled = kept.at === 0;
  find("next").disabled = kept.at === sheet.items.length - 1;
  keep();
  mark();
}

function go(at) {
  show(at);
  find("text").focus({ preventScroll: true });
  find("text").scrollIntoView({ block: "start" });
}

function mark() {
  const said = saidOf(sheet.items[kept.at]);
  for (const part of document.querySelectorAll("fieldset")) {
    part.classList.toggle("done", said[part.dataset.name] !== undefined);
    part.querySelector(".clear").hidden = said[part.dataset.name] === undefined;
  }
}

function showProgress() {
  const done = sheet.items.filter(isDone).length;
  find("bar").value = done;
  find("count").textContent = `${done} of ${sheet.items.length} texts rated`;
  find("open").disabled = done === sheet.items.length;
  [...find("list").querySelectorAll("button")].forEach((button, at) => {
    const item = sheet.items[at];
    button.classList.toggle("done", isDone(item));
    button.setAttribute("aria-label", `Text ${at + 1}, ${isDone(item) ? "rated" : "not rated"}`);
    button.toggleAttribute("aria-current", at === kept.at);
    if (at === kept.at) button.setAttribute("aria-current", "true");
  });
}

function nextOpen() {
  const order = sheet.items.map((_, step) => (kept.at + 1 + step) % sheet.items.length);
  const found = order.find((at) => !isDone(sheet.items[at]));
  if (found !== undefined) go(found);
}

// -- saving -------------------------------------------------------------------------------------

function cell(value) {
  const text = value === undefined ? "" : String(value);
  const harmless = text
    .replace(/[,;\t\r\n](?='*"*[=+\-@＝＋－＠])/g, "$&'")
    .replace(/^(?=[=+\-@\t\r\n'＝＋－＠])/, "'");
  return `"${harmless.replaceAll('"', '""')}"`;
}

function asCsv() {
  const names = sheet.criteria.map((one) => one.name);
  const rows = sheet.items.map((item) => {
    const said = saidOf(item);
    return [item.item, sheet.rater, ...names.map((name) => said[name]), said.note];
  });
  const lines = [["item", "rater", ...names, "note"], ...rows].map((row) => row.map(cell).join(","));
  return `\ufeff${lines.join("\r\n")}\r\n`;
}

function save() {
  const left = sheet.items.filter((item) => !isDone(item)).length;
  if (left) warn(`${left} of ${sheet.items.length} texts ${left === 1 ? "is" : "are"} not fully rated; the file contains your ratings so far.`);
  else find("warning").hidden = true;
  const url = URL.createObjectURL(new Blob([asCsv()], { type: "text/csv" }));
  make("a", "", { href: url, download: `${sheet.rater}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// -- keys ---------------------------------------------------------------------------------------

function rate(value) {
  const parts = [...document.querySelectorAll("fieldset")];
  const here = document.activeElement?.closest("fieldset");
  const part = here || parts.find((one) => !one.classList.contains("done"));
  const boxes = [...(part?.querySelectorAll("input[type=radio]") ?? [])];
  const letter = value === "0" ? sheet.none : sheet.letters[value - 1];
  const box = boxes.find((one) => one.value === value || one.value === letter);
  if (!box) return;
  box.click();
  const after = parts.slice(parts.indexOf(part) + 1).find((one) => !one.classList.contains("done"));
  (after ? after.querySelector("input") : find("next").disabled ? find("save") : find("next")).focus();
}

const does = { n: () => go(kept.at + 1), p: () => go(kept.at - 1), u: nextOpen };

document.addEventListener("keydown", (event) => {
  const modified = event.ctrlKey || event.metaKey || event.altKey || event.isComposing;
  const typing = event.target instanceof Element && event.target.closest("textarea, input[type=text]");
  if (modified || typing || !find("keys").checked) return;
  if (/^[0-9]$/.test(event.key)) rate(event.key);
  else does[event.key]?.();
});

load();
find("guide").open = !Object.keys(kept.said).length;
find("list").append(
  ...sheet.items.map((_, at) => {
    const line = make("li");
    const button = make("button", String(at + 1), { type: "button" });
    button.addEventListener("click", () => go(at));
    line.append(button);
    return line;
  }),
);
find("previous").addEventListener("click", () => go(kept.at - 1));
find("next").addEventListener("click", () => go(kept.at + 1));
find("open").addEventListener("click", nextOpen);
find("save").addEventListener("click", save);
show(kept.at);
