import type { Cluster } from "../cluster.ts";
import { emptyConfig } from "../config-file.ts";
import { type Call, fork, guestLock, isSet, vmidOf } from "../endpoint.ts";
import { forbidden, PveError, prefixed } from "../errors.ts";
import { locked, type Process } from "../process.ts";
import { free, type Worker } from "../storage/operations.ts";
import type { Task } from "../tasks.ts";
import { queueHa } from "./ha.ts";
import { defaultBootOrder } from "./hardware.ts";
import { makeDisks, type MadeDisks } from "./make-disks.ts";
import { withAddresses } from "./net.ts";
import { startWorker } from "./start.ts";
import {
  demandBridgeRights,
  demandDeviceRights,
  demandDriveRights,
  demandOptionRights,
  demandTagRights,
} from "./rights.ts";
import { demandSshKeys, sortedTags } from "./text.ts";

/** Parameters of the call itself; all others are options of the guest. */
const notOptions = new Set(
  "vmid node pool start archive force storage unique bwlimit live-restore ha-managed import-working-storage".split(
    " ",
  ),
);

/** POST /nodes/{node}/qemu: reserves the id at once, makes the guest in a worker. */
export function* createVm(call: Call): Process<unknown> {
  const { cluster, parameters, node } = call;
  const vmid = vmidOf(call);
  const settings = settingsOf(parameters);
  cluster.demandQuorum();
  demandCreation(call, vmid);
  demandDriveRights(call, vmid, settings);
  demandBridgeRights(call, settings);
  demandOptionRights(call, vmid, Object.keys(settings));
  demandDeviceRights(call, vmid, settings);
  demandSshKeys(settings);
  const prepared = withAddresses(cluster, settings);
  yield* reserve(cluster, node, vmid);
  return fork(call, { type: "qmcreate" }, (task) => createWorker(call, task, prepared));
}

function settingsOf(parameters: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(parameters).filter(([name]) => !notOptions.has(name)));
}

function demandCreation({ cluster, caller, parameters }: Call, vmid: number): void {
  const { pool } = parameters;
  if (pool !== undefined && !cluster.state.pools.some(({ poolid }) => poolid === pool)) {
    throw forbidden(`Permission check failed (pool '${pool}' does not exist)`);
  }
  if (isSet(parameters["ha-managed"])) {
    cluster.rights.demand(caller, "/", { privileges: ["Sys.Console"] });
  }
  const wanted = { privileges: ["VM.Allocate"] };
  if (cluster.rights.may(caller, `/vms/${vmid}`, wanted)) return;
  if (pool !== undefined && cluster.rights.may(caller, `/pool/${pool}`, wanted)) return;
  throw forbidden("Permission check failed");
}

/** Writes the config that holds the id and nothing else: a husk, if all else fails. */
function* reserve(cluster: Cluster, node: string, vmid: number): Process<void> {
  try {
    yield* locked(guestLock(node, vmid, { timeoutMs: 5_000 }), function* () {
      yield* cluster.step("reservation");
      const home = cluster.nodeOfGuest(vmid);
      if (home !== undefined) throw new PveError(`VM ${vmid} already exists on node '${home}'`);
      cluster.writeText(node, vmid, "lock: create\n");
    });
  } catch (error) {
    throw prefixed(`unable to create VM ${vmid} - `, error);
  }
}

function* createWorker(
  call: Call,
  task: Task,
  settings: Readonly<Record<string, string>>,
): Process<void> {
  const { cluster, node, parameters } = call;
  const vmid = vmidOf(call);
  const worker: Worker = { node, log: task.log };
  yield* locked(guestLock(node, vmid, { timeoutMs: 1_000 }), function* () {
    const disks: MadeDisks = { settings: {}, made: [] };
    try {
      yield* makeDisks({ cluster, worker, vmid }, settings, disks);
      if (settings["tags"] !== undefined) demandTagRights(call, vmid);
      yield* cluster.step("write config");
      writeNewGuest(cluster, { node, vmid }, { ...settings, ...disks.settings });
    } catch (error) {
      yield* cleanUp(cluster, worker, disks.made);
      cluster.removeGuest(vmid);
      throw prefixed(`unable to create VM ${vmid} - `, error);
    }
    yield* cluster.step("add to pool");
    addToPool(cluster, vmid, parameters["pool"]);
  });
  yield* settle(call, task);
}

/** High availability and a start come last, and whatever goes wrong with them is only said. */
function* settle(call: Call, task: Task): Process<void> {
  const { cluster, node, parameters } = call;
  const vmid = vmidOf(call);
  const starts = isSet(parameters["start"]);
  if (isSet(parameters["ha-managed"])) {
    task.log("Add as HA resource");
    yield* cluster.step("add HA resource");
    cluster.state.ha[`vm:${vmid}`] = { state: starts ? "started" : "stopped" };
    cluster.wakeHa();
  }
  if (!starts) return;
  task.log("Execute autostart");
  const later = { ...call, hasNoWorker: false };
  const wish = { state: "started" };
  if (queueHa(later, { type: "hastart", verb: "start", wish }) !== undefined) return;
  fork(later, { type: "qmstart" }, () => startWorker(cluster, { node, vmid }));
}

/** Frees what the call made; what cannot be freed is only mentioned. */
export function* cleanUp(
  cluster: Cluster,
  worker: Worker,
  volumes: readonly string[],
): Process<void> {
  for (const volid of volumes) {
    try {
      yield* free(cluster, worker, volid);
    } catch (error) {
      worker.log(error instanceof Error ? error.message : String(error));
    }
  }
}

function writeNewGuest(
  cluster: Cluster,
  { node, vmid }: { node: string; vmid: number },
  settings: Readonly<Record<string, string>>,
): void {
  const config = emptyConfig();
  for (const [name, value] of Object.entries(settings)) config.main.set(name, value);
  const { main } = config;
  const tags = main.get("tags");
  if (tags !== undefined && cluster.quirks.sortsTagsAtCreate) main.set("tags", sortedTags(tags));
  if (!main.has("boot")) {
    const order = defaultBootOrder(main);
    main.set("boot", order.length === 0 ? "" : `order=${order.join(";")}`);
  }
  if (!main.has("smbios1")) main.set("smbios1", `uuid=${cluster.random.uuid()}`);
  if (!main.has("vmgenid")) main.set("vmgenid", cluster.random.uuid());
  const createdAt = Math.floor(cluster.nodeTimeMs(node) / 1000);
  main.set("meta", `creation-qemu=${cluster.quirks.qemuVersion},ctime=${createdAt}`);
  cluster.writeGuest(node, vmid, config);
}

export function addToPool(cluster: Cluster, vmid: number, poolid: string | undefined): void {
  const pool = cluster.state.pools.find((each) => each.poolid === poolid);
  if (pool !== undefined && !pool.vms.includes(vmid)) pool.vms.push(vmid);
}
