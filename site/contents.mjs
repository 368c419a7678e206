// What the site has, by task. Each document of the repository for people stands here once: the build fails for one that is missing.

/** Sections of the navigation: documents by their paths in the repository. `into` groups some of them under a name of their own. */
export const SECTIONS = [
  {
    title: "Start",
    what: "What Parlor is, the smallest game, and the words of your own engine.",
    pages: ["README.md", "docs/install.md", "docs/guide.md", "docs/coming-from.md", "docs/glossary.md", "docs/from-0.1.md"],
  },
  {
    title: "Play",
    what: "Magpies in a terminal or a browser, and small games to read.",
    pages: ["docs/play.md", "games"],
  },
  {
    title: "Build a game",
    what: "In Rust, Bevy, the browser, C or Godot: state, worlds, prediction, rollback.",
    pages: [
      { into: "Rust", pages: ["docs/world.md", "docs/feel.md", "docs/replicator.md", "docs/net.md", "docs/settings.md", "docs/testing.md"] },
      { into: "Bevy", pages: ["docs/bevy.md"] },
      { into: "C, Godot, other engines", pages: ["docs/engines.md"] },
      { into: "Browser and Node", pages: ["docs/web.md", "sdk/ts/README.md", "sdk/create-parlor/README.md"] },
    ],
  },
  {
    title: "Beyond a room",
    what: "Accounts, matches, turns, boards, friends, lobbies, matchmaking, saves.",
    pages: [
      "docs/matches.md", "docs/online.md", "docs/accounts.md", "docs/turn-rooms.md", "docs/boards.md", "docs/progress.md", "docs/friends.md",
      "docs/lobbies.md", "docs/matchmaking.md", "docs/saves.md",
    ],
  },
  {
    title: "Where rooms run",
    what: "Dedicated hosts, local networks, direct paths, recordings, bad networks.",
    pages: ["docs/dedicated.md", "docs/lan.md", "docs/paths.md", "docs/recording.md", "docs/impair.md", "docs/dump.md"],
  },
  {
    title: "Run a server",
    what: "One binary and one port: settings, deployment, storage, security.",
    pages: ["docs/serve.md", "docs/deploy.md", "docs/store.md", "docs/cluster.md", "docs/doctor.md", "docs/security.md", "SECURITY.md"],
  },
  {
    title: "Understand",
    what: "The protocol, the architecture, what it costs, how it is made.",
    pages: [
      "ARCHITECTURE.md", "PROTOCOL.md", "STATE-MACHINES.md", "docs/performance.md", "docs/dependencies.md", "CONTRIBUTING.md", "STYLE.md",
      "docs/releasing.md", "CHANGELOG.md",
    ],
  },
  {
    title: "Reference",
    what: "Every type, function and operation, made from the code.",
    pages: ["api/rust", "api/ts", "api/http"],
  },
];

/** Folders whose documents must stand above, without their subfolders. */
export const FOLDERS = [".", "docs"];

/** The games of the gallery: what each one is, its source, the command that plays it, and what its code shows. */
export const GAMES = [
  {
    name: "dots",
    title: "Dots",
    source: "examples/dots/src/main.rs",
    command: "cargo run --manifest-path examples/dots/Cargo.toml",
    second: "cargo run --manifest-path examples/dots/Cargo.toml -- CODE",
    what: "Everybody moves a letter. The first game to read: a value for each player, which the host writes, and another player becomes the host when it leaves.",
    more: ["docs/guide.md#state", "docs/guide.md#when-the-host-leaves"],
  },
  {
    name: "tanks",
    title: "Tanks",
    source: "examples/tanks/src/main.rs",
    command: "cargo run --manifest-path examples/tanks/Cargo.toml",
    second: "cargo run --manifest-path examples/tanks/Cargo.toml -- CODE",
    what: "Everybody drives a tank. A world of entities with components; one's own tank is predicted, so it answers at once on any link.",
    more: ["docs/world.md", "docs/feel.md#prediction"],
  },
  {
    name: "duel",
    title: "Duel",
    source: "examples/duel/src/main.rs",
    command: "cargo run --manifest-path examples/duel/Cargo.toml",
    second: "cargo run --manifest-path examples/duel/Cargo.toml -- CODE",
    what: "Two fencers, five touches. Rollback: each press shows at once, and steps run again when the guess of the other's press was wrong.",
    more: ["docs/feel.md#rollback-session"],
  },
  {
    name: "cards",
    title: "Cards",
    source: "examples/cards/main.ts",
    command: "node examples/play.mjs",
    page: "cards",
    what: "Two lay cards for prizes, at a table without a dealer. Lockstep in a match: the same messages in the same order at both, and sealed cards that nobody can change.",
    more: ["docs/matches.md", "docs/matches.md#who-can-cheat"],
  },
  {
    name: "four",
    title: "Four",
    source: "examples/four/main.ts",
    command: "node examples/play.mjs",
    page: "four",
    what: "Four in a row, in minutes or over days. A turn room: the server keeps the game and the turns, also when it is started anew.",
    more: ["docs/turn-rooms.md", "docs/online.md"],
  },
  {
    name: "sumo",
    title: "Sumo",
    source: "examples/sumo/main.ts",
    command: "node examples/play.mjs",
    page: "sumo",
    what: "Push a stranger off the ring. The matchmaker finds two who search, and one of them hosts the arena; wrestlers are predicted.",
    more: ["docs/matchmaking.md", "docs/web.md#worlds"],
  },
];

/** Pictures at the top of documents: files that pictures.mjs takes, and what they show. */
export const PICTURES = {
  "docs/play.md": [["play.svg", "Magpies: a player, and three bots that came by the code"]],
  "docs/web.md": [["magpies.png", "Magpies in a browser: the page of every server"]],
  "docs/lobbies.md": [["lobby.svg", "Two players meet in a lobby"]],
  "docs/boards.md": [["board.svg", "The top of a board"]],
  "docs/turn-rooms.md": [["four.png", "Four, a game of the gallery, in a turn room"]],
  "docs/matches.md": [["cards.png", "Cards, a game of the gallery, in a match"]],
};
