// What a user with a browser does: follows redirects, keeps cookies, fills in the forms of the provider's own pages, and
// comes back to the program that waits for it.

import { request } from "node:http";

const MOST = 20;

// `fetch` says that a script asks, which a program that waits for a browser refuses.
function navigate(url) {
  return new Promise((resolve, reject) => {
    const asked = request(
      url,
      { headers: { "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" } },
      (answer) => {
        answer.setEncoding("utf8");
        let page = "";
        answer.on("data", (text) => {
          page += text;
        });
        answer.on("end", () => resolve({ status: answer.statusCode, location: answer.headers.location, page }));
      },
    );
    asked.on("error", reject);
    asked.end();
  });
}

export async function follow(url, issuer, user, denies) {
  const cookies = new Map();
  const visited = [];
  let [method, target, form] = ["GET", url, undefined];
  for (let step = 0; step < MOST; step++) {
    const here = new URL(target);
    const own = here.origin === issuer;
    visited.push(`${method} ${here.origin}${here.pathname}`);
    if (!own) {
      // Another authorization server, which asks nobody, or the program that waits.
      const { location, ...came } = await navigate(target);
      if (!location) return { ...came, visited };
      target = new URL(location, target).href;
      continue;
    }
    const headers =
      cookies.size > 0 ? { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; ") } : {};
    const response = await fetch(target, { method, headers, body: form, redirect: "manual" });
    const page = await response.text();
    for (const line of response.headers.getSetCookie()) {
      const [name, ...value] = line.split(";")[0].split("=");
      if (value.join("=") === "") cookies.delete(name);
      else cookies.set(name, value.join("="));
    }
    const location = response.headers.get("location");
    if (location) {
      [method, target, form] = ["GET", new URL(location, target).href, undefined];
      continue;
    }
    const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1];
    if (response.status !== 200 || !prompt) return { status: response.status, visited, page };
    const action = /<form[^>]* action="([^"]+)"/.exec(page)[1];
    if (denies && prompt === "consent")
      [method, target, form] = ["GET", `${new URL(action, target).href}/abort`, undefined];
    else
      [method, target, form] = [
        "POST",
        new URL(action, target).href,
        new URLSearchParams({ prompt, login: user, password: "x" }),
      ];
  }
  throw new Error(`no end: ${visited.join(", ")}`);
}
