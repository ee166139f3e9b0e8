import type { VMImage } from "../../api/index.ts";
import type { PveRequest } from "../../drivers/proxmox/index.ts";
import { isSaidReady } from "./readiness.ts";
import { isHeld, type ClaimChange, type Records } from "./records.ts";
import type { Site } from "./site.ts";
import { Violation } from "./violation.ts";

const stormMs = 600_000;
/** Twice as many as the waits between attempts allow. */
const downloadsMost = 12;
/** The first wait between two attempts is half a minute, or a fifth less, in whole seconds. */
const pauseMsLeast = 23_000;

/** A request that was on its way when a status was lost takes so long at most. */
const lostIntentMs = 60_000;

interface FileAt {
  readonly node: string;
  readonly storage?: string;
  readonly file: string;
}

/** Whether a node sees the file. In a history no storage for files is shared. */
function isThere({ model }: Site, { node, file }: FileAt): boolean {
  return Object.entries(model.cluster.state.volumes).some(([backing, volumes]) => {
    return backing.startsWith(`${node}:`) && volumes.some(({ name }) => name.endsWith(`/${file}`));
  });
}

export function isDownload({ method, path }: PveRequest): boolean {
  return method === "POST" && path.endsWith("/download-url");
}

/** The laws of files that hypervisors fetch. */
export class FileLaws {
  readonly #records: Records;
  readonly #nowMs: () => number;
  readonly #sent = new Map<string, number[]>();
  #lostMs = -Infinity;
  /** Whether another copy of the installation may have work under way. */
  isShared: () => boolean = () => false;

  constructor(records: Records, nowMs: () => number) {
    this.#records = records;
    this.#nowMs = nowMs;
  }

  /** Laws 5 and 6: the intent is durable; the same file is fetched once at a time, and seldom. */
  beforeDownload(site: Site, { path, params = {} }: PveRequest): void {
    const file = String(params["filename"]);
    const [, node = "", storage = ""] = /^\/nodes\/([^/]+)\/storage\/([^/]+)\//.exec(path) ?? [];
    const what = `the download of ${file} to ${node} on ${site.name} was sent`;
    if (!this.#hasIntent(String(params["checksum"]))) {
      throw new Violation(5, `${what} without an intent`);
    }
    if (!this.#isReserved(site, { node, storage, file })) {
      throw new Violation(5, `${what} without a Claim`);
    }
    if (isThere(site, { node, file })) throw new Violation(6, `${what}, and it is there already`);
    // One whose task nobody remembers, nobody can know of.
    const tasks = site.model.cluster.state.nodes.flatMap((one) => one.tasks);
    const known = new Set(tasks.map(({ pid }) => pid));
    const isRunning = site.model.cluster.processes.list().some((worker) => {
      return worker.node === node && worker.name === `download:${file}` && known.has(worker.pid);
    });
    // The other copy of the installation may have begun one a moment before its epoch was seen.
    if (isRunning && !this.isShared()) throw new Violation(6, `${what}, and one is under way`);
    this.#demandPace(`${site.name} ${path} ${file}`, what);
  }

  #demandPace(key: string, what: string): void {
    const nowMs = this.#nowMs();
    const recent = (this.#sent.get(key) ?? []).filter((ms) => ms > nowMs - stormMs);
    this.#sent.set(key, [...recent, nowMs]);
    const pauseMs = nowMs - (recent.at(-1) ?? -Infinity);
    if (pauseMs < pauseMsLeast) throw new Violation(6, `${what} again after ${pauseMs} ms`);
    if (recent.length < downloadsMost) return;
    throw new Violation(6, `${what}, the ${recent.length + 1}th in ten minutes`);
  }

  /** A status was taken away: what was sent by then had its intent, and its pace is forgotten. */
  loseStatus(): void {
    this.#lostMs = this.#nowMs();
    this.#sent.clear();
  }

  /** Law 2: what Berth brought is in the ledger until it is gone, whatever a status says. */
  atClaim({ before, after }: ClaimChange, sites: ReadonlyMap<string, Site>): void {
    if (before === undefined || !isHeld(before.spec) || after !== undefined) return;
    const { node = "", file, hypervisor } = before.spec;
    const site = sites.get(hypervisor.name);
    if (site === undefined || !isThere(site, { node, file: file?.name ?? "" })) return;
    throw new Violation(
      2,
      `the Claim of ${file?.name} on ${site.name} is gone, and the file is not`,
    );
  }

  /** Law 7: an image is Ready only while its file is on a hypervisor. */
  atImage({ metadata, spec, status }: VMImage, sites: Iterable<Site>): void {
    const digest = spec.source.http?.checksum.replace(/^.*:/, "");
    if (digest === undefined || !isSaidReady({ status })) return;
    for (const { model } of sites) {
      const files = Object.values(model.cluster.state.volumes).flat();
      if (files.some(({ sha256 }) => sha256 === digest)) return;
    }
    throw new Violation(7, `the image ${metadata.name} is Ready, and its file is nowhere`);
  }

  #isReserved({ name }: Site, { node, storage, file: fileName }: FileAt): boolean {
    return [...this.#records.files.values()].some(({ spec }) => {
      const { file, hypervisor } = spec;
      const isHere = hypervisor.name === name && file?.storage === storage;
      const isIt = file?.name === fileName && (spec.node === undefined || spec.node === node);
      return isHere && isIt && isHeld(spec);
    });
  }

  #hasIntent(checksum: string): boolean {
    if (this.#lostMs > this.#nowMs() - lostIntentMs) return true;
    return [...this.#records.images.values()].some(({ spec, status }) => {
      const isIts = spec.source.http?.checksum.endsWith(checksum) === true;
      const copies = status?.copies ?? [];
      return isIts && copies.some(({ operation }) => operation !== undefined);
    });
  }
}
