"use strict";
// Sends the chosen file, shows the factor in words, and asks for progress. Nothing leaves this server.

const POLL_MILLISECONDS = 500;

function comeBack(place) {
  // A changed hash alone would not load the page again.
  window.location.hash = place;
  window.location.reload();
}

async function upload(event) {
  event.preventDefault();
  const file = document.getElementById("table").files[0];
  if (!file) {
    return;
  }
  const opening = document.getElementById("opening");
  if (file.size > Number(uploadForm.dataset.largest)) {
    opening.textContent = `${file.name} ${uploadForm.dataset.tooLarge}.`;
    return;
  }
  opening.textContent = "Opening " + file.name;
  const address = "upload?name=" + encodeURIComponent(file.name);
  try {
    const answer = await fetch(address, { method: "POST", body: file });
    const text = await answer.text();
    if (answer.ok) {
      comeBack(text);
    } else {
      opening.textContent = text;
    }
  } catch {
    // The file changed or is gone, or nobody answers.
    opening.textContent =
      `${file.name} could not be sent: choose it again; if that fails, start mechdesign app again.`;
  }
}

async function poll() {
  let state;
  try {
    state = await (await fetch("progress")).json();
  } catch {
    document.getElementById("status").textContent = "mechdesign app has ended.";
    return;
  }
  if (!state.running) {
    comeBack(state.place);
    return;
  }
  const status = document.getElementById("status");
  if (status.textContent !== state.text) {
    status.textContent = state.text;
  }
  document.getElementById("clock").textContent = state.seconds;
  const done = document.getElementById("done");
  for (const text of state.done.slice(done.children.length)) {
    done.append(Object.assign(document.createElement("li"), { textContent: text }));
  }
  window.setTimeout(poll, POLL_MILLISECONDS);
}

function showFactor(slider) {
  document.getElementById("factor-value").textContent = slider.value;
  slider.setAttribute("aria-valuetext", "a factor of at most " + slider.value);
  for (const place of document.querySelectorAll("[data-factor]")) {
    place.textContent = slider.value;
  }
  const line = document.getElementById("budget-line");
  if (line) {
    // The budgets of the curve are logarithms of factors. It was drawn at the slider's first one.
    const share = Math.log(slider.value) / Math.log(slider.defaultValue);
    line.setAttribute("transform", `translate(${share * line.dataset.place})`);
  }
}

const uploadForm = document.getElementById("upload");
if (uploadForm) {
  uploadForm.addEventListener("submit", upload);
}

const slider = document.getElementById("factor");
if (slider) {
  slider.addEventListener("input", () => showFactor(slider));
  showFactor(slider);
}

if (document.body.dataset.running === "yes") {
  window.setTimeout(poll, POLL_MILLISECONDS);
}

// The focus goes to the part that the last action led to.
const place = window.location.hash && document.getElementById(window.location.hash.slice(1));
if (place) {
  place.focus();
}
