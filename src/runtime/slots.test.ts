import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { whoMayGo } from "./slot-order.ts";
import { Slots, type SlotLease } from "./slots.ts";
import { flush, pass } from "./testing.ts";
import { priorities, type Priority } from "./work-queue.ts";

function open(limits: Record<string, number> = {}) {
  const clock = new VirtualClock();
  const slots = new Slots({ clock, limitOf: (name) => limits[name] ?? 1 });
  const granted: string[] = [];
  const leases = new Map<string, SlotLease>();
  const ask = (holder: string, names: string[], priority: Priority = "edit"): void => {
    void slots.acquire(names, holder, { priority }).then((lease) => {
      granted.push(holder);
      leases.set(holder, lease);
    });
  };
  const release = async (holder: string): Promise<void> => {
    const lease = leases.get(holder);
    assert(lease, `${holder} holds its slots`);
    leases.delete(holder);
    lease.release();
    await flush();
  };
  return { clock, slots, granted, leases, ask, release, limits };
}

describe("slots that are waited for", () => {
  test("are given in the order of arrival, as many as the limit allows", async () => {
    const { granted, ask, release } = open({ storage: 2 });
    for (const holder of ["a", "b", "c", "d"]) ask(holder, ["storage"]);
    await flush();
    assert.deepEqual(granted, ["a", "b"]);
    await release("b");
    assert.deepEqual(granted, ["a", "b", "c"]);
  });

  test("are given by priority first", async () => {
    const { granted, ask, release } = open();
    ask("first", ["storage"]);
    ask("sweep", ["storage"], "background");
    ask("resync", ["storage"], "resync");
    ask("edit", ["storage"]);
    await flush();
    for (const holder of ["first", "edit", "resync"]) await release(holder);
    assert.deepEqual(granted, ["first", "edit", "resync", "sweep"]);
  });

  test("come all at once or not at all", async () => {
    const { slots, granted, ask, release } = open();
    ask("a", ["storage"]);
    ask("b", ["node", "storage"]);
    await flush();
    assert.deepEqual(granted, ["a"]);
    assert.deepEqual(slots.view().find(({ name }) => name === "node")?.holders, []);
    await release("a");
    assert.deepEqual(granted, ["a", "b"]);
  });

  test("that are free are not held up by those who wait for a busy one", async () => {
    const { granted, ask } = open({ hypervisor: 4 });
    ask("a", ["slow", "hypervisor"]);
    for (let i = 0; i < 10; i++) ask(`waiter-${i}`, ["slow", "hypervisor"]);
    ask("other", ["fast", "hypervisor"]);
    await flush();
    assert.deepEqual(granted, ["a", "other"]);
  });

  test("are kept for one who was overtaken too often, so that nobody starves", async () => {
    const { granted, ask, release } = open({ x: 1, y: 1 });
    ask("x0", ["x"]);
    ask("both", ["x", "y"], "background");
    ask("y0", ["y"]);
    let turns = 0;
    for (; !granted.includes("both") && turns < 100; turns++) {
      // Whenever one of the two is free, the other is taken.
      ask(`x${turns + 1}`, ["x"]);
      await flush();
      await release(`x${turns}`);
      if (granted.includes("both")) break;
      ask(`y${turns + 1}`, ["y"]);
      if (granted.includes(`y${turns}`)) await release(`y${turns}`);
      await flush();
    }
    assert(turns > 4 && turns < 20, `it came after ${turns} turns`);
  });

  for (const how of ["the signal", "leave"]) {
    test(`that were kept for one who leaves by ${how} go to the next`, async () => {
      const { slots, granted, ask, release } = open();
      ask("x", ["x"]);
      const giveUp = new AbortController();
      const both = slots.acquire(["x", "y"], "both", { signal: giveUp.signal });
      for (let i = 0; i < 16; i++) {
        ask(`y${i}`, ["y"]);
        await flush();
        await release(`y${i}`);
      }
      ask("next", ["y"]);
      await flush();
      assert(!granted.includes("next"));
      if (how === "leave") slots.leave("both");
      else giveUp.abort(new Error("left"));
      await assert.rejects(both, /left/);
      await flush();
      assert(granted.includes("next"));
    });
  }

  test("may be left by the signal, and the next one moves up", async () => {
    const { slots, granted, ask, release } = open();
    ask("a", ["s"]);
    const giveUp = new AbortController();
    const left = slots.acquire(["s"], "b", { signal: giveUp.signal });
    ask("c", ["s"]);
    giveUp.abort(new Error("enough"));
    await assert.rejects(left, /enough/);
    await assert.rejects(slots.acquire(["s"], "b", { signal: giveUp.signal }), /enough/);
    await release("a");
    assert.deepEqual(granted, ["a", "c"]);
  });

  test("are not asked for by one who holds some, or waits already", async () => {
    const { slots, ask } = open();
    ask("a", ["s"]);
    ask("b", ["s"]);
    await assert.rejects(slots.acquire(["t"], "a"), /a holds no slots while it waits/);
    await assert.rejects(slots.acquire(["t"], "b"), /b waits for slots once/);
  });

  test("are released however the work ends, and once only", async () => {
    const { slots } = open();
    const failing = slots.use(["s"], "a", async () => {
      throw new Error("bad");
    });
    await assert.rejects(failing, /bad/);
    assert.equal(await slots.use(["s"], "b", async () => 7), 7);
    const lease = await slots.acquire(["s"], "c");
    lease.release();
    const second = await slots.acquire(["s"], "c");
    lease.release();
    assert.equal(slots.view()[0]?.holders.length, 1);
    second.release();
    assert.deepEqual(slots.view(), []);
  });

  test("follow a limit that changes", async () => {
    const { slots, granted, ask, limits } = open({ s: 0 });
    ask("a", ["s"]);
    await flush();
    assert.deepEqual(granted, []);
    limits["s"] = 1;
    slots.refresh();
    await flush();
    assert.deepEqual(granted, ["a"]);
  });

  test("show who holds and who waits for what", async () => {
    const { clock, slots, ask } = open({ storage: 1, node: 3 });
    ask("vm a", ["storage", "node"]);
    await pass(clock, 10);
    ask("vm b", ["storage"], "resync");
    await pass(clock, 5);
    const vmB = { holder: "vm b", priority: "resync", waitedMs: 5, names: ["storage"] };
    assert.deepEqual(slots.view(), [
      { name: "node", limit: 3, holders: [{ holder: "vm a", heldMs: 15 }], waiting: [] },
      { name: "storage", limit: 1, holders: [{ holder: "vm a", heldMs: 15 }], waiting: [vmB] },
    ]);
  });

  test("end with an error for those who wait when all stops", async () => {
    const { slots, ask } = open();
    ask("a", ["s"]);
    const waiting = slots.acquire(["s"], "b");
    slots.stop();
    await assert.rejects(waiting, /b waits in vain/);
  });
});

describe("slots that are tried for", () => {
  test("are given at once, and stay given to one who asks again", () => {
    const { slots, clock } = open();
    const wake = () => assert.fail("it did not wait");
    const lease = slots.tryAcquire(["s", "t"], "a", { wake });
    assert(lease !== "waiting");
    assert.equal(slots.tryAcquire(["t", "s"], "a", { wake }), lease);
    assert.equal(clock.timers, 0);
    lease.release();
    assert.deepEqual(slots.view(), []);
  });

  test("wake the key when its turn comes, and are there when it asks", async () => {
    const { slots, clock } = open();
    const woken: string[] = [];
    const attempt = (holder: string): SlotLease | "waiting" => {
      return slots.tryAcquire(["s"], holder, { wake: () => woken.push(holder) });
    };
    const first = attempt("a");
    assert(first !== "waiting");
    assert.equal(attempt("b"), "waiting");
    assert.equal(attempt("c"), "waiting");
    assert.equal(attempt("b"), "waiting");
    first.release();
    assert.deepEqual(woken, ["b"]);
    const second = attempt("b");
    assert(second !== "waiting");
    await pass(clock, 600_000);
    assert.deepEqual(woken, ["b"]);
    second.release();
    assert.deepEqual(woken, ["b", "c"]);
  });

  test("are waited for until they are offered, and no longer", () => {
    const { slots } = open();
    const wake = (): void => undefined;
    const first = slots.tryAcquire(["storage"], "a", { wake });
    slots.tryAcquire(["storage"], "b", { wake });
    assert.deepEqual([slots.isWaiting("a"), slots.isWaiting("b")], [false, true]);
    if (first !== "waiting") first.release();
    assert.equal(slots.isWaiting("b"), false);
  });

  test("go to the next if the one that was woken does not come", () => {
    const { slots, clock } = open();
    const woken: string[] = [];
    const attempt = (holder: string): SlotLease | "waiting" => {
      return slots.tryAcquire(["s"], holder, { wake: () => woken.push(holder) });
    };
    const first = attempt("a");
    assert(first !== "waiting");
    attempt("gone");
    attempt("c");
    first.release();
    clock.advance(29_999);
    assert.deepEqual(woken, ["gone"]);
    clock.advance(1);
    assert.deepEqual(woken, ["gone", "c"]);
    assert.equal(attempt("gone"), "waiting");
  });

  test("may be changed while they are waited for or merely offered, not while they are held", () => {
    const { slots } = open();
    const wake = (): void => undefined;
    const first = slots.tryAcquire(["s"], "a", { wake });
    assert(first !== "waiting");
    assert.throws(() => slots.tryAcquire(["t"], "a", { wake }), /a releases what it holds first/);
    assert.equal(slots.tryAcquire(["s"], "b", { wake }), "waiting");
    assert.notEqual(slots.tryAcquire(["t"], "b", { wake }), "waiting");
    assert.equal(slots.tryAcquire(["s"], "c", { wake }), "waiting");
    first.release();
    assert.notEqual(slots.tryAcquire(["u"], "c", { wake }), "waiting");
    assert.deepEqual(
      slots.view().map(({ name }) => name),
      ["t", "u"],
    );
  });

  test("move up when an edit comes in while they are waited for", () => {
    const { slots } = open();
    const woken: string[] = [];
    const attempt = (holder: string, priority: Priority): SlotLease | "waiting" => {
      return slots.tryAcquire(["s"], holder, { priority, wake: () => woken.push(holder) });
    };
    const first = attempt("a", "edit");
    assert(first !== "waiting");
    attempt("b", "resync");
    attempt("c", "resync");
    attempt("c", "edit");
    first.release();
    assert.deepEqual(woken, ["c"]);
  });

  test("are left for good: held, offered or waited for", () => {
    const { slots, clock } = open();
    const wake = (): void => undefined;
    slots.tryAcquire(["s"], "a", { wake });
    slots.tryAcquire(["s"], "b", { wake });
    slots.tryAcquire(["s"], "c", { wake });
    for (const holder of ["c", "a", "b", "nobody"]) slots.leave(holder);
    assert.deepEqual(slots.view(), []);
    assert.equal(clock.timers, 0);
  });

  test("of work that is under way are taken beyond the limit, once", () => {
    const { slots } = open();
    const wake = (): void => undefined;
    slots.assume(["s"], "a");
    const lease = slots.assume(["s"], "b");
    assert.equal(slots.assume(["s"], "b"), lease);
    assert.equal(slots.view()[0]?.holders.length, 2);
    assert.equal(slots.tryAcquire(["s"], "c", { wake }), "waiting");
    slots.leave("a");
    assert.equal(slots.tryAcquire(["s"], "c", { wake }), "waiting");
    lease.release();
    assert.notEqual(slots.tryAcquire(["s"], "c", { wake }), "waiting");
  });

  test("that are offered are taken back when all stops", () => {
    const { slots, clock } = open();
    const wake = (): void => undefined;
    const first = slots.tryAcquire(["s"], "a", { wake });
    slots.tryAcquire(["s"], "b", { wake });
    assert(first !== "waiting");
    first.release();
    assert.equal(clock.timers, 1);
    slots.stop();
    assert.equal(clock.timers, 0);
    assert.deepEqual(slots.view(), []);
  });
});

test("slots are kept only for the first of those who wait at an exhausted name", () => {
  const waiter = (names: string[], arrival: number, overtaken = 0) => {
    return { names, arrival, overtaken, priority: "edit" as const };
  };
  const slow = ["slow", "h"];
  const waiting = [waiter(slow, 1, 99), waiter(slow, 2, 99), waiter(["h"], 3), waiter(["h"], 4)];
  const going = whoMayGo(waiting, (name) => (name === "h" ? 2 : 0));
  assert.deepEqual(
    going.map(({ arrival }) => arrival),
    [3],
  );
});

test("never more than the limit hold a name, everybody gets in, and nothing is left", async () => {
  const names = ["s1", "s2", "n1", "h"];
  const limits = { s1: 1, s2: 2, n1: 2, h: 3 };
  const request = fc.record({
    names: fc.uniqueArray(fc.constantFrom(...names), { maxLength: 3 }),
    priority: fc.constantFrom(...priorities),
    releases: fc.nat(3),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 40 }), async (requests) => {
      const { slots, granted, leases, ask, release } = open(limits);
      for (const [index, one] of requests.entries()) {
        ask(`h${index}`, one.names, one.priority);
        await flush();
        for (const { name, limit, holders } of slots.view()) {
          assert(holders.length <= limit, `${name} is held by at most ${limit}`);
        }
        for (let left = one.releases; left > 0 && leases.size > 0; left--) {
          await release([...leases.keys()][0] ?? "");
        }
      }
      for (let [next] = leases.keys(); next !== undefined; [next] = leases.keys()) {
        await release(next);
      }
      assert.equal(granted.length, requests.length);
      assert.deepEqual(slots.view(), []);
    }),
    { numRuns: 100 },
  );
});
