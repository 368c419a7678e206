// The apps that the package is installed into. A command finds the tools of its app's node_modules; PORT in it is the
// port that the app is to be served on.
//
// A page app is built, then served: by a command, or as the files of `folder`. Each of `pages` is opened by two
// players. A program app is `run` by two players. A tool app has `checks`, commands that must succeed.

/** Apps of `cargo xtask test --all`: what most games are built with. */
const ALWAYS = [
  {
    name: "esbuild",
    build: ["esbuild game.js slim.js --bundle --format=esm --minify --loader:.wasm=file --outdir=public"],
    folder: "public",
    pages: ["/", "/slim.html"],
  },
  { name: "vite", build: ["vite build"], folder: "dist", pages: ["/", "/slim.html"] },
  { name: "vite-dev", from: "vite", serve: "vite --host 127.0.0.1 --port PORT --strictPort", pages: ["/", "/slim.html"] },
  { name: "node", run: "node program.mjs" },
  { name: "node-require", from: "node", run: "node program.cjs" },
];

/** Apps of `cargo xtask test --weekly`. */
const WEEKLY = [
  { name: "webpack", build: ["webpack --mode production"], folder: ".", pages: ["/"] },
  { name: "next", build: ["next build"], serve: "next start --hostname 127.0.0.1 --port PORT", pages: ["/"] },
  { name: "parcel", build: ["parcel build index.html --no-cache"], folder: "dist", pages: ["/"] },
  { name: "deno", run: "deno run --allow-net program.mjs" },
  { name: "bun", run: "bun program.mjs" },
  { name: "tools", checks: ["publint --strict PACKAGE", "attw PACKAGE --profile esm-only --exclude-entrypoints worker.js parlor.wasm"] },
];

/** The apps of a level, or those that are named. */
export function appsOf(level, names) {
  const all = [...ALWAYS, ...WEEKLY];
  if (names.length === 0) return level === "weekly" ? all : ALWAYS;
  return names.map((name) => {
    const app = all.find((it) => it.name === name);
    if (app === undefined) throw new Error(`there is no app ${name}; there are ${all.map((it) => it.name).join(", ")}`);
    return app;
  });
}
