// Keys, and a draft that survives a reload. The page works without either.
"use strict";

(() => {
  const who = document.body.dataset.who;
  const draftOf = (place) => `gasp-review:${who}:${place}`;
  const kept = {
    get(name) { try { return JSON.parse(localStorage.getItem(name)); } catch { return null; } },
    set(name, value) { try { localStorage.setItem(name, JSON.stringify(value)); } catch { /* full or forbidden */ } },
    drop(name) { try { localStorage.removeItem(name); } catch { /* as above */ } },
  };

  // What was stored needs no draft any more.
  if (document.body.dataset.done) kept.drop(draftOf(document.body.dataset.done));

  const task = document.getElementById("task");
  const form = document.getElementById("label");
  const undo = document.getElementById("undo") || document.querySelector('form[action="/undo"]');
  if (form) keepDraft();
  if (task) showSentence();
  document.addEventListener("keydown", onKey);

  function keepDraft() {
    const name = draftOf(task.dataset.place);
    const draft = kept.get(name);
    if (draft) {
      for (const input of form.querySelectorAll("input[type=radio]")) input.checked = draft[input.name] === input.value;
      form.elements.note.value = draft.note || "";
      form.elements.broken.checked = Boolean(draft.broken);
    }
    form.addEventListener("input", () => {
      const said = new FormData(form);
      said.delete("token");
      kept.set(name, Object.fromEntries(said));
    });
  }

  function showSentence() {
    const answer = document.querySelector(".answer");
    const sentence = document.getElementById("sentence");
    answer.scrollTop = Math.max(0, sentence.offsetTop - answer.offsetTop - answer.clientHeight / 3);
    const help = document.getElementById("help");
    help.hidden = false;
    help.addEventListener("click", () => document.getElementById("keys").showModal());
  }

  function onKey(event) {
    if (event.isComposing || event.altKey || event.metaKey || document.querySelector("dialog[open]")) return;
    const inText = event.target instanceof Element && event.target.matches("textarea, input:not([type=radio]):not([type=checkbox])");
    if (inText) {
      if (form && event.key === "Enter" && event.ctrlKey) { event.preventDefault(); form.requestSubmit(); }
      else if (event.key === "Escape") event.target.blur();
      return;
    }
    if (event.ctrlKey) return;
    if (act(event)) event.preventDefault();
  }

  // Whether the key meant something here.
  function act(event) {
    const key = event.key;
    if (key === "u" && undo) { undo.requestSubmit(); return true; }
    if (!form) return false;
    const named = form.querySelector(`input[data-key="${CSS.escape(key)}"]`);
    if (named) { choose(named); return true; }
    if (key === "Enter") return submit(event.target);
    if (key === "s") { document.getElementById("skip").requestSubmit(); return true; }
    if (key === "n") { form.elements.note.focus(); return true; }
    if (key === "?") { document.getElementById("keys").showModal(); return true; }
    if (key === "g") {
      const guidelines = form.querySelector(".guidelines");
      guidelines.open = !guidelines.open;
      return true;
    }
    return false;
  }

  // A button, a link or a folded part that has the focus keeps its own Enter.
  function submit(target) {
    if (target instanceof Element && target.closest("button, a, summary")) return false;
    form.requestSubmit();
    return true;
  }

  function choose(input) {
    input.checked = input.type === "checkbox" ? !input.checked : true;
    if (input.name === "detail") form.querySelector('[name=label][value="unsupported"]').checked = true;
    if (input.name === "broken" && input.checked && !form.querySelector("[name=label]:checked")) {
      form.querySelector('[name=label][value="cant_tell"]').checked = true;
    }
    input.focus();
    form.dispatchEvent(new Event("input"));
  }
})();
