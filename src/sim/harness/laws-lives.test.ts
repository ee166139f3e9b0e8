import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { LifeLaws } from "./laws-lives.ts";
import { Records } from "./records.ts";
import { Site } from "./site.ts";
import { Dice } from "./dice.ts";

const installation = "11111111-1111-4111-8111-111111111111";
const start = { method: "POST", path: "/nodes/pve1/qemu/100/status/start" } as const;

interface Stage {
  readonly clock: VirtualClock;
  readonly site: Site;
  readonly laws: LifeLaws;
  readonly records: Records;
  readonly write: (sender: string, number: number) => void;
  readonly show: (sender: string, number: number) => void;
  readonly send: (sender: string) => void;
}

function stage(): Stage {
  const clock = new VirtualClock();
  const site = new Site({ name: "east", release: "9.2", clock, dice: Dice.of(1, "site") });
  const records = new Records();
  const laws = new LifeLaws({ recordsOf: () => records, nowMs: () => clock.nowMs() });
  const poolOf = (number: number): string => `berth-epoch-${installation}-${number}`;
  return {
    clock,
    site,
    laws,
    records,
    write: (sender, number) => {
      const params = { poolid: poolOf(number) };
      const request = { method: "POST", path: "/pools", params } as const;
      laws.whenDone(site, { request, sender, body: "{}" });
    },
    show: (sender, number) => {
      const request = { method: "GET", path: "/cluster/resources" } as const;
      laws.whenTold(site, { request, sender, body: `{"pool":"${poolOf(number)}"}` });
    },
    send: (sender) => laws.beforeEffect(site, start, sender),
  };
}

describe("the laws of two lives", () => {
  it("let a life act on its own epoch, and for a tick after it was shown a newer one", () => {
    const { write, show, send, clock } = stage();
    write("berth", 1);
    show("berth", 1);
    clock.advance(60_000);
    send("berth");
    write("copy1", 2);
    show("berth", 2);
    clock.advance(14_000);
    send("berth");
    clock.advance(2_000);
    assert.throws(() => send("berth"), /law 5.*sent by berth, and another acts/);
    send("copy1");
  });

  it("are broken by whatever a life sends that never wrote an epoch", () => {
    const { write, show, send, clock } = stage();
    write("berth", 1);
    show("copy1", 1);
    clock.advance(16_000);
    assert.throws(() => send("copy1"), /law 5/);
  });

  it("let a life act again that took over, whatever old lists show", () => {
    const { write, show, send, clock } = stage();
    write("berth", 1);
    write("copy1", 2);
    show("berth", 2);
    clock.advance(60_000);
    write("berth", 3);
    show("berth", 2);
    clock.advance(60_000);
    send("berth");
  });

  it("let a life act whose request for an older epoch arrives when it has a newer one", () => {
    const { write, show, send, clock } = stage();
    write("berth", 2);
    write("berth", 1);
    show("berth", 2);
    clock.advance(16_000);
    send("berth");
  });

  it("are broken by a life that was superseded, and whose older epoch arrives late", () => {
    const { write, show, send, clock } = stage();
    write("berth", 2);
    write("copy1", 3);
    show("berth", 3);
    clock.advance(16_000);
    write("berth", 1);
    assert.throws(() => send("berth"), /law 5.*sent by berth, and another acts/);
  });

  it("count no change of roles when an older epoch arrives late", () => {
    const { write, send, clock } = stage();
    write("berth", 1);
    send("berth");
    write("copy1", 3);
    clock.advance(60_000);
    send("copy1");
    write("berth", 2);
    clock.advance(60_000);
    assert.throws(() => send("berth"), /law 6.*take turns at the power of 100/);
  });

  it("let a life act whose earlier request for an epoch arrives late", () => {
    const { write, show, send, clock } = stage();
    write("berth", 1);
    write("berth", 3);
    write("berth", 2);
    show("berth", 3);
    clock.advance(60_000);
    send("berth");
  });

  it("are broken by two lives that take turns at the power of a VM", () => {
    const { write, send, clock } = stage();
    write("berth", 1);
    send("berth");
    write("copy1", 2);
    // While the roles change both may act.
    for (const sender of ["copy1", "berth", "copy1", "berth"]) send(sender);
    clock.advance(60_000);
    send("copy1");
    assert.throws(() => send("berth"), /law 6.*take turns at the power of 100/);
  });

  it("are broken by a life that observes and whose Hypervisor says Ready", () => {
    const { write, show, clock, records } = stage();
    const ready = { type: "Ready", status: "True", reason: "Connected", message: "" };
    // cast: the laws read its conditions only.
    const hypervisor = { status: { conditions: [ready] } } as never;
    write("copy1", 2);
    show("berth", 2);
    clock.advance(91_000);
    show("berth", 2);
    records.hypervisors.set("east", hypervisor);
    assert.throws(() => show("berth", 2), /law 9.*berth only observes east/);
  });
});
