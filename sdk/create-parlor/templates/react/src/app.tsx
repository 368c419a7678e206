import { useEvent, useKeys, usePlayers, useRoom, useRoomStatus } from "parlor/react";
import { type CSSProperties, useState } from "react";
import { open, paint, SIZE, type TilesRoom } from "./game.js";
import { colour } from "./place.js";

export function App() {
  const { room, status, error, closed } = useRoom(open, []);
  if (error) return <p id="status">{error.message} {error.hint && `(${error.hint})`}</p>;
  if (closed) return <p id="status">{closed.message}</p>;
  return status === "open" ? <Board room={room} /> : <p id="status">connecting…</p>;
}

function Board({ room }: { room: TilesRoom }) {
  const painted = useKeys(room, "tile/");
  useEvent(room, "message", ({ from, kind, value }) => {
    if (room.isHost && kind === "paint" && from !== "hub") paint(room, from, value);
  });
  return (
    <>
      <header>
        <h1>Tiles</h1>
        <Invite link={room.inviteUrl(location.href)} />
        <Scores room={room} painted={painted} />
      </header>
      <div className="field board">
        {Array.from({ length: SIZE * SIZE }, (_, tile) => {
          const owner = painted.get(`tile/${tile}`);
          const style = owner === undefined ? {} : { background: colour(owner) };
          return <button key={tile} style={style} aria-label={`tile ${tile + 1}`} onClick={() => room.send("all", "paint", tile)} />;
        })}
      </div>
      <Status room={room} />
    </>
  );
}

function Scores({ room, painted }: { room: TilesRoom; painted: ReadonlyMap<string, number> }) {
  const players = usePlayers(room);
  const owners = [...painted.values()];
  return (
    <ul id="scores">
      {players.map(({ id, name }) => (
        <li key={id} style={{ "--colour": colour(id) } as CSSProperties}>
          {name} {owners.filter((owner) => owner === id).length}
        </li>
      ))}
    </ul>
  );
}

function Invite({ link }: { link: string }) {
  const [text, setText] = useState("Copy invite");
  const copy = () => navigator.clipboard.writeText(link).then(() => setText("Copied"), () => setText(link));
  return <button id="invite" data-link={link} onClick={copy}>{text}</button>;
}

function Status({ room }: { room: TilesRoom }) {
  const status = useRoomStatus(room);
  const said = { open: "Paint tiles, also those of others.", reconnecting: "The connection is lost: trying again…", migrating: "Another player becomes the host…" };
  return <p id="status">{status && status !== "closed" ? said[status] : ""}</p>;
}
