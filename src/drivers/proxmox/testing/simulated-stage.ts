import type { Behind, Stage } from "../../../hypervisor/testing/stage.ts";
import type { Random } from "../../../kernel/random.ts";
import { VirtualClock } from "../../../kernel/virtual-clock.ts";
import { ProxmoxModel, smallCluster, tokenName, tokenUser } from "../../../sim/index.ts";
import type { Release } from "../../../sim/index.ts";
import { sendTo } from "../../../sim/wire/index.ts";
import { proxmoxDriver } from "../driver.ts";
import type { PveRequest, Send } from "../wire/wire.ts";

const tokenSecret = "00000000-0000-4000-8000-0000000000aa";
const tokenId = `${tokenUser}!${tokenName}`;
const node = "pve1";
const storage = "local-zfs";

/** A simulated cluster of one release with the driver on it. */
export function simulatedStage(
  release: Release,
  onRequest: (request: PveRequest) => void = () => undefined,
  clockAheadMs = 0,
): Stage {
  const clock = new VirtualClock();
  const random = counted();
  const nodes = [node, "pve2", "pve3"];
  const options = { release, nodes, clock, random, password: "secret", tokenSecret };
  const model = new ProxmoxModel({ state: smallCluster(options), clock, random });
  model.cluster.setClocks(clockAheadMs);
  const line = { isCut: false };
  const wire = sendTo(model, { id: tokenId, secret: tokenSecret });
  const send: Send = async (request) => {
    onRequest(request);
    if (line.isCut) return { type: "notSent", why: "unreachable", detail: "ECONNREFUSED" };
    return await wire(request);
  };
  const driver = proxmoxDriver({ send, tokenId, clock, random });
  return {
    driver,
    node,
    storage,
    network: "vmbr0",
    otherStorage: "local",
    discStorage: "local",
    otherNode: "pve2",
    ...(release === "7.4"
      ? {}
      : {
          image: { volume: "local:import/debian-12-generic-amd64.qcow2", sizeBytes: 3 * 1024 ** 3 },
        }),
    behind: behindOf(model, line),
    nowMs: () => clock.nowMs(),
    pass: async (ms) => {
      clock.advance(ms);
      await turns();
    },
    settle: async (work) => {
      const state = { isOver: false };
      const over = (): void => void (state.isOver = true);
      work.then(over, over);
      for (let ticks = 0; ticks < 10_000; ticks++) {
        await turns();
        if (state.isOver) return await work;
        clock.advance(clock.nextInMs() ?? 0);
      }
      throw new Error("the work never ends");
    },
  };
}

function behindOf(model: ProxmoxModel, line: { isCut: boolean }): Behind {
  const { state } = model.cluster;
  const textOf = (externalId: string): string => state.guests[externalId]?.text ?? "";
  const writeNotes: Behind["writeNotes"] = (externalId, change) => {
    model.writeGuestFile(node, Number(externalId), withNotes(textOf(externalId), change));
  };
  return {
    machines: () => Object.keys(state.guests),
    volumes: () => {
      return Object.values(state.volumes).flatMap((volumes) => {
        return volumes.filter(({ vmid }) => vmid !== undefined).map(({ name }) => name);
      });
    },
    strangerTakes: (externalId) => {
      const text =
        "name: stranger\nmemory: 512\nsmbios1: uuid=00000000-0000-4000-8000-00000000f00d\n";
      model.writeGuestFile(node, Number(externalId), text);
    },
    copy: (externalId, copyId, as) => {
      const uuid = as === "clone" ? /uuid=[0-9a-f-]+/ : "";
      const other = as === "clone" ? "uuid=00000000-0000-4000-8000-00000000c09e" : "";
      model.writeGuestFile(node, Number(copyId), textOf(externalId).replace(uuid, other));
    },
    writeNotes,
    // The mark is in the notes: it goes when somebody writes others in their place.
    removeMark: (externalId) => writeNotes(externalId, () => "all mine"),
    installSystem: (externalId) => {
      for (const volume of Object.values(state.volumes).flat()) {
        if (volume.vmid === Number(externalId)) volume.data = "debian-12";
      }
    },
    makeTemplate: (externalId) => {
      const from = new RegExp(`vm-${externalId}-disk`, "g");
      const text = textOf(externalId).replaceAll(from, `base-${externalId}-disk`);
      model.writeGuestFile(node, Number(externalId), `${text}template: 1\n`);
      for (const volume of Object.values(state.volumes).flat()) {
        volume.name = volume.name.replaceAll(from, `base-${externalId}-disk`);
      }
    },
    leaveVolume: (externalId) => {
      const name = `vm-${externalId}-disk-7`;
      const key = `${node}:rpool/data`;
      const volumes = state.volumes[key] ?? [];
      const sizes = { sizeBytes: 1024 ** 3, usedBytes: 0, createdMs: 0 };
      volumes.push({ name, content: "images", format: "raw", vmid: Number(externalId), ...sizes });
      state.volumes[key] = volumes;
      return `${storage}:${name}`;
    },
    loseNext: (what) => {
      model.faults.onRequest({
        matches: ({ method }) => method !== "GET",
        kind: what === "reply" ? "loseReply" : "loseRequest",
      });
    },
    kill: (task) => void model.killWorker(task),
    cutOff: () => {
      line.isCut = true;
    },
  };
}

function withNotes(file: string, change: (notes: string) => string): string {
  const lines = file.split("\n");
  const notes = lines.filter((text) => text.startsWith("#")).map(decodeLine);
  const rest = lines.filter((text) => !text.startsWith("#"));
  const written = change(notes.join("\n")).split("\n").map(encodeLine);
  return [...written, ...rest].join("\n");
}

/** Notes stand in the file as comments, percent-encoded. */
function decodeLine(text: string): string {
  return decodeURIComponent(text.slice(1));
}

function encodeLine(text: string): string {
  return `#${text.replaceAll(/[%:#\u0080-\uffff]/g, (character) => encodeURIComponent(character))}`;
}

/** Lets everything that waits for nothing go on. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve();
}

/** Numbers in a fixed order: enough for tests, and the same each time. */
function counted(): Random {
  let count = 0;
  const number = (): number => {
    count = (count * 16_807 + 12_345) % 2_147_483_647;
    return count / 2_147_483_647;
  };
  const bytes = (length: number): Uint8Array => {
    return Uint8Array.from({ length }, () => Math.floor(number() * 256));
  };
  return {
    number,
    bytes,
    uuid: () => {
      const hex = Buffer.from(bytes(16)).toString("hex");
      const head = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}`;
      return `${head}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
    },
  };
}
