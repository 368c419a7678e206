import { afterEach, describe, expect, it, vi } from "vitest";
import { baseUrl, parseAddress, placeOf, redirected } from "../../src/server/address.js";
import { inviteFrom, inviteLink, inviteUrl, parseInvite } from "../../src/server/invite.js";

const hash = "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA";

afterEach(() => void vi.unstubAllGlobals());

describe("an address", () => {
  it.each([
    ["play.example.com", { host: "play.example.com", port: 7700, secure: true }],
    ["play.example.com:443", { host: "play.example.com", port: 443, secure: true }],
    ["localhost", { host: "localhost", port: 7700, secure: false }],
    ["127.0.0.1:80", { host: "127.0.0.1", port: 80, secure: false }],
    ["[::1]:9", { host: "::1", port: 9, secure: false }],
    ["::1", { host: "::1", port: 7700, secure: false }],
    ["https://play.example.com", { host: "play.example.com", port: 443, secure: true }],
    ["https://localhost:7700/", { host: "localhost", port: 7700, secure: true }],
    ["http://localhost:5173/x?y#", { host: "localhost", port: 5173, secure: false }],
    ["wss://play.example.com:8443/ws", { host: "play.example.com", port: 8443, secure: true }],
    [`192.168.1.7#${hash}`, { host: "192.168.1.7", port: 7700, secure: true, hashes: [hash] }],
  ])("%s", (text, address) => {
    expect(parseAddress(text)).toEqual(address);
    expect(parseAddress(new URL(text.includes("://") ? text : "https://x.example/"))).toBeDefined();
  });

  it.each(["", "not a host", "ftp://x", "http://"])("is not %o", (text) => {
    expect(() => parseAddress(text)).toThrow(expect.objectContaining({ code: "bad_address" }));
  });

  it("is the base of URLs, with IPv6 in brackets and no port that goes without saying", () => {
    expect(baseUrl(parseAddress("::1"), "ws")).toBe("ws://[::1]:7700");
    expect(baseUrl(parseAddress("https://x.example"), "http")).toBe("https://x.example");
    expect(placeOf(parseAddress("::1"))).toBe("[::1]:7700");
  });

  it("is another after a redirect", () => {
    const from = parseAddress(`192.168.1.7#${hash}`);
    expect(redirected(":7701", from)).toEqual({ ...from, port: 7701 });
    expect(redirected("b.example:7700#aaaa", from)).toEqual({ host: "b.example", port: 7700, secure: true });
  });
});

describe("an invite", () => {
  it.each([
    ["k7qm", { code: "K7QM" }],
    [" K7QM2 ", { code: "K7QM2" }],
    ["tanks://join/K7QM?server=play.example.com:7701&secret=a%26b", { code: "K7QM", secret: "a&b", server: parseAddress("play.example.com:7701") }],
    ["tanks://join/K7QM", { code: "K7QM" }],
    ["https://play.example.com/join/K7QM", { code: "K7QM", server: parseAddress("https://play.example.com") }],
    [
      `https://192.168.1.7:7700/join/K7QM#w=${hash},${hash}&s=s%C3%A9same`,
      { code: "K7QM", secret: "sésame", server: { host: "192.168.1.7", port: 7700, secure: true, hashes: [hash, hash] } },
    ],
    ["https://game.example/play?join=K7QM", { code: "K7QM" }],
    [
      "https://game.example/play?x=1&join=K7QM&server=play.example.com#s=x",
      { code: "K7QM", secret: "x", server: parseAddress("play.example.com") },
    ],
  ])("%s", (text, invite) => {
    expect(parseInvite(text)).toEqual(invite);
  });

  it.each(["", "K7", "K7Q!", "https://play.example.com/", "tanks://join/", `https://x/join/K7QM#w=short`])("is not %o", (text) => {
    expect(() => parseInvite(text)).toThrow(expect.objectContaining({ code: "bad_invite" }));
  });

  it("comes back as it was written, by a page or a game's own scheme", () => {
    const server = { ...parseAddress("192.168.1.7:7700"), hashes: [hash] };
    const url = inviteUrl("K7QM", server, "a b&c");
    expect(parseInvite(url)).toEqual({ code: "K7QM", secret: "a b&c", server });
    const [, fragment] = url.split("#");
    expect(url.indexOf("a+b")).toBeGreaterThan(url.indexOf("#"));
    expect(fragment).toContain(`w=${hash}`);
    const own = inviteUrl("K7QM", server, "s", "https://game.example/play?x=1");
    expect(parseInvite(own)).toEqual({ code: "K7QM", secret: "s", server });
    expect(new URL(own).searchParams.get("x")).toBe("1");
    const plain = parseAddress("http://localhost:7700");
    expect(parseInvite(inviteUrl("K7QM", plain, undefined, "http://localhost:5173/")).server).toEqual(plain);
    expect(parseInvite(inviteLink("K7QM", server, "s&t", "tanks"))).toMatchObject({ code: "K7QM", secret: "s&t", server: { host: "192.168.1.7", port: 7700 } });
  });

  it("is in the URL of a page, or not", () => {
    expect(inviteFrom("https://game.example/?join=K7QM")).toBe("https://game.example/?join=K7QM");
    expect(inviteFrom("https://play.example.com/join/K7QM")).toBe("https://play.example.com/join/K7QM");
    expect(inviteFrom("k7qm")).toBe("K7QM");
    expect(inviteFrom("https://game.example/")).toBeUndefined();
    expect(inviteFrom()).toBeUndefined();
  });

  it("leaves no secret in the address bar, and is there still when it is asked for again", () => {
    const location = { href: `https://game.example/?join=K7QM#w=${hash}&s=sesame` };
    vi.stubGlobal("location", location);
    vi.stubGlobal("history", { state: null, replaceState: (_: unknown, __: string, href: string) => void (location.href = href) });
    const invite = inviteFrom()!;
    expect(parseInvite(invite).secret).toBe("sesame");
    expect(location.href).toBe(`https://game.example/?join=K7QM#w=${hash}`);
    expect(inviteFrom()).toBe(invite);
  });
});
