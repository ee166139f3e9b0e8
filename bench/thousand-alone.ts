import { setImmediate } from "node:timers/promises";
import { sleep } from "../src/kernel/clock.ts";
import { VirtualClock } from "../src/kernel/virtual-clock.ts";
import { ProxmoxModel, smallCluster } from "../src/sim/index.ts";
import { seededRandom } from "../src/sim/seeded-random.ts";
import { authorization, firstId, type Form, formOf, tokenSecret } from "./simulator-world.ts";
import { addWire, makeRoom, type RunOptions, showCluster, tasksOf } from "./thousand-figures.ts";

const image = "local:import/debian-12-generic-amd64.qcow2";
/** It looks far more often than any client of a real server should. */
const lookMs = 10;

/**
 * The same machines by a driver without memory, marks or doubts: it makes the machines of a node
 * ahead, copies without a pause, and grows and starts each machine while the next one is copied.
 */
export async function measureAlone({
  nodes,
  machines,
}: Pick<RunOptions, "nodes" | "machines">): Promise<void> {
  const clock = new VirtualClock();
  const random = seededRandom(7);
  const options = {
    release: "9.2",
    nodes,
    clock,
    random,
    password: "secret",
    tokenSecret,
  } as const;
  const model = new ProxmoxModel({ state: smallCluster(options), clock, random });
  makeRoom(model);
  addWire(model, clock);
  const driver = driverOf(model, clock);
  const lanes = nodes.map((node, lane) => {
    const ids = Array.from({ length: machines }, (_, index) => firstId + index);
    const own = ids.filter((id) => id % nodes.length === lane);
    return makeAll(driver, node, own);
  });
  await letTimePass(clock, Promise.all(lanes));
  showCluster(`without Berth, ${machines} machines`, tasksOf(model), clock.monotonicMs());
}

type Driver = (method: string, path: string, form: Form) => Promise<void>;

async function makeAll(driver: Driver, node: string, ids: readonly number[]): Promise<void> {
  const [first = firstId, ...others] = ids;
  await create(driver, node, first);
  const shells = createAll(driver, node, others);
  const endings: Promise<void>[] = [];
  for (const id of ids) {
    const config = { scsi0: `local-zfs:0,import-from=${image}`, ide2: "local-zfs:cloudinit" };
    await driver("POST", `/nodes/${node}/qemu/${id}/config`, config);
    endings.push(finish(driver, node, id));
  }
  await Promise.all([shells, ...endings]);
}

/** A shell takes far less time than a copy: it is always there before its turn. */
async function createAll(driver: Driver, node: string, ids: readonly number[]): Promise<void> {
  for (const id of ids) await create(driver, node, id);
}

function create(driver: Driver, node: string, id: number): Promise<void> {
  const form = { vmid: String(id), cores: "2", memory: "2048", net0: "virtio,bridge=vmbr0" };
  return driver("POST", `/nodes/${node}/qemu`, form);
}

async function finish(driver: Driver, node: string, id: number): Promise<void> {
  await driver("PUT", `/nodes/${node}/qemu/${id}/resize`, { disk: "scsi0", size: "10G" });
  await driver("POST", `/nodes/${node}/qemu/${id}/status/start`, {});
}

/** A call, and looks until its task is over. */
function driverOf(model: ProxmoxModel, clock: VirtualClock): Driver {
  const headers = { authorization, "content-type": "application/x-www-form-urlencoded" };
  return async (method, path, form) => {
    const request = { method, path: `/api2/json${path}`, headers, body: formOf(form) };
    const { status, reason, body } = await model.send(request);
    if (status !== 200) throw new Error(`${method} ${path}: ${status} ${reason}`);
    const upid = String(JSON.parse(body).data);
    const look = `/api2/json/nodes/${upid.split(":")[1]}/tasks/${encodeURIComponent(upid)}/status`;
    for (;;) {
      const reply = await model.send({ method: "GET", path: look, headers });
      const { status: state, exitstatus } = JSON.parse(reply.body).data;
      if (state === "stopped" && exitstatus !== "OK") throw new Error(`${upid}: ${exitstatus}`);
      if (state === "stopped") return;
      await sleep(clock, lookMs);
    }
  };
}

async function letTimePass(clock: VirtualClock, work: Promise<unknown>): Promise<void> {
  const end = { isReached: false };
  const over = (): void => void (end.isReached = true);
  work.then(over, over);
  while (!end.isReached) {
    await setImmediate();
    if (!end.isReached) clock.advance(clock.nextInMs() ?? 0);
  }
  await work;
}
