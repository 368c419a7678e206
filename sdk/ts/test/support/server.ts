// The server under test: the binary, on a port of its own, with nothing kept.

import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { WebSocket } from "ws";
import { setModuleSource } from "../../src/wasm/module.js";
import type { WebSocketConstructor } from "../../src/link/websocket.js";

const root = resolve(import.meta.dirname, "../../../..");
/** The program under test. */
export const binary = process.env["PARLOR_BIN"] ?? join(root, "target/debug/parlor");
/** Where the module is. */
export const wasmPath = process.env["PARLOR_WASM"] ?? join(root, "target/wasm/wasm32-unknown-unknown/web/parlor_wasm.wasm");

/** The module that the build makes; without it there is nothing to test. */
export function useBuiltWasm(): void {
  setModuleSource(() => WebAssembly.compile(readFileSync(wasmPath)));
}

/** A server that runs. */
export class TestServer {
  private constructor(
    private process: ChildProcess,
    readonly address: string,
    private readonly folder: string,
    private readonly args: string[],
  ) {}

  /** Starts it and waits for its first line. */
  static async start(...args: string[]): Promise<TestServer> {
    const folder = mkdtempSync(join(tmpdir(), "parlor-sdk-"));
    const { child, port } = await run(folder, "0", args);
    return new TestServer(child, `127.0.0.1:${port}`, folder, args);
  }

  /** Starts one that keeps accounts and turn rooms. */
  static async startWithStore(...args: string[]): Promise<TestServer> {
    const folder = mkdtempSync(join(tmpdir(), "parlor-sdk-"));
    const all = ["--data", join(folder, "data"), ...args];
    const { child, port } = await run(folder, "0", all);
    return new TestServer(child, `127.0.0.1:${port}`, folder, all);
  }

  /** Kills it, as a machine that loses its power does. */
  async kill(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill("SIGKILL");
    await ended;
  }

  /** Starts it again at the same port, with what it kept. */
  async startAgain(): Promise<void> {
    ({ child: this.process } = await run(this.folder, this.address.split(":")[1]!, this.args));
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Starts the binary. Its first line names its port. */
async function run(folder: string, asked: string, args: string[]): Promise<{ child: ChildProcess; port: string }> {
  if (!existsSync(binary)) throw new Error(`there is no ${binary}: build it with \`cargo build -p parlor-cli\``);
  const env = { ...process.env, XDG_DATA_HOME: folder, XDG_RUNTIME_DIR: folder, HOME: folder };
  const child = spawn(binary, ["serve", "--port", asked, ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
  const port = await new Promise<string>((found, failed) => {
    let said = "";
    const read = (chunk: Buffer) => {
      said += String(chunk);
      const port = /:(\d{4,5})\b/.exec(said)?.[1];
      if (port !== undefined) found(port);
    };
    child.stdout!.on("data", read);
    child.stderr!.on("data", read);
    child.on("exit", (code, signal) => {
      failed(new Error(`the server ended with ${code}: ${said}`));
      if (signal !== "SIGKILL") console.error(`the server ended with ${code} ${signal}: ${said}`);
    });
  });
  return { child, port };
}

/** The network of one room: the WebSocket of the package `ws`, whose connection a test can cut. */
export class TestNetwork {
  private readonly open = new Set<WebSocket>();
  /** How often the room dialled. */
  dialled = 0;
  /** Whether it reaches nothing. */
  isDown = false;

  readonly WebSocket: WebSocketConstructor;

  constructor() {
    const network = this;
    class Cuttable extends WebSocket {
      constructor(url: string, protocols: string) {
        // Port 1 answers nobody.
        super(network.isDown ? "ws://127.0.0.1:1/ws" : url, protocols);
        network.dialled += 1;
        network.open.add(this);
        this.on("close", () => network.open.delete(this));
      }
    }
    this.WebSocket = Cuttable as unknown as WebSocketConstructor;
  }

  /** Breaks the connection, as a network does: no goodbye. */
  cut(): void {
    for (const socket of this.open) socket.terminate();
  }
}

/** Options that the rooms of these tests have. */
export function options(server: TestServer, network = new TestNetwork()): { server: string; WebSocket: WebSocketConstructor } {
  return { server: server.address, WebSocket: network.WebSocket };
}

/** Options of a room whose host stays although the runner stands still for seconds: all its members are in this process. */
export function hosting(server: TestServer, network = new TestNetwork()) {
  return { ...options(server, network), hostMigration: { silenceMs: 10_000 } };
}
