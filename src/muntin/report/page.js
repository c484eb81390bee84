(() => {
  "use strict";
  // Found by class, not by id: several reports may stand in one notebook, each started once.
  for (const root of document.querySelectorAll(".muntin:not([data-ready])")) {
    root.dataset.ready = "";
    theme(root);
    highlight(root);
    const table = root.querySelector(".mtn-decisions") ? decisions(root) : null;
    whatIf(root, table);
  }

  function theme(root) {
    const button = root.querySelector(".mtn-theme");
    if (!button) return;
    const page = document.documentElement;
    const systemDark = matchMedia("(prefers-color-scheme: dark)");
    let chosen = "";
    const dark = () => (chosen ? chosen === "dark" : systemDark.matches);
    const show = () => {
      document.body.style.colorScheme = chosen;
      page.style.colorScheme = chosen;
      button.textContent = dark() ? "Light" : "Dark";
      button.setAttribute("aria-label", `Use the ${dark() ? "light" : "dark"} theme`);
    };
    button.addEventListener("click", () => { chosen = dark() ? "light" : "dark"; show(); });
    systemDark.addEventListener("change", show);
    show();
  }

  function highlight(root) {
    const at = (event) => event.target.closest?.("[data-part]")?.dataset.part;
    const light = (event) => {
      const part = event.type === "pointerleave" ? undefined : at(event);
      for (const other of root.querySelectorAll(".mtn-view [data-part]")) {
        other.classList.toggle("mtn-dim", part !== undefined && other.dataset.part !== part);
      }
    };
    root.addEventListener("pointerover", light);
    root.addEventListener("pointerleave", light);
  }

  function whatIf(root, table) {
    const slider = root.querySelector(".mtn-whatif input");
    if (!slider) return;
    const views = [...root.querySelectorAll("template[data-budget]")];
    const view = root.querySelector(".mtn-view");
    const output = root.querySelector(".mtn-whatif output");
    slider.addEventListener("input", () => {
      const chosen = views[Number(slider.value)];
      view.replaceChildren(chosen.content.cloneNode(true));
      output.textContent = chosen.dataset.budget;
      slider.setAttribute("aria-valuetext", chosen.dataset.budget);
      table?.use(Number(slider.value));
    });
  }

  function decisions(root) {
    const data = JSON.parse(root.querySelector("script.mtn-data").textContent);
    const scroller = root.querySelector(".mtn-scroll");
    const body = root.querySelector(".mtn-decisions tbody");
    const head = root.querySelector(".mtn-decisions thead");
    const count = root.querySelector(".mtn-count");
    const none = root.querySelector(".mtn-none");
    const search = root.querySelector(".mtn-search input");
    const chips = [...root.querySelectorAll(".mtn-chip")];
    const wanted = { kind: new Set(), reason: new Set() };
    const all = data.rows.map((row, place) => {
      const [index, source, id, kind, reason, tokens, kept, score, mmr, nearest, similarity, text] = row;
      return {
        place, index, source, id, kind, reason, tokens, kept, score, mmr, nearest, similarity, text,
        item: id || `${source}:${index}`,
        whole: data.texts[place] || text,
        hay: `${source}\n${id}\n${source}:${index}\n${text}\n${data.texts[place] ?? ""}`.toLowerCase(),
      };
    });
    let shown = all;
    let order = { key: "", down: false };
    let drawn = "";

    const by = {
      item: (a, b) => a.place - b.place,
      decision: (a, b) => words(a).localeCompare(words(b)),
      tokens: (a, b) => a.tokens - b.tokens,
      score: (a, b) => number(a.score) - number(b.score),
      mmr: (a, b) => number(a.mmr) - number(b.mmr),
      similarity: (a, b) => number(a.similarity) - number(b.similarity),
      text: (a, b) => a.text.localeCompare(b.text),
    };
    function words(row) { return `${data.kinds.indexOf(row.kind)} ${row.reason}`; }
    function number(value) { return value ?? Number.NEGATIVE_INFINITY; }

    function refresh() {
      const needle = search.value.trim().toLowerCase();
      shown = all.filter((row) =>
        (!wanted.kind.size || wanted.kind.has(row.kind)) &&
        (!wanted.reason.size || wanted.reason.has(row.reason)) &&
        (!needle || row.hay.includes(needle) || row.reason.replaceAll("_", " ").includes(needle)));
      if (order.key) {
        const compare = by[order.key];
        // Equal rows keep the order they came in, whichever way the column runs.
        shown.sort((a, b) => ((order.down ? compare(b, a) : compare(a, b)) || a.place - b.place));
      }
      const noun = data.nouns[all.length === 1 ? 0 : 1];
      count.textContent = `${shown.length.toLocaleString("en")} of ${all.length.toLocaleString("en")} ${noun}`;
      none.hidden = shown.length > 0;
      scroller.scrollTop = 0;
      draw(true);
    }

    function rowHeight() {
      return body.querySelector("tr")?.getBoundingClientRect().height || 40;
    }

    function draw(force, everything) {
      if (!body.firstElementChild && shown.length) body.append(line(shown[0], 0));
      const height = rowHeight();
      const room = Math.ceil(scroller.clientHeight / height) + 12;
      const first = everything ? 0 : Math.max(0, Math.floor(scroller.scrollTop / height) - 6);
      const last = Math.min(shown.length, everything ? 2000 : first + room);
      const key = `${first} ${last} ${height}`;
      if (!force && key === drawn) return;
      drawn = key;
      body.style.paddingTop = `${first * height}px`;
      body.style.paddingBottom = `${everything ? 0 : (shown.length - last) * height}px`;
      body.replaceChildren(...shown.slice(first, last).map((row, i) => line(row, first + i)));
    }

    function cell(text, name) {
      const td = document.createElement("td");
      td.setAttribute("role", "cell");
      td.className = name;
      td.textContent = text;
      return td;
    }

    function line(row, position) {
      const tr = document.createElement("tr");
      tr.setAttribute("role", "row");
      tr.setAttribute("aria-rowindex", String(position + 2));
      tr.dataset.kind = row.kind;
      const decision = cell("", "mtn-decision");
      const mark = document.createElement("span");
      mark.className = "mtn-mark";
      mark.ariaHidden = "true";
      mark.textContent = data.marks[row.kind];
      const why = document.createElement("span");
      why.className = "mtn-why";
      why.textContent = ` ${row.reason.replaceAll("_", " ")}`;
      decision.append(mark, row.kind, why);
      decision.title = data.reasons[row.reason];
      const whole = row.tokens.toLocaleString("en");
      const tokens = row.kind === "shortened" ? `${row.kept.toLocaleString("en")} of ${whole}` : whole;
      const twin = row.nearest === null ? "" : `${row.nearest}${row.similarity === null ? "" : ` ${row.similarity.toFixed(3)}`}`;
      const item = cell(row.item, "mtn-item");
      item.title = `${row.source}, number ${row.index}`;
      const text = cell(row.text, "mtn-text");
      text.title = row.text;
      text.dir = item.dir = "auto";
      tr.dataset.place = String(row.place);
      tr.tabIndex = 0;
      tr.append(item, decision, cell(tokens, ""), cell(figure(row.score), ""), cell(figure(row.mmr), ""), cell(twin, "mtn-twin"), text);
      return tr;
    }
    function figure(value) { return value === null ? "–" : value.toFixed(3); }

    head.addEventListener("click", (event) => {
      const button = event.target.closest(".mtn-sort");
      if (!button) return;
      const { key } = button.dataset;
      const numeric = !["item", "decision", "text"].includes(key);
      // The first click shows what one looks for first: large figures, or the beginning of a list.
      order = order.key === key ? { key, down: !order.down } : { key, down: numeric };
      for (const th of head.querySelectorAll("th")) th.removeAttribute("aria-sort");
      button.parentElement.setAttribute("aria-sort", order.down ? "descending" : "ascending");
      refresh();
    });
    for (const chip of chips) {
      chip.addEventListener("click", () => {
        const set = wanted[chip.dataset.field];
        const on = !set.delete(chip.dataset.value);
        if (on) set.add(chip.dataset.value);
        chip.setAttribute("aria-pressed", String(on));
        refresh();
      });
    }
    none.querySelector("button").addEventListener("click", () => {
      search.value = "";
      wanted.kind.clear();
      wanted.reason.clear();
      for (const chip of chips) chip.setAttribute("aria-pressed", "false");
      refresh();
      search.focus();
    });
    search.addEventListener("input", refresh);

    const dialog = root.querySelector(".mtn-dialog");
    function open(target) {
      const at = target.closest("tr")?.dataset.place;
      if (at === undefined) return;
      const row = all[Number(at)];
      dialog.querySelector(".mtn-dialog-head").textContent =
        `${row.item}: ${row.kind}, ${row.reason.replaceAll("_", " ")}, ${row.tokens.toLocaleString("en")} ${row.tokens === 1 ? "token" : "tokens"}`;
      dialog.querySelector(".mtn-dialog-text").textContent = row.whole;
      dialog.showModal();
    }
    body.addEventListener("click", (event) => open(event.target));
    body.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      open(event.target);
    });
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });

    let keptOnly = false;
    root.querySelector(".mtn-print").addEventListener("click", () => {
      keptOnly = true;
      print();
      keptOnly = false;
    });
    let waiting = false;
    scroller.addEventListener("scroll", () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; draw(false); });
    });
    new ResizeObserver(() => draw(false)).observe(scroller);
    addEventListener("beforeprint", () => {
      if (keptOnly) shown = shown.filter((row) => row.kind !== "dropped");
      draw(true, true);
    });
    addEventListener("afterprint", refresh);
    refresh();

    return {
      use(alternative) {
        data.alternatives[alternative].forEach((outcome, i) => {
          if (outcome) [all[i].kind, all[i].reason, all[i].kept] = outcome;
        });
        const tally = (field, value) => all.filter((row) => row[field] === value).length;
        for (const chip of chips) {
          chip.querySelector("b").textContent = tally(chip.dataset.field, chip.dataset.value).toLocaleString("en");
        }
        refresh();
      },
    };
  }
})();
