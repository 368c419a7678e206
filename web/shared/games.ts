/** Links from one page to the others. */

/** What the server says of its games: `GET /web.json`. */
interface Facts {
  games?: { app: string; path: string }[];
}

/** Fills an element with links to the games that this server has pages of, but that at `here`. It stays empty if there are none. */
export function showGames(element: HTMLElement, here: string): void {
  void fetch("/web.json")
    .then(async (answer) => (answer.ok ? ((await answer.json()) as Facts) : {}))
    .then(({ games = [] }) => {
      const links = games.filter(({ path }) => path !== here).map(({ app, path }) => {
        const link = document.createElement("a");
        link.href = path;
        link.textContent = `${app.charAt(0).toUpperCase()}${app.slice(1)}`;
        return link;
      });
      element.replaceChildren(...links);
      element.hidden = links.length === 0;
    })
    // Links are a courtesy: without them the page plays just so.
    .catch(() => {});
}
