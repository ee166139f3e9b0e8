import type { KubeObject } from "../../kernel/object.ts";
import { objectKey } from "../../kernel/object.ts";
import { isStream, type WireRequest, type WireResponse, type WireSink } from "../../kernel/wire.ts";
import { Violation } from "./violation.ts";

export interface WatcherOptions {
  /** The collection that is watched. */
  readonly url: string;
  readonly ask: (request: WireRequest) => Promise<WireResponse>;
  /** Keeps what is thrown, because who writes into a watch must not hear of it. */
  readonly guard: (check: () => void) => void;
  /** The server ended the watch: it has to begin again. */
  readonly onEnd: () => void;
}

interface News {
  readonly type: string;
  readonly object: KubeObject;
}

/**
 * Somebody who lists and watches through the API, as any client does, and believes what comes. In
 * the end they must know what the store has.
 */
export class Watcher {
  readonly #options: WatcherOptions;
  /** The version of each object, by its key. */
  readonly known = new Map<string, string>();
  /** Counts beginnings: what an earlier one still hears does not count. */
  #begun = 0;
  #revision = 0;

  constructor(options: WatcherOptions) {
    this.#options = options;
  }

  /** Lists, and watches from there. To be called whenever the API was started. */
  async begin(): Promise<void> {
    const { url, ask } = this.#options;
    this.#begun += 1;
    const begun = this.#begun;
    const list = await this.#read(ask, url);
    if (begun !== this.#begun || list === undefined) return;
    const { resourceVersion = "0" } = list.metadata;
    this.#guard(() => this.#listed(Number(resourceVersion), list.items));
    const watch = await ask(get(`${url}?watch=true&resourceVersion=${resourceVersion}`));
    if (!isStream(watch.body)) return;
    const hear = (line: string): void => this.#guard(() => this.#hear(line, begun));
    // A server ends a watch from time to time, and whoever wants to know more comes again.
    const ended = (): void => {
      if (begun === this.#begun) this.#options.onEnd();
    };
    const leave = watch.body.start(sinkOf(hear, ended));
    if (begun !== this.#begun) leave();
  }

  async #read(ask: WatcherOptions["ask"], url: string): Promise<ObjectList | undefined> {
    const { status, body } = await ask(get(url));
    if (status !== 200 || isStream(body)) return undefined;
    const bytes = body instanceof Uint8Array ? body : Buffer.concat(body);
    // cast: a list is what the API answers with.
    return JSON.parse(Buffer.from(bytes).toString()) as ObjectList;
  }

  /** Law "order": a later list is no older than what was heard before. */
  #listed(revision: number, items: readonly KubeObject[]): void {
    if (revision < this.#revision) {
      throw new Violation("order", `a list of revision ${revision} follows ${this.#revision}`);
    }
    this.#revision = revision;
    this.known.clear();
    for (const { metadata } of items) this.known.set(objectKey(metadata), versionOf(metadata));
  }

  #hear(line: string, begun: number): void {
    if (begun !== this.#begun) return;
    // cast: news are what the API writes into a watch.
    const { type, object } = JSON.parse(line) as News;
    const { metadata } = object;
    const revision = Number(versionOf(metadata));
    if (type === "BOOKMARK") return;
    const key = objectKey(metadata);
    if (revision <= this.#revision) {
      throw new Violation("order", `the watch tells ${revision} of ${key} after ${this.#revision}`);
    }
    this.#revision = revision;
    demandFitting(type, key, this.known.has(key));
    if (type === "DELETED") this.known.delete(key);
    else this.known.set(key, versionOf(metadata));
  }

  /** Law "order": whoever watched knows every object as it is. */
  demandKnows(objects: ReadonlyMap<string, KubeObject>): void {
    const { url } = this.#options;
    for (const [key, { metadata }] of objects) {
      if (this.known.get(key) === versionOf(metadata)) continue;
      const told = this.known.get(key) ?? "nothing";
      const is = versionOf(metadata);
      throw new Violation("order", `the watch of ${url} told ${told} of ${key}, and it is ${is}`);
    }
    for (const key of this.known.keys()) {
      if (objects.has(key)) continue;
      throw new Violation("order", `the watch of ${url} did not tell that ${key} is gone`);
    }
  }

  #guard(check: () => void): void {
    this.#options.guard(check);
  }
}

interface ObjectList {
  readonly metadata: { readonly resourceVersion?: string };
  readonly items: readonly KubeObject[];
}

function demandFitting(type: string, key: string, isKnown: boolean): void {
  if (isKnown === (type !== "ADDED")) return;
  throw new Violation(
    "order",
    `the watch says ${type} of ${key}, which it ${isKnown ? "has" : "had not"} told of`,
  );
}

function versionOf({ resourceVersion = "" }: KubeObject["metadata"]): string {
  return resourceVersion;
}

function get(url: string): WireRequest {
  return { method: "GET", url, headers: { accept: "application/json" }, body: new Uint8Array() };
}

/** Cuts what is written into lines. */
function sinkOf(onLine: (line: string) => void, end: () => void): WireSink {
  let rest = "";
  return {
    write: (chunk) => {
      const lines = (rest + Buffer.from(chunk).toString()).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line !== "") onLine(line);
    },
    end,
    bufferedBytes: () => 0,
  };
}
