import { bodyOf, type Http } from "./http.ts";

/** What the server acknowledged, to be held against what it still knows after a crash. */
export interface Ledger {
  /** name → the newest resourceVersion and payload that was acknowledged; null for a deletion. */
  readonly acknowledged: Map<string, { revision: number; payload: string } | null>;
  /** Names whose last write got no answer: it may have happened or not. */
  readonly unknown: Set<string>;
  /** Every acknowledged revision of a put, for gaps in watches. */
  readonly revisions: number[];
  writes: number;
  refused: number;
}

export function createLedger(): Ledger {
  return { acknowledged: new Map(), unknown: new Set(), revisions: [], writes: 0, refused: 0 };
}

const collection = "/api/v1/namespaces/default/configmaps";

export function configMapPath(name: string): string {
  return `${collection}/${name}`;
}

/**
 * Creates, changes and deletes objects one after the other until the connection breaks or
 * `isStopped` says so. Every answer goes into the ledger; a write without an answer is unknown.
 */
export async function writeUntilBroken(options: {
  readonly http: Http;
  readonly ledger: Ledger;
  readonly writer: string;
  readonly payload: (count: number) => string;
  readonly isStopped: () => boolean;
}): Promise<void> {
  for (let count = 0; !options.isStopped(); count++) {
    const name = `${options.writer}-${count}`;
    const steps = [createStep, updateStep, ...(count % 3 === 2 ? [deleteStep] : [])];
    for (const step of steps) {
      options.ledger.unknown.add(name);
      const answered = await step(options, name, options.payload(count));
      if (answered === "broken") return;
      options.ledger.unknown.delete(name);
      if (answered === "refused") break;
    }
  }
}

type Answer = "stored" | "refused" | "broken";
type Writing = { readonly http: Http; readonly ledger: Ledger };

function createStep(writing: Writing, name: string, payload: string): Promise<Answer> {
  const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data: { payload } };
  return put(writing, name, { method: "POST", path: collection, body });
}

function updateStep(writing: Writing, name: string, payload: string): Promise<Answer> {
  const body = { data: { payload: `${payload} changed` } };
  const type = "application/merge-patch+json";
  return put(writing, name, { method: "PATCH", path: configMapPath(name), body, type });
}

async function deleteStep(writing: Writing, name: string): Promise<Answer> {
  const reply = await tryAsk(writing.http, { method: "DELETE", path: configMapPath(name) });
  if (reply === undefined) return "broken";
  if (reply.status !== 200) return refuse(writing.ledger);
  writing.ledger.acknowledged.set(name, null);
  writing.ledger.writes += 1;
  return "stored";
}

async function put(
  writing: Writing,
  name: string,
  ask: Parameters<Http["ask"]>[0],
): Promise<Answer> {
  const reply = await tryAsk(writing.http, ask);
  if (reply === undefined) return "broken";
  if (reply.status !== 200 && reply.status !== 201) return refuse(writing.ledger);
  const stored = bodyOf(reply);
  const revision = Number(stored.metadata.resourceVersion);
  writing.ledger.acknowledged.set(name, { revision, payload: stored.data.payload });
  writing.ledger.revisions.push(revision);
  writing.ledger.writes += 1;
  return "stored";
}

function refuse(ledger: Ledger): Answer {
  ledger.refused += 1;
  return "refused";
}

async function tryAsk(
  http: Http,
  ask: Parameters<Http["ask"]>[0],
): Promise<Awaited<ReturnType<Http["ask"]>> | undefined> {
  try {
    return await http.ask(ask);
  } catch {
    return undefined; // The connection broke: whether the write happened is not known.
  }
}
