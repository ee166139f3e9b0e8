import { nodeOf, type PveReply, type PveRequest, type Send } from "./wire.ts";

/**
 * Keeps at most so many calls in flight per node. Every call blocks one of a node's three workers
 * (pvedaemon and pveproxy, `max_workers`), so more than two leave none for people. Of questions to
 * guests there is one at a time: an agent that is silent holds its worker for three seconds.
 */
export function limited(send: Send, callsPerNode: number): Send {
  const gates = new Map<string, Gate>();
  const gateOf = (key: string): Gate => {
    const gate = gates.get(key) ?? { inFlight: 0, waiting: [] };
    gates.set(key, gate);
    return gate;
  };
  return async (request: PveRequest): Promise<PveReply> => {
    const node = nodeOf(request.path) ?? "";
    const toNode = (): Promise<PveReply> => {
      return through(gateOf(node), callsPerNode, () => send(request));
    };
    if (!isForGuest(request)) return await toNode();
    return await through(gateOf(`guests of ${node}`), 1, toNode);
  };
}

async function through<T>(gate: Gate, most: number, call: () => Promise<T>): Promise<T> {
  await enter(gate, most);
  try {
    return await call();
  } finally {
    leave(gate);
  }
}

function isForGuest({ path }: PveRequest): boolean {
  return /^\/nodes\/[^/]+\/qemu\/[^/]+\/agent\//.test(path);
}

interface Gate {
  inFlight: number;
  readonly waiting: (() => void)[];
}

async function enter(gate: Gate, most: number): Promise<void> {
  if (gate.inFlight < most) {
    gate.inFlight++;
    return;
  }
  // The place of the one that leaves is handed over, so nobody can slip in between.
  await new Promise<void>((resolve) => gate.waiting.push(resolve));
}

function leave(gate: Gate): void {
  const next = gate.waiting.shift();
  if (next === undefined) gate.inFlight--;
  else next();
}
