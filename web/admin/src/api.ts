/** Questions to the server, with an operator's token. */

/** What the server refused, or that it cannot be reached. */
export class Refusal extends Error {
  constructor(readonly status: number, readonly code: string, sentence: string) {
    super(sentence);
  }

  /** Whether the token is good for nothing here, so that there is no use in asking again. */
  get isOfToken(): boolean {
    return this.status === 401 || this.code === "forbidden" || this.code === "banned";
  }
}

/** What the server says to a reading operation, such as `/admin/status`. */
export async function ask<T>(token: string, path: string, signal: AbortSignal): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(`/v1${path}`, { headers: { authorization: `Bearer ${token}` }, cache: "no-store", signal });
  } catch (error) {
    if (signal.aborted) throw error;
    throw new Refusal(0, "unreachable", "the server cannot be reached; it is asked again");
  }
  const said: unknown = await answer.json().catch(() => undefined);
  if (answer.ok && said !== undefined) return said as T;
  const error = (said as { error?: { code?: string; sentence?: string } } | undefined)?.error;
  if (answer.status === 404 && error === undefined) throw new Refusal(404, "no_accounts", "this server has no accounts, turn rooms or boards, and nothing to show here");
  throw new Refusal(answer.status, error?.code ?? "", error?.sentence ?? `the server answers with status ${answer.status}`);
}

/** What a token says of itself. Nothing here trusts it: the server checks it with each question. */
export function claims(token: string): { aud?: string; env?: string; role?: string; sub?: string; exp?: number } {
  try {
    const part = token.split(".")[1]!.replaceAll("-", "+").replaceAll("_", "/");
    const said: unknown = JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(part), (it) => it.charCodeAt(0))));
    return typeof said === "object" && said !== null ? said : {};
  } catch {
    return {};
  }
}
