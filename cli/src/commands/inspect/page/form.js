// Forms from JSON Schemas. A field gives JSON text, so that numbers stay as they were typed.

import { button, fill, h, line, unique } from "./dom.js";
import { problem } from "./json.js";

const DEEPEST = 6;
const CHOICES = 500;
const FIELDS = 200;
/** Schemas that are put together for one form. */
const PARTS = 600;

/**
 * A form for an object, with JSON beside it. `text()` gives the object as JSON text, or null after it has shown what is wrong.
 */
export function makeForm(schema, { values, label = "Arguments", change } = {}) {
  const root = schema && typeof schema === "object" ? schema : {};
  const holder = h("div", { class: "form" });
  const count = { fields: 0 };
  let field;
  let area = null;
  const show = (initial) => {
    Object.assign(count, { fields: 0, parts: PARTS, tooMany: false, building: true });
    field = objectField(resolve(root, root, count), {
      root,
      depth: 0,
      count,
      initial,
      required: true,
      label: "",
      change,
    });
    count.building = false;
    area = null;
    toggle.textContent = "Edit as JSON";
    fill(holder, field.element);
  };
  const asJson = (text) => {
    area = jsonField({ label, initialText: text, required: true, depth: 0 });
    toggle.textContent = "Edit as form";
    fill(holder, area.element);
  };
  const toggle = button(
    "Edit as JSON",
    () => {
      if (!area) return asJson(indented(field.text(true) ?? "{}"));
      const text = area.text();
      if (text === null) return area.focus();
      const value = JSON.parse(text || "{}");
      if (value && typeof value === "object" && !Array.isArray(value)) show(value);
      else area.complain("expected an object");
    },
    { class: "quiet" },
  );
  show(values);
  if (count.tooMany) asJson(JSON.stringify(values ?? {}, null, 2));
  return {
    element: h("div", null, holder, toggle),
    fields: (name) => field.inner?.get(name),
    text() {
      const now = area ?? field;
      const text = now.text();
      if (text === null) now.focus();
      return text;
    },
  };
}

function indented(text) {
  // Numbers that JavaScript would round stay as they are.
  return /\d{16}/.test(text) ? text : JSON.stringify(JSON.parse(text), null, 2);
}

/** A schema without its references; anything that cannot be resolved takes any JSON. */
export function resolve(schema, root, count = { parts: PARTS }, depth = 0) {
  if (!schema || typeof schema !== "object" || depth > 20 || count.parts-- <= 0) return {};
  let found = schema;
  if (typeof schema.$ref === "string") {
    if (!schema.$ref.startsWith("#")) return {};
    let at = root;
    for (const part of schema.$ref.slice(1).split("/").slice(1)) {
      const name = decoded(part).replaceAll("~1", "/").replaceAll("~0", "~");
      at = at && Object.hasOwn(at, name) ? at[name] : undefined;
    }
    const { $ref, ...beside } = schema;
    found = { ...resolve(at, root, count, depth + 1), ...beside };
  }
  if (Array.isArray(found.allOf) && found.allOf.length < 20) {
    const { allOf, ...beside } = found;
    for (const part of allOf) {
      const more = resolve(part, root, count, depth + 1);
      found = {
        ...more,
        ...beside,
        properties: more.properties || beside.properties ? { ...more.properties, ...beside.properties } : undefined,
        required: [
          ...(Array.isArray(more.required) ? more.required : []),
          ...(Array.isArray(beside.required) ? beside.required : []),
        ],
      };
      Object.assign(beside, found);
    }
  }
  return found;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const list = (value) => (Array.isArray(value) ? value : []);

function choices(schema) {
  const titled = [schema.oneOf, schema.anyOf].find(
    (some) =>
      Array.isArray(some) && some.length && some.every((one) => one && typeof one === "object" && "const" in one),
  );
  if (titled) return titled.map((one) => ({ value: one.const, title: one.title ?? one.const }));
  if (Array.isArray(schema.enum)) {
    return schema.enum.map((value, at) => ({ value, title: list(schema.enumNames)[at] ?? value }));
  }
  return null;
}

/** The schemas of a union, unless they are too many. */
function variants(schema, root, count) {
  const several = schema.oneOf ?? schema.anyOf;
  if (Array.isArray(several)) {
    if (several.length > 20) return null;
    const { oneOf, anyOf, ...beside } = schema;
    return several.map((one) => ({ ...beside, ...resolve(one, root, count), title: undefined, variant: one?.title }));
  }
  if (Array.isArray(schema.type) && schema.type.length > 1)
    return schema.type.map((type) => ({ ...schema, type, title: undefined }));
  return null;
}

function kindName(schema) {
  if (schema.variant) return line(schema.variant, 60);
  if ("const" in schema) return JSON.stringify(schema.const);
  return (
    { array: "list", object: "object", null: "null", string: "text" }[schema.type] ??
    String(schema.type ?? (schema.properties ? "object" : schema.enum ? "choice" : "JSON"))
  );
}

function makeField(given, context) {
  // A part that is added to a form later has a share of its own.
  if (!context.count.building) context.count.parts = PARTS;
  const schema = resolve(given, context.root, context.count);
  const next = { ...context, initial: context.initial === undefined ? schema.default : context.initial };
  context.count.fields++;
  if (context.count.fields > FIELDS) {
    context.count.tooMany = true;
    // The form is not shown then: no more of it is made.
    if (context.count.building) return { element: "", text: () => undefined, focus() {}, silent: true };
    return jsonField(labelled(schema, next));
  }
  const type = Array.isArray(schema.type) && schema.type.length === 1 ? schema.type[0] : schema.type;
  if ("const" in schema) return constant(schema, next);
  const some = choices(schema);
  if (some && some.length <= CHOICES) return choiceField(schema, some, next);
  if (context.depth > DEEPEST) return jsonField(labelled(schema, next));
  const several = variants(schema, context.root, context.count);
  if (several) return unionField(schema, several, next);
  if (type === "boolean")
    return choiceField(
      schema,
      [
        { value: true, title: "true" },
        { value: false, title: "false" },
      ],
      next,
    );
  if (type === "null") return constant({ ...schema, const: null }, next);
  if (type === "string" || type === "integer" || type === "number") return textField({ ...schema, type }, next);
  if (
    type === "array" &&
    !schema.prefixItems &&
    schema.items &&
    typeof schema.items === "object" &&
    !Array.isArray(schema.items)
  ) {
    const items = choices(resolve(schema.items, context.root, context.count));
    return items && items.length <= 100 ? manyField(schema, items, next) : arrayField(schema, next);
  }
  if ((type === "object" || schema.properties) && schema.properties && Object.keys(schema.properties).length)
    return objectField(schema, next);
  return jsonField(labelled(schema, next));
}

function labelled(schema, context) {
  return {
    ...context,
    label: context.label,
    title: schema.title,
    description: schema.description,
    type: schema.type,
    initialText: context.initial === undefined ? "" : JSON.stringify(context.initial, null, 2),
  };
}

/** A group of inputs under the name and the description of a schema. */
function group(schema, context, name, attributes, ...parts) {
  return h(
    "fieldset",
    attributes,
    h(
      "legend",
      null,
      line(context.label || schema.title || name, 200),
      context.required
        ? h("span", { class: "required", "aria-hidden": "true" }, " *")
        : h("span", { class: "hint" }, " optional"),
    ),
    schema.description ? h("p", { class: "about" }, line(schema.description, 1000)) : null,
    ...parts,
  );
}

/** Surroundings of an input: its name, the values that it takes, its faults. */
function framed(input, { label, title, description, required, hint }) {
  const id = unique("field");
  input.id = id;
  const problemLine = h("p", { class: "problem", id: `${id}-problem` });
  const notes = [hint, required ? null : "optional"].filter(Boolean).join(", ");
  const about = h(
    "p",
    { class: "about", id: `${id}-about` },
    title && title !== label ? `${line(title, 200)}. ` : null,
    description ? line(description, 1000) : null,
    notes ? h("span", { class: "hint" }, description ? ` (${notes})` : notes) : null,
  );
  input.setAttribute("aria-describedby", `${about.id} ${problemLine.id}`);
  if (required) input.setAttribute("aria-required", "true");
  const name = h(
    "label",
    { for: id },
    line(label || title || "value", 200),
    required ? h("span", { class: "required", "aria-hidden": "true" }, " *") : null,
  );
  return {
    element: h("div", { class: "field" }, name, input, about, problemLine),
    complain(text) {
      fill(problemLine, text ?? "");
      if (text) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    },
    focus: () => input.focus(),
  };
}

function constant(schema, context) {
  const text = JSON.stringify(schema.const);
  return {
    element: h(
      "p",
      { class: "field constant" },
      `${line(context.label || schema.title || "value", 200)}: `,
      h("code", null, line(text, 200)),
    ),
    text: () => (context.required || context.inside ? text : undefined),
    focus() {},
    silent: true,
  };
}

function choiceField(schema, some, context) {
  const select = h("select", {
    onchange: () => {
      check();
      context.change?.();
    },
  });
  if (!context.required || context.initial === undefined)
    select.append(h("option", { value: "" }, context.required ? "choose…" : "—"));
  some.forEach(({ value, title }, at) => {
    const option = h(
      "option",
      { value: String(at) },
      typeof title === "string" ? line(title, 200) : JSON.stringify(title),
    );
    if (context.initial !== undefined && JSON.stringify(value) === JSON.stringify(context.initial))
      option.selected = true;
    select.append(option);
  });
  const frame = framed(select, {
    label: context.label,
    title: schema.title,
    description: schema.description,
    required: context.required,
  });
  const check = (quiet) => {
    const wrong = select.value === "" && context.required ? "choose one" : null;
    if (!quiet) frame.complain(wrong);
    return !wrong;
  };
  return {
    ...frame,
    text(quiet) {
      const valid = check(quiet);
      if (select.value === "") return valid || quiet ? undefined : null;
      return JSON.stringify(some[Number(select.value)].value);
    },
  };
}

function range(least, most, unit = "") {
  if (least !== undefined && most !== undefined) return `${least} to ${most}${unit}`;
  if (least !== undefined) return `at least ${least}${unit}`;
  return most !== undefined ? `at most ${most}${unit}` : null;
}

const FORMATS = {
  email: [/^[^\s@]+@[^\s@]+$/, "ada@example.com"],
  uri: [/^[A-Za-z][A-Za-z0-9+.-]*:\S+$/, "https://example.com"],
  date: [/^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$/, "2026-07-28"],
  "date-time": [/^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/, "2026-07-28T12:00:00Z"],
};

/** A function that says what is wrong with a text, and the words for what is expected. */
function expectations(schema) {
  const number = (name) => (typeof schema[name] === "number" ? schema[name] : undefined);
  if (schema.type !== "string") {
    const kind = schema.type === "integer" ? "an integer" : "a number";
    const limits = [
      range(number("minimum"), number("maximum")),
      number("exclusiveMinimum") !== undefined ? `more than ${schema.exclusiveMinimum}` : null,
      number("exclusiveMaximum") !== undefined ? `less than ${schema.exclusiveMaximum}` : null,
      number("multipleOf") !== undefined ? `a multiple of ${schema.multipleOf}` : null,
    ].filter(Boolean);
    const hint = [kind, ...limits].join(", ");
    return {
      hint,
      wrong(text) {
        const trimmed = text.trim();
        if (!/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(trimmed)) return `expected ${hint}`;
        const value = Number(trimmed);
        const fits =
          (schema.type !== "integer" || Number.isInteger(value)) &&
          !(value < schema.minimum) &&
          !(value > schema.maximum) &&
          !(value <= schema.exclusiveMinimum) &&
          !(value >= schema.exclusiveMaximum) &&
          !(
            number("multipleOf") > 0 &&
            Math.abs(value / schema.multipleOf - Math.round(value / schema.multipleOf)) > 1e-9
          );
        return fits ? null : `expected ${hint}`;
      },
    };
  }
  const format = Object.hasOwn(FORMATS, schema.format) ? FORMATS[schema.format] : null;
  const length = range(number("minLength"), number("maxLength"), " characters");
  const hint = [
    format ? `${schema.format}, as ${format[1]}` : schema.format ? line(schema.format, 40) : null,
    length,
    schema.pattern ? `pattern ${line(schema.pattern, 100)}` : null,
  ]
    .filter(Boolean)
    .join(", ");
  return {
    hint,
    wrong(text) {
      const count = [...text].length;
      if (count < schema.minLength || count > schema.maxLength || (format && !format[0].test(text)))
        return `expected ${hint}`;
      return null;
    },
  };
}

function textField(schema, context) {
  const isText = schema.type === "string";
  const initial =
    context.initial === undefined
      ? ""
      : typeof context.initial === "string"
        ? context.initial
        : JSON.stringify(context.initial);
  const { hint, wrong } = expectations(schema);
  const rows =
    isText && !schema.format && !schema.isLine && !(schema.maxLength <= 200)
      ? String(Math.min(8, initial.split("\n").length))
      : null;
  const listeners = {
    onblur: () => check(),
    oninput: () => {
      if (input.hasAttribute("aria-invalid")) check();
      context.change?.();
    },
  };
  const input = rows
    ? h("textarea", { rows, spellcheck: "false", ...listeners })
    : h("input", {
        type: "text",
        inputmode: isText ? null : "decimal",
        autocomplete: "off",
        spellcheck: "false",
        ...listeners,
      });
  input.value = initial;
  const frame = framed(input, {
    label: context.label,
    title: schema.title,
    description: schema.description,
    required: context.required,
    hint,
  });
  const state = () => {
    if (input.value === "") return context.required ? `required${hint ? `: ${hint}` : ""}` : null;
    return wrong(input.value);
  };
  const check = () => {
    const problems = state();
    frame.complain(problems);
    return problems;
  };
  return {
    ...frame,
    input,
    text(quiet) {
      const problems = quiet ? state() : check();
      if (problems && !quiet) return null;
      if (input.value === "") return undefined;
      if (isText) return JSON.stringify(input.value);
      return problems ? JSON.stringify(input.value) : input.value.trim();
    },
  };
}

function jsonField(context) {
  const area = h("textarea", {
    rows: context.depth === 0 ? "10" : "3",
    spellcheck: "false",
    class: "code",
    onblur: () => check(),
    oninput: () => {
      if (area.hasAttribute("aria-invalid")) check();
      context.change?.();
    },
  });
  area.value = context.initialText ?? "";
  const frame = framed(area, {
    label: context.label,
    title: context.title,
    description: context.description,
    required: context.required,
    hint: context.type && typeof context.type === "string" ? `JSON, ${context.type}` : "JSON",
  });
  const state = () => {
    if (area.value.trim() === "") return context.required ? "required: JSON" : null;
    return problem(area.value);
  };
  const check = () => {
    const problems = state();
    frame.complain(problems);
    return problems;
  };
  return {
    ...frame,
    text(quiet) {
      const problems = quiet ? state() : check();
      if (problems) return quiet ? undefined : null;
      return area.value.trim() === "" ? undefined : area.value.trim();
    },
  };
}

function manyField(schema, items, context) {
  const id = unique("many");
  const boxes = items.map(({ value, title }) => {
    const box = h("input", {
      type: "checkbox",
      onchange: () => {
        check();
        context.change?.();
      },
    });
    box.checked = list(context.initial).some((one) => JSON.stringify(one) === JSON.stringify(value));
    return {
      box,
      value,
      label: h(
        "label",
        { class: "choice" },
        box,
        " ",
        typeof title === "string" ? line(title, 200) : JSON.stringify(title),
      ),
    };
  });
  const count = range(schema.minItems, schema.maxItems);
  const problemLine = h("p", { class: "problem", id });
  const element = group(
    schema,
    context,
    "choices",
    { "aria-describedby": id },
    boxes.map((one) => one.label),
    problemLine,
  );
  const chosen = () => boxes.filter((one) => one.box.checked);
  const check = () => {
    const some = chosen().length;
    const wrong =
      (some > 0 || context.required) && (some < schema.minItems || some > schema.maxItems) ? `choose ${count}` : null;
    fill(problemLine, wrong ?? "");
    return wrong;
  };
  return {
    element,
    focus: () => boxes[0]?.box.focus(),
    text(quiet) {
      if (!quiet && check()) return null;
      const some = chosen();
      return some.length || context.required ? JSON.stringify(some.map((one) => one.value)) : undefined;
    },
  };
}

function arrayField(schema, context) {
  const holder = h("div", { class: "items" });
  const id = unique("list");
  const problemLine = h("p", { class: "problem", id });
  const parts = [];
  const numbered = () =>
    parts.forEach((part, at) => {
      part.row
        .querySelector(".remove")
        .setAttribute("aria-label", `Remove ${line(context.label || "item", 60)} ${at + 1}`);
    });
  const add = (initial, focus) => {
    const field = makeField(schema.items, {
      ...context,
      depth: context.depth + 1,
      initial,
      required: true,
      inside: true,
      label: `${context.label || "item"} ${parts.length + 1}`,
    });
    const row = h(
      "div",
      { class: "item" },
      field.element,
      button(
        "Remove",
        () => {
          parts.splice(
            parts.findIndex((part) => part.row === row),
            1,
          );
          row.remove();
          numbered();
          more.focus();
        },
        { class: "remove quiet" },
      ),
    );
    parts.push({ field, row });
    holder.append(row);
    numbered();
    if (focus) field.focus();
  };
  const more = button("Add", () => add(undefined, true), {
    class: "quiet",
    "aria-label": `Add to ${line(context.label || "list", 60)}`,
  });
  for (const value of list(context.initial).slice(0, FIELDS)) add(value);
  if (!parts.length && context.required && context.depth < 3 && (schema.minItems ?? 0) > 0) add(undefined);
  const element = group(schema, context, "list", { "aria-describedby": id }, holder, more, problemLine);
  let wrong = null;
  return {
    element,
    focus: () => (wrong ?? parts[0]?.field ?? more).focus(),
    text(quiet) {
      wrong = null;
      const texts = parts.map(({ field }) => {
        const text = field.text(quiet);
        if (text === null) wrong ??= field;
        return text;
      });
      if (wrong) return null;
      const given = texts.filter((text) => text !== undefined);
      const fits = !(
        (given.length || context.required) &&
        (given.length < schema.minItems || given.length > schema.maxItems)
      );
      if (!quiet) fill(problemLine, fits ? "" : `expected ${range(schema.minItems, schema.maxItems, " items")}`);
      if (!fits && !quiet) return null;
      return given.length || context.required ? `[${given.join(",")}]` : undefined;
    },
  };
}

function objectField(schema, context) {
  const required = new Set(list(schema.required));
  const initial = context.initial && typeof context.initial === "object" ? context.initial : {};
  const inner = new Map();
  for (const [name, own] of Object.entries(schema.properties ?? {})) {
    if (context.count.tooMany && context.count.building) break;
    const value = Object.hasOwn(initial, name) ? initial[name] : undefined;
    inner.set(
      name,
      makeField(own, {
        ...context,
        depth: context.depth + 1,
        initial: value,
        required: required.has(name),
        label: name,
        inside: false,
      }),
    );
  }
  const known = new Set(inner.keys());
  const others = Object.entries(initial).filter(([name]) => !known.has(name));
  const isOpen = context.depth === 0 && inner.size === 0 && schema.additionalProperties !== false;
  const free =
    isOpen || others.length
      ? jsonField({
          ...context,
          depth: 1,
          label: inner.size ? "Others" : "Arguments",
          required: false,
          initialText: others.length ? JSON.stringify(Object.fromEntries(others), null, 2) : "",
          description: inner.size
            ? "Members that the schema does not name, an object"
            : "The schema names none; an object may be given",
        })
      : null;
  const parts = [...inner.values()].map((field) => field.element);
  if (free) parts.push(free.element);
  const isRoot = context.depth === 0;
  const optional = !context.required && !isRoot;
  const element = isRoot ? h("div", { class: "fields" }, parts) : group(schema, context, "object", null, parts);
  let wrong = null;
  return {
    element,
    inner,
    focus: () => (wrong ?? [...inner.values()][0] ?? free)?.focus(),
    text(quiet) {
      wrong = null;
      // An optional value that was left empty is left out, whatever is required inside of it.
      const isEmpty =
        optional &&
        [...inner.values()].every(
          (field) => field.silent || field.text(true) === undefined || field.text(true) === "{}",
        );
      if (isEmpty) return undefined;
      const texts = [];
      for (const [name, field] of inner) {
        const text = field.text(quiet);
        if (text === null) wrong ??= field;
        else if (text !== undefined) texts.push(`${JSON.stringify(name)}:${text}`);
      }
      const more = free?.text(quiet);
      if (more === null) wrong ??= free;
      else if (more !== undefined) {
        const body = more.trim();
        if (!body.startsWith("{")) {
          free.complain("expected an object");
          wrong ??= free;
        } else if (!/^\{\s*\}$/.test(body)) texts.push(body.slice(1, -1));
      }
      return wrong && !quiet ? null : `{${texts.join(",")}}`;
    },
  };
}

function unionField(schema, several, context) {
  const hasNull = several.findIndex((one) => one.type === "null");
  const fits = (one, value) =>
    value !== undefined &&
    {
      string: typeof value === "string",
      integer: Number.isInteger(value),
      number: typeof value === "number",
      boolean: typeof value === "boolean",
      null: value === null,
      array: Array.isArray(value),
      object: value !== null && typeof value === "object" && !Array.isArray(value),
    }[one.type ?? (one.properties ? "object" : "")];
  const rest = several.filter((one) => one.type !== "null");
  // A value or null: null is what leaving it out means, as a rule; where it has to be there, it is one of the kinds.
  if (hasNull >= 0 && rest.length === 1 && !context.required) {
    const { default: unused, ...only } = rest[0];
    return makeField(
      { ...only, title: schema.title, description: schema.description ?? only.description },
      { ...context, initial: context.initial ?? undefined },
    );
  }
  const start = several.findIndex((one) => fits(one, context.initial));
  const select = h(
    "select",
    { onchange: () => show(undefined) },
    several.map((one, at) => h("option", { value: String(at) }, kindName(one))),
  );
  select.value = String(Math.max(0, start));
  const holder = h("div", null);
  const id = unique("kind");
  select.id = id;
  let field;
  const show = (initial) => {
    const { default: unused, ...one } = several[Number(select.value)];
    field = makeField(one, { ...context, depth: context.depth + 1, initial, label: context.label });
    fill(holder, field.element);
  };
  show(context.initial);
  return {
    element: h(
      "div",
      { class: "union" },
      h("label", { for: id, class: "kind" }, `Kind of ${line(context.label || schema.title || "value", 100)}`),
      select,
      holder,
    ),
    focus: () => field.focus(),
    text: (quiet) => field.text(quiet),
  };
}
