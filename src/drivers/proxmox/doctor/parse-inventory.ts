import { isJsonObject, type JsonObject } from "../../../kernel/json.ts";
import {
  type ClusterInventory,
  inventoryFormat,
  inventoryVersion,
  type ListedMachine,
  type ListedStorage,
} from "./cluster-inventory.ts";

/** A file is no inventory, or not a sound one. The message says what is wrong, and where. */
export class InventoryError extends Error {}

/** Reads an inventory, which may come from another version or from somebody's editor. Throws. */
export function parseInventory(text: string): ClusterInventory {
  const file = parseJson(text);
  if (!isJsonObject(file) || file["format"] !== inventoryFormat) {
    throw new InventoryError("it is no inventory: berth doctor --snapshot writes one");
  }
  const { version } = file;
  if (version !== inventoryVersion) {
    throw new InventoryError(
      `its version is ${JSON.stringify(version)}, and this program reads ${inventoryVersion}: ` +
        "take the snapshot anew with this version of Berth",
    );
  }
  const inventory = readInventory(new Part(file, ""));
  checkReferences(inventory);
  return inventory;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Where exactly the JSON breaks helps nobody who did not write it.
    throw new InventoryError("it is not JSON");
  }
}

function readInventory(file: Part): ClusterInventory {
  return {
    format: inventoryFormat,
    version: inventoryVersion,
    release: file.text("release", /^\d+\.\d+/),
    cluster: file.text("cluster"),
    nodes: file.list("nodes").map((node) => ({
      name: node.text("name", nodeName),
      isOnline: node.flag("isOnline"),
      cpus: node.count("cpus"),
      memoryBytes: node.count("memoryBytes"),
      bridges: node.texts("bridges"),
    })),
    storages: file.list("storages").map(readStorage),
    volumes: file.list("volumes").map((volume) => ({
      storage: volume.text("storage", storageName),
      node: volume.text("node", nodeName),
      name: volume.text("name", /^\S+$/),
      content: volume.text("content", word),
      format: volume.text("format", word),
      sizeBytes: volume.count("sizeBytes"),
      ...(volume.has("usedBytes") ? { usedBytes: volume.count("usedBytes") } : {}),
    })),
    machines: file.list("machines").map(readMachine),
    pools: file.list("pools").map((pool) => ({
      name: pool.text("name", poolName),
      storages: pool.texts("storages"),
    })),
    missing: file.texts("missing"),
  };
}

const word = /^[a-z0-9-]+$/;
const nodeName = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i;
const storageName = /^[a-z][a-z0-9\-_.]*[a-z0-9]$/i;
const poolName = /^[a-z0-9\-_./]+$/i;

function readStorage(storage: Part): ListedStorage {
  return {
    name: storage.text("name", storageName),
    type: storage.text("type", word),
    contents: storage.texts("contents"),
    isShared: storage.flag("isShared"),
    isDisabled: storage.flag("isDisabled"),
    ...(storage.has("nodes") ? { nodes: storage.texts("nodes") } : {}),
    spaces: storage.list("spaces").map((space) => ({
      node: space.text("node", nodeName),
      totalBytes: space.count("totalBytes"),
      usedBytes: space.count("usedBytes"),
    })),
  };
}

function readMachine(machine: Part): ListedMachine {
  return {
    vmid: machine.count("vmid", { from: 100, to: 999_999_999 }),
    node: machine.text("node", nodeName),
    isRunning: machine.flag("isRunning"),
    ...(machine.has("pool") ? { pool: machine.text("pool", poolName) } : {}),
    config: machine.options("config"),
  };
}

/** Whatever is named is there, and nothing is there twice. */
function checkReferences(inventory: ClusterInventory): void {
  const { nodes, storages, volumes, machines } = inventory;
  if (nodes.length === 0) throw new InventoryError("it has no nodes");
  const nodeNames = unique(
    "node",
    nodes.map(({ name }) => name),
  );
  const storageNames = unique(
    "storage",
    storages.map(({ name }) => name),
  );
  unique(
    "VM",
    machines.map(({ vmid }) => String(vmid)),
  );
  const onNodes = [...machines, ...volumes, ...storages.flatMap(({ spaces }) => spaces)];
  for (const { node } of onNodes) demand(nodeNames, "node", node);
  for (const { storage } of volumes) demand(storageNames, "storage", storage);
}

function unique(what: string, names: readonly string[]): ReadonlySet<string> {
  const seen = new Set<string>();
  for (const name of names) {
    if (seen.has(name)) throw new InventoryError(`the ${what} ${name} is in it twice`);
    seen.add(name);
  }
  return seen;
}

function demand(known: ReadonlySet<string>, what: string, name: string): void {
  if (!known.has(name)) throw new InventoryError(`it names the ${what} ${name}, and has no such`);
}

/** An object of the file, with the way to it for complaints. */
class Part {
  readonly #object: JsonObject;
  readonly #path: string;

  constructor(object: JsonObject, path: string) {
    this.#object = object;
    this.#path = path;
  }

  has(key: string): boolean {
    return this.#object[key] !== undefined;
  }

  text(key: string, form = /^[^\n\r]*$/): string {
    const value = this.#object[key];
    if (typeof value !== "string") throw this.#bad(key, "must be a text");
    if (!form.test(value)) throw this.#bad(key, `cannot be ${JSON.stringify(value.slice(0, 80))}`);
    return value;
  }

  count(key: string, { from = 0, to = Number.MAX_SAFE_INTEGER } = {}): number {
    const value = this.#object[key];
    if (typeof value !== "number" || !Number.isFinite(value) || value < from || value > to) {
      throw this.#bad(key, `must be a number from ${from} to ${to}`);
    }
    return value;
  }

  flag(key: string): boolean {
    const value = this.#object[key];
    if (typeof value !== "boolean") throw this.#bad(key, "must be true or false");
    return value;
  }

  texts(key: string): string[] {
    const value = this.#object[key];
    if (!Array.isArray(value)) throw this.#bad(key, "must be a list of texts");
    return value.map((item) => {
      if (typeof item !== "string") throw this.#bad(key, "must be a list of texts");
      return item;
    });
  }

  list(key: string): Part[] {
    const value = this.#object[key];
    if (!Array.isArray(value)) throw this.#bad(key, "must be a list");
    return value.map((item, index) => {
      const path = `${this.#path}${key}[${index}]`;
      if (!isJsonObject(item)) throw new InventoryError(`${path} must be an object`);
      return new Part(item, `${path}.`);
    });
  }

  /** The lines of a config: a line break in a value would be another line. */
  options(key: string): Record<string, string> {
    const value = this.#object[key];
    if (!isJsonObject(value)) throw this.#bad(key, "must be an object");
    const part = new Part(value, `${this.#path}${key}.`);
    const entries = Object.keys(value).map((option): [string, string] => {
      if (!/^[a-z][a-z_-]*\d*$/.test(option)) throw this.#bad(key, `has no option "${option}"`);
      return [option, part.text(option, option === "description" ? /^/ : undefined)];
    });
    return Object.fromEntries(entries);
  }

  #bad(key: string, what: string): InventoryError {
    return new InventoryError(`${this.#path}${key} ${what}`);
  }
}
