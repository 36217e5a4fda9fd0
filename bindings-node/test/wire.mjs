// A way to a server that can be cut.
import { createServer, connect as dial } from "node:net";

/** Leads to `url`. `cut` breaks the connections there are; new ones get through. */
export async function wire(t, url) {
  const open = new Set();
  const between = createServer((near) => {
    const far = dial(Number(new URL(url).port), "127.0.0.1");
    open.add(near);
    const end = () => {
      near.destroy();
      far.destroy();
      open.delete(near);
    };
    for (const side of [near, far]) side.on("error", end).on("close", end);
    near.pipe(far).pipe(near);
  });
  await new Promise((resolve) => between.listen(0, "127.0.0.1", resolve));
  const cut = () => {
    for (const near of [...open]) near.destroy();
  };
  t.after(() => {
    cut();
    between.close();
  });
  return { url: `http://127.0.0.1:${between.address().port}/mcp`, cut };
}
