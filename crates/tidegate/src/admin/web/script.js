// What the pages do beyond plain HTML: parts that the server sends anew, and the preview of a draft.
"use strict";
(() => {
  // Parts of the page, by id, as the server last rendered them. A part that has the focus is left alone.
  const place = (id, html) => {
    const part = document.getElementById(id);
    if (part && !part.contains(document.activeElement)) part.innerHTML = html;
  };

  const live = document.querySelector("[data-events]");
  let events = null;
  const listen = () => {
    if (!live || events || document.hidden) return;
    events = new EventSource(live.dataset.events);
    events.onmessage = (message) => Object.entries(JSON.parse(message.data)).forEach(([id, html]) => place(id, html));
    // The session has ended: the page will say how to begin another.
    events.addEventListener("over", () => location.reload());
    events.onerror = () => {
      if (events && events.readyState === EventSource.CLOSED) { events = null; setTimeout(listen, 5000); }
    };
  };
  // A browser has few connections to a server: hidden tabs give theirs back.
  const hush = () => { if (events) { events.close(); events = null; } };
  document.addEventListener("visibilitychange", () => (document.hidden ? hush() : listen()));
  addEventListener("pagehide", hush);
  addEventListener("pageshow", listen);

  const form = document.querySelector("form[data-preview]");
  if (!form) return;
  const preview = document.getElementById("preview");
  let due = 0;
  let request = null;
  const load = async () => {
    clearTimeout(due);
    if (request) request.abort();
    request = new AbortController();
    try {
      const answer = await fetch(form.dataset.preview, {
        method: "POST",
        body: new URLSearchParams(new FormData(form)),
        headers: { "X-Part": "preview" },
        signal: request.signal,
      });
      if (answer.redirected) return location.reload();
      preview.innerHTML = await answer.text();
      preview.removeAttribute("aria-busy");
    } catch (error) {
      if (error.name !== "AbortError") preview.textContent = "The preview can't be loaded now.";
    }
  };
  // Nothing is offered for settings whose replay has not been seen.
  const withdraw = () => {
    preview.setAttribute("aria-busy", "true");
    preview.querySelectorAll("button").forEach((button) => button.remove());
  };
  form.addEventListener("input", () => {
    withdraw();
    clearTimeout(due);
    due = setTimeout(load, 250);
  });
  setInterval(() => {
    if (!document.hidden && !preview.hasAttribute("aria-busy") && !preview.contains(document.activeElement)) load();
  }, 10000);
  load();
})();
