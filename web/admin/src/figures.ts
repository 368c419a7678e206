/** Figures of the server: how many, how large, how fast. */

/** What `admin.status` says. */
export interface Status {
  store_commits: number;
  store_writes: number;
  store_failed: number;
  store_turned_away: number;
  store_waiting: number;
  rooms_put_off: number;
  store_bytes: number;
  store_bytes_max: number;
  store_refused_full: number;
  store_refused_quota: number;
  kept_matches_refused: number;
  store_rows: Record<string, number>;
  open_rooms: number;
  room_bytes: number;
  log_bytes: number;
  save_bytes: number;
  object_bytes: number;
  webhooks_waiting: number;
  webhooks_dropped: number;
}

/** A figure: what it is of, what is shown, and whether somebody should look into it. */
export interface Figure {
  name: string;
  text: string;
  isBad?: boolean;
}

export function bytes(count: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; count >= 1024 && unit + 1 < units.length; unit += 1) count /= 1024;
  return `${unit === 0 || count >= 100 ? Math.round(count) : count.toFixed(1)} ${units[unit]}`;
}

export const number = (count: number): string => count.toLocaleString("en-US");

/** How long ago it was, in the largest unit. */
export function ago(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} d`;
}

/** How often something happened in a second, between two counts. A count that went back is of a new start. */
export function rate(before: number, now: number, elapsedMs: number): string {
  if (elapsedMs <= 0 || now < before) return "–";
  const each = ((now - before) * 1000) / elapsedMs;
  return each >= 10 || each === 0 ? number(Math.round(each)) : each.toFixed(1);
}

/** The figures of a status, with the one before it and the time between both. */
export function figures(now: Status, before: Status | undefined, elapsedMs: number): Figure[] {
  const perSecond = (name: "store_writes" | "store_commits") => (before === undefined ? "–" : rate(before[name], now[name], elapsedMs));
  const trouble = (name: string, count: number): Figure => ({ name, text: number(count), isBad: count > 0 });
  return [
    { name: "accounts", text: number(now.store_rows["accounts"] ?? 0) },
    { name: "open turn rooms", text: number(now.open_rooms) },
    { name: "writes a second", text: perSecond("store_writes") },
    { name: "commits a second", text: perSecond("store_commits") },
    { name: "writes that wait", text: number(now.store_waiting) },
    { name: `of ${bytes(now.store_bytes_max)} of the store`, text: bytes(now.store_bytes), isBad: now.store_bytes > 0.9 * now.store_bytes_max },
    { name: "of turn rooms", text: bytes(now.room_bytes) },
    { name: "of logs of matches", text: bytes(now.log_bytes) },
    { name: "of saves", text: bytes(now.save_bytes) },
    { name: "of objects", text: bytes(now.object_bytes) },
    { name: "webhooks that wait", text: number(now.webhooks_waiting) },
    trouble("webhooks dropped", now.webhooks_dropped),
    trouble("writes that failed", now.store_failed),
    trouble("requests turned away", now.store_turned_away),
    trouble("writes refused: store full", now.store_refused_full),
    trouble("writes refused: quotas", now.store_refused_quota),
    trouble("matches not kept", now.kept_matches_refused),
    trouble("rooms put off", now.rooms_put_off),
  ];
}
