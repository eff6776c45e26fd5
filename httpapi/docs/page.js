"use strict";
(async () => {
  const main = document.getElementById("operations");
  const el = (tag, props, ...children) => {
    const node = Object.assign(document.createElement(tag), props);
    node.append(...children);
    return node;
  };

  let doc;
  try {
    const answer = await fetch("../openapi.json");
    if (!answer.ok) throw new Error("the server answered " + answer.status);
    doc = await answer.json();
  } catch (err) {
    main.replaceChildren(el("p", { textContent: "The document could not be read: " + err.message }));
    return;
  }

  const resolve = (s) => {
    while (s && s.$ref) s = doc.components.schemas[s.$ref.split("/").pop()];
    return s || {};
  };

  // outline writes a schema as an example-like sketch, with what its fields mean.
  const outline = (schema, indent, seen) => {
    const s = resolve(schema);
    if (seen.includes(s)) return "…";
    const inner = [...seen, s];
    const pad = "  ".repeat(indent);
    if (s.oneOf) return s.oneOf.map((o) => outline(o, indent, inner)).join(" or ");
    const type = Array.isArray(s.type) ? s.type.join(" | ") : s.type;
    if (s.enum) return s.enum.map((v) => JSON.stringify(v)).join(" | ");
    if (s.items) return "[" + outline(s.items, indent, inner) + ", …]";
    if (s.properties) {
      const lines = Object.entries(s.properties).map(([name, p]) => {
        const optional = (s.required || []).includes(name) ? "" : "?";
        const note = p.description ? "  // " + p.description : "";
        return pad + "  " + name + optional + ": " + outline(p, indent + 1, inner) + note;
      });
      return "{\n" + lines.join("\n") + "\n" + pad + "}";
    }
    if (s.additionalProperties && s.additionalProperties.type) return "{ key: " + s.additionalProperties.type + " }";
    return (type || "any") + (s.format && s.format.startsWith("date") ? " (" + s.format + ")" : "");
  };

  const content = (title, types) => Object.entries(types || {}).flatMap(([type, media]) => [
    el("h3", { textContent: title + " — " + type }),
    el("pre", { textContent: outline(media.schema, 0, []) }),
  ]);

  const parameters = (list) => {
    if (!list || !list.length) return [];
    const rows = list.map((p) => {
      const s = resolve(p.schema);
      const notes = [p.description, s.enum && "one of " + s.enum.join(", "), s.default !== undefined && "default " + s.default];
      return el("tr", {},
        el("td", {}, el("code", { textContent: p.name })),
        el("td", { textContent: p.in + (p.required ? ", required" : "") }),
        el("td", { textContent: notes.filter(Boolean).join("; ") }));
    });
    const head = el("thead", {}, el("tr", {}, ...["Parameter", "Where", "Meaning"].map((t) => el("th", { textContent: t }))));
    return [el("table", {}, head, el("tbody", {}, ...rows))];
  };

  const roleText = (op) => {
    let text = op["x-rollcall-role"];
    if (op["x-rollcall-key-role"]) text += " or key of role " + op["x-rollcall-key-role"];
    if (op["x-rollcall-admin-when"]) text += "; admin if " + op["x-rollcall-admin-when"];
    return text;
  };

  const show = (method, path, op) => {
    const node = el("details", { className: "op", id: op.operationId },
      el("summary", {},
        el("span", { className: "method " + method, textContent: method.toUpperCase() }),
        el("code", { textContent: path }),
        el("span", { textContent: op.summary || "" }),
        el("span", { className: "role", textContent: roleText(op) })));
    node.addEventListener("toggle", () => {
      if (node.childElementCount > 1) return;
      node.append(el("div", {},
        el("p", { textContent: op.description || op.summary || "" }),
        ...parameters(op.parameters),
        ...content("Request", (op.requestBody || {}).content),
        ...Object.entries(op.responses || {}).flatMap(([status, r]) =>
          r.content ? content(status, r.content) : [el("h3", { textContent: status + " — " + (shared(r) || r).description })])));
    });
    node.dataset.text = [method, path, op.summary, op.description, roleText(op)].join(" ").toLowerCase();
    return node;
  };

  // The answers that many operations share stand among the components.
  function shared(r) { return r.$ref && doc.components.responses[r.$ref.split("/").pop()]; }

  const tags = new Map((doc.tags || []).map((tag) => [tag.name, []]));
  for (const [path, item] of Object.entries(doc.paths)) {
    for (const method of ["get", "post", "put", "patch", "delete"]) {
      if (!item[method]) continue;
      const tag = (item[method].tags || ["Other"])[0];
      if (!tags.has(tag)) tags.set(tag, []);
      tags.get(tag).push(show(method, path, item[method]));
    }
  }

  document.getElementById("about").textContent = doc.info.description + "\n\nVersion " + doc.info.version;
  main.replaceChildren();
  for (const [tag, nodes] of tags) {
    document.getElementById("tags").append(el("a", { href: "#" + encodeURIComponent(tag), textContent: tag }));
    main.append(el("section", {}, el("h2", { id: encodeURIComponent(tag), textContent: tag }), ...nodes));
  }

  document.getElementById("find").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const node of main.querySelectorAll("details.op")) {
      node.hidden = !words.every((w) => node.dataset.text.includes(w));
    }
    for (const section of main.querySelectorAll("section")) {
      section.hidden = !section.querySelector("details.op:not([hidden])");
    }
  });

  const wanted = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (wanted && wanted.tagName === "DETAILS") wanted.open = true;
})();
