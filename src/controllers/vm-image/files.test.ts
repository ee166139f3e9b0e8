import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { finalizers, type Claim, type ClaimSpec, type VMImage } from "../../api/index.ts";
import { answered, type Operation } from "../../hypervisor/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import type { Connection } from "../hypervisor/index.ts";
import { OperationMemory, type OperationRecord } from "../operations/index.ts";
import { bringTo } from "./bring.ts";
import { forgetDownload } from "./file-claims.ts";
import { fileNameOf, type Copy } from "./plan.ts";
import { removeOld } from "./removal.ts";
import { copiesOf, type ImageTurn } from "./turn.ts";
import { openSource } from "./upload.ts";
import type { Web } from "./web.ts";

const clock = new VirtualClock();
const http = {
  url: "https://images.example/d.qcow2",
  checksum: `sha256:${"a".repeat(64)}`,
  compression: "None" as const,
};
/** A web with one file of seven bytes. */
const web = {
  resolve: () => Promise.resolve(answered(["203.0.113.7"])),
  open: () => Promise.resolve(answered({ sizeBytes: 7, close: () => undefined })),
} as unknown as Web;
const image: VMImage = {
  apiVersion: "berth.dev/v1alpha1",
  kind: "VMImage",
  metadata: {
    namespace: "default",
    name: "debian",
    uid: "u",
    resourceVersion: "1",
    finalizers: [finalizers.image],
  },
  spec: { format: "qcow2", source: { http } },
};
const ownName = fileNameOf(image);
const present: Copy = {
  hypervisor: "lab",
  storage: "local",
  node: "n1",
  state: "Present",
  fileName: ownName,
  brought: true,
  verified: true,
  claim: "c-own",
};
const target = { hypervisor: "lab", storage: "local", node: "n1", isShared: false };

const claimed: ClaimSpec = {
  target: "File",
  hypervisor: { name: "lab", systemId: "lab-1" },
  externalId: "n1/local/Image/f",
  idChosenBy: "Berth",
  state: "Bound",
  role: "VM",
  origin: "Created",
  everExisted: false,
  identity: "00000000-0000-4000-8000-000000000001",
  installation: "00000000-0000-4000-8000-000000000002",
  owner: { namespace: "default", name: "debian", uid: "u" },
  node: "n1",
  file: { storage: "local", name: ownName, content: "Image", checksum: http.checksum },
};

/** The Claim of the file, as the server has it. */
function ledgerOf(spec: ClaimSpec | undefined) {
  const ledger = {
    claim: spec && ({ metadata: { name: "c-own" }, spec } as unknown as Claim),
    at: () => Promise.resolve(ledger.claim),
    named: () => Promise.resolve(ledger.claim),
    ownedBy: () => Promise.resolve([]),
    reserve: () => Promise.resolve({ is: "ours", claim: ledger.claim ?? { spec: claimed } }),
    note: (claim: Claim, file: object) => {
      const known = { ...claim.spec.file, ...file } as ClaimSpec["file"];
      return ledger.set({ ...claim.spec, ...(known && { file: known }) });
    },
    bind: (claim: Claim) => ledger.set({ ...claim.spec, state: "Bound" }),
    giveTo: (claim: Claim, { metadata }: VMImage) => {
      const { namespace = "", name = "", uid = "" } = metadata;
      return ledger.set({ ...claim.spec, owner: { namespace, name, uid } });
    },
    release: (claim: Claim) => ledger.set({ ...claim.spec, state: "Released" }),
    remove: () => Promise.resolve((ledger.claim = undefined)),
    set: (changed: ClaimSpec) => {
      ledger.claim = { metadata: { name: "c-own" }, spec: changed } as unknown as Claim;
      return Promise.resolve(ledger.claim);
    },
  };
  return ledger;
}

interface Given {
  readonly copy?: Copy;
  readonly claim?: ClaimSpec;
  readonly spec?: Partial<VMImage["spec"]>;
  /** The size of the file under the image's name, if there is one. */
  readonly fileBytes?: number;
  readonly others?: readonly VMImage[];
  /** The task that is recalled, and has done its work. */
  readonly isDone?: boolean;
  /** How that task ended. */
  readonly end?: "succeeded" | "lost";
  /** The driver answers that nothing had to be done: somebody's file has the name by now. */
  readonly isThere?: boolean;
}

/** A record whose reply was lost and whose effect may still arrive, for so long. */
function unanswered(step: string, windowMs = 60_000): OperationRecord {
  const since = formatTime(clock.nowMs());
  const started = { boot: clock.bootId, uptimeMs: clock.monotonicMs() };
  const told = { intent: "Bring it.", attempt: 1, since, windowMs, clock: started };
  return { version: 1, id: "op", key: "k", step, ...told };
}

interface Behind {
  readonly sent: Operation[];
  readonly file: object;
  readonly task: object;
  /** The file that is there now, if there is one. */
  readonly listed: { readonly sizeBytes: number | undefined };
}

/** A driver with one file and one task. */
function driverOf(given: Given, { sent, file, task, listed }: Behind): object {
  const { isDone = false, isThere = false, end = "succeeded" } = given;
  return {
    begin: (operation: Operation) => {
      sent.push(operation);
      return Promise.resolve(isThere ? { outcome: "done" } : { outcome: "task", task: "t" });
    },
    recall: () => Promise.resolve(answered(isDone ? [task] : [])),
    look: () => Promise.resolve({ state: end, cause: "killed" }),
    images: () => {
      const { sizeBytes } = listed;
      return Promise.resolve(answered(sizeBytes === undefined ? [] : [{ ...file, sizeBytes }]));
    },
  };
}

function stageOf(given: Given) {
  const { copy, claim, spec, others = [] } = given;
  const sent: Operation[] = [];
  const files = ledgerOf(claim);
  const status = copy === undefined ? {} : { status: { copies: [copy] } };
  const own = { ...image, spec: { ...image.spec, ...spec }, ...status } as VMImage;
  const file = { volume: "local:import/f", fileName: fileNameOf(own) };
  const does = copy?.operation?.step ?? claim?.file?.operation?.step ?? "";
  const task = { task: "t", does, sinceMs: clock.nowMs(), isRunning: false };
  const listed = { sizeBytes: given.fileBytes };
  const driver = driverOf(given, { sent, file, task, listed });
  const lease = { release: () => undefined };
  const inventory = { storages: [{ name: "local", node: "n1", isUsable: true, isShared: false }] };
  const place = { name: "lab", systemId: "lab-1" };
  const connection = { ...place, driver, inventory, spec: {} } as unknown as Connection;
  const silent = { opened: () => undefined, operated: () => undefined, failed: () => undefined };
  const operations = {
    clock,
    random: { uuid: () => "new" },
    memory: new OperationMemory(),
    slots: { tryAcquire: () => lease, assume: () => lease },
    reports: silent,
    pace: { waitMs: () => 1_000 },
    fence: { mayWrite: () => true },
    openOperations: { list: () => [], whenListed: () => undefined },
    epochOf: () => undefined,
  };
  const deps = {
    clock,
    client: {
      of: () => ({
        get: () => Promise.resolve({ metadata: { uid: "another" } }),
        updateStatus: (written: VMImage) => Promise.resolve(written),
      }),
    },
    files,
    images: { note: (written: VMImage) => written },
    allImages: { list: () => [own, ...others] },
    vms: { byIndex: () => [] },
    hypervisors: { get: () => ({}) },
    connections: {
      isUntried: () => false,
      isDoubted: () => false,
      of: () => ({ is: "connected", connection }),
    },
    random: { number: () => 0 },
    reports: silent,
    operations,
    wake: () => undefined,
    web,
  };
  const cache = { seen: new Map() };
  const turn = { key: "default/debian", deps, cache, image: own } as unknown as ImageTurn;
  return { turn, sent, connection, files, listed };
}

interface Ended {
  readonly sent: string[];
  readonly copy: Copy | undefined;
  readonly claim: string | undefined;
}

async function removed(given: Given): Promise<Ended> {
  const { turn, sent, files } = stageOf({ copy: present, ...given });
  await removeOld(turn, () => true);
  return endOf({ turn, sent, files });
}

async function brought(given: Given): Promise<Ended> {
  const { turn, sent, connection, files } = stageOf(given);
  await bringTo(turn, { target, connection });
  return endOf({ turn, sent, files });
}

function endOf({
  turn,
  sent,
  files,
}: Pick<ReturnType<typeof stageOf>, "turn" | "sent" | "files">): Ended {
  const { state, owner } = files.claim?.spec ?? {};
  const claim = state && `${owner?.uid} ${state}`;
  return { sent: sent.map(({ kind }) => kind), copy: copiesOf(turn)[0], claim };
}

const chosen = { fileName: "mine.qcow2" };
const mine = { storage: "local", name: "mine.qcow2", content: "Image" } as const;
const by = (step: string) => ({ id: "op", step, node: "n1", since: formatTime(clock.nowMs()) });
const reserved: ClaimSpec = { ...claimed, state: "Reserved" };
const reservedMine: ClaimSpec = { ...reserved, file: { ...mine, operation: by("Download") } };

describe("the file of an image that goes", () => {
  it("is removed if the Claim says that Berth brought it", async () => {
    assert.deepEqual((await removed({ claim: claimed, fileBytes: 5 })).sent, ["removeImage"]);
  });

  it("is not removed if it is another file than the Claim was bound for", async () => {
    const boundAt = formatTime(clock.nowMs());
    const bound = { ...claimed, boundAt };
    const own = { storage: "local", name: ownName, content: "Image" } as const;
    const given = { claim: { ...bound, file: { ...own, size: "5" } } };
    assert.deepEqual((await removed({ ...given, fileBytes: 5 })).sent, ["removeImage"]);
    const other = await removed({ ...given, fileBytes: 6 });
    assert.deepEqual([other.sent, other.claim], [[], "u Released"]);
  });

  it("is not removed if no Claim says so, whatever the status says", async () => {
    assert.deepEqual((await removed({})).sent, []);
    assert.deepEqual((await removed({ claim: { ...claimed, state: "Released" } })).sent, []);
  });

  it("is not removed if it is another image's", async () => {
    const owner = { ...claimed.owner, uid: "another" };
    const { sent, claim } = await removed({ claim: { ...claimed, owner } });
    assert.deepEqual([sent, claim], [[], "another Bound"]);
  });

  it("passes to another image that names it", async () => {
    const other = { ...image, metadata: { ...image.metadata, uid: "other" } };
    const { sent, claim } = await removed({ claim: claimed, others: [other], fileBytes: 5 });
    assert.deepEqual([sent, claim], [[], "other Bound"]);
  });

  it("is not removed while the request that brings it may still arrive", async () => {
    const coming = { ...present, operation: unanswered("Download") };
    const given = { copy: coming, claim: claimed };
    assert.deepEqual((await removed({ ...given, fileBytes: 5 })).sent, []);
    const { copy, claim } = await removed(given);
    assert.deepEqual([copy, claim], [coming, "u Bound"], "nobody forgets what may still come");
  });

  it("is left alone if nothing proves that Berth brought it", async () => {
    const copy = { ...present, fileName: "mine.qcow2" };
    const given = { copy, claim: reservedMine, spec: chosen };
    const found = await removed({ ...given, fileBytes: 5 });
    assert.deepEqual([found.sent, found.claim], [[], "u Released"]);
    const none = await removed(given);
    assert.deepEqual([none.sent, none.claim], [[], undefined]);
  });

  it("is left alone if nothing proves that Berth brought it, also under Berth's own name", async () => {
    const file = { ...mine, name: ownName, operation: by("Download") };
    const found = await removed({ claim: { ...reserved, file }, fileBytes: 5 });
    assert.deepEqual([found.sent, found.claim], [[], "u Released"]);
  });

  it("is removed if it is what a task of an upload left of it", async () => {
    const file = { ...mine, size: "7", operation: { ...by("Upload"), task: "t" } };
    const copy = { ...present, fileName: "mine.qcow2" };
    const given = { copy, claim: { ...reserved, file }, spec: chosen };
    assert.deepEqual((await removed({ ...given, fileBytes: 5 })).sent, ["removeImage"]);
    assert.deepEqual((await removed({ ...given, fileBytes: 7 })).sent, []);
  });

  it("is left alone if it is larger than what the upload that ended well sent", async () => {
    const file = { ...mine, size: "7", operation: by("Upload") };
    const copy = { ...present, fileName: "mine.qcow2", operation: unanswered("Upload") };
    const given = { copy, claim: { ...reserved, file }, spec: chosen, isDone: true };
    assert.deepEqual((await removed({ ...given, fileBytes: 7 })).sent, ["removeImage"]);
    const larger = await removed({ ...given, fileBytes: 8 });
    assert.deepEqual([larger.sent, larger.claim], [[], "u Released"]);
  });

  it("is left alone if it is smaller than an upload that never arrived", async () => {
    const file = { ...mine, size: "7", operation: by("Upload") };
    const copy = { ...present, fileName: "mine.qcow2" };
    const found = await removed({
      copy,
      claim: { ...reserved, file },
      spec: chosen,
      fileBytes: 5,
    });
    assert.deepEqual([found.sent, found.claim], [[], "u Released"]);
  });
});

describe("the file of an image that is needed", () => {
  const coming: Copy = { ...present, state: "Downloading", operation: unanswered("Download") };

  it("is not asked for again while the first request may still arrive", async () => {
    assert.deepEqual((await brought({})).sent, ["fetchImage"]);
    assert.deepEqual((await brought({ copy: coming, claim: reserved })).sent, []);
  });

  it("is not written over if somebody else put another one there", async () => {
    const { sent, copy } = await brought({ fileBytes: 5, spec: { size: "7" } });
    assert.deepEqual(sent, []);
    assert.match(copy?.failure?.message ?? "", /not the 7/);
  });

  it("is not sent again while the first request may still write it", async () => {
    const sending = { ...coming, size: "7", operation: unanswered("Upload") };
    const file = { ...mine, name: ownName, size: "7", operation: by("Upload") };
    const given = { fileBytes: 5, copy: sending, claim: { ...reserved, file } };
    assert.deepEqual((await brought(given)).sent, []);
    const left = await brought({ ...given, isDone: true, end: "lost" });
    assert.deepEqual(left.sent, ["putImage"], "what a killed worker left is written again");
  });

  it("is not taken for whole if it has another size than was declared", async () => {
    const { copy } = await brought({ fileBytes: 5, spec: { size: "7" } });
    assert.notEqual(copy?.state, "Present");
  });

  it("is not called Berth's without a Claim, whatever its name", async () => {
    for (const spec of [chosen, {}]) {
      const { copy } = await brought({
        fileBytes: 5,
        spec,
        copy: { ...present, state: "Missing" },
      });
      assert.deepEqual([copy?.state, copy?.brought, copy?.verified], ["Present", false, false]);
    }
  });

  it("is not written over if it is smaller than an upload that never arrived", async () => {
    const file = { ...mine, name: ownName, size: "7", operation: by("Upload") };
    const ended = { ...coming, operation: unanswered("Upload", 0) };
    const given = { fileBytes: 5, copy: ended, claim: { ...reserved, file } };
    const { sent, copy } = await brought(given);
    assert.deepEqual(sent, []);
    assert.match(copy?.failure?.message ?? "", /has 5 bytes/);
  });

  const lost = { ...coming, operation: unanswered("Download", 0) };
  const reservedOwn = {
    ...reserved,
    file: { ...mine, name: ownName, checksum: http.checksum, operation: by("Download") },
  };

  it("is not called Berth's because a request for it was lost", async () => {
    for (const one of [{ spec: chosen, claim: reservedMine }, { claim: reservedOwn }]) {
      const { copy, claim } = await brought({ ...one, fileBytes: 5, copy: lost });
      assert.deepEqual([copy?.state, copy?.brought, claim], ["Present", false, "u Released"]);
      assert.deepEqual([copy?.verified, copy?.claim], [false, undefined]);
      const done = await brought({ ...one, fileBytes: 5, copy: lost, isDone: true });
      assert.deepEqual([done.copy?.brought, done.claim], [true, "u Bound"]);
    }
  });

  it("is not given up while the task that brought it may still be found", async () => {
    const { copy, claim } = await brought({ fileBytes: 5, copy: coming, claim: reservedOwn });
    assert.deepEqual([copy?.state, claim], ["Downloading", "u Reserved"]);
  });

  it("is not called Berth's because the hypervisor had it before the request", async () => {
    const stage = stageOf({ copy: lost, claim: reservedOwn, isThere: true });
    const { turn, connection, files } = stage;
    await bringTo(turn, { target, connection });
    assert.equal(stage.sent.length, 1);
    const { id } = copiesOf(turn)[0]?.operation ?? {};
    const operation = { ...by("Download"), id: id ?? "" };
    await files.set({ ...reservedOwn, file: { ...reservedOwn.file, operation } });
    stage.listed.sizeBytes = 5;
    await bringTo(turn, { target, connection });
    assert.deepEqual([copiesOf(turn)[0]?.brought, files.claim?.spec.state], [false, "Released"]);
  });

  it("is looked for among the tasks of an image that is gone, before it is given up", async () => {
    const owner = { ...claimed.owner, uid: "gone" };
    const given = { fileBytes: 5, claim: { ...reservedOwn, owner } };
    const stage = stageOf({ ...given, isDone: true });
    await bringTo(stage.turn, { target, connection: stage.connection });
    assert.deepEqual([copiesOf(stage.turn)[0]?.operation?.id, stage.sent], ["op", []]);
    await bringTo(stage.turn, { target, connection: stage.connection });
    const { copy, claim } = endOf(stage);
    assert.deepEqual([copy?.brought, copy?.verified, claim], [true, true, "u Bound"]);
  });

  it("is verified where another image brought it with the same checksum", async () => {
    const owner = { ...claimed.owner, uid: "another" };
    const { copy } = await brought({ fileBytes: 5, claim: { ...claimed, owner } });
    assert.deepEqual([copy?.brought, copy?.verified], [false, true]);
    const file = { ...mine, checksum: `sha256:${"b".repeat(64)}` };
    const other = await brought({ fileBytes: 5, spec: chosen, claim: { ...claimed, owner, file } });
    assert.match(other.copy?.failure?.message ?? "", /another checksum/);
  });

  it("is not used if it is another file than its Claim was bound for", async () => {
    const file = { ...mine, name: ownName, size: "5", checksum: http.checksum };
    const bound = { ...claimed, file, boundAt: formatTime(clock.nowMs()) };
    const same = await brought({ fileBytes: 5, claim: bound });
    assert.deepEqual([same.copy?.state, same.copy?.verified], ["Present", true]);
    const other = await brought({ fileBytes: 6, claim: bound });
    assert.deepEqual([other.copy?.state, other.copy?.verified], ["Failed", false]);
    assert.deepEqual([other.sent, other.claim], [[], "u Released"]);
    assert.match(other.copy?.failure?.message ?? "", /was replaced/);
  });

  it("is waited for while another image brings it", async () => {
    const owner = { ...claimed.owner, uid: "another" };
    const { copy } = await brought({ fileBytes: 5, claim: { ...reserved, owner } });
    assert.equal(copy?.failure?.category, "DependencyNotReady");
  });

  it("passes to this image where the one that brought it is gone", async () => {
    const owner = { ...claimed.owner, uid: "gone" };
    const { copy, claim } = await brought({ fileBytes: 5, claim: { ...claimed, owner } });
    assert.deepEqual([copy?.brought, claim], [true, "u Bound"]);
  });
});

describe("the Claim of a download that failed", () => {
  it("goes, unless another operation or the file itself is under it", async () => {
    const left = async (claim: ClaimSpec, id = "op"): Promise<string | undefined> => {
      const { turn, connection, files } = stageOf({ claim });
      const place = { hypervisor: "lab", storage: "local", node: "n1" };
      const record = { ...unanswered("Download"), id };
      await forgetDownload(turn, { connection, node: "n1", place }, record);
      return files.claim?.spec.state;
    };
    assert.equal(await left(reservedMine), undefined);
    assert.equal(await left(reservedMine, "older"), "Reserved");
    assert.equal(await left({ ...reservedMine, state: "Bound" }), "Bound");
  });
});

describe("a file that is to pass through Berth", () => {
  it("is not sent if it has another size than was declared", async () => {
    const { connection } = stageOf({});
    const sized = { ...image, spec: { ...image.spec, size: "9" } };
    assert.equal((await openSource(web, sized, connection)).ok, false);
    assert.equal((await openSource(web, image, connection)).ok, true);
  });
});
