import type { FailureCategory, VMImageStatus } from "../../api/index.ts";
import type { PveRequest } from "../../drivers/proxmox/index.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { targetOf, type Behind } from "./laws-steps.ts";
import type { ObjectChange, Records } from "./records.ts";
import type { Site } from "./site.ts";

type VMImageFailure = NonNullable<VMImageStatus["failure"]>;

/** An object that tells how its steps failed. */
interface Failing {
  readonly status?:
    | {
        readonly operation?: { readonly step: string } | undefined;
        readonly failedSteps?:
          | readonly { readonly step: string; readonly category: FailureCategory }[]
          | undefined;
      }
    | undefined;
}

/** What is declared, decided and true behind a request, as far as it excuses the next one. */
export class Excuses {
  readonly #records: Records;
  /** How often a person said something of an object, by uid: also what was taken back at once. */
  readonly #said = new Map<string, number>();

  constructor(records: Records) {
    this.#records = records;
  }

  hear({ before, after }: ObjectChange<KubeObject>): void {
    if (before === undefined || after === undefined) return;
    if (JSON.stringify(wordOf(before)) === JSON.stringify(wordOf(after))) return;
    const { uid = "" } = after.metadata;
    this.#said.set(uid, (this.#said.get(uid) ?? 0) + 1);
  }

  behind(site: Site, request: PveRequest): Behind {
    const [kind, id = "", file = ""] = (targetOf(request) ?? "").split(" ");
    const records = this.#records;
    const { owner } = records.claimOf(site.name, id)?.spec ?? {};
    const vm = records.vms.get(`${owner?.namespace}/${owner?.name}`);
    const orphans = [...records.orphans.values()].filter(({ spec }) => {
      const isIt = spec.externalId === id || spec.externalId.includes(`vm-${id}-`);
      const isHere = spec.hypervisor === site.name && (kind === "file" || isIt);
      return isHere && spec.decision !== undefined;
    });
    // Which VMs want a file, and which bring it, is not told by its name.
    const users = kind === "file" ? [...records.vms.values(), ...records.images.values()] : [];
    const objects = [records.hypervisors.get(site.name), vm, ...orphans, ...users];
    const said = objects.map((one) => one && [wordOf(one), this.#said.get(one.metadata.uid ?? "")]);
    const word = JSON.stringify([said, worldOf(site, request, id)]);
    const failing = vm === undefined ? [...orphans, ...this.#copies(site, request, file)] : [vm];
    return { word, category: categoryIn(failing) };
  }

  /** The copies of images that a request for a file may be about. */
  #copies({ name }: Site, { path }: PveRequest, file: string): Failing[] {
    const [, node, storage] = /^\/nodes\/([^/]+)\/storage\/([^/]+)\//.exec(path) ?? [];
    const copies = [...this.#records.images.values()].flatMap(({ status }) => status?.copies ?? []);
    return copies
      .filter((copy) => copy.hypervisor === name && copy.storage === storage)
      .filter((copy) => copy.fileName === file && (copy.node ?? node) === node)
      .map(({ operation, failure, failedSteps = [] }) => {
        return { status: { operation, failedSteps: [...failedSteps, ...stepsIn(failure)] } };
      });
  }
}

function stepsIn(
  failure: VMImageFailure | undefined,
): { step: string; category: FailureCategory }[] {
  const { step, category } = failure ?? {};
  return step === undefined || category === undefined ? [] : [{ step, category }];
}

/** Everything that a person can say of an object. */
function wordOf({ metadata }: KubeObject): unknown[] {
  const { uid, generation, deletionTimestamp, annotations } = metadata;
  return [uid, generation, deletionTimestamp, annotations];
}

/** What is other after somebody's hands were at it, or its node went or came back. */
function worldOf(site: Site, { path }: PveRequest, id: string): unknown[] {
  const { cluster, faults } = site.model;
  const node = /^\/nodes\/([^/]+)\//.exec(path)?.[1] ?? "";
  return [site.touches.at(id), cluster.findNode(node)?.isOnline, faults.hasNoQuorum];
}

function categoryIn(objects: readonly Failing[]): FailureCategory | undefined {
  for (const { status } of objects) {
    const step = status?.operation?.step;
    const failed = status?.failedSteps?.findLast((one) => one.step === step);
    if (failed !== undefined) return failed.category;
  }
  return undefined;
}
