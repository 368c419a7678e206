/** The dialog by which others come in: a link, a QR code, and what a terminal takes. Its elements are in `dialog.html`. */

import qrcode from "qrcode-generator";
import { byId } from "./page.ts";

/** Modules of white around a QR code, as its standard asks for. */
const QUIET = 4;

/** What the server says of a room: `GET /rooms/CODE`. */
type Described = { invite?: string; fingerprint?: string | null };

/** A room to which others are invited. */
export interface Invited {
  readonly code: string;
  inviteUrl(): string;
}

/** What differs from game to game. */
export interface InviteWords {
  /** The game's name. */
  title: string;
  /** The command that joins in a terminal, for a game that has one; it is given an invite. */
  command?(invite: string): string;
  /** For rooms that `/rooms/CODE` does not know: what is said of a link that works on this machine only. */
  localHint?: string;
}

export class InviteDialog {
  readonly #dialog = byId("dialog", HTMLDialogElement);
  readonly #link = byId("link", HTMLInputElement);
  readonly #copy = byId("copy", HTMLButtonElement);
  readonly #share = byId("share", HTMLButtonElement);

  readonly #words: InviteWords;

  constructor(words: InviteWords, signal: AbortSignal) {
    this.#words = words;
    byId("dialog-close").addEventListener("click", () => this.#dialog.close(), { signal });
    this.#dialog.addEventListener("click", ({ target }) => target === this.#dialog && this.#dialog.close(), { signal });
    this.#copy.addEventListener("click", () => void this.#toClipboard(), { signal });
    this.#share.hidden = !("share" in navigator);
    const share = () => navigator.share({ title: words.title, url: this.#link.value }).catch(() => {});
    this.#share.addEventListener("click", () => void share(), { signal });
  }

  async show(room: Invited): Promise<void> {
    const { localHint } = this.#words;
    const described = localHint === undefined ? await describe(room.code) : {};
    const { link, isLocal } = publicLink(room.inviteUrl(), described);
    this.#link.value = link;
    this.#copy.textContent = "Copy";
    byId("dialog-code").textContent = room.code;
    byId("link-hint").textContent = isLocal && localHint !== undefined ? localHint : hint(isLocal, described);
    const terminal = isLoopback(location.hostname) ? room.code : `'${described.invite ?? room.code}'`;
    const command = this.#words.command?.(terminal);
    byId("in-terminal").hidden = command === undefined;
    byId("command").textContent = command ?? "";
    drawCode(byId("qr", HTMLCanvasElement), this.#link.value);
    if (!this.#dialog.open) this.#dialog.showModal();
  }

  close(): void {
    this.#dialog.close();
  }

  async #toClipboard(): Promise<void> {
    try {
      await navigator.clipboard.writeText(this.#link.value);
      this.#copy.textContent = "Copied";
    } catch {
      // Without the permission, or without a secure context, a person copies what is selected.
      this.#link.select();
      this.#copy.textContent = document.execCommand("copy") ? "Copied" : "Press Ctrl+C";
    }
  }
}

async function describe(code: string): Promise<Described> {
  try {
    const answer = await fetch(`/rooms/${code}`);
    return answer.ok ? ((await answer.json()) as Described) : {};
  } catch {
    return {};
  }
}

/** The link for others. `localhost` leads to nobody else, so there the server's own address takes its place. */
function publicLink(link: string, { invite }: Described): { link: string; isLocal: boolean } {
  const url = new URL(link);
  if (!isLoopback(url.hostname)) return { link, isLocal: false };
  const server = invite === undefined ? null : new URL(invite).searchParams.get("server");
  const host = server && URL.canParse(`https://${server}`) ? new URL(`https://${server}`) : undefined;
  if (!host || isLoopback(host.hostname)) return { link, isLocal: true };
  host.pathname = url.pathname;
  host.hash = url.hash;
  return { link: host.href, isLocal: false };
}

function hint(isLocal: boolean, { fingerprint }: Described): string {
  if (isLocal) return "This link works on this machine only: the server has no address in a network.";
  if (!fingerprint) return "Scan the code, or send the link.";
  return "Scan the code with a phone in the same network. Its browser warns, because this server made its certificate "
    + "itself: choose “Advanced” and go on.";
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host.endsWith(".localhost") || host === "[::1]" || /^127\./.test(host);
}

function drawCode(canvas: HTMLCanvasElement, text: string): void {
  const code = qrcode(0, "M");
  code.addData(text);
  code.make();
  const modules = code.getModuleCount();
  const size = Math.max(2, Math.floor(528 / (modules + 2 * QUIET)));
  canvas.width = canvas.height = size * (modules + 2 * QUIET);
  const pen = canvas.getContext("2d");
  if (!pen) return;
  pen.fillStyle = "#fff";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.fillStyle = "#000";
  for (let row = 0; row < modules; row++) {
    for (let column = 0; column < modules; column++) {
      if (code.isDark(row, column)) pen.fillRect((column + QUIET) * size, (row + QUIET) * size, size, size);
    }
  }
}
